"""A folder of what has been compiled, for the processes that come later: bytes by the words that name them.

A file is believed if it is this user's alone and its checksum fits; any other is made again. Where the folder
cannot be used, because it belongs to somebody else, others may write to it, or it is read-only, there is no
cache and nothing else changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from noslip.files import LEFTOVER, open_unlinked, sweep, write_private

VARIABLE = "NOSLIP_CACHE_DIR"
MOST = 256 * 2**20  # bytes; beyond, what has been longest without use goes
LESS = MOST * 3 // 4  # what is left of it then
MAGIC = b"noslip cache 1\n"


def folder() -> Path | None:
    """Where the cache is: `NOSLIP_CACHE_DIR`, or a folder among the user's caches; None where it is empty."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home) / "noslip" / "cache"
    if sys.platform == "darwin":
        return Path(home) / "Library" / "Caches" / "noslip"
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path(home) / ".cache") / "noslip"


def refusal(place: Path | None) -> str | None:
    """Why a folder is not used, if it is not; a folder that is not there is made."""
    if place is None:
        return f"{VARIABLE} is empty"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.stat(place)
    except OSError as error:
        return f"'{place}' cannot be used: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"'{place}' is not a folder"
    return f"'{place}' {why}" if (why := _is_shared(found)) else None


def _is_shared(found: os.stat_result) -> str | None:
    if not hasattr(os, "geteuid"):  # Windows: a folder of the user's profile is the user's
        return None
    if found.st_uid != os.geteuid():
        return "belongs to another user"
    return "can be written to by others" if found.st_mode & 0o022 else None


@contextlib.contextmanager
def unused() -> Iterator[None]:
    """While the block runs there is no cache, here and in processes started from here: for measuring."""
    named = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = ""
    try:
        yield
    finally:
        if named is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = named


def find(words: str) -> bytes | None:
    """What was put there under these words, byte for byte; None where it is not, or no more."""
    place = folder()
    if refusal(place) is not None or place is None:
        return None
    path = place / _name(words)
    try:
        data = _read(path)
    except OSError:
        return None
    start = len(MAGIC) + 32
    if data is None or data[:start] != MAGIC + _checksum(path.name, data[start:]):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # for the order in which they go
    return data[start:]


def put(words: str, data: bytes) -> None:
    """Keep these bytes, if that can be done."""
    place = folder()
    if refusal(place) is not None or place is None:
        return
    path = place / _name(words)
    with contextlib.suppress(OSError):
        write_private(path, MAGIC + _checksum(path.name, data) + data)
        _make_room(place)


def entries(place: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files of a cache."""
    with contextlib.suppress(OSError), os.scandir(place) as found:
        for item in found:
            with contextlib.suppress(OSError):
                ours = len(item.name) == 64 or LEFTOVER.fullmatch(item.name)
                if ours and item.is_file(follow_symlinks=False):
                    yield Path(item.path), item.stat(follow_symlinks=False)


def clear(place: Path) -> int:
    """Remove them; how many there were."""
    count = 0
    for path, _ in entries(place):
        path.unlink(missing_ok=True)
        count += 1
    return count


def _name(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()


def _checksum(name: str, data: bytes) -> bytes:
    return hashlib.sha256(name.encode() + data).digest()


def _read(path: Path) -> bytes | None:
    """The bytes of a file that is this user's alone; no link is followed."""
    handle = open_unlinked(path)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        return file.read() if stat.S_ISREG(found.st_mode) and not _is_shared(found) else None


def _make_room(place: Path) -> None:
    sweep(place)
    found = sorted(entries(place), key=lambda entry: entry[1].st_mtime)
    total = sum(entry.st_size for _, entry in found)
    full = total > MOST
    for path, entry in found:
        if full and total > LESS:
            with contextlib.suppress(OSError):
                path.unlink()
                total -= entry.st_size
