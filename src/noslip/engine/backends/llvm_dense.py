"""Rolled linear algebra in LLVM IR: Gauss-Jordan elimination with partial pivoting, in place.

Each lane chooses its own pivot rows. Rows are exchanged where the pivot asks for it, which is rare in the
matrices of mechanics, so a whole exchange is skipped when no lane needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noslip.engine.backends.llvm_text import LlvmWriter


@contextmanager
def counting(w: LlvmWriter, low: str, high: str) -> Iterator[str]:
    """for i in range(low, high)."""
    i, body, leave = "%" + w.fresh("i"), w.fresh("body"), w.fresh("leave")
    origin, enter = w.label, w.emit(f"icmp slt i64 {low}, {high}")
    w.line(f"br i1 {enter}, label %{body}, label %{leave}")
    w.start(body)
    place = len(w.lines)
    yield i
    after = w.emit(f"add nsw i64 {i}, 1")
    w.lines.insert(place, f"  {i} = phi i64 [ {low}, %{origin} ], [ {after}, %{w.label} ]")
    again = w.emit(f"icmp slt i64 {after}, {high}")
    w.line(f"br i1 {again}, label %{body}, label %{leave}")
    w.start(leave)


@contextmanager
def when(w: LlvmWriter, condition: str) -> Iterator[None]:
    """if condition."""
    yes, leave = w.fresh("yes"), w.fresh("leave")
    w.line(f"br i1 {condition}, label %{yes}, label %{leave}")
    w.start(yes)
    yield
    w.line(f"br label %{leave}")
    w.start(leave)


class Matrix:
    """A table in memory whose entries are scalars or lanes."""

    def __init__(self, w: LlvmWriter, pointer: str, columns: int):
        self.w, self.pointer, self.columns = w, pointer, columns

    def at(self, i: str, j: str) -> str:
        row = self.w.emit(f"mul nsw i64 {i}, {self.columns}")
        index = self.w.emit(f"add nsw i64 {row}, {j}")
        return self.w.emit(f"getelementptr inbounds {self.w.type('f')}, ptr {self.pointer}, i64 {index}")

    def get(self, place: str) -> str:
        return self.w.emit(f"load {self.w.type('f')}, ptr {place}, align 8")

    def put(self, place: str, value: str) -> None:
        self.w.line(f"store {self.w.type('f')} {value}, ptr {place}, align 8")


def _splat(w: LlvmWriter, number: str) -> str:
    """A whole number in every lane."""
    if w.lanes == 1:
        return number
    t = w.type("i")
    one = w.emit(f"insertelement {t} poison, i64 {number}, i32 0")
    return w.emit(f"shufflevector {t} {one}, {t} poison, <{w.lanes} x i32> zeroinitializer")


def _pivot(w: LlvmWriter, a: Matrix, k: str, n: int) -> str:
    """Per lane, the row at or below k with the largest entry in column k."""
    best, row = w.stack("f"), w.stack("i")
    a.put(best, w.intrinsic("fabs", "f", a.get(a.at(k, k))))
    w.line(f"store {w.type('i')} {_splat(w, k)}, ptr {row}, align 8")
    below = w.emit(f"add nsw i64 {k}, 1")
    with counting(w, below, str(n)) as i:
        size, so_far = w.intrinsic("fabs", "f", a.get(a.at(i, k))), a.get(best)
        wins = w.emit(f"fcmp ogt {w.type('f')} {size}, {so_far}")
        old = w.emit(f"load {w.type('i')}, ptr {row}, align 8")
        a.put(best, w.select("f", wins, size, so_far))
        chosen = w.select("i", wins, _splat(w, i), old)
        w.line(f"store {w.type('i')} {chosen}, ptr {row}, align 8")
    return w.emit(f"load {w.type('i')}, ptr {row}, align 8")


def _exchange(w: LlvmWriter, a: Matrix, k: str, pivot: str, n: int, length: int, rows: bool) -> None:
    """Exchange row (or column) k with row `pivot`, lane by lane."""

    def place(line: str, along: str) -> str:
        return a.at(line, along) if rows else a.at(along, line)

    if w.lanes == 1:
        with when(w, w.emit(f"icmp ne i64 {pivot}, {k}")), counting(w, "0", str(length)) as j:
            here, there = place(k, j), place(pivot, j)
            x, y = a.get(here), a.get(there)
            a.put(here, y)
            a.put(there, x)
        return
    moved = w.emit(f"icmp ne {w.type('i')} {pivot}, {_splat(w, k)}")
    with when(w, w.any(moved)):
        below = w.emit(f"add nsw i64 {k}, 1")
        with counting(w, below, str(n)) as i:
            mask = w.emit(f"icmp eq {w.type('i')} {pivot}, {_splat(w, i)}")
            with when(w, w.any(mask)), counting(w, "0", str(length)) as j:
                here, there = place(k, j), place(i, j)
                x, y = a.get(here), a.get(there)
                a.put(here, w.select("f", mask, y, x))
                a.put(there, w.select("f", mask, x, y))


class _PivotRow:
    """Row k divided by its pivot, held while multiples of it are taken from all the others. Whole rows are
    worked on, several entries at once: columns that nobody will read cost less than to leave them out."""

    def __init__(self, w: LlvmWriter, a: Matrix, k: str):
        self.w, self.a, self.k = w, a, k
        self.scale = w.emit(f"fdiv {w.type('f')} {w.literal(1.0)}, {a.get(a.at(k, k))}")
        self.pieces = []
        for first, width in _pieces(a.columns, w.side_by_side):
            place, kind = a.at(k, str(first)), _several(w, width)
            old = w.emit(f"load {kind}, ptr {place}, align 8")
            new = w.emit(f"fmul {kind} {old}, {_repeated(w, self.scale, width)}")
            w.line(f"store {kind} {new}, ptr {place}, align 8")
            self.pieces.append((first, width, new))

    def eliminate(self, n: int) -> None:
        """Take it from the others so that their entries in column k vanish."""
        self._from_rows("0", self.k, inverse=False)
        self._from_rows(self.w.emit(f"add nsw i64 {self.k}, 1"), str(n), inverse=False)

    def eliminate_in_place(self, n: int) -> None:
        """The same, with column k of the inverse in the place of the entries that vanish."""
        self.a.put(self.a.at(self.k, self.k), self.scale)
        self._from_rows("0", self.k, inverse=True)
        self._from_rows(self.w.emit(f"add nsw i64 {self.k}, 1"), str(n), inverse=True)

    def _from_rows(self, low: str, high: str, inverse: bool) -> None:
        w, a = self.w, self.a
        with counting(w, low, high) as i:
            head = a.at(i, self.k)
            factor = w.emit(f"fneg {w.type('f')} {a.get(head)}")
            for first, width, row in self.pieces:
                place, kind = a.at(i, str(first)), _several(w, width)
                old = w.emit(f"load {kind}, ptr {place}, align 8")
                new = _fused(w, width, _repeated(w, factor, width), row, old)
                w.line(f"store {kind} {new}, ptr {place}, align 8")
            if inverse:
                a.put(head, _fused(w, 1, factor, self.scale, w.literal(0.0)))


def _pieces(columns: int, widest: int) -> Iterator[tuple[int, int]]:
    """First column and width of the pieces of a row: as wide as may be, then half as wide, and so on; short
    rows entry by entry."""
    first, width = 0, widest if columns >= widest else 1
    while first < columns:
        while first + width > columns:
            width //= 2
        yield first, width
        first += width


def _several(w: LlvmWriter, width: int) -> str:
    """The type of so many neighbours in memory; more than one only where values are scalars."""
    return w.type("f") if width == 1 else f"<{width} x double>"


def _repeated(w: LlvmWriter, value: str, width: int) -> str:
    if width == 1:
        return value
    t = _several(w, width)
    one = w.emit(f"insertelement {t} poison, double {value}, i32 0")
    return w.emit(f"shufflevector {t} {one}, {t} poison, <{width} x i32> zeroinitializer")


def _fused(w: LlvmWriter, width: int, x: str, y: str, z: str) -> str:
    """x y + z, rounded once."""
    if width == 1:
        return w.intrinsic("fma", "f", x, y, z)
    t = _several(w, width)
    w.declared.add(f"declare {t} @llvm.fma.v{width}f64({t}, {t}, {t})")
    return w.emit(f"call {t} @llvm.fma.v{width}f64({t} {x}, {t} {y}, {t} {z})")


def inverse(w: LlvmWriter, n: int, _: int) -> None:
    """Replace the n x n matrix by its inverse."""
    a, order = Matrix(w, "%array", n), w.stack("i", n)
    with counting(w, "0", str(n)) as k:
        pivot = _pivot(w, a, k, n)
        place = w.emit(f"getelementptr {w.type('i')}, ptr {order}, i64 {k}")
        w.line(f"store {w.type('i')} {pivot}, ptr {place}, align 8")
        _exchange(w, a, k, pivot, n, n, rows=True)
        _PivotRow(w, a, k).eliminate_in_place(n)
    with counting(w, "0", str(n)) as back:  # undo the exchanges, last first, in the columns
        k = w.emit(f"sub nsw i64 {n - 1}, {back}")
        place = w.emit(f"getelementptr {w.type('i')}, ptr {order}, i64 {k}")
        pivot = w.emit(f"load {w.type('i')}, ptr {place}, align 8")
        _exchange(w, a, k, pivot, n, n, rows=False)


def solve(w: LlvmWriter, n: int, _: int, columns: int) -> None:
    """Turn [A | B] into [. | A^-1 B]."""
    a = Matrix(w, "%array", columns)
    with counting(w, "0", str(n)) as k:
        pivot = _pivot(w, a, k, n)
        _exchange(w, a, k, pivot, n, columns, rows=True)
        _PivotRow(w, a, k).eliminate(n)


ROUTINES: dict[str, Callable[..., None]] = {"inverse": inverse, "solve": solve}
