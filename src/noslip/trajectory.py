"""The result of a run: time-first arrays with names, the solve report, and everything to run it again."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noslip.errors import Damaged, first_line
from noslip.files import (
    as_path,
    replacing,
    require_netcdf_name,
    require_plain,
    require_writable,
    seal,
    sealed,
)
from noslip.markdown import html_table
from noslip.numerics.tracing import Either, has_tracers, is_traced
from noslip.run.arguments import times_within
from noslip.run.columns import Column, lazily
from noslip.run.interpolate import Between, between
from noslip.run.occurrences import Occurrences, with_knots
from noslip.run.pairing import Pairing
from noslip.run.pieces import Driving, between_inputs
from noslip.run.record import Array, Report, RunInfo
from noslip.run.runner import TrajectoryRunner
from noslip.system import System
from noslip.texts import listed

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Origin:
    """What a run was made by, while it is in memory: it is neither saved nor compared."""

    pairing: Pairing
    runner: TrajectoryRunner[Any] | None = None  # at its end; None where it was traced, or a flow


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States, energies, constraint, multipliers and solve report at the saved times (axis 0).

    `energy`, `first_integrals` and `constraint_residual` are evaluated on the very states that the method
    stepped (angles wrapped); `q` is unwrapped. So are `holonomic_residual`, g(q) of the k holonomic
    constraints, and `holonomic_rate`, dg/dt = G v, whose reactions are the `holonomic_multipliers`.
    `multiplier_t` dates the multipliers. `inputs` are those that were given as arrays; a row is evaluated
    with the inputs of the step that led to it.
    """

    t: Array
    q: Array
    v: Array
    multipliers: Array
    multiplier_t: Array
    energy: Array
    energy_scale: Array
    constraint_residual: Array
    holonomic_multipliers: Array
    holonomic_residual: Array
    holonomic_rate: Array
    first_integrals: Mapping[str, Array]
    report: Report
    q0: Array
    v0: Array
    info: RunInfo
    origin: Origin | None = field(repr=False)
    events: Mapping[str, Occurrences] = field(default_factory=dict, repr=False)
    inputs: Mapping[str, Array] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """Where the run was computed."""
        return self.info.backend

    @property
    def stopped_by(self) -> str | None:
        """The name of the terminal event that ended the run, if one has; its state is the last row."""
        return self.info.stopped_by or None

    @property
    def success(self) -> bool:
        """Whether every step was solved."""
        return not self.report.status.any()

    def __getstate__(self) -> dict[str, object]:
        """For pickling: all but what it was made by, which holds machine code."""
        return {**vars(self), "origin": None}

    def __repr__(self) -> str:
        return (
            f"Trajectory({self.info.integrator}, {len(self.t)} saved times, "
            f"t = {self.t[0]:g} .. {self.t[-1]:g}, {self.report})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        info, change = self.info, np.max(np.abs(self.energy - self.energy[0]))
        residual = np.max(np.abs(self.constraint_residual), initial=0.0)
        rows = [
            ("method", f"{info.integrator}({listed(info.options)})"),
            ("system", f"{info.source or 'of the user'}: {', '.join(info.coordinates)}"),
            ("parameters", listed(info.parameters)),
            ("time", f"{self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} rows"),
            ("steps", f"{int(np.sum(self.report.steps))} of {info.step_size:g}, {self.backend}"),
            ("energy", f"{self.energy[0]:.6g}, changes by {change:.1e} at most"),
            ("constraint residual", f"{residual:.1e} at most"),
            ("solves", str(self.report)),
        ]
        counts = ", ".join(f"{name}: {len(there)}" for name, there in self.events.items())
        rows += [("events", counts)] if counts else []
        rows += [("ended by", self.stopped_by)] if self.stopped_by else []
        return html_table("Trajectory", rows)

    def __eq__(self, other: object) -> bool:
        """Equal bits in every array, and equal information about the run."""
        if not isinstance(other, Trajectory):
            return NotImplemented
        mine, theirs = self.to_xarray(), other.to_xarray()
        return bool(mine.identical(theirs))

    __hash__ = None  # type: ignore[assignment]

    @property
    def tau(self) -> Array:
        """The method's own time, k h at step k: t - t0 for all but those that make t in the step."""
        return self.t - self.t[0] if self.info.save_at else self.info.step_size * np.cumsum(self.report.steps)

    def at(self, times: Either, *, system: System | None = None) -> Between:
        """States at any times between the first row and the last: t, q, v, multipliers, time first.

        A polynomial of degree 5 through the rows around a time adds an error O(H^6) in q and O(H^5) in v, H
        being the distance of the rows; positions are put on holonomic constraints and velocities on all,
        multipliers are those of the motion there. A time at a node has the inputs of the step that led there;
        where arrays of inputs switch between two rows, the error is O(h^4) in the step h besides. A run that
        was loaded from a file needs its `system`.
        """
        if system is None:
            if self.origin is None:
                raise ValueError(
                    "a run that was loaded does not know its system; give it: run.at(times, system=...)"
                )
            system = self.origin.pairing.system
        else:
            system = bound_as(self, system)
        driving = driving_of(self)
        known = self.t if driving is None else _known_times(self)
        times = times_within(times, known)
        t, q, v = (np.asarray(x) if isinstance(x, Column) else x for x in (known, self.q, self.v))
        if self.info.events and not is_traced(self.q):
            if self.origin is None:
                raise ValueError(
                    "a loaded run does not know its resets; there are no states between its rows"
                )
            t, q, v = with_knots(system, self.origin.pairing.events, self.events, t, q, v, driving)
        if driving is None:
            q, v, lam = between(system, t, q, v, times)
        else:
            q, v, lam = between_inputs(system, driving, t, q, v, times)
        if not is_traced(q):
            times, q, v, lam = (np.asarray(x) for x in (times, q, v, lam))
        m, end = system.m, system.m + system.k
        return Between(times, q, v, lam[:, :m], lam[:, m:end])

    def columns(self) -> dict[str, tuple[tuple[str, ...], Array]]:
        """Every array by the name that it has in a dataset, with its dimensions."""
        time, state, reaction = ("time",), ("time", "coordinate"), ("time", "constraint")
        data = {
            "time": (time, self.t),
            "q": (state, self.q),
            "v": (state, self.v),
            "multipliers": (reaction, self.multipliers),
            "multiplier_t": (time, self.multiplier_t),
            "energy": (time, self.energy),
            "energy_scale": (time, self.energy_scale),
            "constraint_residual": (reaction, self.constraint_residual),
            "q0": (("coordinate",), self.q0),
            "v0": (("coordinate",), self.v0),
        }
        if self.holonomic_residual.shape[1]:
            data |= {name: (("time", "holonomic"), getattr(self, name)) for name in _HOLONOMIC}
        data |= {f"integral_{name}": (time, x) for name, x in self.first_integrals.items()}
        data |= {f"input_{name}": (("input",), x) for name, x in self.inputs.items()}
        for name, there in self.events.items():
            data |= there.columns(name)
        return data | {f"report_{f.name}": (time, getattr(self.report, f.name)) for f in fields(Report)}

    @classmethod
    def of_columns(cls, values: Mapping[str, Array], info: RunInfo) -> Trajectory:
        """The run whose `columns` these are."""

        def named(begun: str) -> dict[str, Array]:
            return {k.removeprefix(begun): x for k, x in values.items() if k.startswith(begun)}

        no_rows = np.empty((len(values["time"]), 0))
        return cls(
            t=values["time"],
            **{name: values.get(name, no_rows) for name in _HOLONOMIC},
            events={
                name: Occurrences(*(values[f"event_{name}_{x}"] for x in ("t", "q", "v")))
                for name in info.events
            },
            first_integrals=named("integral_"),
            inputs=named("input_"),
            report=Report(**{f.name: values[f"report_{f.name}"] for f in fields(Report)}),
            info=info,
            origin=None,
            **{name: values[name] for name in _ARRAYS},
        )

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with dimensions time, coordinate and constraint, and the run's data as attributes. That
        of a run on disk is read when it is needed, by Dask where that is installed."""
        import xarray

        names = [f"constraint_{i}" for i in range(self.multipliers.shape[1])]
        arrays: dict[str, Any] = {
            name: lazily(dims, x) if isinstance(x, Column) else (dims, np.asarray(x))
            for name, (dims, x) in self.columns().items()
        }
        del arrays["time"]  # an index, which is in memory always
        coords = {"time": np.asarray(self.t), "coordinate": list(self.info.coordinates), "constraint": names}
        if k := self.holonomic_residual.shape[1]:
            coords["holonomic"] = [f"holonomic_{i}" for i in range(k)]
        return xarray.Dataset(arrays, coords, self.info.attributes())

    def save(self, path: str | Path) -> None:
        """Write NetCDF. The file appears complete or not at all; every variable has HDF5's checksum, and the
        file ends in one of its own."""
        _require_engine()
        path = as_path("path", path)
        if path.is_dir() or not path.name:
            raise IsADirectoryError(f"cannot save to '{path}': it is a folder, not a file")
        require_plain(path)
        require_netcdf_name(path)
        require_writable(path)
        data = self.to_xarray()
        checked = [name for name, x in data.variables.items() if x.size and x.dtype.kind in "fiu"]
        # in memory first: HDF5 ends the process where a disk is full
        image = data.to_netcdf(
            None, engine="h5netcdf", encoding={name: {"fletcher32": True} for name in checked}
        )
        with replacing(path) as part, open(part, "wb") as file:
            file.write(image)
            file.write(seal(image))

    @classmethod
    def open(cls, path: str | Path) -> Trajectory:
        """A run that `simulate(..., store=path)` has written, or is writing: the rows that it has now, read
        from the disk when they are indexed."""
        from noslip.run.stored_rows import read_rows

        stored = read_rows(path)
        return cls.of_columns(stored.columns, stored.info)

    def plot(self, what: str = "overview") -> Figure:
        """Path, energy, constraint and multipliers in one figure; or "q", "v" or "multipliers" over time, or
        the "scene", its bodies in space (needs the `plots` extra)."""
        from noslip.plots.of_run import plot

        return plot(self, what)

    def with_source(self, source: str, arguments: Mapping[str, object]) -> Trajectory:
        """The same run, with the place that its system came from, for `noslip rerun`."""
        return replace(self, info=replace(self.info, source=source, arguments=dict(arguments)))


def bound_as(run: Trajectory, system: System) -> System:
    """The system with the parameters of the run and its inputs that are functions of t."""
    bound, names = system.with_parameters(run.info.parameters), run.info.input_functions
    known = dict(system.signals if run.origin is None else run.origin.pairing.system.signals)
    if lost := [name for name in names if name not in known]:
        raise ValueError(
            f"a run that was loaded does not know the function of t that its input '{lost[0]}' was; give a "
            "`system` that does: system.with_signals({...})"
        )
    return bound.with_signals({name: known[name] for name in names}) if names else bound


def driving_of(run: Trajectory) -> Driving | None:
    """The arrays of inputs of a run by its steps."""
    if not run.inputs:
        return None
    if has_tracers(run.info.t0, run.info.step_size):
        raise ValueError("`t0` and `step_size` of a traced run with arrays of `inputs` must be known")
    return Driving.of(run.inputs, run.info.inputs_between, run.info.t0, run.info.step_size)


def _known_times(run: Trajectory) -> np.ndarray:
    """The times of the rows, of a traced run too."""
    if not has_tracers(run.t):
        return np.asarray(run.t)
    if run.info.save_at or run.info.events:
        raise ValueError(
            "a traced run with arrays of `inputs` and `save_at` or `events` has no states between"
        )
    steps, every = run.info.steps, run.info.save_every
    return run.info.t0 + np.minimum(every * np.arange(len(run.t)), steps) * run.info.step_size


_ARRAYS = (
    "q", "v", "multipliers", "multiplier_t", "energy", "energy_scale", "constraint_residual", "q0", "v0",
)  # fmt: skip
_HOLONOMIC = ("holonomic_multipliers", "holonomic_residual", "holonomic_rate")


def load(path: str | Path) -> Trajectory:
    """Read a run that `Trajectory.save` wrote; it equals the one that was saved. So are runs that a page has
    saved, in the classic form of NetCDF. A folder is opened as by `Trajectory.open`."""
    path = as_path("path", path)
    if path.is_dir():
        return Trajectory.open(path)
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file '{path}'")
    _require_engine()
    if sealed(path) is False:
        raise Damaged(f"'{path}' is damaged: it is not what was written")
    classic = _begins(path, b"CDF")
    data = _dataset(path, "scipy" if classic else "h5netcdf")
    if "noslip" not in data.attrs:
        raise ValueError(f"'{path}' was not written by noslip: it has no attribute 'noslip'")
    values = {str(name): data[name].values for name in data.variables}
    if classic and "time" in values:
        values = _of_classic(values)
    needed = {"time", *_ARRAYS, *(f"report_{f.name}" for f in fields(Report))}
    if missing := needed - set(values):
        raise ValueError(f"'{path}' is not a whole run: it lacks {', '.join(sorted(missing))}")
    try:
        info = RunInfo.from_attributes(data.attrs)
    except (ValueError, TypeError, KeyError):
        raise Damaged(f"'{path}' is damaged: its attribute 'noslip' cannot be read") from None
    return Trajectory.of_columns(values, info)


def _of_classic(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Numbers of this machine, of 8 bytes; a table without columns, which has no place in such a file."""
    empty = np.empty((len(values["time"]), 0))
    found = {"multipliers": empty, "constraint_residual": empty}
    for name, x in values.items():
        if x.dtype.kind in "fi":
            found[name] = x.astype(float if x.dtype.kind == "f" else int)
    return found


def _dataset(path: str | Path, engine: str) -> xarray.Dataset:
    import xarray

    try:
        with xarray.open_dataset(path, engine=engine) as opened:
            return opened.load()
    except Exception as error:  # HDF5 and what is built on it have no one kind for damaged files
        if engine == "h5netcdf" and not _begins(path, b"\x89HDF\r\n\x1a\n"):
            raise ValueError(f"'{path}' is not a NetCDF file") from None
        raise Damaged(f"'{path}' is damaged, or no NetCDF file of a run: {first_line(error)}") from None


def _begins(path: str | Path, word: bytes) -> bool:
    """Whether the file begins so."""
    with open(path, "rb") as file:
        return file.read(len(word)) == word


def _require_engine() -> None:
    """NetCDF files need h5netcdf; a run in memory does not, so it is looked for only here."""
    if importlib.util.find_spec("h5netcdf") is None:
        raise ImportError("saving and loading runs needs the package h5netcdf, but it is not installed")
