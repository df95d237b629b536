"""What `run.plot(what)` shows: an overview, columns of the run over time, or the scene."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from noslip.analysis.thinning import thinned
from noslip.errors import unknown_name
from noslip.plots.panels import Curve, Panel, draw
from noslip.plots.stills import plot_scene
from noslip.plots.trajectory import as_written, plot_trajectory, row_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from noslip.trajectory import Trajectory


def plot(run: Trajectory, what: str) -> Figure:
    """The picture of that name."""
    if what not in PICTURES:
        raise ValueError(unknown_name("picture", what, PICTURES))
    return PICTURES[what](run)


def plot_positions(run: Trajectory) -> Figure:
    """Each coordinate over time."""
    return _over_time(thinned(run), "q")


def plot_velocities(run: Trajectory) -> Figure:
    """The rate of each coordinate over time."""
    return _over_time(thinned(run), "v")


def plot_multipliers(run: Trajectory) -> Figure:
    """The multiplier of each constraint over time."""
    run = thinned(run)
    names = row_names(run)
    if not names:
        raise ValueError("a system without constraints has no multipliers to plot")
    said = "lam" if run.info.multiplier_source == "method" else "lam(q, v), from the state"
    values = np.concatenate([run.multipliers, run.holonomic_multipliers], axis=1)
    return draw(
        [
            Panel(f"constraint {name}", "t", said, (Curve("", run.multiplier_t, values[:, k]),))
            for k, name in enumerate(names)
        ]
    )


def _over_time(run: Trajectory, what: str) -> Figure:
    panels = []
    for k, name in enumerate(run.info.coordinates):
        unit = " (angle, rad)" if name in run.info.angles and what == "q" else ""
        said = as_written(name) if what == "q" else f"rate of {as_written(name)}"
        panels.append(
            Panel(as_written(name), "t", said + unit, (Curve("", run.t, getattr(run, what)[:, k]),))
        )
    return draw(panels)


PICTURES: dict[str, Callable[[Trajectory], Figure]] = {
    "overview": plot_trajectory,
    "q": plot_positions,
    "v": plot_velocities,
    "multipliers": plot_multipliers,
    "scene": plot_scene,
}
