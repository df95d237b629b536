"""A run as its scene at chosen times: what films and stills are made of, and the still itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from noslip import systems
from noslip.analysis.thinning import thinned
from noslip.plots.meshes import Array, Mesh, corners, mesh
from noslip.plots.space import ARROW, Paper, View, fitted, moved, shadow
from noslip.plots.trajectory import as_written, plane, require_matplotlib
from noslip.saved import needed, system_of
from noslip.scenes.parts import Scene
from noslip.scenes.stage import Numbers, Stage, generic, in_coordinates, scene
from noslip.system import Parameters, System
from noslip.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Picture = Callable[[Array, Parameters], tuple[Array, ...]]  # curves in the plane, of q and the parameters
SIZE = (6.4, 4.8)
TRAIL = 3000  # points of a path
APART = 1.3  # earlier places are shown if they are so many body sizes apart
GHOSTS = 4
FAR = 4.5  # in a path so many times as wide as the bodies they are shown from near
AROUND = 1.2  # how many of their sizes are then seen on each side


def stage_of(run: Trajectory, system: System | None = None) -> Stage:
    """What the run's system looks like; of one that is not known its coordinates."""
    if system is None and run.origin is not None:
        system = run.origin.pairing.system
    if system is None and "system" not in needed(run.info):
        system = system_of(run.info)
    if system is None:
        return Stage(generic(run.info.coordinates, run.info.angles), run.info.parameters)
    return replace(scene(system), parameters={**scene(system).parameters, **run.info.parameters})


@dataclass(frozen=True)
class Staged:
    """A run on its stage: the parts, their numbers at the shown times, and the paths of the marks."""

    scene: Scene
    times: Array
    numbers: Numbers
    path_t: Array
    paths: Array  # (rows, marks, 3)

    @classmethod
    def of(cls, run: Trajectory, times: Array, stage: Stage) -> Staged:
        """At these times, between the rows of the run where they are not among them."""
        rows = np.unique(np.linspace(0, len(run.t) - 1, min(len(run.t), TRAIL)).astype(int))
        t = np.concatenate([times, run.t[rows]])
        lam = np.concatenate([run.multipliers, run.holonomic_multipliers], axis=1)
        found = stage.rows(between(t, run.t, run.q), between(t, run.multiplier_t, lam), t)
        shown, n = stage.parts(run.q.shape[1]), len(times)
        return cls(shown, times, Numbers(*(x[:n] for x in found)), run.t[rows], found.marks[n:])

    def at(self, k: int) -> Numbers:
        return Numbers(*(x[k] for x in self.numbers))

    def trails(self, k: int) -> list[Array]:
        """Of each mark until time k."""
        past = self.path_t <= self.times[k]
        here = self.numbers.marks[k]
        return [np.vstack([self.paths[past, i], here[i][None, :]]) for i in range(len(here))]

    def outline(self, k: int) -> Array:
        """The extreme points of all bodies that have some, at time k."""
        points = [np.zeros((0, 3))]
        for body, sizes, pose in zip(self.scene.bodies, *self._bodies(k), strict=True):
            points.append(moved(Mesh(corners(body, sizes)), pose).vertices)
        return np.concatenate(points)

    def _bodies(self, k: int) -> tuple[Array, Array]:
        return self.numbers.sizes[k], self.numbers.poses[k]

    @property
    def everything(self) -> Array:
        """Points that a picture of the whole run must hold."""
        some = range(0, len(self.times), max(1, len(self.times) // 40))
        paths = [np.reshape(x, (-1, 3)) for x in (self.paths, self.numbers.marks)]
        points = np.concatenate([*paths, *(self.outline(k) for k in some)])
        if self.scene.axes:  # with room for their names
            low, high = bounds(self)
            middle = (low + high) / 2
            ends = (middle + 1.15 * (low - middle), middle + 1.15 * (high - middle))
            points = np.concatenate([points, [np.where(pick, *ends) for pick in np.ndindex(2, 2, 2)]])
        return np.concatenate([points, *self._tips(0.3 * float(np.max(np.ptp(points, axis=0))))])

    def _tips(self, length: float) -> list[Array]:
        """Where arrows end if the largest is so long."""
        feet, forces = self.numbers.arrows[..., :3], self.numbers.arrows[..., 3:]
        largest = float(np.max(np.linalg.norm(forces, axis=-1), initial=0.0))
        return [np.reshape(feet + length / largest * forces, (-1, 3))] if largest > 0 else []

    def size(self, k: int = 0) -> float:
        """Of the bodies, across."""
        points = self.outline(k)
        return float(np.max(np.ptp(points, axis=0))) if len(points) else 0.0

    def goes_far(self, whole: View, wide: float) -> bool:
        """Whether the bodies would be too small in a view of the whole run, and may be followed."""
        return self.scene.camera.follow and not self.scene.axes and 0 < wide * self.size() < whole.reach

    def close(self, k: int, whole: View) -> View:
        """The bodies at time k and what is around them."""
        points = self.outline(k)
        return replace(
            whole, target=(points.min(axis=0) + points.max(axis=0)) / 2, reach=AROUND * self.size(k)
        )

    def force(self, view: View) -> float:
        """A unit of force as a length, so that the largest is seen well."""
        largest = float(np.max(np.linalg.norm(self.numbers.arrows[..., 3:], axis=-1), initial=0.0))
        return ARROW * view.reach / largest if largest > 0 else 0.0


def seen(
    run: Trajectory, times: Array, system: System | None, picture: Picture | None
) -> tuple[Staged, Sequence[tuple[Array, ...]]]:
    """The scene of the system, or else of the run's own; or the plane of a picture, with its curves at each
    time."""
    picture = picture or (known_picture(run) if system is None else None)
    if picture is not None:
        return drawn(thinned(run), times, picture)
    return Staged.of(thinned(run), times, stage_of(run, system)), [()] * len(times)


def known_picture(run: Trajectory) -> Picture | None:
    """The `picture` in the module of an installed package that the run's system came from."""
    if run.info.source not in systems.names():
        return None
    return getattr(systems.find(run.info.source), "picture", None)


def drawn(run: Trajectory, times: Array, picture: Picture) -> tuple[Staged, Sequence[tuple[Array, ...]]]:
    """The plane of the path, and at each time the curves of the picture there, in space."""
    names, parameters = run.info.coordinates, run.info.parameters
    shown = (names[k] for k in plane(run))
    staged = Staged.of(run, times, Stage(in_coordinates(names, *shown), parameters))
    return staged, [
        tuple(_in_space(curve) for curve in picture(q, parameters)) for q in between(times, run.t, run.q)
    ]


def _in_space(curve: ArrayLike) -> Array:
    points = np.asarray(curve, float)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"a curve of `picture` must have shape (points, 2), but it has {points.shape}")
    return np.pad(points, ((0, 0), (0, 1)))


def plot_scene(run: Trajectory, system: System | None = None, picture: Picture | None = None) -> Figure:
    """The bodies at the end of a run, where they were before if they have moved far enough, and the paths of
    their marks. What is given is shown in place of what the run's own system looks like."""
    require_matplotlib()
    times = np.linspace(run.t[0], run.t[-1], GHOSTS + 1) if len(run.t) > 1 else np.asarray(run.t[-1:])
    staged, curves = seen(run, times, system, picture)
    shown = with_ghosts(staged)
    figure, paper = new_figure(run, shown.scene)
    view = fitted(shown.scene.camera, np.concatenate([shown.everything, *curves[-1]]), paper.aspect)
    if staged.goes_far(view, FAR):
        view = staged.close(-1, view)
    if shown.scene.axes:
        paper.label(view, *bounds(shown))
    paper.show(view, shown.at(-1), shown.trails(-1), shown.force(view), curves[-1])
    return figure


def new_figure(run: Trajectory, parts: Scene) -> tuple[Figure, Paper]:
    """A figure with a title, and the paper that fills it."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=100)
    FigureCanvasAgg(figure)
    title = as_written(", ".join(filter(None, (run.info.source, run.info.integrator))))
    figure.text(0.02, 0.98, title, ha="left", va="top", fontsize=10)
    return figure, Paper(figure.add_axes((0.0, 0.0, 1.0, 0.95)), parts)


def with_ghosts(staged: Staged) -> Staged:
    """The last time alone, its scene with pale copies of the bodies at the times before, where these are
    apart."""
    last = len(staged.times) - 1
    moving = [
        k for k in range(len(staged.scene.bodies)) if np.ptp(staged.numbers.poses[:, k], axis=0).max() > 1e-9
    ]
    middles = staged.numbers.poses[:, moving, :3].mean(axis=1) if moving else np.zeros((1, 3))
    steps = np.linalg.norm(np.diff(middles, axis=0), axis=1)
    times = range(last) if moving and last and steps.min() > APART * staged.size(last) / 2 else ()
    ghosts = [(k, body) for k in times for body in moving]
    bodies = [
        replace(
            staged.scene.bodies[body],
            opacity=0.15 + 0.25 * (k + 1) / last * staged.scene.bodies[body].opacity,
        )
        for k, body in ghosts
    ]
    numbers = staged.numbers
    poses = [numbers.poses[-1], *(numbers.poses[k, body][None] for k, body in ghosts)]
    sizes = [numbers.sizes[-1], *(numbers.sizes[k, body][None] for k, body in ghosts)]
    whole = Numbers(np.concatenate(poses), np.concatenate(sizes), numbers.marks[-1], numbers.arrows[-1])
    parts = replace(staged.scene, bodies=(*staged.scene.bodies, *bodies))
    return Staged(parts, staged.times[-1:], Numbers(*(x[None] for x in whole)), staged.path_t, staged.paths)


def bounds(staged: Staged) -> tuple[Array, Array]:
    """Of the paths."""
    points = np.concatenate([staged.paths.reshape(-1, 3), staged.numbers.marks.reshape(-1, 3)])
    return points.min(axis=0), points.max(axis=0)


def between(t: Array, known: Array, values: Array) -> Array:
    """Values at other times than those known, column by column."""
    columns = [np.interp(t, known, column) for column in np.asarray(values).T]
    return np.stack(columns, axis=1) if columns else np.zeros((len(t), 0))


def from_above(stage: Stage, q: Array) -> list[Array]:
    """Where bodies are over the plane z = 0 at one state: a closed curve (points, 2) about each of them."""
    curves = []
    for body in stage.scene(q).bodies:
        m = moved(mesh(body, np.asarray(body.sizes)), np.asarray(body.pose))
        hull = shadow(np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]), m.vertices)
        curves += [hull[[*range(len(hull)), 0], :2]] if len(hull) else []
    return curves
