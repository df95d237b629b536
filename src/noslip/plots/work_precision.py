"""Work-precision diagrams: time of a call against the error at the end, a panel for each problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from noslip.plots.trajectory import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# colours of Okabe and Ito, told apart with any kind of colour vision
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vP*X<>hd"


def plot_work_precision(
    problems: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]], dashed: Collection[str] = ()
) -> Figure:
    """The points (error, seconds) of each method on each problem; curves named in `dashed` are dashed."""
    require_matplotlib()
    from matplotlib.figure import Figure

    columns = min(2, len(problems))
    rows = -(-len(problems) // columns)
    figure = Figure(figsize=(5.5 * columns, 4.5 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, (name, curves) in zip(panels, problems.items(), strict=False):
        for number, (by, curve) in enumerate(curves.items()):
            shown = sorted((error, 1e3 * seconds) for error, seconds in curve if 0 < error < 1)
            if shown:
                panel.loglog(
                    *zip(*shown, strict=True), label=by, color=COLOURS[number % len(COLOURS)],
                    marker=MARKERS[number % len(MARKERS)], markersize=4, linewidth=1.2,
                    linestyle="--" if by in dashed else "-",
                )  # fmt: skip
        panel.invert_xaxis()
        panel.set(title=name, xlabel="global error at the end", ylabel="time of a call, ms")
        panel.grid(alpha=0.3)
    for panel in panels[len(problems) :]:
        panel.set_axis_off()
    handles = {
        label: line
        for panel in panels
        for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, fontsize=8)
    return figure
