"""A Zarr folder whose every byte is checked: what is read is what was written, or an error names the file.

Chunks end in a checksum, Zarr's codec crc32c, so that every reader of Zarr verifies them; zarr.json, the
description of an array or group, carries its own among its attributes. Zarr takes a chunk that is not there
for one of fill values; here that is an error where the checkpoint says that the chunk has been written. A
file reaches the disk before it gets its name, and gets it in one move.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from noslip.errors import Damaged
from noslip.files import write_bytes

if TYPE_CHECKING:
    import zarr
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype
    from zarr.storage import LocalStore

CHECKSUM = "crc32c"  # the name of the codec, and of the attribute
FILLED = "filled"  # attribute of an array: when its chunks come; without it a missing one says nothing
COUNTED = "counted"  # attribute: which word of the checkpoint counts its rows, where it is not that of all
AT_ONCE, BY_ROWS, AT_THE_END = "at once", "by rows", "at the end"
CHECKPOINT = "resume/checkpoint"
Attributes = dict[str, Any]  # what a folder says of itself, from JSON


def require_zarr() -> ModuleType:
    """The module, or a sentence."""
    if importlib.util.find_spec("zarr") is None:
        raise ImportError(
            "a run on disk needs the package zarr, but it is not installed; pip install noslip[store]"
        )
    import zarr

    return zarr


def open_checked(folder: Path, mode: str) -> zarr.Group:
    """The Zarr group in a folder: "r" to read, "r+" to go on, "w" to begin."""
    return require_zarr().open_group(_checked_store()(folder, read_only=mode == "r"), mode=mode)


def array_of(group: zarr.Group, name: str) -> zarr.Array:
    """An array that must be there; written to, it gets also chunks that hold nothing but fill values."""
    with require_zarr().config.set({"array.write_empty_chunks": True}):
        try:
            return group[name]
        except KeyError:
            folder = group.store_path.store.root
            raise Damaged(f"'{folder}' is damaged: it has lost its file '{name}/zarr.json'") from None


def new_array(
    group: zarr.Group, name: str, filled: str | None, counted: int | None = None, **how: object
) -> None:
    """An array of a new folder, with checksums; `filled` says when its chunks must be there, `counted` which
    word of the checkpoint tells their number."""
    from zarr.codecs import Crc32cCodec, ZstdCodec

    codecs = [ZstdCodec(level=0, checksum=False), Crc32cCodec()]
    array = group.create_array(name, compressors=codecs, config={"write_empty_chunks": True}, **how)
    if filled is not None:
        array.attrs[FILLED] = filled  # now that it holds what it was made with
    if counted is not None:
        array.attrs[COUNTED] = counted


@functools.cache
def _checked_store() -> type[LocalStore]:
    """The class, made when Zarr is first needed."""
    import asyncio

    require_zarr()
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import LocalStore

    class CheckedStore(LocalStore):
        """Zarr's folder of files, with every file checked."""

        def get_sync(
            self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
        ) -> Buffer | None:
            data = checked_bytes(self.root, key)
            if data is None:
                return None
            if byte_range is not None:
                return super().get_sync(key, prototype=prototype, byte_range=byte_range)
            return (prototype or default_buffer_prototype()).buffer.from_bytes(data)

        def set_sync(self, key: str, value: Buffer) -> None:
            self._check_writable()
            path, data = self.root / key, value.to_bytes()
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, _with_checksum(data) if _is_description(key) else data)

        async def get(
            self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
        ) -> Buffer | None:
            return await asyncio.to_thread(self.get_sync, key, prototype=prototype, byte_range=byte_range)

        async def set(self, key: str, value: Buffer) -> None:
            await asyncio.to_thread(self.set_sync, key, value)

    return CheckedStore


# ---- what is checked ------------------------------------------------------------------------------------


def checked_bytes(folder: Path, key: str) -> bytes | None:
    """A file of the folder; None where it is not there and need not be."""
    try:
        data = (folder / key).read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        if (place := _place(key)) and _is_due(folder, *place):
            raise Damaged(f"'{folder}' is damaged: it has lost its file '{key}'") from None
        return None
    if _is_description(key):
        _description(folder, key, data)
    elif (place := _place(key)) and _has_checksum(folder, place[0]) and not _fits(data):
        raise Damaged(f"'{folder}' is damaged: '{key}' is not what was written")
    return data


def _is_description(key: str) -> bool:
    return key.rpartition("/")[2] == "zarr.json"


def _place(key: str) -> tuple[str, tuple[int, ...]] | None:
    """The array and the numbers of a chunk by the name of its file; None where that is no chunk."""
    name, separator, numbers = f"{key}/".rpartition("/c/")
    parts = numbers.strip("/").split("/") if numbers.strip("/") else []
    return (name, tuple(map(int, parts))) if separator and all(x.isdigit() for x in parts) else None


def _crc(data: bytes) -> int:
    import google_crc32c

    return int(google_crc32c.value(data))


def _fits(data: bytes) -> bool:
    return len(data) >= 4 and data[-4:] == np.uint32(_crc(data[:-4])).tobytes()


def _own_checksum(text: Attributes) -> int:
    rest = {k: x for k, x in text["attributes"].items() if k != CHECKSUM}
    return _crc(json.dumps(text | {"attributes": rest}, sort_keys=True).encode())


def _with_checksum(data: bytes) -> bytes:
    text = json.loads(data)
    text.setdefault("attributes", {})
    text["attributes"][CHECKSUM] = _own_checksum(text)
    return json.dumps(text, indent=2).encode()


def _description(folder: Path, key: str, data: bytes | None = None) -> Attributes:
    """What zarr.json says, if it is what was written; the empty dictionary where there is none."""
    try:
        data = (folder / key).read_bytes() if data is None else data
        text = json.loads(data)
        checksum = text["attributes"].get(CHECKSUM)
        whole = checksum is None or checksum == _own_checksum(text)
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, KeyError, AttributeError):
        whole = False
    if not whole:
        raise Damaged(f"'{folder}' is damaged: '{key}' is not what was written")
    return dict(text)


def _array(folder: Path, name: str) -> Attributes:
    return _description(folder, f"{name}/zarr.json")


def _has_checksum(folder: Path, name: str) -> bool:
    return any(codec.get("name") == CHECKSUM for codec in _array(folder, name).get("codecs", ()))


def _is_due(folder: Path, name: str, place: tuple[int, ...]) -> bool:
    """Whether this chunk has been written: the checkpoint tells of those that come with time."""
    described = _array(folder, name)
    filled = described.get("attributes", {}).get(FILLED)
    if filled is None or filled == AT_ONCE:
        return filled is not None
    member = "member" in (described.get("dimension_names") or ())
    if name == CHECKPOINT:  # written before the mark of who fills the chunk
        return (folder / f"resume/mark/c/{place[0]}").exists()
    counted = described["attributes"].get(COUNTED, 1)
    finished, written = _progress(folder, place[0] if member else 0, counted)
    if filled == AT_THE_END:
        return finished
    rows = described["chunk_grid"]["configuration"]["chunk_shape"][1 if member else 0]
    return bool(place[1 if member else 0] * rows < written)


def _progress(folder: Path, k: int, counted: int) -> tuple[bool, int]:
    """Whether chunk k of the members is finished and how many rows of it are written, by its checkpoint;
    read without Zarr, since Zarr may be waiting for the answer."""
    from numcodecs.zstd import Zstd

    data = checked_bytes(folder, f"{CHECKPOINT}/c/{k}/0")
    if data is None:
        return False, 0
    words = np.frombuffer(Zstd().decode(data[:-4]), "<i8", count=counted + 1)
    return bool(words[0]), int(words[counted])


# ---- all of it ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verified:
    """What a look at every byte found: the number of files, which are damaged, how many have no checksum."""

    files: int
    damaged: tuple[str, ...]
    unchecked: int


def verify_folder(folder: Path) -> Verified:
    """Check every chunk and every description of a store."""
    damaged, files, unchecked = _lost_arrays(folder), 0, 0
    arrays = sorted(path.parent.relative_to(folder).as_posix() for path in folder.rglob("zarr.json"))
    for name in arrays:
        try:
            described = _description(folder, "zarr.json" if name == "." else f"{name}/zarr.json")
        except Damaged as error:
            damaged.append(str(error))
            continue
        files += 1
        if described.get("node_type") != "array":
            continue
        checks = _has_checksum(folder, name)
        for key in _keys(name, described):
            try:
                there = checked_bytes(folder, key) is not None
            except Damaged as error:
                damaged.append(str(error))
                there = True
            files, unchecked = files + there, unchecked + (there and not checks)
    return Verified(files, tuple(damaged), unchecked)


def _lost_arrays(folder: Path) -> list[str]:
    """Arrays that the layout names and that are not there."""
    try:
        layout = _description(folder, "zarr.json").get("attributes", {}).get("layout", {})
    except Damaged:
        return []  # which is said when its turn comes
    names = [*layout.get("columns", ()), *(("resume", CHECKPOINT) if layout else ())]
    names += ["resume/q0", "resume/v0"] if "members" in layout else []
    return [
        f"'{folder}' is damaged: it has lost its file '{name}/zarr.json'"
        for name in names
        if not (folder / name / "zarr.json").is_file()
    ]


def _keys(name: str, described: Attributes) -> Iterator[str]:
    shape, chunks = described["shape"], described["chunk_grid"]["configuration"]["chunk_shape"]
    counts = [-(-n // size) for n, size in zip(shape, chunks, strict=True)]
    for place in itertools.product(*map(range, counts)):
        yield "/".join([name, "c", *map(str, place)])
