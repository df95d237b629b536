"""Options that several commands have, and what is written in them: systems, states, names and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from noslip.system import System
    from noslip.systems import Source

OWN_SYSTEM = "A catalogue name, or your own: my_system.py:particle"
OWN_METHOD = "See `noslip integrators`, or your own: my_method.py:Backward"

SystemName = Annotated[str, typer.Argument(help=OWN_SYSTEM)]
IntegratorText = Annotated[str, typer.Option("--integrator", "-i", help=OWN_METHOD)]
StepSize = Annotated[float, typer.Option(help="Step h > 0.")]
FinalTime = Annotated[float | None, typer.Option(help="Final time, a whole number of steps after t0.")]
Steps = Annotated[int | None, typer.Option(help="Number of steps, instead of --t-end.")]
InitialTime = Annotated[float, typer.Option(help="Initial time.")]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the system.")
]
Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="NAME=VALUE", help="Parameter of the integrator.")
]
Velocities = Annotated[str | None, typer.Option(help="Initial velocities, a,b,c.")]
Backend = Annotated[str, typer.Option(help="Where to compute.")]
SavedRun = Annotated[
    Path, typer.Argument(help="A file or folder written by `noslip run -o`, or from Python.")
]
GivenSystem = Annotated[
    str | None, typer.Option("--system", help="The run's system, if it is your own: my_system.py:particle")
]
GivenIntegrator = Annotated[
    str | None,
    typer.Option("--integrator", "-i", help="The run's method, if your own: my_method.py:Backward"),
]


def pairs(option: str, texts: Sequence[str] | None) -> dict[str, str]:
    """name=value, each name once."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise ValueError(f"`{option}` must be name=value, but '{text}' was provided")
        if name in pairs:
            raise ValueError(f"`{option}` must give each name once, but '{name}' was given twice")
        pairs[name] = value
    return pairs


def vector(option: str, text: str, model: System) -> Any:
    """Numbers with commas between, one for each coordinate."""
    import numpy as np

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"`{option}` must be numbers with commas between, but '{text}' was provided"
        ) from None
    if len(values) != model.n:
        names = ",".join(model.coordinates)
        raise ValueError(f"`{option}` must be {model.n} numbers ({names}), but {len(values)} were provided")
    return np.array(values)


def initial_state(
    source: Source, model: System, arguments: Mapping[str, Any], q0: str | None, v0: str | None
) -> tuple[Any, Any]:
    """--q0 and --v0, or the typical state, and a line if its velocity had to be projected."""
    q, v = (None if x is None else vector(f"--{k}", x, model) for k, x in (("q0", q0), ("v0", v0)))
    start = source.start(model, arguments, q, v)
    if start.projected:
        projected = ",".join(map(repr, start.v.tolist()))
        typer.echo(f"the typical v0 violates the constraint here; projected to {projected}")
    return start.q, start.v
