"""An object file of LLVM's wasm target as a module that a browser can take: exports are added, and what only
a linker reads is left out. Indices and addresses in an object are those of the object alone, so one object
needs no linker; its data begins at address 0.

The module imports `env.__linear_memory` and `env.__stack_pointer`, which must point above the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAGIC = b"\0asm\1\0\0\0"
CUSTOM, IMPORT, EXPORT, DATA = 0, 2, 7, 11
AFTER_EXPORTS = (8, 9, 12, 10, 11)  # start, elements, count of data, code, data
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)  # kinds of imports
SYMBOL_TABLE = 8
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40  # flags of symbols
OF_FUNCTION, OF_DATA, OF_SECTION = 0, 1, 3


@dataclass(frozen=True)
class Linked:
    """A module, the functions that it asks for, and the first address after its data."""

    code: bytes
    asked: tuple[str, ...]
    free: int


class _Reader:
    """Numbers, names and pieces of a section, one after the other."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        """An unsigned number in groups of seven bits, the lowest first."""
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def piece(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def name(self) -> str:
        return self.piece(self.number()).decode()

    def left(self) -> bool:
        return self.at < len(self.data)


def number(value: int) -> bytes:
    """What `_Reader.number` reads."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def linked(data: bytes, exports: Sequence[str]) -> Linked:
    """The module of an object file with these functions exported."""
    sections = list(_sections(data))
    places = next(_functions(body) for kind, body in sections if kind == CUSTOM and _is(body, "linking"))
    entries = [_named(name) + bytes([FUNCTION]) + number(places[name]) for name in exports]
    export = number(len(entries)) + b"".join(entries)
    out, exported = bytearray(MAGIC), False
    for kind, body in sections:
        if kind == CUSTOM:
            continue
        if kind in AFTER_EXPORTS and not exported:
            out += bytes([EXPORT]) + number(len(export)) + export
            exported = True
        out += bytes([kind]) + number(len(body)) + body
    asked = [name for kind, body in sections if kind == IMPORT for name in _asked(body)]
    free = max((_end(body) for kind, body in sections if kind == DATA), default=0)
    return Linked(bytes(out), tuple(asked), free)


def _named(name: str) -> bytes:
    return number(len(name.encode())) + name.encode()


def _is(body: bytes, name: str) -> bool:
    return _Reader(body).name() == name


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    assert data.startswith(MAGIC), "no object file of the wasm target"
    r = _Reader(data)
    r.piece(len(MAGIC))
    while r.left():
        kind = r.byte()
        yield kind, r.piece(r.number())


def _asked(body: bytes) -> list[str]:
    """The names of imported functions."""
    r, found = _Reader(body), []
    for _ in range(r.number()):
        r.name()
        name, kind = r.name(), r.byte()
        if kind == FUNCTION:
            found.append(name)
            r.number()
        elif kind == GLOBAL:
            r.piece(2)
        else:  # a table says of what it is; limits are one number or two
            r.piece(1 if kind == TABLE else 0)
            for _ in range(1 + (r.number() & 1)):
                r.number()
    return found


def _functions(linking: bytes) -> dict[str, int]:
    """The index of each function that the object defines."""
    r, found = _Reader(linking), {}
    r.name()
    r.number()  # the version
    while r.left():
        kind, part = r.byte(), _Reader(r.piece(r.number()))
        for _ in range(part.number() if kind == SYMBOL_TABLE else 0):
            what, flags = part.byte(), part.number()
            if what == OF_SECTION:
                part.number()
            elif what == OF_DATA:
                part.name()
                if not flags & UNDEFINED:
                    part.number(), part.number(), part.number()
            else:
                index = part.number()
                if not flags & UNDEFINED or flags & EXPLICIT_NAME:
                    name = part.name()
                    if what == OF_FUNCTION and not flags & UNDEFINED:
                        found[name] = index
    return found


def _end(body: bytes) -> int:
    """The first address after the data segments."""
    r, end = _Reader(body), 0
    for _ in range(r.number()):
        flags = r.number()
        assert flags == 0, "data with a place of its own"
        r.byte()  # i32.const, whose number is positive: addresses are below 2^27 here
        place = r.number()
        r.byte()  # end
        size = r.number()
        r.piece(size)
        end = max(end, place + size)
    return end
