"""The record of a run: what was run, by what, and how its solves went; enough to run it again."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import jax
import numpy as np

from noslip.integrators import Integrator, spelled
from noslip.integrators.solve import Status
from noslip.markdown import html_table
from noslip.numerics.tracing import Either
from noslip.run.inputs import Inputs
from noslip.run.pairing import Pairing
from noslip.version import __version__

Array = Either  # NumPy arrays after a run; JAX arrays or tracers inside a transformation
Scalar = Either  # a float, or a tracer


@dataclass(frozen=True)
class Report:
    """The implicit solves, one row per saved time: the worst of the steps since the row before.

    `increment` is the last Newton increment relative to the scale of the unknowns, `failed_step`
    the number of the first step that failed, or -1.
    """

    steps: Array
    iterations: Array
    increment: Array
    residual: Array
    status: Array
    failed_step: Array

    @property
    def worst(self) -> Status:
        """The worst status of the whole run."""
        return Status(int(np.max(self.status)))

    def __str__(self) -> str:
        return (
            f"{int(np.sum(self.steps))} steps, at most {int(np.max(self.iterations))} iterations, "
            f"last increment <= {np.max(self.increment):.1e}, {self.worst.message}"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [
            ("steps", int(np.sum(self.steps))),
            ("iterations", f"{int(np.max(self.iterations))} at most in a step"),
            ("last increment", f"{np.max(self.increment):.1e} at most"),
            ("outcome", self.worst.message),
        ]
        return html_table("implicit solves", rows)


jax.tree_util.register_dataclass(Report, [f.name for f in fields(Report)], [])


@dataclass(frozen=True)
class RunInfo:
    """What was run, completely: enough to run it again."""

    integrator: str
    options: Mapping[str, object]
    coordinates: tuple[str, ...]
    parameters: Mapping[str, Any]
    step_size: Scalar
    steps: int
    save_every: int
    t0: Scalar
    backend: str
    multiplier_source: str
    angles: tuple[str, ...] = ()
    source: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    inputs_between: str = "hold"
    input_functions: tuple[str, ...] = ()
    """The inputs that were functions of t, which a file does not hold."""
    integrator_source: str = ""
    """Where the method came from if it is not one of noslip, as `integrators.word_of` says."""
    events: tuple[str, ...] = ()
    """The names of the events that the run looked out for."""
    stopped_by: str = ""
    """The name of the event that ended it."""
    save_at: bool = False
    """Whether the rows are at times that were asked for, instead of every `save_every` steps."""

    def attributes(self) -> dict[str, str]:
        """As the attribute of a dataset."""
        info = {f.name: jsonable(getattr(self, f.name)) for f in fields(self)}
        return {"noslip": json.dumps(info, sort_keys=True)}

    @classmethod
    def from_attributes(cls, attributes: Mapping[str, str]) -> RunInfo:
        """From the attributes of a dataset."""
        info = json.loads(attributes["noslip"])
        return cls(
            **info
            | {
                name: tuple(info[name])
                for name in ("coordinates", "angles", "events", "input_functions")
                if name in info
            }
        )


def run_info(
    pairing: Pairing,
    t0: Scalar,
    h: Scalar,
    steps: int,
    every: int,
    backend: str,
    given: Inputs | None = None,
    save_at: bool = False,
) -> RunInfo:
    """What is run, for the record; inputs that are `given` stand there as they are where a run gives none."""
    given = given or Inputs(pairing.system)
    parameters = {**pairing.parameters, **given.constants}
    system, (multiplier_source, source) = pairing.system, pairing.facts
    name, word, options = pairing.words
    return RunInfo(
        integrator=name,
        options=dict(options),
        coordinates=system.coordinates,
        parameters=parameters,
        step_size=h,
        steps=steps,
        save_every=every,
        t0=t0,
        backend=backend,
        multiplier_source="node" if save_at else multiplier_source,
        angles=system.angles,
        source=source,
        arguments=dict(parameters),
        versions=versions(),
        inputs_between=given.between,
        input_functions=given.functions,
        integrator_source="" if word == name else word,
        save_at=save_at,
    )


@functools.cache
def versions() -> dict[str, str]:
    """Of noslip, Python and what decides the bits of a run."""
    found = {"noslip": __version__, "python": platform.python_version()}
    for name in ("jax", "jaxlib", "llvmlite", "numpy", "scipy", "heyoka"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def jsonable(value: object) -> Any:
    """Plain data for JSON; floats keep every bit."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic, jax.Array)):
        return np.asarray(value).tolist()
    if isinstance(value, Integrator):
        return spelled(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
