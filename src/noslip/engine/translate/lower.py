"""From a JAX function to a scalar program: every array becomes an array of node numbers.

Operations that only move elements (slices, pads, transposes, gathers at known places) are NumPy operations on
those numbers and cost nothing at run time. An operation that is not known here raises `CannotTranslate`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn, Literal, Var

from noslip.engine import garbage
from noslip.engine.kept import scaffold
from noslip.engine.program import Block, CannotTranslate, Program, PyTree, TooLarge, finish
from noslip.engine.translate import jaxprs, solves, sweeps
from noslip.engine.translate.arrays import Nodes, kind_of, refuse_wrapping
from noslip.engine.translate.builder import Builder
from noslip.engine.translate.elementwise import ELEMENTWISE, EachOperations
from noslip.engine.translate.functions import FUNCTIONS, by_a_call
from noslip.engine.translate.jaxprs import array_of
from noslip.engine.translate.placement import LIMIT, Abandoned
from noslip.numerics import blocks
from noslip.numerics.pytrees import of_leaves

Shape: TypeAlias = tuple[int, ...]
ROLLED = 600  # operations above which a scan is not written out turn by turn


def translate(
    function: Callable[..., PyTree],
    fixed: PyTree,
    varying: PyTree,
    *,
    expand: bool = True,
    rare: Sequence[str] = (),
    limit: int = LIMIT,
) -> Program:
    """The scalar program of `function(fixed, varying)`, pytrees of arrays or of their shapes.

    `expand` writes elementary functions out as arithmetic. The loops of jitted functions named in `rare` are
    marked so; `usual` leaves them out.
    """
    with garbage.set_aside():
        return _translated(function, fixed, varying, expand, rare, limit)


def _translated(
    function: Callable[..., PyTree],
    fixed: PyTree,
    varying: PyTree,
    expand: bool,
    rare: Sequence[str],
    limit: int,
) -> Program:
    with jax.default_device(jax.local_devices(backend="cpu")[0]), blocks.for_scalar_programs():
        of_arrays, leaves = of_leaves(function, fixed, varying)
        jaxpr, shape = jax.make_jaxpr(of_arrays, return_shape=True)(*leaves)
    builder = Builder(limit)
    builder.blocks = [Block(), Block()]
    lower = _Lower(builder, expand, rare)
    count = len(jax.tree.leaves(fixed))
    arrays, numbers, first = [], [], 0
    for k, aval in enumerate(jaxpr.in_avals):
        block = 0 if k < count else 1
        array = np.array(
            [builder.input(kind_of(aval.dtype), block) for _ in range(math.prod(aval.shape))], dtype=np.int64
        ).reshape(aval.shape)
        arrays.append(array)
        numbers.extend(array.ravel().tolist())
        first += array.size if block == 0 else 0
    outputs = lower.jaxpr(jaxpr, arrays)
    flat = [int(x) for out in outputs for x in np.ravel(out)]
    program = finish(builder.nodes, builder.blocks, numbers, first, flat, shape)
    if program.size() > limit:
        raise TooLarge(f"the step has {program.size()} scalar operations, over {limit}")
    return program


@scaffold
def _straight(function: blocks.Differentiable, shapes: tuple[Shape, ...]) -> sweeps.Straight:
    """A function of arrays as nodes that can be differentiated; traced once."""
    jaxpr = jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(shape, float) for shape in shapes))
    return sweeps.Straight(shapes, lambda builder, x: _ToDifferentiate(builder, False, "").jaxpr(jaxpr, x)[0])


class _Lower(EachOperations):
    def __init__(self, builder: Builder, expand: bool, rare: Sequence[str]):
        self.b, self.expand, self.rare = builder, expand, rare
        self.within_rare = False

    # ---- walking ----------------------------------------------------------------------------------
    def jaxpr(self, closed: ClosedJaxpr, args: Sequence[Nodes]) -> list[Nodes]:
        jaxpr = closed.jaxpr
        env: dict[Var, Nodes] = {}
        for var, value in zip(jaxpr.constvars, closed.consts, strict=True):
            if isinstance(value, jax.core.Tracer):
                raise CannotTranslate("the function uses a value of an enclosing trace, which is not known")
            env[var] = self.constant(value, array_of(var).dtype)
        env.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Var | Literal) -> Nodes:
            if isinstance(atom, Literal):
                return self.constant(atom.val, array_of(atom).dtype)
            return env[atom]

        for eqn in jaxpr.eqns:
            try:
                values = self.equation(eqn, [read(a) for a in eqn.invars])
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # XLA may well run it
                name = eqn.primitive.name
                raise CannotTranslate(
                    f"the operation '{name}' is used in a way without scalar form"
                ) from error
            env.update(zip(eqn.outvars, values, strict=True))
        return [read(a) for a in jaxpr.outvars]

    def equation(self, eqn: JaxprEqn, args: list[Nodes]) -> list[Nodes]:
        name = eqn.primitive.name
        if name in ELEMENTWISE:
            refuse_wrapping(name, array_of(eqn.outvars[0]).dtype)
            return [self.each(ELEMENTWISE[name], *args)]
        method = getattr(self, "_" + name.replace("-", "_"), None)
        if method is not None:
            out = method(eqn, *args)
            return out if isinstance(out, list) else [out]
        if name in FUNCTIONS:
            return [self.each(lambda b, *x: self.elementary(name, *x), *args)]
        if (function := jaxprs.called(eqn)) is not None:
            return self.jaxpr(function, args)
        raise CannotTranslate(f"the operation '{name}' has no scalar form")

    def elementary(self, name: str, *x: int) -> int:
        known = [self.b.value(a) for a in x]
        function = FUNCTIONS[name]
        if None not in known:
            try:
                return self.b.const(float(function.exact(*known)))
            except (ValueError, OverflowError, ZeroDivisionError):
                pass
        if self.expand:
            return function.expand(self.b, *x)
        return self.b.raw(name, "f", *x)

    # ---- calls ------------------------------------------------------------------------------------
    def _jit(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        name, called = eqn.params.get("name", ""), eqn.params["jaxpr"]
        outside, self.within_rare = self.within_rare, self.within_rare or name in self.rare
        key = (called.jaxpr, *map(id, called.consts), self.within_rare, *_ravel(args))
        made = self._remembered(key, lambda: _ravel(self.jaxpr(called, args)))
        self.within_rare = outside
        return _unravel(made, [array_of(v).shape for v in eqn.outvars])

    _pjit = _jit
    _closed_call = _jit

    def _custom_jvp_call(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        return self.jaxpr(eqn.params["call_jaxpr"], args)

    _custom_vjp_call = _custom_jvp_call

    def _call_hi_primitive(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        return self.jaxpr(jaxprs.expanded(eqn), args)

    def _custom_linear_solve(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        lengths = eqn.params["const_lengths"]
        start = lengths.matvec + lengths.vecmat
        consts = args[start : start + lengths.solve]
        return self.jaxpr(eqn.params["jaxprs"].solve, [*consts, *args[sum(lengths) :]])

    def _small_solve(self, eqn: JaxprEqn, a: Nodes, b: Nodes) -> Nodes:
        solve = solves.spd_solve if eqn.params["spd"] else solves.solve
        out = np.empty_like(b)
        for place in np.ndindex(*b.shape[:-2]):
            out[place] = solve(self.b, a[place], b[place])
        return out

    def _solve_again(self, eqn: JaxprEqn, a: Nodes, inverse: Nodes, sizes: Nodes, y: Nodes) -> Nodes:
        found = solves.known_solve(self.b, a, y, sizes)
        return self.product(inverse, y[:, None])[:, 0] if found is None else found

    def _derivative_block(self, eqn: JaxprEqn, *args: Nodes) -> Nodes:
        """On the nodes of the function itself where that can be, else by JAX's derivatives: decided here."""
        p, lead = eqn.params, eqn.params["lead"]
        key, shapes = (p["orders"], p["along"]), tuple(x.shape[lead:] for x in args)
        try:
            source = _straight(p["function"], shapes[: len(shapes) - len(p["along"])])
            source.block(*key)
        except CannotTranslate:
            avals = [jax.ShapeDtypeStruct(x.shape, float) for x in args]
            return self.jaxpr(jax.make_jaxpr(lambda *x: blocks.plain(*x, **p))(*avals), args)[0]
        out = np.empty(array_of(eqn.outvars[0]).shape, dtype=np.int64)
        for place in np.ndindex(*out.shape[:lead]):
            made = self._block_at(source, key, _ravel([x[place] for x in args]))
            out[place] = np.array(made, dtype=np.int64).reshape(out.shape[lead:])
        return out

    def _block_at(self, source: sweeps.Straight, key: sweeps.Key, given: list[int]) -> Sequence[int]:
        """The entries of a block at these arguments: called where it is long, else written out."""
        elementary = self._elementary_of_many if self.expand and source.has_long() else self.elementary
        if self.expand and source.is_long(key):
            known = tuple(self.b.value(k) for k in given)
            function = source.function(key, known, lambda b: _Lower(b, True, "").elementary)
            if function.size >= sweeps.CALLED:
                inputs = function.inputs(elementary, given)
                made = self._remembered(
                    ("call", id(function.program), *inputs), lambda: self.b.call(function.program, inputs)
                )
                return function.entries_of(self.b, inputs, made)
        return self._remembered(
            (source, *key, *given), lambda: sweeps.replay(source, key, self.b, elementary, given)
        )

    def _elementary_of_many(self, name: str, *x: int) -> int:
        found = by_a_call(self.b, name, *x)
        return self.elementary(name, *x) if found is None else found

    def _remembered(self, key: Hashable, make: Callable[[], Sequence[int]]) -> Sequence[int]:
        """What was made from the same arguments before, in a block that is still open."""
        if (made := self.b.recall(key)) is None:
            made = tuple(make())
            if made:
                self.b.remember(key, made)
        return made

    def _platform_index(self, eqn: JaxprEqn) -> Nodes:
        groups = eqn.params["platforms"]
        chosen = next((k for k, names in enumerate(groups) if names is None or "cpu" in names), 0)
        return np.array(self.b.const(chosen), dtype=np.int64)

    def _cond(self, eqn: JaxprEqn, index: Nodes, *args: Nodes) -> list[Nodes]:
        branches, number = eqn.params["branches"], int(index)
        last = len(branches) - 1
        known = self.b.value(number)
        if known is not None:
            return self.jaxpr(branches[min(max(int(known), 0), last)], args)
        if any(jaxprs.has_loop(branch) for branch in branches):
            return self._guarded_branches(branches, number, args, eqn.outvars)
        outs = self.jaxpr(branches[last], args)
        for k in reversed(range(last)):
            chosen = self._chooses(number, k, last)
            these = self.jaxpr(branches[k], args)
            outs = [
                self.each(lambda b, y, n, c=chosen: b.select(c, y, n), yes, no)
                for yes, no in zip(these, outs, strict=True)
            ]
        return outs

    def _chooses(self, number: int, k: int, last: int) -> int:
        """Whether the number chooses branch k; numbers out of range choose the first or the last."""
        if self.b.nodes[number].kind == "b":
            return number if k else self.b.invert(number)
        op = "le" if k == 0 else "ge" if k == last else "eq"
        return self.b.compare(op, number, self.b.const(k))

    def _guarded_branches(
        self, branches: Sequence[ClosedJaxpr], number: int, args: Sequence[Nodes], outvars: Sequence[Var]
    ) -> list[Nodes]:
        """Each branch as a loop of one turn or none: a loop in a branch not taken may never end."""
        b, arrays = self.b, [array_of(v) for v in outvars]
        outs = [self.zeros(array) for array in arrays]
        shapes = [array.shape for array in arrays]
        for k, branch in enumerate(branches):

            def once(_: list[int], branch: ClosedJaxpr = branch) -> list[int]:
                return [b.const(False), *_ravel(self.jaxpr(branch, args))]

            chosen = self._chooses(number, k, len(branches) - 1)
            results = b.loop([chosen, *_ravel(outs)], lambda x: x[0], once)
            outs = _unravel(results[1:], shapes)
        return outs

    def _while(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        p = eqn.params
        n, m = p["cond_nconsts"], p["body_nconsts"]
        cond_consts, body_consts, inits = args[:n], args[n : n + m], args[n + m :]
        shapes = [x.shape for x in inits]

        def condition(x: list[int]) -> int:
            return int(self.jaxpr(p["cond_jaxpr"], [*cond_consts, *_unravel(x, shapes)])[0])

        def body(x: list[int]) -> list[int]:
            return _ravel(self.jaxpr(p["body_jaxpr"], [*body_consts, *_unravel(x, shapes)]))

        return _unravel(self.b.loop(_ravel(inits), condition, body, self.within_rare), shapes)

    def _scan(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        """Written out turn by turn where that stays small, rolled otherwise."""
        p = eqn.params
        n, m, length = *jaxprs.scan_groups(eqn), p["length"]
        consts, carry, xs = args[:n], list(args[n : n + m]), args[n + m :]
        order = list(range(length))[:: -1 if p["reverse"] else 1]
        state, before, rare = self.b.snapshot(), len(self.b.nodes), self.within_rare
        ys: list[list[Nodes]] = []
        for turn, k in enumerate(order):
            most = before + ROLLED * (turn + 1) / length if length > 2 else math.inf
            outs = None
            with contextlib.suppress(Abandoned), self.b.at_most(most):
                outs = self.jaxpr(p["jaxpr"], [*consts, *carry, *(x[k] for x in xs)])
            if outs is None or len(self.b.nodes) > most:
                self.b.restore(state)
                self.within_rare = rare
                return self._rolled_scan(p["jaxpr"], consts, list(args[n : n + m]), xs, order)
            carry = outs[:m]
            ys.append(outs[m:])
        ys = ys[:: -1 if p["reverse"] else 1]
        if not length:
            return [*carry, *(self.zeros(array_of(v)) for v in eqn.outvars[m:])]
        stacked = [np.stack(column) for column in zip(*ys, strict=True)]
        return [*carry, *stacked]

    def _rolled_scan(
        self,
        jaxpr: ClosedJaxpr,
        consts: Sequence[Nodes],
        carry: list[Nodes],
        xs: Sequence[Nodes],
        order: list[int],
    ) -> list[Nodes]:
        shapes, rows = [c.shape for c in carry], [x.shape[1:] for x in xs]
        tables = [[int(a) for a in column] for x in xs for column in x[order].reshape(len(order), -1).T]
        y_shapes: list[Shape] = []

        def body(params: list[int], entry: list[int]) -> tuple[list[int], list[int]]:
            outs = self.jaxpr(jaxpr, [*consts, *_unravel(params, shapes), *_unravel(entry, rows)])
            y_shapes[:] = [y.shape for y in outs[len(shapes) :]]
            return _ravel(outs[: len(shapes)]), _ravel(outs[len(shapes) :])

        results, stacked = self.b.rolled(len(order), _ravel(carry), tables, body)
        back = np.argsort(order)
        columns = [np.array(column, dtype=np.int64)[back] for column in stacked]
        ys, first = [], 0
        for shape in y_shapes:
            size = math.prod(shape)
            ys.append(np.stack(columns[first : first + size], axis=-1).reshape(len(order), *shape))
            first += size
        return [*_unravel(results, shapes), *ys]

    # ---- the rest ---------------------------------------------------------------------------------
    def _pow(self, eqn: JaxprEqn, x: Nodes, y: Nodes) -> Nodes:
        def power(b: Builder, a: int, e: int) -> int:
            exponent = b.convert(e, "f")
            known = b.value(exponent)
            if known is not None and abs(known) <= 16 and known == int(known):
                return b.power(a, int(known))
            if known is not None and abs(known) == 0.5:
                root = b.sqrt(a)
                return root if known > 0 else b.div(b.const(1.0), root)
            return self.elementary("pow", a, exponent)

        return self.each(power, x, y)

    def _empty(self, eqn: JaxprEqn) -> Nodes:
        return self.zeros(array_of(eqn.outvars[0]))

    _empty2 = _empty

    def _rng_bit_generator(self, eqn: JaxprEqn, *_: Nodes) -> Nodes:
        raise CannotTranslate("a step that draws random numbers has no scalar form")


def _ravel(arrays: Sequence[Nodes]) -> list[int]:
    return [int(x) for array in arrays for x in np.ravel(array)]


def _unravel(numbers: Sequence[int], shapes: Sequence[Shape]) -> list[Nodes]:
    ends = [0, *accumulate(map(math.prod, shapes))]
    parts = (np.array(numbers[a:b], dtype=np.int64) for a, b in pairwise(ends))
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


class _ToDifferentiate(_Lower):
    """A function that is differentiated as scalar operations, none of which has a derivative of its own."""

    def _custom_jvp_call(self, eqn: JaxprEqn, *args: Nodes) -> list[Nodes]:
        raise CannotTranslate(f"the operation '{eqn.primitive.name}' has a derivative of its own")

    _custom_vjp_call = _custom_jvp_call

    def _stop_gradient(self, eqn: JaxprEqn, x: Nodes) -> Nodes:
        raise CannotTranslate("the operation 'stop_gradient' has a derivative of its own")
