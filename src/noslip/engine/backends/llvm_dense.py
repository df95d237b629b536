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

PAIR = "<2 x double>"
WRITTEN_OUT = 32  # columns of a row that is updated without a loop


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


def _update(w: LlvmWriter, a: Matrix, i: str, first: str, factor: str, k: str | None = None) -> None:
    """From column `first` on, row i times the factor; or with k, row i and the factor times row k."""
    rest = _update_pairs(w, a, i, first, factor, k) if w.pairs else first
    with counting(w, rest, str(a.columns)) as j:
        target = a.at(i, j)
        if k is None:
            a.put(target, w.emit(f"fmul {w.type('f')} {a.get(target)}, {factor}"))
        else:
            a.put(target, w.intrinsic("fma", "f", factor, a.get(a.at(k, j)), a.get(target)))


def _update_pairs(w: LlvmWriter, a: Matrix, i: str, first: str, factor: str, k: str | None) -> str:
    """The same for two columns at a time, whole rows written out; returns the column that is left over."""
    one = w.emit(f"insertelement {PAIR} poison, double {factor}, i32 0")
    factors = w.emit(f"insertelement {PAIR} {one}, double {factor}, i32 1")

    def update(j: str) -> None:
        place = a.at(i, j)
        x = w.emit(f"load {PAIR}, ptr {place}, align 8")
        if k is None:
            new = w.emit(f"fmul {PAIR} {x}, {factors}")
        else:
            above = w.emit(f"load {PAIR}, ptr {a.at(k, j)}, align 8")
            w.declared.add(f"declare {PAIR} @llvm.fma.v2f64({PAIR}, {PAIR}, {PAIR})")
            args = ", ".join(f"{PAIR} {value}" for value in (factors, above, x))
            new = w.emit(f"call {PAIR} @llvm.fma.v2f64({args})")
        w.line(f"store {PAIR} {new}, ptr {place}, align 8")

    if first == "0" and a.columns <= WRITTEN_OUT:
        for j in range(0, a.columns - 1, 2):
            update(str(j))
        return str(a.columns // 2 * 2)
    pairs = w.emit(f"lshr i64 {w.emit(f'sub nsw i64 {a.columns}, {first}')}, 1")
    with counting(w, "0", pairs) as pair:
        update(w.emit(f"add nsw i64 {first}, {w.emit(f'shl nsw i64 {pair}, 1')}"))
    return w.emit(f"add nsw i64 {first}, {w.emit(f'shl nsw i64 {pairs}, 1')}")


def _eliminate(w: LlvmWriter, a: Matrix, k: str, low: str, high: str, first: str, clear: bool) -> None:
    """Subtract multiples of row k from rows low..high, from column `first` on; with `clear` as if their
    entries in column k were 0. Pairs are not read when half of one has just been written: processors wait."""
    with counting(w, low, high) as i:
        head = a.at(i, k)
        factor = w.emit(f"fneg {w.type('f')} {a.get(head)}")
        if clear and not w.pairs:
            a.put(head, w.literal(0.0))
        _update(w, a, i, first, factor, k)
        if clear and w.pairs:
            a.put(head, w.intrinsic("fma", "f", factor, a.get(a.at(k, k)), w.literal(0.0)))


def inverse(w: LlvmWriter, n: int, _: int) -> None:
    """Replace the n x n matrix by its inverse."""
    a, order = Matrix(w, "%array", n), w.stack("i", n)
    with counting(w, "0", str(n)) as k:
        pivot = _pivot(w, a, k, n)
        place = w.emit(f"getelementptr {w.type('i')}, ptr {order}, i64 {k}")
        w.line(f"store {w.type('i')} {pivot}, ptr {place}, align 8")
        _exchange(w, a, k, pivot, n, n, rows=True)
        corner = a.at(k, k)
        scale = w.emit(f"fdiv {w.type('f')} {w.literal(1.0)}, {a.get(corner)}")
        if not w.pairs:
            a.put(corner, w.literal(1.0))
        _update(w, a, k, "0", scale)
        if w.pairs:
            a.put(corner, scale)
        below = w.emit(f"add nsw i64 {k}, 1")
        for low, high in (("0", k), (below, str(n))):
            _eliminate(w, a, k, low, high, "0", clear=True)
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
        scale = w.emit(f"fdiv {w.type('f')} {w.literal(1.0)}, {a.get(a.at(k, k))}")
        after = w.emit(f"add nsw i64 {k}, 1")
        _update(w, a, k, after, scale)
        for low, high in (("0", k), (after, str(n))):
            _eliminate(w, a, k, low, high, after, clear=False)


ROUTINES: dict[str, Callable[..., None]] = {"inverse": inverse, "solve": solve}
