"""Pictures of one run, and of several side by side.

Figures are made without pyplot, so nothing is shown or kept open; save them with `savefig`. Colours
are those of Okabe and Ito, and lines differ in style as well, for print and for colour-blind readers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from noslip.analysis.conservation import energy_error, first_integral_errors
from noslip.analysis.thinning import thinned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from noslip.trajectory import Trajectory

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
EPS = float(np.finfo(float).eps)
FLOOR = 1e-17  # where an error of exactly zero is drawn on a logarithmic axis
BINS = 200  # error curves with more points than this show the largest error of each bin
PATH_POINTS = 100_000


def plot_trajectory(run: Trajectory) -> Figure:
    """Path, energy error, constraint residual and multipliers of one run."""
    run = thinned(run)
    figure, (path, energy, constraint, multipliers) = _figure(_title(run))
    _draw_path(path, {"": run})
    _draw_energy(energy, {"": run})
    _draw_constraint(constraint, {"": run}, components=True)
    _draw_multipliers(multipliers, run)
    return figure


def compare_runs(runs: Mapping[str, Trajectory], *, path_times: tuple[float, float] | None = None) -> Figure:
    """The same four questions to several runs of one system: the label of each run is its key.

    `path_times` limits the path to a part of a long run. The fourth panel shows the first integrals
    where the system declares some, else the multipliers.
    """
    if not runs:
        raise ValueError("`runs` must hold at least one run, but it is empty")
    if len({run.info.coordinates for run in runs.values()}) > 1:
        raise ValueError("`runs` must be runs of one system, but their coordinates differ")
    runs = {label: thinned(run) for label, run in runs.items()}
    figure, (path, energy, constraint, last) = _figure(None)
    _draw_path(path, runs, path_times)
    _draw_energy(energy, runs)
    _draw_constraint(constraint, runs, components=False)
    if next(iter(runs.values())).first_integrals:
        _draw_first_integrals(last, runs)
    else:
        _draw_all_multipliers(last, runs)
    lines = energy.get_lines()[: len(runs)]
    figure.legend(
        lines,
        [as_written(label) for label in runs],
        loc="outside upper center",
        ncols=min(4, len(runs)),
        frameon=False,
    )
    return figure


def as_written(name: str) -> str:
    """A name of the user for matplotlib, which takes dollars for mathematics."""
    return name.replace("$", r"\$")


def require_matplotlib() -> None:
    """One sentence where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise ImportError(
            "pictures need matplotlib, which is not installed; install noslip with its extra: noslip[plots]"
        ) from None


# ---- panels ---------------------------------------------------------------------------------------


def _draw_path(ax: Axes, runs: Mapping[str, Trajectory], times: tuple[float, float] | None = None) -> None:
    first = next(iter(runs.values()))
    i, j = plane(first)
    low, high = times or (-np.inf, np.inf)
    spans = []
    for k, (label, run) in enumerate(runs.items()):
        shown = run.q[(run.t >= low) & (run.t <= high)]
        shown = shown[:: max(1, -(-len(shown) // PATH_POINTS))]
        spans += [(np.min(shown, axis=0), np.max(shown, axis=0))] if len(shown) else []
        ax.plot(shown[:, i], shown[:, j], linewidth=1.2, label=label, **_style(k, shown))
    notes = []
    if low <= first.t[0]:
        ax.plot(first.q[0, i], first.q[0, j], "o", color="black", markersize=5)
        notes.append("dot: start")
    names, angles = first.info.coordinates, first.info.angles
    ax.set_xlabel(as_written(names[i]) + (" (angle, rad)" if names[i] in angles else ""))
    ax.set_ylabel(as_written(names[j]) + (" (angle, rad)" if names[j] in angles else ""))
    if not {names[i], names[j]} & set(angles):
        if _comparable(spans, i, j):
            ax.set_aspect("equal", adjustable="datalim")
        else:
            notes.append("not to scale")
    title = "path" if times is None else f"path, t = {low:g} to {high:g}"
    ax.set_title(title + (f" ({', '.join(notes)})" if notes else ""), loc="left")


def _comparable(spans: list[tuple[np.ndarray, np.ndarray]], i: int, j: int) -> bool:
    """Whether both directions can share a scale without making the path a line."""
    widths = np.max([high for _, high in spans], axis=0) - np.min([low for low, _ in spans], axis=0)
    return bool(0 < max(widths[i], widths[j]) < 6 * min(widths[i], widths[j]))


def _draw_energy(ax: Axes, runs: Mapping[str, Trajectory]) -> None:
    for k, (label, run) in enumerate(runs.items()):
        _error_line(ax, *_since_start(run.t, energy_error(run)), label, k)
    _finish_errors(ax, "energy change / max(|T| + |V|)", "energy")


def _draw_constraint(ax: Axes, runs: Mapping[str, Trajectory], components: bool) -> None:
    first = next(iter(runs.values()))
    names = row_names(first)
    if not names:
        _nothing(ax, "constraint residual", "no constraints")
        return
    for k, (label, run) in enumerate(runs.items()):
        residual = np.abs(np.concatenate([run.constraint_residual, run.holonomic_residual], axis=1))
        if components:
            for a, name in enumerate(names):
                _error_line(ax, run.t, residual[:, a], name, a)
        else:
            _error_line(ax, run.t, np.max(residual, axis=1), label, k)
    shown = [
        x
        for x, rows in (("|phi(q, v)|", first.multipliers), ("|g(q)|", first.holonomic_residual))
        if rows.shape[1]
    ]
    _finish_errors(ax, ", ".join(shown), "constraint residual", legend=components and len(names) > 1)


def row_names(run: Trajectory) -> list[str]:
    """Numbers of the velocity constraints, and g with a number of the holonomic ones."""
    m, k = run.multipliers.shape[1], run.holonomic_residual.shape[1]
    return [f"{a + 1}" for a in range(m)] + [f"g {b + 1}" if k > 1 else "g" for b in range(k)]


def _reactions(run: Trajectory) -> np.ndarray:
    """The multipliers of both kinds of constraints."""
    return np.concatenate([run.multipliers, run.holonomic_multipliers], axis=1)


def _draw_first_integrals(ax: Axes, runs: Mapping[str, Trajectory]) -> None:
    names = list(next(iter(runs.values())).first_integrals)
    for k, (label, run) in enumerate(runs.items()):
        worst = np.max([np.abs(error) for error in first_integral_errors(run).values()], axis=0)
        _error_line(ax, *_since_start(run.t, worst), label, k)
    _finish_errors(
        ax, "largest relative change", "first integrals" if len(names) > 1 else as_written(names[0])
    )


def _draw_multipliers(ax: Axes, run: Trajectory) -> None:
    names = row_names(run)
    if not names:
        _nothing(ax, "multipliers", "no constraints, no multipliers")
        return
    for a, name in enumerate(names):
        _plain_line(ax, run.multiplier_t, _reactions(run)[:, a], name, a)
    ax.set_ylabel("lam" if run.info.multiplier_source == "method" else "lam(q, v), from the state")
    _finish(ax, "multipliers", legend=len(names) > 1)


def _draw_all_multipliers(ax: Axes, runs: Mapping[str, Trajectory]) -> None:
    if not row_names(next(iter(runs.values()))):
        _nothing(ax, "multipliers", "no constraints, no multipliers")
        return
    for k, run in enumerate(runs.values()):
        for values in _reactions(run).T:
            _plain_line(ax, run.multiplier_t, values, "", k)
    ax.set_ylabel("lam")
    _finish(ax, "multipliers")


def _nothing(ax: Axes, title: str, said: str) -> None:
    """A panel that says why it is empty."""
    ax.set_title(title, loc="left")
    ax.text(0.5, 0.5, said, transform=ax.transAxes, ha="center", va="center", color="0.35")
    ax.set_xticks([])
    ax.set_yticks([])


# ---- lines and axes -------------------------------------------------------------------------------


def _plain_line(ax: Axes, t: np.ndarray, y: np.ndarray, label: str, k: int) -> None:
    stride = -(-len(t) // PATH_POINTS)
    ax.plot(t[::stride], y[::stride], linewidth=1.2, label=label, **_style(k, t))


def _error_line(ax: Axes, t: np.ndarray, error: np.ndarray, label: str, k: int) -> None:
    t, size = envelope(np.asarray(t), np.abs(error))
    ax.plot(t, np.maximum(size, FLOOR), linewidth=1.2, label=label, **_style(k, t))


def _style(k: int, t: np.ndarray) -> dict[str, Any]:
    """Few points are shown as points too, so that a run of one state is not an empty picture."""
    return {"color": COLOURS[k % 7], "linestyle": STYLES[k % 7], "marker": "." if len(t) < 20 else None}


def _since_start(t: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without the first value, zero by definition, where others follow."""
    kept = slice(1 if len(t) > 1 else 0, None)
    return t[kept], error[kept]


def envelope(t: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest value of each bin, where there are too many points to draw them all."""
    if len(t) <= BINS:
        return t, size
    starts = np.linspace(0, len(t), BINS, endpoint=False).astype(int)
    return t[starts], np.maximum.reduceat(size, starts)


def _finish(ax: Axes, title: str, legend: bool = False) -> None:
    ax.set_xlabel("t")
    ax.set_title(title, loc="left")
    ax.margins(x=0.02)
    if legend:  # beside the title, where it hides no line
        ax.legend(
            frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=6, borderpad=0,
            handlelength=1.0, handletextpad=0.3, columnspacing=0.6,
        )  # fmt: skip


def _finish_errors(ax: Axes, label: str, title: str, legend: bool = False) -> None:
    sizes = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()])
    bottom = FLOOR / 2 if np.min(sizes) < 1e-12 else np.min(sizes) / 10
    ax.set_yscale("log")
    ax.set_ylim(bottom, max(10 * np.max(sizes), 1e-13))
    if bottom < EPS:
        ax.axhline(EPS, color="0.55", linewidth=0.8, linestyle=(0, (1, 3)), zorder=0)
        ax.text(1.01, EPS, "eps", transform=ax.get_yaxis_transform(), va="center", fontsize=7, color="0.35")
    ax.set_ylabel(label)
    _finish(ax, title, legend)


def _figure(title: str | None) -> tuple[Figure, list[Axes]]:
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    axes = figure.subplots(2, 2)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(True, color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
    if title:
        figure.suptitle(as_written(title), fontsize=11)
    return figure, list(axes.flat)


def _title(run: Trajectory) -> str:
    options = ", ".join(f"{name}={value}" for name, value in run.info.options.items())
    on = f" on {run.info.source}" if run.info.source else ""
    return textwrap.fill(f"{run.info.integrator}({options}){on}, h = {run.info.step_size:g}", 90)


def plane(run: Trajectory) -> tuple[int, int]:
    """The two coordinates of the path: x and y, else two lengths that move, else the first two."""
    names, angles = run.info.coordinates, run.info.angles
    if "x" in names and "y" in names:
        return names.index("x"), names.index("y")
    lengths = [k for k, name in enumerate(names) if name not in angles]
    order = [k for k in lengths if np.ptp(run.q[:, k]) > 0] + lengths + list(range(len(names)))
    i, j = list(dict.fromkeys(order))[:2]
    return i, j
