"""Which structure each method really keeps on which system: one table from many short runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import MISSING, dataclass, fields

import numpy as np

from noslip import integrators, systems
from noslip.analysis.conservation import constraint_error, energy_drift, energy_error, first_integral_errors
from noslip.analysis.order import measured_order
from noslip.analysis.reversibility import reversibility_defect
from noslip.errors import SolveFailed
from noslip.integrators.base import Integrator
from noslip.markdown import table
from noslip.simulate import simulate

SYSTEMS = {
    "quartic": "Reversible and chaotic.",
    "gearbox": "Integrable and not reversible: the pendulum rotates, and its potential has no symmetry.",
    "rolling_disk_on_incline": "Integrable and reversible.",
    "chaplygin_sleigh": "Integrable; every motion tends to a straight line.",
    "suslov": "Every motion tends to a steady rotation.",
    "veselova": "Integrable and reversible; in another time Hamiltonian on its base, of Chaplygin's kind.",
}
"""What is measured by default, and what kind of motion it is. Reversible, in the sense of Modin, Verdier
2014, means that a map which reverses time takes the set on which the motion runs to itself."""

COLUMNS = ("energy", "drift per time", "first integrals", "constraint", "order", "reversible", "evaluations")


@dataclass(frozen=True)
class Score:
    """One method on one system: largest relative errors, measured order, and evaluations per step.
    None where a number has no meaning there; `note` says why there is none at all."""

    method: str
    system: str
    energy: float | None = None
    drift: float | None = None
    first_integrals: float | None = None
    constraint: float | None = None
    order: float | None = None
    reversible: float | None = None
    evaluations: float | None = None
    note: str = ""


def short_name(method: Integrator) -> str:
    """The method with only those parameters that differ from their defaults."""
    given = []
    for f in fields(method):  # type: ignore[arg-type]
        value = getattr(method, f.name)
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        if value != default:
            text = short_name(value) if isinstance(value, Integrator) else repr(value)
            given.append(f"{f.name}={text}")
    return f"{type(method).__name__}({', '.join(given)})"


def score(
    method: Integrator, name: str, *, step_size: float = 0.1, steps: int = 2000, order: bool = True
) -> Score:
    """A system from its typical state; `order` is measured over two units of time. The name is one of the
    catalogue or of an installed package, or `file.py:name`."""
    source = systems.open_source(name)
    system = source.build({})
    q, v, _ = source.start(system, {})
    if reason := method.refusal(system):
        return Score(short_name(method), name, note=reason)
    try:
        run = simulate(system, method, q, v, step_size=step_size, steps=steps)
        slope = None
        if order and not method.exact:
            counts = (
                (80, 160, 320) if method.order == 1 else (40, 80, 160) if method.order < 4 else (20, 40, 80)
            )
            found = measured_order(system, method, q, v, t_end=2.0, steps=counts)
            errors = np.max(found.global_errors[:, :2], axis=1)
            if np.min(errors) > 1e-12:
                slope = float(np.polyfit(np.log(found.step_sizes), np.log(errors), 1)[0])
        reversible = reversibility_defect(system, method, q, v, step_size=step_size, steps=100)
    except SolveFailed as failure:
        return Score(short_name(method), name, note=str(failure).partition(";")[0])
    integrals = first_integral_errors(run).values()
    return Score(
        short_name(method),
        name,
        energy=float(np.max(np.abs(energy_error(run)))),
        drift=energy_drift(run).slope,
        first_integrals=max(float(np.max(np.abs(e))) for e in integrals) if integrals else None,
        constraint=constraint_error(run),
        order=slope,
        reversible=reversible,
        evaluations=float(np.mean(run.report.iterations[1:])) if not method.is_explicit(system) else None,
    )


def defaults() -> list[Integrator]:
    """Each class of methods with its default parameters."""
    return [cls() for cls in integrators.discover().values()]


def scoreboard(
    methods: Iterable[Integrator] | None = None,
    names: Sequence[str] = tuple(SYSTEMS),
    *,
    step_size: float = 0.1,
    steps: int = 2000,
    order: bool = True,
) -> list[Score]:
    """Every method (by default each class with its default parameters) on every system."""
    chosen = defaults() if methods is None else list(methods)
    return [
        score(method, name, step_size=step_size, steps=steps, order=order)
        for name in names
        for method in chosen
    ]


def as_markdown(scores: Iterable[Score]) -> str:
    """One table of numbers per system, under its kind of motion; below it, why some methods have none."""
    scores, blocks = list(scores), []
    for name in dict.fromkeys(s.system for s in scores):
        own = [s for s in scores if s.system == name]
        parts = [f"## {name}", *([SYSTEMS[name]] if name in SYSTEMS else [])]
        if rows := [_row(s) for s in own if not s.note]:
            parts.append(table(("method", *COLUMNS), rows))
        for note in dict.fromkeys(s.note for s in own if s.note):
            methods = ", ".join(f"`{s.method}`" for s in own if s.note == note)
            parts.append(f"No numbers for {methods}: {note}.")
        blocks.append("\n\n".join(parts))
    return "\n\n".join(blocks) + "\n"


def _row(s: Score) -> list[str]:
    small = [s.energy, s.drift, s.first_integrals, s.constraint]
    cells = ["-" if x is None else f"{x:.0e}" for x in small]
    cells += ["-" if s.order is None else f"{s.order:.2f}"]
    cells += ["-" if s.reversible is None else f"{s.reversible:.0e}"]
    cells += ["-" if s.evaluations is None else f"{s.evaluations:.1f}"]
    return [f"`{s.method}`", *cells]
