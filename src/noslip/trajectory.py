"""The result of a run: time-first arrays with names, the solve report, and everything to run it again."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noslip.files import replacing
from noslip.run.record import Array, Report, RunInfo

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Trajectory:
    """States, energies, constraint, multipliers and solve report at the saved times (axis 0).

    `energy`, `first_integrals` and `constraint_residual` are evaluated on the very states that the
    method stepped (angles wrapped); `q` is unwrapped. `multiplier_t` dates the multipliers. `inputs` are
    those that were given as arrays; a row is evaluated with the inputs of the step that led to it.
    """

    t: Array
    q: Array
    v: Array
    multipliers: Array
    multiplier_t: Array
    energy: Array
    energy_scale: Array
    constraint_residual: Array
    first_integrals: Mapping[str, Array]
    report: Report
    q0: Array
    v0: Array
    info: RunInfo
    inputs: Mapping[str, Array] = field(default_factory=dict)

    @property
    def backend(self) -> str:
        """Where the run was computed."""
        return self.info.backend

    @property
    def success(self) -> bool:
        """Whether every step was solved."""
        return not self.report.status.any()

    def __repr__(self) -> str:
        return (
            f"Trajectory({self.info.integrator}, {len(self.t)} saved times, "
            f"t = {self.t[0]:g} .. {self.t[-1]:g}, {self.report})"
        )

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
        return self.info.step_size * np.cumsum(self.report.steps)

    def to_xarray(self) -> xarray.Dataset:
        """A dataset with dimensions time, coordinate and constraint, and the run's data as attributes."""
        import xarray

        names = [f"constraint_{i}" for i in range(self.multipliers.shape[1])]
        state, reaction = ("time", "coordinate"), ("time", "constraint")
        data = {
            "q": (state, self.q),
            "v": (state, self.v),
            "multipliers": (reaction, self.multipliers),
            "multiplier_t": ("time", self.multiplier_t),
            "energy": ("time", self.energy),
            "energy_scale": ("time", self.energy_scale),
            "constraint_residual": (reaction, self.constraint_residual),
            "q0": ("coordinate", self.q0),
            "v0": ("coordinate", self.v0),
        }
        data |= {f"integral_{name}": ("time", x) for name, x in self.first_integrals.items()}
        data |= {f"report_{f.name}": ("time", getattr(self.report, f.name)) for f in fields(Report)}
        data |= {f"input_{name}": ("input", x) for name, x in self.inputs.items()}
        arrays = {name: (dims, np.asarray(values)) for name, (dims, values) in data.items()}
        coords = {"time": self.t, "coordinate": list(self.info.coordinates), "constraint": names}
        return xarray.Dataset(arrays, coords, self.info.attributes())

    def save(self, path: str | Path) -> None:
        """Write NetCDF. The file appears complete or not at all."""
        _require_engine()
        path = Path(path)
        if path.is_dir() or not path.name:
            raise IsADirectoryError(f"cannot save to '{path}': it is a folder, not a file")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"cannot save to '{path}': there is no folder '{path.parent}'")
        with replacing(path) as part:
            self.to_xarray().to_netcdf(part, engine="h5netcdf")

    def plot(self) -> Figure:
        """Path, energy, constraint and multipliers in one figure (needs the `plots` extra)."""
        from noslip.plots.trajectory import plot_trajectory

        return plot_trajectory(self)

    def with_source(self, source: str, arguments: Mapping[str, Any]) -> Trajectory:
        """The same run, with the place that its system came from, for `noslip rerun`."""
        return replace(self, info=replace(self.info, source=source, arguments=dict(arguments)))


def load(path: str | Path) -> Trajectory:
    """Read a run that `Trajectory.save` wrote; it equals the one that was saved."""
    import xarray

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file '{path}'")
    _require_engine()
    try:
        with xarray.open_dataset(path, engine="h5netcdf") as opened:
            data = opened.load()
    except OSError:
        raise ValueError(f"'{path}' is not a NetCDF file") from None
    if "noslip" not in data.attrs:
        raise ValueError(f"'{path}' was not written by noslip: it has no attribute 'noslip'")
    missing = {"time", "q", "v", "energy"} - set(map(str, data.variables))
    if missing:
        raise ValueError(f"'{path}' is not a whole run: it lacks {', '.join(sorted(missing))}")
    values = {str(name): data[name].values for name in data.variables}
    return Trajectory(
        t=values["time"],
        first_integrals={
            name.removeprefix("integral_"): x for name, x in values.items() if name.startswith("integral_")
        },
        inputs={name.removeprefix("input_"): x for name, x in values.items() if name.startswith("input_")},
        report=Report(**{f.name: values[f"report_{f.name}"] for f in fields(Report)}),
        info=RunInfo.from_attributes(data.attrs),
        **{
            f.name: values[f.name]
            for f in fields(Trajectory)
            if f.name not in ("t", "first_integrals", "inputs", "report", "info")
        },
    )


def _require_engine() -> None:
    """NetCDF files need h5netcdf; a run in memory does not, so it is looked for only here."""
    if importlib.util.find_spec("h5netcdf") is None:
        raise ImportError("saving and loading runs needs the package h5netcdf, but it is not installed")
