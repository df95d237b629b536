"""Rolled linear algebra in LLVM IR: Gauss-Jordan elimination with partial pivoting, in place.

Each lane chooses its own pivot rows. Rows are exchanged where the pivot asks for it, which is rare in the
matrices of mechanics, so a whole exchange is skipped when no lane needs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from noslip.engine.program import Dense

if TYPE_CHECKING:
    from noslip.engine.backends.llvm_text import LlvmWriter

PAIR, SHORT = "<2 x double>", 2
HELD = 4  # pieces of two pivot rows that are held at once


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


def _pivot(w: LlvmWriter, a: Matrix, k: str, n: int, entry: Callable[[str], str] | None = None) -> str:
    """Per lane, the row at or below k with the largest entry in column k; or entry(i) in row i."""
    entry = entry or (lambda i: a.get(a.at(i, k)))
    best, row = w.stack("f"), w.stack("i")
    a.put(best, w.intrinsic("fabs", "f", entry(k)))
    w.line(f"store {w.type('i')} {_splat(w, k)}, ptr {row}, align 8")
    below = w.emit(f"add nsw i64 {k}, 1")
    with counting(w, below, str(n)) as i:
        size, so_far = w.intrinsic("fabs", "f", entry(i)), a.get(best)
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


def spacing(w: LlvmWriter, columns: int) -> int:
    """Entries from one row to the next. One is added where it spares the pieces of two and of one."""
    return columns + (columns > w.side_by_side > 2 and columns % 4 == 3)


class _TwoPivotRows:
    """Rows k and k + 1, both divided by their pivots, so that the others are read and written half as often:
    where vectors are short, that is what elimination waits for. Each entry sees the same operations in the
    same order. They are held with the sign that takes them away, some pieces at a time, while all rows pass
    by, themselves as well; then they are put in their places."""

    def __init__(self, w: LlvmWriter, a: Matrix, k: str, choose: Callable[..., None]):
        self.w, self.a, self.k = w, a, k
        self.next = w.emit(f"add nuw nsw i64 {k}, 1")
        self.kept = Matrix(w, w.stack("f", 2 * a.columns), 2)  # what each row loses of both
        choose(k)
        self.scales = [self._reciprocal(self._lost(k))]
        self.ahead = w.emit(f"fmul double {a.get(a.at(k, self.next))}, {self._negative(self.scales[0])}")
        choose(self.next, self._lost_then)
        self.scales.append(self._reciprocal(self._lost_then(self.next)))
        self.signed = [self._negative(scale) for scale in self.scales]
        self.lost = self._lost(self.next)

    def eliminate(self, n: int, inverse: bool = False) -> None:
        """Take them from the others; for an inverse, its columns k and k + 1 replace what vanishes."""
        w, pieces = self.w, list(_pieces(self.a.columns, self.w.side_by_side))
        for start in range(0, len(pieces), HELD):
            held = pieces[start : start + HELD]
            both = [self._held(piece) for piece in held]
            last = inverse and start + HELD >= len(pieces)
            with counting(w, "0", str(n // 2)) as half:
                i = w.emit(f"shl nuw nsw i64 {half}, 1")
                for row in (i, w.emit(f"or disjoint i64 {i}, 1")):
                    self._pass(row, held, both, start == 0, last)
            if n % 2:
                self._pass(str(n - 1), held, both, start == 0, last)
            for piece, (one, two) in zip(held, both, strict=True):
                one, factor = self._negative(one, piece[1]), self._negative(self.ahead)
                self._store(self.k, piece, _fused(w, piece[1], _repeated(w, factor, piece[1]), two, one))
                self._store(self.next, piece, self._negative(two, piece[1]))
        if inverse:
            self._corner()

    def _pass(
        self, i: str, held: list[tuple[int, int]], both: list[tuple[str, str]], first: bool, last: bool
    ) -> None:
        """Row i passes by."""
        w, factors = self.w, self._factors(i, first)
        for piece, rows in zip(held, both, strict=True):
            value = self._load(i, piece)
            for factor, row in zip(factors, rows, strict=True):
                value = _fused(w, piece[1], _repeated(w, factor, piece[1]), row, value)
            self._store(i, piece, value)
        if last:
            self._columns(i, factors)

    def _lost(self, i: str) -> str:
        """What row i loses of row k."""
        return self.a.get(self.a.at(i, self.k))

    def _lost_then(self, i: str) -> str:
        """What it loses of row k + 1 after that."""
        return _fused(self.w, 1, self._lost(i), self.ahead, self.a.get(self.a.at(i, self.next)))

    def _factors(self, i: str, first: bool) -> list[str]:
        """Both, from the row before anything is taken from it, or as kept then."""
        places = [self.kept.at(i, "0"), self.kept.at(i, "1")]
        if not first:
            return [self.kept.get(place) for place in places]
        factors = [self._lost(i), self._lost_then(i)]
        for place, factor in zip(places, factors, strict=True):
            self.kept.put(place, factor)
        return factors

    def _held(self, piece: tuple[int, int]) -> tuple[str, str]:
        """A piece of both rows, divided and negative."""
        w, width = self.w, piece[1]
        kind, (less, other) = _several(w, width), (_repeated(w, x, width) for x in self.signed)
        one = w.emit(f"fmul {kind} {self._load(self.k, piece)}, {less}")
        rest = _fused(w, width, _repeated(w, self.lost, width), one, self._load(self.next, piece))
        return one, w.emit(f"fmul {kind} {rest}, {other}")

    def _below(self) -> str:
        """Minus the entry of the inverse at (k + 1, k), once that row is divided."""
        w = self.w
        return w.emit(f"fmul double {self._times(self.lost, self.signed[0])}, {self.signed[1]}")

    def _columns(self, i: str, factors: list[str]) -> None:
        """Entries of row i in the columns k and k + 1 of the inverse, which are neighbours."""
        w, zeros = self.w, "zeroinitializer"
        first = _fused(w, 2, _repeated(w, factors[0], 2), _repeated(w, self.signed[0], 2), zeros)
        first = w.emit(f"shufflevector {PAIR} {first}, {PAIR} {zeros}, <2 x i32> <i32 0, i32 3>")
        one = w.emit(f"insertelement {PAIR} poison, double {self._below()}, i32 0")
        both = w.emit(f"insertelement {PAIR} {one}, double {self.signed[1]}, i32 1")
        value = _fused(w, 2, _repeated(w, factors[1], 2), both, first)
        w.line(f"store {PAIR} {value}, ptr {self.a.at(i, self.k)}, align 8")

    def _corner(self) -> None:
        """Those of the rows k and k + 1."""
        a, k, then, factor = self.a, self.k, self.next, self._negative(self.ahead)
        a.put(a.at(k, k), _fused(self.w, 1, factor, self._below(), self.scales[0]))
        a.put(a.at(k, then), self._times(factor, self.signed[1]))
        a.put(a.at(then, k), self._negative(self._below()))
        a.put(a.at(then, then), self.scales[1])

    def _times(self, x: str, y: str) -> str:
        return _fused(self.w, 1, x, y, self.w.literal(0.0))

    def _reciprocal(self, x: str) -> str:
        return self.w.emit(f"fdiv double {self.w.literal(1.0)}, {x}")

    def _negative(self, x: str, width: int = 1) -> str:
        return self.w.emit(f"fneg {_several(self.w, width)} {x}")

    def _load(self, i: str, piece: tuple[int, int]) -> str:
        return self.w.emit(f"load {_several(self.w, piece[1])}, ptr {self.a.at(i, str(piece[0]))}, align 8")

    def _store(self, i: str, piece: tuple[int, int], value: str) -> None:
        self.w.line(f"store {_several(self.w, piece[1])} {value}, ptr {self.a.at(i, str(piece[0]))}, align 8")


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


def _pivots(w: LlvmWriter, n: int, one: Callable[[str], None], two: Callable[[str], None]) -> None:
    """The pivots in turn: two at a time where vectors are short."""
    if w.side_by_side != SHORT or n == 1:
        with counting(w, "0", str(n)) as k:
            one(k)
        return
    with counting(w, "0", str(n // 2)) as half:
        two(w.emit(f"shl nuw nsw i64 {half}, 1"))
    if n % 2:
        one(str(n - 1))


def inverse(w: LlvmWriter, n: int, _: int) -> None:
    """Replace the n x n matrix by its inverse."""
    a, order = Matrix(w, "%array", spacing(w, n)), w.stack("i", n)

    def choose(k: str, entry: Callable[[str], str] | None = None) -> None:
        pivot = _pivot(w, a, k, n, entry)
        place = w.emit(f"getelementptr {w.type('i')}, ptr {order}, i64 {k}")
        w.line(f"store {w.type('i')} {pivot}, ptr {place}, align 8")
        _exchange(w, a, k, pivot, n, n, rows=True)

    def one(k: str) -> None:
        choose(k)
        _PivotRow(w, a, k).eliminate_in_place(n)

    _pivots(w, n, one, lambda k: _TwoPivotRows(w, a, k, choose).eliminate(n, inverse=True))
    with counting(w, "0", str(n)) as back:  # undo the exchanges, last first, in the columns
        k = w.emit(f"sub nsw i64 {n - 1}, {back}")
        place = w.emit(f"getelementptr {w.type('i')}, ptr {order}, i64 {k}")
        pivot = w.emit(f"load {w.type('i')}, ptr {place}, align 8")
        _exchange(w, a, k, pivot, n, n, rows=False)


def solve(w: LlvmWriter, n: int, _: int, columns: int) -> None:
    """Turn [A | B] into [. | A^-1 B]."""
    a = Matrix(w, "%array", spacing(w, columns))

    def choose(k: str, entry: Callable[[str], str] | None = None) -> None:
        _exchange(w, a, k, _pivot(w, a, k, n, entry), n, columns, rows=True)

    def one(k: str) -> None:
        choose(k)
        _PivotRow(w, a, k).eliminate(n)

    _pivots(w, n, one, lambda k: _TwoPivotRows(w, a, k, choose).eliminate(n))


ROUTINES: dict[str, Callable[..., None]] = {"inverse": inverse, "solve": solve}


def call(w: LlvmWriter, item: Dense) -> None:
    """Put the inputs into an array, call the routine on it, which is written on first use, and read there."""
    n, t = item.size[0], w.type("f")
    routine = f"{item.routine}_{'_'.join(map(str, item.size))}_{w.lanes}"
    if routine not in w.routines:
        inner = w.inner()
        ROUTINES[item.routine](inner, *item.size)
        inner.line("ret void")
        w.declared |= inner.declared
        w.routines[routine] = inner.function(f"internal void @{routine}(ptr noalias %array)")
    columns, wide = len(item.inputs) // n, len(item.results) // n
    apart = spacing(w, columns)
    array = w.stack("f", n * apart)

    def at(i: int, j: int) -> str:
        return w.emit(f"getelementptr {t}, ptr {array}, i64 {i * apart + j}")

    for i, j in itertools.product(range(n), range(apart)):
        value = w.name(item.inputs[i * columns + j]) if j < columns else w.literal(0.0)
        w.line(f"store {t} {value}, ptr {at(i, j)}, align 8")
    w.line(f"call void @{routine}(ptr {array})")
    for r, (i, j) in zip(
        item.results, itertools.product(range(n), range(columns - wide, columns)), strict=True
    ):
        w.names[r] = w.emit(f"load {t}, ptr {at(i, j)}, align 8")
