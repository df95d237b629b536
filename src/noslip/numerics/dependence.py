"""Whether a function uses an argument, read off its JAX program instead of guessed from samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

CALLS = {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat"}


def depends_on(function: Callable[..., Any], position: int, *arguments: Any) -> bool:
    """Whether any output is computed from the argument at `position`.

    False is certain; True may be wrong where the value cancels, as in 0 * x, or passes through a loop.
    Arguments may be arrays, trees of them, or their shapes.
    """
    program = jax.make_jaxpr(function)(*arguments).jaxpr
    sizes = [len(jax.tree.leaves(argument)) for argument in arguments]
    first = sum(sizes[:position])
    marks = [first <= i < first + sizes[position] for i in range(sum(sizes))]
    return any(_follow(program, marks))


def _follow(program: Any, marks: list[bool]) -> list[bool]:
    """Which outputs are reached from the marked inputs."""
    reached = {variable for variable, mark in zip(program.invars, marks, strict=True) if mark}

    def is_reached(atom: Any) -> bool:
        return not hasattr(atom, "val") and atom in reached

    for equation in program.eqns:
        inputs = [is_reached(atom) for atom in equation.invars]
        if not any(inputs):
            continue
        outputs = [True] * len(equation.outvars)
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        if equation.primitive.name in CALLS and inner is not None:
            outputs = _follow(getattr(inner, "jaxpr", inner), inputs)
        reached |= {variable for variable, mark in zip(equation.outvars, outputs, strict=True) if mark}
    return [is_reached(atom) for atom in program.outvars]
