"""Phase portraits of runs, and the order of methods in a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from noslip.analysis.order import MeasuredOrder
from noslip.analysis.thinning import thinned
from noslip.plots.panels import Curve, Panel, draw
from noslip.plots.trajectory import as_written

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from noslip.trajectory import Trajectory


def plot_phase_portrait(runs: Trajectory | Mapping[str, Trajectory]) -> Figure:
    """Velocity over position, a panel for each coordinate; angles are shown between -pi and pi.

    Several runs of one system, by label, are drawn over each other.
    """
    given = {k: thinned(run) for k, run in (runs if isinstance(runs, Mapping) else {"": runs}).items()}
    if not given:
        raise ValueError("`runs` must hold at least one run, but it is empty")
    first = next(iter(given.values())).info
    if any(run.info.coordinates != first.coordinates for run in given.values()):
        raise ValueError("`runs` must be runs of one system, but their coordinates differ")
    panels = []
    for k, name in enumerate(first.coordinates):
        turning = name in first.angles
        curves = tuple(Curve(label, *_portrait(run, k, turning)) for label, run in given.items())
        unit = " (angle, rad)" if turning else ""
        said = as_written(name)
        panels.append(Panel(said, said + unit, f"rate of {said}", curves))
    return draw(panels)


def plot_order(measured: Mapping[str, MeasuredOrder]) -> Figure:
    """Global errors of positions and velocities over the step, with the fitted slope in the legend."""
    if not measured:
        raise ValueError("`measured` must hold at least one method, but it is empty")
    panels = []
    for column, what in enumerate(("positions", "velocities")):
        curves = tuple(
            Curve(f"{label}: {_slope(m.global_[column])}", m.step_sizes, m.global_errors[:, column], "marked")
            for label, m in measured.items()
        )
        panels.append(Panel(f"error of the {what}", "step h", "largest error", curves, "xy"))
    return draw(panels)


def _slope(order: float) -> str:
    return f"{order:.2f}" if np.isfinite(order) else "no slope"


def _portrait(run: Trajectory, k: int, turning: bool) -> tuple[np.ndarray, np.ndarray]:
    q, v = run.q[:, k], run.v[:, k]
    if not turning:
        return q, v
    wrapped = np.mod(q + np.pi, 2 * np.pi) - np.pi
    jumps = np.abs(np.diff(wrapped)) > np.pi  # the line is broken where the angle passes pi
    at = np.flatnonzero(jumps) + 1
    return np.insert(wrapped, at, np.nan), np.insert(v, at, np.nan)
