"""Scenes on paper: a camera, and solids painted from back to front on plain axes of matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from noslip.plots.meshes import Array, Mesh, mesh
from noslip.plots.trajectory import as_written
from noslip.scenes.parts import BLACK, VERMILION, Camera, Scene, Solid
from noslip.scenes.stage import Numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EYE = 6.0  # its distance, in units of what is seen above the middle
LIGHT = np.array([-0.35, 0.55, 0.76])  # to the right, up, towards the eye
TINT = 0.55  # how far the lighter sectors are from their colour to white
GRID = 3.0  # how far a floor reaches
ARROW = 0.45  # the length of the largest force
DEPTH = 0.01  # what is less far behind a face lies on it
SHADOW = "#dcdcdc"


@dataclass(frozen=True)
class View:
    """Points of space on paper; what is `reach` above the target is at height 1 there."""

    axes: Array  # rows: to the right, up, towards the eye
    target: Array
    reach: float

    def __call__(self, points: Array) -> tuple[Array, Array]:
        """Places on paper, shape (..., 2), and how near to the eye each is."""
        x = (np.asarray(points) - self.target) @ self.axes.T / self.reach
        return x[..., :2] / np.maximum(1 - x[..., 2:] / EYE, 0.05), x[..., 2]

    @property
    def eye(self) -> Array:
        return self.target + EYE * self.reach * self.axes[2]


def directions(camera: Camera) -> Array:
    """The axes of a view."""
    a, e = np.deg2rad(camera.azimuth), np.deg2rad(camera.elevation)
    back = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    return np.stack([right, np.cross(back, right), back])


def fitted(camera: Camera, points: Array, aspect: float) -> View:
    """The view in which these points fill a paper of that width to height."""
    axes = directions(camera)
    seen = points @ axes.T
    low, high = seen.min(axis=0), seen.max(axis=0)
    half = (high - low)[:2] / 2
    reach = max(half[0] / aspect, half[1], 1e-6 * (1 + float(np.max(np.abs(points)))))
    view = View(axes, (low + high) / 2 @ axes, 1.12 * reach)
    there = view(points)[0]  # what is near is larger
    beyond = float(np.max(np.abs(there) / np.array([aspect, 1.0])))
    return View(axes, view.target, view.reach * max(1.0, 1.03 * beyond))


class Paper:
    """Axes that show one scene after another of the same parts."""

    def __init__(self, ax: Axes, scene: Scene):
        from matplotlib.collections import LineCollection, PolyCollection

        self.ax, self.scene = ax, scene
        box = ax.get_window_extent()
        self.aspect = box.width / box.height
        ax.set_axis_off()
        ax.set(xlim=(-self.aspect, self.aspect), ylim=(-1.0, 1.0))
        self.floors = LineCollection([], linewidths=0.7, zorder=1)
        self.shadows = PolyCollection([], facecolors=SHADOW, zorder=2)
        self.solids = PolyCollection([], linewidths=0.4, zorder=4)
        self.curves = LineCollection([], linewidths=1.3, zorder=5)
        self.arrows = LineCollection([], linewidths=2.0, zorder=7)
        for collection in (self.floors, self.shadows, self.solids, self.curves, self.arrows):
            ax.add_collection(collection)
        self.trails = [
            [ax.plot([], [], color=mark.colour, linewidth=1.3, zorder=z)[0] for z in (3, 5)]
            for mark in scene.marks
        ]
        self.dots = [
            ax.plot([], [], "o", color=mark.colour, markersize=4, zorder=6)[0] for mark in scene.marks
        ]
        self.made: dict[int, tuple[Array, Mesh]] = {}

    def label(self, view: View, low: Array, high: Array) -> None:
        """Name the axes of a scene in coordinates, on edges of the box from low to high."""
        middle = view((low + high) / 2)[0]
        for k, name in enumerate(self.scene.axes):
            if not name or not high[k] > low[k]:
                continue
            ends = view(_edge(view, low, high, k))[0]
            self.ax.plot(*ends.T, color="0.5", linewidth=0.8, zorder=1)
            d = ends[1] - ends[0]
            out = 0.05 * np.array([-d[1], d[0]]) / np.hypot(*d)
            out = out if out @ (ends[0] - middle) > 0 else -out
            for (x, y), value in zip(ends + 0.06 * np.stack([d, -d]) + out, (low[k], high[k]), strict=True):
                self.ax.text(x, y, f"{value:.3g}", fontsize=7, color="0.35", ha="center", va="center")
            x, y = ends.mean(axis=0) + 1.2 * out
            self.ax.text(x, y, as_written(name), ha="center", va="center")

    def show(
        self, view: View, at: Numbers, trails: Sequence[Array], force: float, curves: Sequence[Array] = ()
    ) -> None:
        """The scene with these numbers; `trails` are the places of each mark so far, `force` is a unit of
        force as a length in space, `curves` are lines besides."""
        placed = [self._placed(k, at) for k in range(len(self.scene.bodies))]
        self._show_floors(view, at)
        self._show_shadows(view, at, placed)
        faces = [part for k, m in enumerate(placed) for part in faces_of(view, self.scene.bodies[k], m)]
        self._show_solids(faces)
        self._show_curves(view, faces, placed, curves)
        for dot, point in zip(self.dots, at.marks, strict=True):
            dot.set_data(*view(point[None, :])[0].T)
        self._show_trails(view, faces, trails)
        self.arrows.set_segments([s for x in at.arrows for s in _arrow(view, x[:3], force * x[3:])])
        self.arrows.set_color([x.colour for x in self.scene.arrows for _ in range(2)] or "k")

    def _show_trails(self, view: View, faces: list[Faces], trails: Sequence[Array]) -> None:
        """What the bodies hide is drawn below them, where one sees it through those that are not opaque."""
        for mark, (below, above), trail in zip(self.scene.marks, self.trails, trails, strict=True):
            if mark.trail:
                there, hides = view(trail)[0], hidden(view, faces, trail)
                below.set_data(*there.T)
                above.set_data(*np.where(hides[:, None], np.nan, there).T)

    def _placed(self, k: int, at: Numbers) -> Mesh:
        """The body where it is; its own mesh is made again only where its sizes change."""
        sizes = np.asarray(at.sizes[k])
        if k not in self.made or not np.array_equal(self.made[k][0], sizes):
            self.made[k] = (sizes, mesh(self.scene.bodies[k], sizes))
        return moved(self.made[k][1], np.asarray(at.poses[k]))

    def _show_floors(self, view: View, at: Numbers) -> None:
        segments, shades = [], []
        for body, pose in zip(self.scene.bodies, at.poses, strict=True):
            if body.shape.kind() == "floor":
                lines, near = _grid_lines(view, pose)
                segments.append(view(lines)[0])
                shades.append(np.column_stack([np.tile(_rgb(body.colour), (len(near), 1)), 0.8 * near]))
        if segments:
            self.floors.set_segments(list(np.concatenate(segments)))
            self.floors.set_color(np.concatenate(shades))

    def _show_shadows(self, view: View, at: Numbers, placed: list[Mesh]) -> None:
        floors = [p for b, p in zip(self.scene.bodies, at.poses, strict=True) if b.shape.kind() == "floor"]
        casting = [m.vertices for b, m in zip(self.scene.bodies, placed, strict=True) if b.opacity == 1]
        hulls = [shadow(pose, vertices) for pose in floors for vertices in casting]
        self.shadows.set_verts([view(hull)[0] for hull in hulls if len(hull)])

    def _show_solids(self, faces: list[Faces]) -> None:
        if not faces:
            return
        shades = np.concatenate([part.colours for part in faces])
        near = np.concatenate([part.near for part in faces])
        order = np.lexsort((near, shades[:, 3]))  # what one sees through comes first
        polygons = [polygon for part in faces for polygon in part.paper]
        self.solids.set_verts([polygons[k] for k in order])
        self.solids.set_facecolor(shades[order])
        self.solids.set_edgecolor(np.concatenate([part.edges for part in faces])[order])

    def _show_curves(self, view: View, faces: list[Faces], placed: list[Mesh], more: Sequence[Array]) -> None:
        curves = list(more)
        looks = [(*_rgb(VERMILION if k == 0 else BLACK), 1.0) for k in range(len(more))]
        for body, m in zip(self.scene.bodies, placed, strict=True):
            curves += m.curves
            looks += [(*_rgb(body.colour), body.opacity)] * len(m.curves)
        seen = [np.where(hidden(view, faces, x)[:, None], np.nan, view(x)[0]) for x in curves]
        self.curves.set_segments(seen)
        self.curves.set_color(looks or "k")


def moved(m: Mesh, pose: Array) -> Mesh:
    """A mesh of the body's axes in space."""
    A, x = _matrix(pose[3:]), pose[:3]
    curves = tuple(curve @ A.T + x for curve in m.curves)
    return Mesh(m.vertices @ A.T + x, m.faces, curves, m.closed, m.lighter)


def _matrix(u: Array) -> Array:
    """That of a unit quaternion, in plain numbers: a film asks for thousands."""
    a, b, c, d = u
    return np.array(
        [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a - b * b + c * c - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a - b * b - c * c + d * d],
        ]
    )


class Faces(NamedTuple):
    """Polygons of as many corners that look towards the eye."""

    paper: Array  # (faces, corners, 2)
    near: Array  # (faces,)
    colours: Array  # (faces, 4), with light on them
    edges: Array  # (faces, 4), of the lines around them
    middles: Array  # (faces, 3), in space
    normals: Array  # (faces, 3), towards the eye


def faces_of(view: View, body: Solid, m: Mesh) -> list[Faces]:
    """What one sees of a body."""
    first, found = 0, []
    plain = np.array(_rgb(body.colour))
    for group in m.faces:
        corners = m.vertices[group]
        normal = np.cross(corners, np.roll(corners, -1, axis=1)).sum(axis=1)
        size = np.linalg.norm(normal, axis=1, keepdims=True)
        normal = normal / np.where(size > 0, size, 1.0)
        middle = corners.mean(axis=1)
        facing = np.einsum("ij,ij->i", normal, view.eye - middle)
        kept = facing > 0 if m.closed else np.ones(len(group), bool)
        normal = np.where(facing[:, None] > 0, normal, -normal)
        light = 0.7 + 0.3 * np.clip(normal @ view.axes.T @ LIGHT, 0, 1)
        lighter = np.zeros(len(group), bool) if m.lighter is None else m.lighter[first : first + len(group)]
        base = np.where(lighter[:, None], plain + TINT * (1 - plain), plain)
        rgba = np.column_stack([base * light[:, None], np.full(len(group), body.opacity)])
        # the edges close the gaps between faces; where one sees through, they show the net of a sheet
        edges = rgba if body.opacity == 1 else np.where(m.closed, 0.0, rgba * [0.5, 0.5, 0.5, 1.0])
        paper, near = view(corners[kept])[0], view(middle[kept])[1]
        found.append(Faces(paper, near, rgba[kept], edges[kept], middle[kept], normal[kept]))
        first += len(group)
    return found


def hidden(view: View, faces: Sequence[Faces], points: Array) -> Array:
    """Which points an opaque face hides: they are behind its plane, and inside it on paper."""
    there, found = view(points)[0], np.zeros(len(points), bool)
    for part in faces:
        if not len(part.near) or part.colours[0, 3] < 1:
            continue
        low, high = part.paper.min(axis=(0, 1)), part.paper.max(axis=(0, 1))
        asked = np.flatnonzero(~found & np.all((there >= low) & (there <= high), axis=1))
        for some in np.array_split(asked, max(1, len(asked) // 200)):
            depth = np.einsum("pfi,fi->pf", points[some, None] - part.middles, part.normals)
            inside = depth < -DEPTH * view.reach
            for a, b in _edges(part.paper):
                (ux, uy), (vx, vy) = (b - a).T, np.moveaxis(there[some, None] - a, -1, 0)
                inside &= ux * vy - uy * vx >= 0
            found[some] = inside.any(axis=1)
    return found


def _edges(polygons: Array) -> list[tuple[Array, Array]]:
    """Of all polygons the first edges, then the second, counterclockwise."""
    x, y = polygons[..., 0], polygons[..., 1]
    area = np.sum(x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1), axis=1)
    turned = np.where(area[:, None, None] < 0, polygons[:, ::-1], polygons)
    return [(turned[:, k], turned[:, k - polygons.shape[1] + 1]) for k in range(polygons.shape[1])]


def _grid_lines(view: View, pose: Array) -> tuple[Array, Array]:
    """Short pieces of the lines of a floor, in space, and how visible each is: they fade with distance."""
    A, origin = _matrix(pose[3:]), pose[:3]
    x, y, _ = A.T @ (view.target - origin)
    step = _round(view.reach / 2.5)
    span = GRID * view.reach
    along = np.linspace(-span, span, 25)
    lines = []
    for k, middle in enumerate((x, y)):
        other = (y, x)[k] + along
        for value in step * np.arange(np.ceil((middle - span) / step), np.floor((middle + span) / step) + 1):
            line = np.zeros((25, 3))
            line[:, k], line[:, 1 - k] = value, other
            lines.append(np.stack([line[:-1], line[1:]], axis=1))
    pieces = np.concatenate(lines)
    away = np.hypot(*(pieces.mean(axis=1)[:, :2] - (x, y)).T) / span
    return pieces @ A.T + origin, np.clip(1 - away, 0, 1)


def _round(length: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten, from below."""
    power = 10.0 ** np.floor(np.log10(length))
    return float(power * max(k for k in (1, 2, 5) if k * power <= length * (1 + 1e-9)))


def shadow(pose: Array, vertices: Array) -> Array:
    """What a body hides from a light straight above, on the plane of a floor."""
    A, origin = _matrix(pose[3:]), pose[:3]
    normal = A[:, 2]
    if normal[2] < 0.1 or len(vertices) < 3:
        return np.zeros((0, 3))
    fallen = vertices.copy()
    fallen[:, 2] -= (vertices - origin) @ normal / normal[2]
    try:
        return fallen[ConvexHull(fallen[:, :2]).vertices]
    except QhullError:  # seen from above it is a line
        return np.zeros((0, 3))


def _arrow(view: View, foot: Array, force: Array) -> list[Array]:
    """The shaft and the head."""
    start, end = view(np.stack([foot, foot + force]))[0]
    d = end - start
    length = np.hypot(*d)
    if length < 1e-9:
        return [np.stack([start, end])] * 2
    d, head = d / length, min(0.06, 0.5 * length)
    side = np.array([-d[1], d[0]])
    wings = (end + head * (s * side - d) for s in (0.45, -0.45))
    return [np.stack([start, end]), np.stack([next(wings), end, next(wings)])]


def _edge(view: View, low: Array, high: Array, k: int) -> Array:
    """The edge of a box along axis k that is best for a label: below and near, or at the left if upright."""
    corners = [np.where(pick, high, low) for pick in np.ndindex(2, 2, 2) if not pick[k]]
    if k < 2:
        start = max((x for x in corners if x[2] == low[2]), key=lambda x: float(view(x)[1]))
    else:
        start = min(corners, key=lambda x: float(view(x)[0][0]))
    end = start.copy()
    end[k] = high[k]
    return np.stack([start, end])


def _rgb(colour: str) -> tuple[float, float, float]:
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return r, g, b
