"""Operations of JAX that move, pick, reduce or multiply elements, on arrays of node numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import jax
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.extend.core import JaxprEqn
from jax.typing import ArrayLike, DTypeLike
from numpy.typing import NDArray

from noslip.engine.program import CannotTranslate, Number
from noslip.engine.translate.builder import KINDS, Builder
from noslip.engine.translate.jaxprs import array_of

Nodes: TypeAlias = NDArray[np.int64]  # node numbers in the place of the elements of an array


def kind_of(dtype: DTypeLike) -> str:
    """The type of a scalar: float64, any integer, or truth."""
    if jax.dtypes.issubdtype(dtype, jax.dtypes.extended):
        raise CannotTranslate(f"the step computes with {dtype}, which has no scalar form")
    plain = np.dtype(dtype)
    # other whole numbers count and index; where they could wrap around, `refuse_wrapping` refuses them
    if plain not in (np.float64, np.int64, np.int32, np.uint32, np.uint64, np.bool_):
        raise CannotTranslate(f"the step computes in {plain}; only float64 and int64 are translated")
    return "i" if plain.kind == "u" else plain.kind


def refuse_wrapping(name: str, dtype: DTypeLike) -> None:
    """Refuse arithmetic that could wrap around in this type where int64 does not."""
    plain = np.dtype(dtype)
    risky = {"mul", "shift_left", "convert"} | ({"neg", "not"} if plain.kind == "u" else set())
    if plain in (np.int32, np.uint32, np.uint64) and name in risky:
        raise CannotTranslate(f"'{name}' of {plain} may wrap around; int64 is translated")


Fold: TypeAlias = Callable[[Callable[[int, int], int], list[int]], int]


def _as_a_tree(combine: Callable[[int, int], int], numbers: list[int]) -> int:
    """For what does not depend on the order: pairs, pairs of those and so on, the shortest way to the
    last."""
    while len(numbers) > 1:
        rest = numbers[len(numbers) // 2 * 2 :]
        numbers = [*map(combine, numbers[::2], numbers[1::2]), *rest]
    return numbers[0]


class ArrayOperations:
    """A method `_name(eqn, *arrays)` for each operation."""

    b: Builder

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> Nodes:
        kind = kind_of(dtype)
        array = np.asarray(value)
        numbers = [self.b.const(KINDS[kind](x)) for x in array.ravel().tolist()]
        return np.array(numbers, dtype=np.int64).reshape(array.shape)

    def zeros(self, array: ShapedArray) -> Nodes:
        return self.constant(np.zeros(array.shape), array.dtype)

    def each(self, function: Callable[..., int], *args: Nodes) -> Nodes:
        arrays = np.broadcast_arrays(*args)
        out = np.empty(arrays[0].shape, dtype=np.int64)
        flat, b = out.reshape(-1), self.b
        for k, numbers in enumerate(zip(*(a.ravel().tolist() for a in arrays), strict=True)):
            flat[k] = function(b, *numbers)
        return out

    # ---- elements in other places -----------------------------------------------------------------
    def _slice(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        p = eqn.params
        strides = p["strides"] or (1,) * x.ndim
        return x[tuple(slice(*s) for s in zip(p["start_indices"], p["limit_indices"], strides, strict=True))]

    def _squeeze(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return np.squeeze(x, tuple(eqn.params["dimensions"]))

    def _expand_dims(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return np.expand_dims(x, tuple(eqn.params["dimensions"]))

    def _reshape(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return x.reshape(eqn.params["new_sizes"])

    def _broadcast_in_dim(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        shape = [1] * len(eqn.params["shape"])
        for size, d in zip(x.shape, eqn.params["broadcast_dimensions"], strict=True):
            shape[d] = size
        return np.broadcast_to(x.reshape(shape), eqn.params["shape"])

    def _transpose(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return np.transpose(x, eqn.params["permutation"])

    def _rev(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return np.flip(x, eqn.params["dimensions"])

    def _concatenate(self, eqn: JaxprEqn, *xs: Nodes) -> Nodes:
        return np.concatenate(xs, axis=eqn.params["dimension"])

    def _stack(self, eqn: JaxprEqn, *xs: Nodes) -> Nodes:
        return np.stack(xs, axis=eqn.params["axis"])

    def _tile(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return np.tile(x, eqn.params["reps"])

    def _unstack(self, eqn: JaxprEqn, x: Nodes) -> list[Nodes]:
        axis = eqn.params["axis"]
        return [np.take(x, k, axis) for k in range(x.shape[axis])]

    def _split(self, eqn: JaxprEqn, x: Nodes) -> list[Nodes]:
        ends = np.cumsum(eqn.params["sizes"])[:-1]
        return list(np.split(x, ends, axis=eqn.params["axis"]))

    def _pad(self, eqn: JaxprEqn, x: Nodes, filler: Nodes) -> Nodes:
        for axis, (low, high, inner) in enumerate(eqn.params["padding_config"]):
            size = x.shape[axis]
            if size and inner:
                wide = list(x.shape)
                wide[axis] = size + (size - 1) * inner
                spread = np.full(wide, int(filler), dtype=np.int64)
                spread[(slice(None),) * axis + (slice(None, None, inner + 1),)] = x
                x = spread
            x = x[(slice(None),) * axis + (slice(max(-low, 0), x.shape[axis] - max(-high, 0)),)]
            ends = [(0, 0)] * x.ndim
            ends[axis] = (max(low, 0), max(high, 0))
            x = np.pad(x, ends, constant_values=int(filler))
        return x

    def _iota(self, eqn: JaxprEqn) -> Nodes:
        p = eqn.params
        shape = [1] * len(p["shape"])
        shape[p["dimension"]] = p["shape"][p["dimension"]]
        line = np.arange(p["shape"][p["dimension"]]).reshape(shape)
        return self.constant(np.broadcast_to(line, p["shape"]), p["dtype"])

    def _copy(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return x

    _copy_p = _stop_gradient = _optimization_barrier = _device_put = _copy

    def _convert_element_type(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        kind = kind_of(eqn.params["new_dtype"])
        if kind_of(array_of(eqn.invars[0]).dtype) == "f":
            refuse_wrapping("convert", eqn.params["new_dtype"])
        return self.each(lambda b, a: b.convert(a, kind), x)

    def _gather(self, eqn: JaxprEqn, x: Nodes, indices: Nodes) -> Nodes:
        p, d = eqn.params, eqn.params["dimension_numbers"]
        sizes, out_shape = p["slice_sizes"], array_of(eqn.outvars[0]).shape
        batch = [k for k in range(len(out_shape)) if k not in d.offset_dims]
        kept = [
            k for k in range(x.ndim) if k not in d.collapsed_slice_dims and k not in d.operand_batching_dims
        ]
        out = np.empty(out_shape, dtype=np.int64)
        fills = p["mode"] == lax.GatherScatterMode.FILL_OR_DROP
        given = p["fill_value"]
        number = kind_of(array_of(eqn.outvars[0]).dtype) == "f"
        filler = self.b.const(float("nan") if given is None else float(given)) if number else None
        for place in np.ndindex(*out_shape):
            at = tuple(place[k] for k in batch)
            starts = [0] * x.ndim
            for component, axis in enumerate(d.start_index_map):
                starts[axis] = int(indices[(*at, component)])
            offset = [0] * x.ndim
            for axis, k in zip(kept, d.offset_dims, strict=True):
                offset[axis] = place[k]
            for axis, k in zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True):
                offset[axis] = at[k]
            looked = [axis in d.start_index_map for axis in range(x.ndim)]
            picked = self._pick(x, starts, offset, looked, sizes)
            inside = self._inside(x.shape, starts, looked, sizes) if fills else self.b.const(True)
            if filler is None and self.b.value(inside) is not True:
                raise CannotTranslate("a gather of whole numbers may read outside its array")
            out[place] = picked if filler is None else self.b.select(inside, picked, filler)
        return out

    def _inside(
        self, shape: Sequence[int], starts: list[int], looked: list[bool], sizes: Sequence[int]
    ) -> int:
        """Whether a window lies wholly in the array."""
        b = self.b
        inside = b.const(True)
        for axis, size in enumerate(shape):
            if looked[axis]:
                top = b.const(int(size - sizes[axis]))
                here = b.both(b.compare("le", b.const(0), starts[axis]), b.compare("le", starts[axis], top))
                inside = b.both(inside, here)
        return inside

    def _pick(
        self, x: Nodes, starts: list[int], offset: list[int], looked: list[bool], sizes: Sequence[int]
    ) -> int:
        """The element at start + offset; starts may be known only at run time, and are clipped."""
        b = self.b
        for axis in range(x.ndim):
            top = x.shape[axis] - sizes[axis]
            if not looked[axis]:
                x = x.take([offset[axis]], axis)
                continue
            known = b.value(starts[axis])
            if known is not None:
                x = x.take([min(max(int(known), 0), top) + offset[axis]], axis)
                continue
            chosen = x.take([top + offset[axis]], axis)
            for k in reversed(range(top)):
                here = b.compare("le", starts[axis], b.const(k))
                chosen = self.each(
                    lambda b, y, n, c=here: b.select(c, y, n), x.take([k + offset[axis]], axis), chosen
                )
            x = chosen
        return int(x.reshape(()))

    def _dynamic_slice(self, eqn: JaxprEqn, x: Nodes, *starts: Nodes) -> Nodes:
        sizes = eqn.params["slice_sizes"]
        out = np.empty(sizes, dtype=np.int64)
        numbers = [int(s) for s in starts]
        for place in np.ndindex(*sizes):
            out[place] = self._pick(x, numbers, list(place), [True] * x.ndim, sizes)
        return out

    def _dynamic_update_slice(self, eqn: JaxprEqn, x: Nodes, update: Nodes, *starts: Nodes) -> Nodes:
        b, out = self.b, x.copy()
        tops = [size - part for size, part in zip(x.shape, update.shape, strict=True)]
        known = [k for s in starts if (k := b.value(int(s))) is not None]
        if len(known) == len(starts):
            fixed = [min(max(int(k), 0), top) for k, top in zip(known, tops, strict=True)]
            out[tuple(slice(a, a + s) for a, s in zip(fixed, update.shape, strict=True))] = update
            return out
        for at in np.ndindex(*(top + 1 for top in tops)):
            here = b.const(True)
            for a, start, top in zip(at, starts, tops, strict=True):
                low = b.compare("le", int(start), b.const(0)) if a == 0 else None
                high = b.compare("ge", int(start), b.const(top)) if a == top else None
                exact = b.compare("eq", int(start), b.const(a))
                for more in (low, high):
                    exact = exact if more is None else b.either(exact, more)
                here = b.both(here, exact)
            window = tuple(slice(a, a + s) for a, s in zip(at, update.shape, strict=True))
            out[window] = self.each(lambda b, y, n, c=here: b.select(c, y, n), update, out[window])
        return out

    def _scatter(self, eqn: JaxprEqn, x: Nodes, indices: Nodes, updates: Nodes) -> Nodes:
        return self._scattered(eqn, x, indices, updates, lambda b, old, new: new)

    def _scatter_add(self, eqn: JaxprEqn, x: Nodes, indices: Nodes, updates: Nodes) -> Nodes:
        return self._scattered(eqn, x, indices, updates, lambda b, old, new: b.add(old, new))

    def _scattered(
        self, eqn: JaxprEqn, x: Nodes, indices: Nodes, updates: Nodes, combine: Callable[..., int]
    ) -> Nodes:
        d, b = eqn.params["dimension_numbers"], self.b
        if d.operand_batching_dims:
            raise CannotTranslate("a batched scatter has no scalar form")
        out = x.copy()
        kept = [k for k in range(x.ndim) if k not in d.inserted_window_dims]
        batch = [k for k in range(updates.ndim) if k not in d.update_window_dims]
        window = [1] * x.ndim
        for axis, k in zip(kept, d.update_window_dims, strict=True):
            window[axis] = updates.shape[k]
        clips = eqn.params["mode"] == lax.GatherScatterMode.CLIP
        for place in np.ndindex(*updates.shape):
            at = tuple(place[k] for k in batch)
            start = [0] * x.ndim
            for component, axis in enumerate(d.scatter_dims_to_operand_dims):
                known = b.value(int(indices[(*at, component)]))
                if known is None:
                    raise CannotTranslate("a scatter to a place known only at run time has no scalar form")
                start[axis] = int(known)
            tops = [size - w for size, w in zip(x.shape, window, strict=True)]
            if clips:
                start = [min(max(k, 0), top) for k, top in zip(start, tops, strict=True)]
            elif not all(0 <= k <= top for k, top in zip(start, tops, strict=True)):
                continue  # a window that does not fit is dropped whole
            for axis, k in zip(kept, d.update_window_dims, strict=True):
                start[axis] += place[k]
            out[tuple(start)] = combine(b, int(out[tuple(start)]), int(updates[place]))
        return out

    # ---- reductions and products ------------------------------------------------------------------
    def reduce(
        self,
        function: Callable[..., int],
        x: Nodes,
        axes: Sequence[int],
        start: Number,
        fold: Fold = functools.reduce,
    ) -> Nodes:
        kept = [k for k in range(x.ndim) if k not in axes]
        inner = math.prod(x.shape[k] for k in axes)
        rows = np.transpose(x, [*kept, *axes]).reshape(*(x.shape[k] for k in kept), inner)
        out = np.empty(rows.shape[:-1], dtype=np.int64)
        for place in np.ndindex(*out.shape):
            numbers = rows[place].tolist() or [self.b.const(start)]
            out[place] = fold(functools.partial(function, self.b), numbers)
        return out

    def _reduce_sum(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        zero = 0 if kind_of(array_of(eqn.outvars[0]).dtype) == "i" else 0.0
        return self.reduce(Builder.add, x, eqn.params["axes"], zero)

    def _reduce_prod(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self.reduce(Builder.mul, x, eqn.params["axes"], 1.0)

    def _reduce_max(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self.reduce(Builder.larger, x, eqn.params["axes"], -math.inf, _as_a_tree)

    def _reduce_min(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self.reduce(Builder.smaller, x, eqn.params["axes"], math.inf, _as_a_tree)

    def _reduce_and(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self.reduce(Builder.both, x, eqn.params["axes"], True, _as_a_tree)

    def _reduce_or(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self.reduce(Builder.either, x, eqn.params["axes"], False, _as_a_tree)

    def _cumulative(self, function: Callable[..., int], eqn: JaxprEqn, x: Nodes) -> Nodes:
        axis, back = eqn.params["axis"], eqn.params["reverse"]
        lines = np.moveaxis(x.copy(), axis, 0)
        lines = lines[::-1] if back else lines
        for k in range(1, len(lines)):
            lines[k] = self.each(function, lines[k - 1], lines[k])
        return np.moveaxis(lines[::-1] if back else lines, 0, axis)

    def _cumsum(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self._cumulative(Builder.add, eqn, x)

    def _cumprod(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self._cumulative(Builder.mul, eqn, x)

    def _argmax(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self._arg(eqn, x, "gt")

    def _argmin(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        return self._arg(eqn, x, "lt")

    def _arg(self, eqn: JaxprEqn, x: Nodes, better: str) -> Nodes:
        b, (axis,) = self.b, eqn.params["axes"]
        rows = np.moveaxis(x, axis, -1)
        out = np.empty(rows.shape[:-1], dtype=np.int64)
        for place in np.ndindex(*out.shape):
            numbers = rows[place].tolist()
            best, index = numbers[0], b.const(0)
            for k, number in enumerate(numbers[1:], 1):
                wins = b.compare(better, number, best)
                if b.nodes[number].kind == "f":  # the first NaN wins
                    new, old = b.compare("ne", number, number), b.compare("eq", best, best)
                    wins = b.either(wins, b.both(new, old))
                best, index = b.select(wins, number, best), b.select(wins, b.const(k), index)
            out[place] = index
        return out

    def _dot_general(self, eqn: JaxprEqn, x: Nodes, y: Nodes) -> Nodes:
        (cx, cy), (bx, by) = eqn.params["dimension_numbers"]
        made = kind_of(array_of(eqn.outvars[0]).dtype)  # the factors may be of other types, and of two
        kind = "i" if made == "b" else made
        x, y = (self.each(lambda b, a: b.convert(a, kind), z) for z in (x, y))
        fx = [k for k in range(x.ndim) if k not in (*cx, *bx)]
        fy = [k for k in range(y.ndim) if k not in (*cy, *by)]
        batch = [x.shape[k] for k in bx]
        inner = math.prod(x.shape[k] for k in cx)
        rows_x, rows_y = (math.prod(z.shape[k] for k in f) for z, f in ((x, fx), (y, fy)))
        left = np.transpose(x, [*bx, *fx, *cx]).reshape(*batch, rows_x, inner)
        right = np.transpose(y, [*by, *fy, *cy]).reshape(*batch, rows_y, inner)
        out = np.empty((*batch, rows_x, rows_y), dtype=np.int64)
        for place in np.ndindex(*batch):
            out[place] = self.product(left[place], right[place].T)
        out = self.each(lambda b, a: b.convert(a, made), out)
        return out.reshape((*batch, *(x.shape[k] for k in fx), *(y.shape[k] for k in fy)))

    def product(self, x: Nodes, y: Nodes) -> Nodes:
        """Of two matrices; what exact zeros make zero is not looked at."""
        b, n, m = self.b, len(x), y.shape[1]
        rows, columns = x.tolist(), y.T.tolist()
        zero = b.const(0.0) if not x.size or b.nodes[rows[0][0]].kind == "f" else b.const(0)
        left, right = x != b.const(0.0), y != b.const(0.0)
        places = [np.flatnonzero(row).tolist() for row in left]
        known = [set(np.flatnonzero(column).tolist()) for column in right.T]
        out = np.full((n, m), zero, dtype=np.int64)
        for i, j in np.argwhere(left.astype(float) @ right.astype(float)).tolist():
            row, column, both, total = rows[i], columns[j], known[j], zero
            for k in places[i]:
                if k in both:
                    total = b.add(total, b.mul(row[k], column[k]))
            out[i, j] = total
        return out
