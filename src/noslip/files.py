"""Files that appear whole or not at all: the one way in which a single file is written."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Gives an empty file beside `path` to write to; at the end of the block it takes the place of `path`.

    Its name cannot be guessed, keeps the ending of `path`, and is made anew, so that no link is followed. It
    reaches the disk before it gets its name; if the block fails it is gone, and `path` is as it was.
    """
    path = Path(path)
    require_plain(path)
    part = beside(path)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        _to_disk(part)
        part.replace(path)
        with suppress(OSError):  # where a folder cannot be opened, its entry is written when the system likes
            _to_disk(path.parent)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """The whole text, in UTF-8, or nothing."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def beside(path: Path) -> Path:
    """A hidden name in the same folder that cannot be guessed, with the same ending."""
    return path.with_name(f".part-{secrets.token_hex(8)}{path.suffix}")


def require_plain(path: Path) -> None:
    """Refuse what is there and is no plain file: a folder, a link, a device, a pipe."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode):
        return
    kind = "a folder" if stat.S_ISDIR(mode) else "a link" if stat.S_ISLNK(mode) else "a device or a pipe"
    raise ValueError(f"'{path}' must be a new or a plain file, but it is {kind}")


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
