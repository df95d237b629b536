"""A picture as data: panels of named curves, drawn by one function and written as one table.

What is drawn can so be saved beside the picture, and every picture of the project looks alike: the colours
of Okabe and Ito, one line style for each curve, readable in print and by colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from noslip.numerics.tracing import Values
from noslip.plots.trajectory import COLOURS, STYLES, envelope, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = "osD^vPX"
POINTS = 1500  # a curve with more points than this is thinned


@dataclass(frozen=True)
class Curve:
    """y over x. `kind` is a line, points, a line with a mark at each point, a thin line for comparison, or an
    error, of which the largest size in each of some 200 bins is drawn."""

    label: str
    x: Sequence[float] | Values
    y: Sequence[float] | Values
    kind: Literal["line", "points", "marked", "reference", "error"] = "line"


@dataclass(frozen=True)
class Panel:
    """Axes with their curves; `log` names the logarithmic axes: "", "x", "y" or "xy"."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    log: Literal["", "x", "y", "xy"] = ""
    equal: bool = False


def draw(panels: Sequence[Panel], title: str = "") -> Figure:
    """All panels in one figure, two beside each other."""
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    height = max(3.5 + 0.17 * -(-len(panel.curves) // 2) for panel in panels)  # legends stand below the axes
    width = 4.9 * columns if columns > 1 else 6.5
    figure = Figure(figsize=(width, height * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for ax, panel in zip(axes, panels, strict=False):
        _draw_panel(ax, panel)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def table(panels: Sequence[Panel]) -> Iterator[tuple[str, str, float, float]]:
    """(panel, curve, x, y) for every point that is drawn."""
    for panel in panels:
        for curve in panel.curves:
            for x, y in zip(*_thinned(curve, panel), strict=True):
                yield panel.title, curve.label, float(x), float(y)


def _draw_panel(ax: Axes, panel: Panel) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    own = 0
    for curve in panel.curves:
        x, y = _thinned(curve, panel)
        if curve.kind == "reference":
            ax.plot(x, y, color="0.35", linewidth=0.9, linestyle=(0, (6, 3)), label=curve.label, zorder=1)
            continue
        k = own % len(COLOURS)
        own += 1
        marker = MARKERS[k] if curve.kind in ("points", "marked") else None
        line = "none" if curve.kind == "points" else STYLES[k]
        size = 5.0 if len(x) < 60 else 2.5
        ax.plot(
            x, y, color=COLOURS[k], linestyle=line, linewidth=1.3, marker=marker, markersize=size,
            markerfacecolor="none", label=curve.label,
        )  # fmt: skip
    if "x" in panel.log:
        ax.set_xscale("log")
        if panel.curves[0].kind == "marked":  # a few steps: name them, instead of a decade or two
            ax.set_xticks(panel.curves[0].x, [f"{x:.3g}" for x in panel.curves[0].x])
            ax.minorticks_off()
    if "y" in panel.log:
        ax.set_yscale("log")
    if panel.equal:
        ax.set_aspect("equal", adjustable="datalim")
    ax.set_xlabel(panel.x)
    ax.set_ylabel(panel.y)
    ax.set_title(panel.title, loc="left", fontsize=10)
    if len(panel.curves) > 1:
        ax.legend(
            frameon=False, fontsize=7.5, handlelength=2.8, ncols=2,
            loc="upper center", bbox_to_anchor=(0.5, -0.2), borderaxespad=0,
        )  # fmt: skip


def _thinned(curve: Curve, panel: Panel) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    if curve.kind == "error":
        x, y = envelope(x, np.abs(y))
    stride = max(1, -(-len(x) // POINTS))
    x, y = x[::stride], y[::stride]
    if "y" in panel.log and np.any(y == 0):  # zero is drawn below all others, not left out
        y = np.where(y == 0, min(1e-17, np.min(y[y > 0], initial=1.0)), y)
    return x, y
