"""The inputs of a run as the caller gives them, and as a table with one entry per step.

Values held over a step are one column per input; values that grow linearly are two, and the time of the step.
An input that is a function of t has no column: it is part of the system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from noslip.errors import shown, unknown_name
from noslip.numerics.tracing import Either, Real, Values, has_tracers
from noslip.run.arguments import as_floats
from noslip.run.driving import of_step
from noslip.run.events import NEVER
from noslip.system import System
from noslip.system.checks import in_one_sentence
from noslip.system.inputs import Drive, Held, Ramp

BETWEEN = ("hold", "linear")


@dataclass(frozen=True)
class Inputs:
    """What drives a run. `table` has the leaves of a `Drive` with the steps as their last axis; `values` are
    those that were given, by name, and `functions` the names of the others."""

    system: System
    table: Drive = None
    values: Mapping[str, Either] = field(default_factory=dict)
    between: str = "hold"
    functions: tuple[str, ...] = ()
    constants: Mapping[str, Values] = field(default_factory=dict)  # of the system, where they are not given

    @property
    def first(self) -> dict[str, np.ndarray]:
        """Those of the first step that differ between members."""
        return {name: x[:, 0] for name, x in self.values.items() if x.ndim > 1}


def given_inputs(
    system: System,
    inputs: Mapping[str, object] | None,
    between: str,
    steps: int,
    t0: Real,
    h: Real,
    members: int | None = None,
) -> Inputs:
    """Check what was given; the system that comes back has the inputs of the first step. With `members` an
    array may have a row for each."""
    if between not in BETWEEN:
        raise ValueError(unknown_name("`inputs_between`", between, BETWEEN))
    if inputs is None or inputs == {}:
        return Inputs(system, between=between)
    if not isinstance(inputs, Mapping):
        raise TypeError(f"`inputs` must be a mapping of names to values, but {shown(inputs)} was provided")
    if steps == NEVER and not all(map(callable, inputs.values())):
        raise ValueError("`max_steps` must be given to a run with arrays of `inputs`")
    _refuse_unknown(system, inputs)
    constants = {name: system.parameters[name] for name in inputs}
    functions = {name: f for name, f in inputs.items() if callable(f)}
    arrays = {name: x for name, x in inputs.items() if name not in functions}
    columns = {name: column(name, x, between, steps, members) for name, x in arrays.items()}
    if functions:
        system = system.with_signals({name: _function(name, f) for name, f in functions.items()})
    if not columns or not steps:
        return Inputs(system, None, columns, between, tuple(functions), constants)
    table = table_of(columns, between, steps, t0, h)
    first = jax.tree.map(lambda x: x if members is None else np.ravel(x)[0], of_step(table, 0))
    return Inputs(system.driven(first), table, columns, between, tuple(functions), constants)


def _refuse_unknown(system: System, inputs: Mapping[str, object]) -> None:
    for name in inputs:
        if name not in system.inputs:
            raise ValueError(unknown_name("input", name, system.inputs))


def numbers_as_parameters(system: System, inputs: Mapping[str, Any]) -> tuple[System, Mapping[str, Any]]:
    """Inputs that are one number for the whole run, as values of the system; the others as they are. For
    runs whose steps have no entries in an array."""
    _refuse_unknown(system, inputs)
    numbers = {name: x for name, x in inputs.items() if not callable(x) and np.ndim(x) == 0}
    values = {name: column(name, x, "hold", 1, None)[0] for name, x in numbers.items()}
    return system.with_parameters(values), {name: x for name, x in inputs.items() if name not in numbers}


def refuse_arrays(inputs: Mapping[str, object], where: str) -> None:
    """Refuse inputs that are not functions of t."""
    if isinstance(inputs, Mapping) and not all(map(callable, inputs.values())):
        raise ValueError(f"`inputs` must be functions of t or numbers, not arrays, {where}")


def as_numbers(system: System, inputs: Mapping[str, object] | None) -> dict[str, float]:
    """Inputs of a single step."""
    if not isinstance(inputs, Mapping | None):
        raise TypeError(f"`inputs` must be a mapping of names to numbers, but {shown(inputs)} was provided")
    found = {}
    for name, value in (inputs or {}).items():
        if name not in system.inputs:
            raise ValueError(unknown_name("input", name, system.inputs))
        number = value if type(value) is float else float(as_floats(f"inputs['{name}']", value, (), False))
        if not number - number == 0:
            raise ValueError(f"`inputs['{name}']` must be finite, but {number!r} was provided")
        found[name] = number
    return found


def with_later_inputs(
    system: System,
    before: Mapping[str, Values],
    later: Mapping[str, object] | None,
    between: str,
    steps: int,
) -> dict[str, Values]:
    """The arrays of a run, and after them those of so many steps more."""
    if not isinstance(later, Mapping | None):
        raise TypeError(f"`inputs` must be a mapping of names to values, but {shown(later)} was provided")
    given = dict(later or {})
    if set(given) != set(before):
        wanted = ", ".join(f"'{name}'" for name in before) or "none"
        raise ValueError(
            f"`inputs` must be those of the steps to come of the arrays that the run has: {wanted}, but "
            f"{', '.join(map(repr, given)) or 'none'} were provided"
        )
    joined: dict[str, Values] = {}
    for name, x in before.items():
        more = column(name, given[name], between, steps, None)
        if between == "linear":
            if more[0] != x[-1]:
                raise ValueError(
                    f"`inputs['{name}']` must begin with the last node of the run, {float(x[-1])!r}, but "
                    f"{float(more[0])!r} was provided"
                )
            more = more[1:]
        joined[name] = np.concatenate([x, more])
    return joined


def _function(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    with in_one_sentence(f"input '{name}' as a function of t"):
        shape = jax.eval_shape(function, jax.ShapeDtypeStruct((), float))
    if not hasattr(shape, "shape") or shape.shape != ():
        raise ValueError(f"input '{name}' as a function of t must be a number, but {shape} was returned")
    return function


def column(name: str, given: Any, between: str, steps: int, members: int | None) -> Values:
    """The values of one input, checked: one per step, or per node."""
    label = f"inputs['{name}']"
    traced = has_tracers(given)
    values = as_floats(label, given, np.shape(given), traced)
    count = steps + (between == "linear")
    if values.ndim == 0:  # a number for the whole run
        values = (jnp if traced else np).broadcast_to(values, (count,))
    shapes = [(count,)] if members is None else [(count,), (members, count)]
    if values.shape not in shapes:
        meaning = "one per step" if between == "hold" else "one per node"
        raise ValueError(
            f"`{label}` must have shape {' or '.join(map(str, shapes))}, {meaning}, but {values.shape} was "
            "provided"
        )
    if not traced and not np.all(np.isfinite(values)):
        raise ValueError(f"`{label}` must be finite, but some of its values are not")
    return values


def table_of(columns: Mapping[str, Values], between: str, steps: int, t0: Real, h: Real) -> Drive:
    """Inputs by the step, as the runners read them."""
    if between == "hold":
        return Held(dict(columns))
    xp = jnp if has_tracers(columns, t0, h) else np
    starts: dict[str, Real] = {name: x[..., :-1] for name, x in columns.items()}
    rates: dict[str, Real] = {name: xp.diff(x, axis=-1) / h for name, x in columns.items()}
    return Ramp(starts, rates, t0 + h * xp.arange(steps))


# ---- of calls that are made often -----------------------------------------------------------------------


def copied(
    inputs: Mapping[str, Any] | None, between: str, steps: int, t0: float, h: float
) -> tuple[Mapping[str, np.ndarray] | np.ndarray | None, np.ndarray | None]:
    """Copies of the inputs of a call, and the table [step][slot] that its steps read. Of inputs that are held
    the table is the copy; `columns_of` has them by name."""
    if not inputs:
        return None, None
    if between == "hold":
        table = np.empty((steps, len(inputs)))
        for slot, name in enumerate(sorted(inputs)):
            table[:, slot] = _surely(name, inputs[name], between, steps)
        columns: dict[str, np.ndarray] | np.ndarray = table
    else:
        columns = {name: np.array(_surely(name, x, between, steps)) for name, x in inputs.items()}
        table = np.stack(jax.tree.leaves(table_of(columns, between, steps, t0, h)), axis=-1)
    total = float(np.add.reduce(table, axis=None))
    if total - total != 0:  # some are not finite, which is refused, or their sum is not
        for name, x in inputs.items():
            column(name, x, between, steps, None)
    return columns, table


def columns_of(
    names: Iterable[str] | None, given: Mapping[str, np.ndarray] | np.ndarray | None
) -> Mapping[str, np.ndarray] | None:
    """The inputs of these names, of which `copied` has made copies."""
    return dict(zip(sorted(names or ()), given.T, strict=True)) if isinstance(given, np.ndarray) else given


def _surely(name: str, x: ArrayLike, between: str, steps: int) -> Values:
    """As `column`, but for an array of the right shape, which comes back as it is."""
    if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == (steps + (between == "linear"),):
        return x
    return column(name, x, between, steps, None)
