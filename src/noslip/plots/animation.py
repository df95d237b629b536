"""A run as a moving picture: GIF always, MP4 where ffmpeg is installed.

What is shown is the scene of the system, see `noslip.scenes`; or a `picture(q, parameters)`, curves in the
plane. The view follows bodies whose path is much wider than they are. Time in the picture runs evenly,
whatever the steps of the run were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from noslip.files import replacing
from noslip.plots.meshes import Array
from noslip.plots.space import View, fitted
from noslip.plots.stills import Picture, Staged, bounds, new_figure, seen
from noslip.plots.trajectory import require_matplotlib
from noslip.system import System
from noslip.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".gif", ".mp4")
WIDE = 5.0  # a path so many times as wide as the bodies is followed


def animate(
    run: Trajectory,
    path: str | Path,
    *,
    picture: Picture | None = None,
    system: System | None = None,
    seconds: float = 6.0,
    frames_per_second: int = 15,
) -> None:
    """Write the run as a film of so many seconds. A `picture`, or the scene of a `system`, is shown in place
    of what the run's own system looks like."""
    path = Path(path)
    _check(path, frames_per_second)
    if not seconds > 0:
        raise ValueError(f"`seconds` must be positive, but {seconds!r} was provided")
    if len(run.t) < 2:
        raise ValueError("a film needs at least two saved states, but the run has one")
    times = np.linspace(run.t[0], run.t[-1], max(2, round(seconds * frames_per_second)))
    figure, frames = _film(run, *seen(run, times, system, picture))
    write = _write_gif if path.suffix.lower() == ".gif" else _write_mp4
    with replacing(path) as part:
        write(figure, frames, part, frames_per_second)


def _film(
    run: Trajectory, staged: Staged, curves: Sequence[tuple[Array, ...]]
) -> tuple[Figure, Iterator[None]]:
    """A figure, and what puts one frame after another on it."""
    figure, paper = new_figure(run, staged.scene)
    clock = figure.text(0.98, 0.98, "", ha="right", va="top", fontsize=9)
    everything = np.concatenate([staged.everything, *(curve for body in curves for curve in body)])
    view = fitted(staged.scene.camera, everything, paper.aspect)
    views = _views(staged, view)
    if staged.scene.axes:
        paper.label(view, *bounds(staged))
    force = staged.force(views[0])

    def frames() -> Iterator[None]:
        for k, t in enumerate(staged.times):
            paper.show(views[k], staged.at(k), staged.trails(k), force, curves[k])
            clock.set_text(f"t = {t:.2f}")
            yield

    return figure, frames()


def _views(staged: Staged, whole: View) -> list[View]:
    """The same view at all times, or one that moves with the bodies."""
    n = len(staged.times)
    if not staged.goes_far(whole, WIDE):
        return [whole] * n
    middles = np.stack([staged.close(k, whole).target for k in range(n)])
    smooth = max(1, n // 10)  # of the shaking of the body
    padded = np.pad(middles, ((smooth, smooth), (0, 0)), mode="edge")
    weights = np.full(2 * smooth + 1, 1 / (2 * smooth + 1))
    centres = np.stack([np.convolve(x, weights, mode="valid") for x in padded.T], axis=1)
    return [replace(staged.close(0, whole), target=centre) for centre in centres]


def _write_gif(figure: Figure, frames: Iterator[None], path: Path, frames_per_second: int) -> None:
    """One palette for all frames and no dithering make small files."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas, images = FigureCanvasAgg(figure), []
    for _ in frames:
        canvas.draw()
        images.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]))
    some = [np.asarray(image) for image in images[:: max(1, len(images) // 4)]]
    palette = Image.fromarray(np.concatenate(some)).quantize(128)
    shown = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    duration = round(1000 / frames_per_second)
    shown[0].save(path, save_all=True, append_images=shown[1:], duration=duration, loop=0)


def _write_mp4(figure: Figure, frames: Iterator[None], path: Path, frames_per_second: int) -> None:
    from matplotlib.animation import FFMpegWriter

    writer = FFMpegWriter(fps=frames_per_second, bitrate=2000)
    with writer.saving(figure, str(path), figure.dpi):
        for _ in frames:
            writer.grab_frame()


def _check(path: Path, frames_per_second: int) -> None:
    """Refuse in one sentence what cannot be written."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"a film must end in {' or '.join(FORMATS)}, but '{path}' was provided")
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"'{path}' must be a file in a folder that exists")
    if frames_per_second < 1:
        raise ValueError(f"`frames_per_second` must be at least 1, but {frames_per_second!r} was provided")
    require_matplotlib()
    from matplotlib.animation import FFMpegWriter

    if path.suffix.lower() == ".mp4" and not FFMpegWriter.isAvailable():
        raise ValueError("MP4 needs the program ffmpeg, which is not installed; write a .gif instead")
