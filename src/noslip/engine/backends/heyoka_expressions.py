"""Scalar programs as heyoka expressions, for its Taylor integrator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from noslip.engine.backends.expressions import expressions
from noslip.engine.program import Program

if TYPE_CHECKING:
    from heyoka import expression

OWN = (
    "sqrt", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "atan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
)  # fmt: skip


def heyoka_expressions(program: Program, inputs: Sequence[expression]) -> list[expression]:
    """The outputs of a program, translated with `expand=False`, for these inputs."""
    import heyoka as hy

    choices = {"select": hy.select, "lt": hy.lt, "le": hy.lte, "eq": hy.eq, "ne": hy.neq}
    return expressions(program, inputs, lambda value: hy.expression(float(value)), _functions(), choices)


def _functions() -> Mapping[str, Callable[..., expression]]:
    import heyoka as hy

    return {name: getattr(hy, name) for name in OWN} | {
        "pow": lambda x, y: x**y,
        "exp2": lambda x: hy.expression(2.0) ** x,
        "logistic": hy.sigmoid,
        # these keep the digits of small arguments
        "expm1": lambda x: 2.0 * hy.sinh(0.5 * x) * hy.exp(0.5 * x),
        "log1p": lambda x: 2.0 * hy.atanh(x / (2.0 + x)),
    }
