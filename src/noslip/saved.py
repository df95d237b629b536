"""Saved runs again: their system, their method, and the run itself repeated and compared bit for bit.

A saved run names its system and its method. Names of the catalogue, of noslip's methods and of what installed
packages offer are looked up; a file of the user that a saved run names is never opened, since data must
not decide which code is run. Whoever repeats such a run gives its system or method again.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from noslip import integrators, systems
from noslip.errors import Damaged
from noslip.files import as_path, sealed
from noslip.integrators.base import Integrator
from noslip.names import in_a_file
from noslip.run.arguments import BACKENDS
from noslip.run.checked import Verified, require_zarr, verify_folder
from noslip.run.pacing import Progress
from noslip.run.record import RunInfo
from noslip.simulate import simulate
from noslip.system import System
from noslip.system.time import visible
from noslip.texts import listed
from noslip.trajectory import Trajectory, load

GivenSystem = System | Callable[..., System] | str
GivenIntegrator = Integrator | type[Integrator] | str


class NotGiven(ValueError):
    """A saved run names code that is not part of noslip or of an installed package; `word` is its name."""

    def __init__(self, message: str, word: str):
        super().__init__(message)
        self.word = word


@dataclass(frozen=True)
class Rerun:
    """A saved run, the same run made now, and in what they differ.

    `differences` says for each array that is not the same bit for bit by how much it differs.
    """

    saved: Trajectory
    run: Trajectory
    differences: Mapping[str, str]

    @property
    def identical(self) -> bool:
        """Whether every array has the same bits."""
        return not self.differences

    @property
    def possible_reason(self) -> str:
        """What else was different: versions, backend, system or method; empty if nothing differs."""
        if self.identical:
            return ""
        then, now = _circumstances(self.saved), _circumstances(self.run)
        changed = [f"{k} {then.get(k)} then, {now.get(k)} now" for k in now if then.get(k) != now.get(k)]
        words = (self.saved.info.source, self.saved.info.integrator_source)
        files = dict.fromkeys(word for word in words if in_a_file(word))
        own = "".join(f", or {word} has changed since" for word in files)
        same = f"none in the file, all versions are the same; perhaps another machine{own}"
        return ", ".join(changed) or same


def rerun(
    path: str | Path,
    *,
    system: GivenSystem | None = None,
    integrator: GivenIntegrator | None = None,
    progress: bool | Progress | None = None,
) -> Rerun:
    """Repeat a saved run, as far as it went, and compare.

    `system` is a System, a function that makes one, a catalogue name or "file.py:name"; `integrator` a
    method, its class, or a text such as "file.py:Class" or "VelocityNonholonomic(beta=0.3)". They are needed
    where the saved run's own are not part of noslip or of an installed package. A class takes the saved
    options.
    """
    old = load(path)
    info = old.info
    if info.events:
        raise ValueError(
            f"the events of this run ({', '.join(info.events)}) are functions, which its file does not have; "
            "repeat it by simulate"
        )
    if missing := needed(info, system, integrator):
        given = {"system": system, "integrator": integrator}
        raise ValueError(_refusal(path, info, missing, given))
    if info.input_functions:
        names = ", ".join(f"'{name}'" for name in info.input_functions)
        raise ValueError(f"the inputs {names} of this run were functions of t, which a file does not hold")
    done = int(np.sum(old.report.steps))
    # an interrupted run is compared as far as it went
    steps = done if old.success and not info.save_at else info.steps
    count = steps + (info.inputs_between == "linear")
    new = simulate(
        system_of(info, system),
        integrator_of(info, integrator),
        old.q0,
        old.v0,
        step_size=info.step_size,
        steps=steps,
        t0=info.t0,
        inputs={name: x[:count] for name, x in old.inputs.items()},
        inputs_between=info.inputs_between,
        save_every=info.save_every,
        save_at=old.t if info.save_at else None,
        backend=info.backend if info.backend in BACKENDS else "auto",
        progress=progress,
        throw=False,
    )
    source = system if isinstance(system, str) else info.source
    new = new.with_source(source, _as_before(info.arguments))
    return Rerun(old, new, differences(old, new))


def verify(path: str | Path) -> Verified:
    """Look at every byte of a saved run, a run on disk or an ensemble on disk; what is damaged or missing is
    named in `damaged`."""
    where = as_path("path", path)
    if where.is_dir():
        require_zarr()
        if not (where / "zarr.json").is_file():
            raise ValueError(f"'{where}' must be a run or an ensemble of noslip, but it has no 'zarr.json'")
        return verify_folder(where)
    try:
        load(where)
    except Damaged as error:
        return Verified(1, (str(error),), 0)
    return Verified(1, (), int(sealed(where) is None))


def system_of(info: RunInfo, given: GivenSystem | None = None) -> System:
    """The system of a saved run with its parameters, from what is given or from the name that it has."""
    if given is None and not info.source:
        raise NotGiven("a run that was loaded does not know its system; give it: `system=`", info.source)
    if given is None and info.source not in systems.names():
        raise NotGiven(f"the system '{info.source}' {_UNKNOWN}", info.source)
    source = systems.open_source(info.source if given is None else given)
    arguments, parameters = _as_before(info.arguments), _as_before(info.parameters)
    model = source.build(arguments)
    own = visible(model.parameters)
    if model.coordinates != info.coordinates or set(own) != set(parameters):
        raise ValueError(
            f"'{source.name}' with {listed(arguments) or 'its defaults'} has coordinates "
            f"{', '.join(model.coordinates)} and parameters {', '.join(own)}, but the saved run "
            f"has {', '.join(info.coordinates)} and {', '.join(parameters)}; it was built by other means"
        )
    return model.with_parameters(parameters)


def integrator_of(info: RunInfo, given: GivenIntegrator | None = None) -> Integrator:
    """The method of a saved run, from what is given or from the name that it has; a class takes the saved
    options."""
    if isinstance(given, Integrator):
        return given
    if isinstance(given, str) and "(" in given:
        return integrators.parse(given)
    if isinstance(given, type):
        cls = integrators.is_method(given.__name__, given)
    else:
        cls = _known(info.integrator_source or info.integrator) if given is None else integrators.find(given)
    options = {k: tuple(x) if isinstance(x, list) else x for k, x in info.options.items()}
    return integrators.with_options(cls, options, _known)


def _known(word: str) -> type[Integrator]:
    """The class of a name that a saved run has: never one in a file."""
    try:
        if not in_a_file(word):
            return integrators.find(word)
    except ValueError:
        pass
    raise NotGiven(f"the integrator '{word}' {_UNKNOWN}", word)


_UNKNOWN = "is not part of noslip or of an installed package"
UNASKED = f"code that {_UNKNOWN} is not run unasked"


def needed(
    info: RunInfo, system: GivenSystem | None = None, integrator: GivenIntegrator | None = None
) -> dict[str, str]:
    """What must still be given to have a saved run's system and integrator, with the words for it."""
    missing = {}
    if system is None and info.source not in systems.names():
        missing["system"] = info.source if in_a_file(info.source) else "FILE.py:NAME"
    try:
        integrator_of(info, integrator)
    except NotGiven as one:
        module, _, name = one.word.rpartition(":")
        word = one.word if module.endswith(".py") else f"FILE.py:{name.rpartition('.')[2]}"
        within = [
            f"{k}={x if isinstance(x, str) and one.word in x else repr(x)}" for k, x in info.options.items()
        ]
        whole = one.word == (info.integrator_source or info.integrator)
        missing["integrator"] = word if whole else f"{info.integrator}({', '.join(within)})"
    return missing


def _refusal(path: str | Path, info: RunInfo, missing: Mapping[str, str], given: Mapping[str, object]) -> str:
    """Why the run is not repeated, and how to have it repeated: as a command and as a call."""
    named = [info.source if option == "system" else word for option, word in missing.items()]
    named = [word for word in named if word]
    why = [] if "system" not in missing or info.source else ["does not say where its system came from"]
    if named:
        why.append(f"names {' and '.join(named)}, and {UNASKED}")
    words = {k: x for k, x in {**given, **missing}.items() if x is not None}
    options = [f"--{k} {shlex.quote(x)}" for k, x in words.items() if isinstance(x, str)]
    arguments = [f"{k}={x!r}" if isinstance(x, str) else f"{k}=..." for k, x in words.items()]
    return (
        f"this run {' and '.join(why)}; give it, as in "
        f"`{' '.join(['noslip rerun', shlex.quote(str(path)), *options])}` "
        f"or noslip.rerun({', '.join([repr(str(path)), *arguments])})"
    )


def differences(old: Trajectory, new: Trajectory) -> dict[str, str]:
    """Each array that is not the same bit for bit, with its largest difference."""
    found = {}
    before, after = old.to_xarray(), new.to_xarray()
    for name in map(str, dict.fromkeys([*before.variables, *after.variables])):
        if name not in before.variables or name not in after.variables:
            found[name] = "only in one of them"
            continue
        x, y = before[name].values, after[name].values
        if x.shape != y.shape:
            found[name] = f"shape {x.shape} before, {y.shape} now"
        elif x.tobytes() != y.tobytes() and x.dtype.kind in "fiu":
            found[name] = f"{np.max(np.abs(x - y)):.1e}"
    return found


def _circumstances(run: Trajectory) -> dict[str, str]:
    info = run.info
    method = f"{info.integrator_source or info.integrator}({listed(info.options)})"
    return {**info.versions, "backend": run.backend, "system": info.source, "integrator": method}


def _as_before(values: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from a saved file as they were: a list there was an array."""
    return {k: np.array(value) if isinstance(value, list) else value for k, value in values.items()}
