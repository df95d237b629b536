"""A run as a moving picture: GIF always, MP4 where ffmpeg is installed.

A system whose module has `picture(q, parameters)` (curves in the plane) is drawn as that body; any
other as a point on its path. Time in the picture runs evenly, whatever the steps of the run were.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from noslip.analysis.thinning import thinned
from noslip.files import replacing
from noslip.plots.trajectory import COLOURS, as_written, plane, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.animation import AbstractMovieWriter

    from noslip.trajectory import Trajectory

Picture = Callable[[np.ndarray, Any], tuple[np.ndarray, ...]]
FORMATS = (".gif", ".mp4")


def animate(
    run: Trajectory,
    path: str | Path,
    *,
    picture: Picture | None = None,
    seconds: float = 6.0,
    frames_per_second: int = 15,
) -> None:
    """Write the run as a film of so many seconds; `picture` overrides what the catalogue says."""
    path = Path(path)
    writer = _writer(path, frames_per_second)
    if not seconds > 0:
        raise ValueError(f"`seconds` must be positive, but {seconds!r} was provided")
    if len(run.t) < 2:
        raise ValueError("a film needs at least two saved states, but the run has one")
    run = thinned(run)
    frames = max(2, round(seconds * frames_per_second))
    times = np.linspace(run.t[0], run.t[-1], frames)
    q = np.stack([np.interp(times, run.t, column) for column in run.q.T], axis=1)
    picture = picture or catalogue_picture(run)
    i, j = plane(run)
    bodies = [picture(x, run.info.parameters) if picture else () for x in q]
    with replacing(path) as part:
        _film(writer, part, run, times, bodies, (i, j))


def catalogue_picture(run: Trajectory) -> Picture | None:
    """The `picture` of the system's module, where the catalogue has one."""
    from noslip import systems

    if run.info.source not in systems.names():
        return None
    return getattr(systems.find(run.info.source), "picture", None)


def _film(
    writer: AbstractMovieWriter,
    path: Path,
    run: Trajectory,
    times: np.ndarray,
    bodies: list[tuple[np.ndarray, ...]],
    axes: tuple[int, int],
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), dpi=100)  # its layout is not solved anew for each frame
    FigureCanvasAgg(figure)
    ax = figure.add_axes((0.12, 0.1, 0.85, 0.83))
    ax.grid(True, color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_aspect("equal", adjustable="box")
    track = run.q[:, list(axes)]
    everything = np.vstack([track, *(part for body in bodies for part in body)])
    low, high = everything.min(axis=0), everything.max(axis=0)
    middle, shape = (low + high) / 2, np.array([6.4 * 0.85, 4.8 * 0.83])
    half = 0.55 * shape * max(*((high - low) / shape), 1e-9)  # fills the axes with one scale for both
    ax.set_xlim(middle[0] - half[0], middle[0] + half[0])
    ax.set_ylim(middle[1] - half[1], middle[1] + half[1])
    names = run.info.coordinates
    ax.set_xlabel(as_written(names[axes[0]]))
    ax.set_ylabel(as_written(names[axes[1]]))
    title = as_written(", ".join(filter(None, (run.info.source, run.info.integrator))))
    ax.set_title(title, loc="left", fontsize=10)
    clock = ax.text(0.99, 1.01, "", transform=ax.transAxes, ha="right", va="bottom", fontsize=9)
    (trail,) = ax.plot([], [], color=COLOURS[0], linewidth=1.2)
    (point,) = ax.plot([], [], "o", color=COLOURS[1], markersize=4 if bodies[0] else 7)
    parts = [
        ax.plot([], [], color=COLOURS[1 if k == 0 else 6], linewidth=1.8)[0] for k in range(len(bodies[0]))
    ]
    with writer.saving(figure, str(path), 100):
        for k, t in enumerate(times):
            here = np.array([np.interp(t, run.t, run.q[:, a]) for a in axes])
            so_far = np.vstack([track[run.t <= t], here])
            trail.set_data(*so_far.T)
            point.set_data(*so_far[-1:].T)
            for line, curve in zip(parts, bodies[k], strict=True):
                line.set_data(*curve.T)
            clock.set_text(f"t = {t:.2f}")
            writer.grab_frame()


def _writer(path: Path, frames_per_second: int) -> AbstractMovieWriter:
    """The writer for the ending of the path; refused in one sentence where it cannot be had."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"a film must end in {' or '.join(FORMATS)}, but '{path}' was provided")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"'{path}' must be a file in a folder that exists")
    if frames_per_second < 1:
        raise ValueError(f"`frames_per_second` must be at least 1, but {frames_per_second!r} was provided")
    require_matplotlib()
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if path.suffix.lower() == ".gif":
        return PillowWriter(fps=frames_per_second)
    if not FFMpegWriter.isAvailable():
        raise ValueError("MP4 needs the program ffmpeg, which is not installed; write a .gif instead")
    return FFMpegWriter(fps=frames_per_second, bitrate=2000)
