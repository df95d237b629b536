"""Work-precision diagrams: time of a call against the global error, a panel for each problem."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noslip.plots.trajectory import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# colours of Okabe and Ito, told apart with any kind of colour vision; noslip in full lines, peers dashed
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
MARKERS = "osD^vP*X<>hd"
SHOWN = (
    "noslip EnergyCollocation(4)", "noslip EnergyCollocation(6, nodes=6)",
    "noslip Composition(SemiImplicitDLA, kahan_li8)", "noslip DiscreteGradient",
    "scipy DOP853", "scipy Radau", "scikit-sundae IDA", "solve_dae BDF", "pydy LSODA",
    "diffrax Dopri8", "diffrax Kvaerno5", "heyoka Taylor",
)  # fmt: skip


def plot_work_precision(result: dict[str, Any]) -> Figure:
    """The curves of `noslip bench peers`."""
    require_matplotlib()
    from matplotlib.figure import Figure

    systems = list(dict.fromkeys(row["system"] for row in result["rows"]))
    figure = Figure(figsize=(11, 9), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for panel, system in zip(panels, systems, strict=True):
        for number, by in enumerate(SHOWN):
            points = sorted(
                (row["error"], 1e3 * row["seconds"])
                for row in result["rows"]
                if row["system"] == system and row["by"] == by and "seconds" in row and 0 < row["error"] < 1
            )
            if points:
                own = by.startswith("noslip ")
                panel.loglog(
                    *zip(*points, strict=True), label=by, color=COLOURS[number % len(COLOURS)],
                    marker=MARKERS[number % len(MARKERS)], markersize=4, linestyle="-" if own else "--",
                    linewidth=1.2,
                )  # fmt: skip
        panel.invert_xaxis()
        panel.set(title=system, xlabel="global error at the end", ylabel="time of a call, ms")
        panel.grid(alpha=0.3)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    return figure
