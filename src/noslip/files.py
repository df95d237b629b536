"""Files that appear whole or not at all: the one way in which a single file, or a new folder, is written."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from noslip.errors import shown

try:
    import fcntl
except ImportError:  # not on Windows, where an open file can be neither renamed nor removed
    fcntl = None  # type: ignore[assignment]

LEFTOVER = re.compile(r"\.part-[0-9a-f]{16}(\..*)?")
SECONDS_UNTOUCHED = 60.0  # a file of a living process is locked by then
DISK_FAILS = {errno.ENOSPC, errno.EIO, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
SEAL = re.compile(rb"\nnoslip sha256 ([0-9a-f]{64})\n\Z")
SEAL_LENGTH = 80
OTHERS = {".zarr", ".png", ".pdf", ".svg", ".gif", ".mp4", ".html", ".htm", ".csv", ".txt", ".json", ".py"}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Gives an empty file beside `path` to write to; at the end of the block it takes the place of `path`.

    Its name cannot be guessed, keeps the ending of `path`, and is made anew, so that no link is followed. It
    reaches the disk before it gets its name; if the block fails it is gone, and `path` is as it was. What
    killed processes have left in the folder is removed first.
    """
    path = Path(path)
    require_plain(path)
    sweep(path.parent)
    with _swapping(path) as part:
        yield part


@contextmanager
def _swapping(path: Path, mode: int = 0o666, lasting: bool = True) -> Iterator[Path]:
    part = beside(path)
    handle = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    try:
        with _held(handle):
            yield part
            if lasting:
                _to_disk(part)
            part.replace(path)
        if lasting:
            _entry_to_disk(path.parent)
    except OSError as error:
        raise in_words(error, path) from None
    finally:
        part.unlink(missing_ok=True)


def in_words(error: OSError, path: Path) -> OSError:
    """An error of the system as one sentence about the file that was meant."""
    if error.errno is None:
        return error
    said = type(error)(f"cannot write '{path}': {error.strerror}")
    said.errno = error.errno
    return said


def write_text(path: str | Path, text: str) -> None:
    """The whole text, in UTF-8, or nothing."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """The whole of it or nothing, in a folder of ours, where nobody else puts links."""
    with _swapping(path) as part:
        part.write_bytes(data)


def write_private(path: Path, data: bytes) -> None:
    """The same for this user's eyes alone. It need not outlast a power cut: its reader has a checksum."""
    with _swapping(path, 0o600, lasting=False) as part:
        part.write_bytes(data)


def open_unlinked(path: Path) -> int:
    """A handle of the file itself, for reading; a link in its place is an OSError."""
    return os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Gives an empty folder beside `path` to fill; at the end of the block it gets that name, in one move.
    Where something has taken the name meanwhile that is an OSError; what was made is gone then."""
    sweep(path.parent)
    part = beside(path)
    part.mkdir()
    try:
        with _held(os.open(part, os.O_RDONLY)) if fcntl else contextlib.nullcontext():
            yield part
            part.rename(path)
        _entry_to_disk(path.parent)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def sweep(folder: Path, below: bool = False) -> None:
    """Remove what killed processes have left half-written in this folder, or also below it: nobody holds
    those files any more."""
    if fcntl is None:
        return
    for found in folder.rglob(".part-*") if below else folder.glob(".part-*"):
        with suppress(OSError):
            kind, age = os.lstat(found).st_mode, time.time() - os.lstat(found).st_mtime
            ours = LEFTOVER.fullmatch(found.name) and (stat.S_ISREG(kind) or stat.S_ISDIR(kind))
            if not ours or 0 <= age < SECONDS_UNTOUCHED:
                continue
            with _held(os.open(found, os.O_RDONLY | os.O_NOFOLLOW), wait=False):
                shutil.rmtree(found) if stat.S_ISDIR(kind) else found.unlink(missing_ok=True)


@contextmanager
def _held(handle: int, wait: bool = True) -> Iterator[None]:
    """While the block runs, this process has the file for itself; dead, it has it no more."""
    if fcntl is None:
        os.close(handle)
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError:
            if not wait:
                raise  # else a file system without locks, where nothing is swept
        yield
    finally:
        os.close(handle)


def as_path(name: str, value: object) -> Path:
    """What can be the name of a file or folder, or a sentence."""
    if not isinstance(value, str | os.PathLike) or "\0" in str(value):
        raise TypeError(f"`{name}` must be the name of a file or folder, but {shown(value)} was provided")
    try:
        os.lstat(value)
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL):
            raise ValueError(f"`{name}` cannot be {shown(str(value))}: {error.strerror}") from None
    return Path(value)


def beside(path: Path) -> Path:
    """A hidden name in the same folder that cannot be guessed, with the same ending."""
    return path.with_name(f".part-{secrets.token_hex(8)}{path.suffix}")


def require_plain(path: Path) -> None:
    """Refuse what is there and is no plain file: a folder, a link, a device, a pipe."""
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"'{path}' must be a new or a plain file, but it is {_kind(mode)}")


def require_netcdf_name(path: Path) -> None:
    """Refuse a name that promises something else than a NetCDF file: a folder, a picture, a table."""
    if path.suffix.lower() in OTHERS:
        raise ValueError(f"'{path}' would be a NetCDF file, whose name must not end in {path.suffix}")


def require_folder(path: Path, what: str) -> None:
    """Refuse what is there and is no folder: a file, a link, a device, a pipe; `what` it should hold."""
    mode = _mode(path)
    if mode is not None and not stat.S_ISDIR(mode):
        raise ValueError(f"'{path}' must be a new folder or {what}, but it is {_kind(mode)}")


def _mode(path: Path) -> int | None:
    """What kind of thing is there, if there is one."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None
    except OSError as error:  # a folder on the way that may not be searched
        raise in_words(error, path) from None


def _kind(mode: int) -> str:
    kinds = {stat.S_ISREG: "a file", stat.S_ISDIR: "a folder", stat.S_ISLNK: "a link"}
    return next((word for is_it, word in kinds.items() if is_it(mode)), "a device or a pipe")


def require_writable(path: Path) -> None:
    """Refuse, before anything is computed, what could not be written afterwards."""
    folder = path.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"cannot write '{path}': there is no folder '{folder}'")
    part = beside(path)
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        part.unlink()
    except OSError as error:
        raise in_words(error, path) from None


def seal(data: bytes | memoryview) -> bytes:
    """A line that tells of these bytes, to be put after them: readers of NetCDF do not look there."""
    return b"\nnoslip sha256 " + hashlib.sha256(data).hexdigest().encode() + b"\n"


def sealed(path: str | Path) -> bool | None:
    """Whether a file is what its seal says; None where it has none."""
    digest, size = hashlib.sha256(), os.path.getsize(path) - SEAL_LENGTH
    with open(path, "rb") as file:
        while size > 0 and (block := file.read(min(size, 2**22))):
            digest.update(block)
            size -= len(block)
        found = SEAL.fullmatch(file.read()) if size == 0 else None
    return None if found is None else found[1] == digest.hexdigest().encode()


def _entry_to_disk(folder: Path) -> None:
    with suppress(OSError):  # where a folder cannot be opened, its entry is written when the system likes
        _to_disk(folder)


def _to_disk(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
