"""Shapes as faces and lines in the axes of the body: what there is to draw of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from noslip.scenes.parts import Solid

AROUND, UP = 32, 16  # faces about an axis, and from pole to pole
COILS = 7
Array = np.ndarray


@dataclass(frozen=True)
class Mesh:
    """Polygons over common vertices, seen from outside counterclockwise, and curves.

    `faces` are arrays (faces, corners) of numbers of vertices; `lighter` says which faces are, in that order.
    """

    vertices: Array
    faces: tuple[Array, ...] = ()
    curves: tuple[Array, ...] = ()
    closed: bool = True  # faces that look away from the eye are hidden by others
    lighter: Array | None = None


def mesh(body: Solid, sizes: Array) -> Mesh:
    """The body's shape with these sizes."""
    kind = body.shape.kind()
    made = _MAKERS[kind](np.asarray(sizes, float), getattr(body.shape, "points", None))
    if body.pattern == "plain" or not made.faces:
        return made
    x, y, z = np.concatenate([made.vertices[faces].mean(axis=1) for faces in made.faces]).T
    signs = np.sign(x * y) * (np.sign(z) if kind in ("sphere", "ellipsoid") else 1)
    return replace(made, lighter=signs > 0)


def corners(body: Solid, sizes: Array) -> Array:
    """Of the smallest box of the body's axes that holds it; none for a floor."""
    made = mesh(body, sizes)
    points = np.concatenate([made.vertices, *made.curves])
    if not len(points):
        return points
    ends = np.stack([points.min(axis=0), points.max(axis=0)])
    return np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


def _grid(points: Array, closed: bool = True) -> Mesh:
    """A net (rows, columns, 3) as four-sided faces."""
    rows, columns = points.shape[:2]
    number = np.arange(rows * columns).reshape(rows, columns)
    corners = (number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1])
    return Mesh(points.reshape(-1, 3), (np.stack([c.ravel() for c in corners], axis=1),), closed=closed)


def _joined(parts: list[Mesh]) -> Mesh:
    starts = np.cumsum([0, *(len(part.vertices) for part in parts[:-1])])
    faces = [group + start for part, start in zip(parts, starts, strict=True) for group in part.faces]
    return Mesh(np.concatenate([part.vertices for part in parts]), tuple(faces))


def _sphere(sizes: Array, _: object) -> Mesh:
    return _ellipsoid(np.full(3, sizes[0]), None)


def _ellipsoid(sizes: Array, _: object) -> Mesh:
    theta, phi = np.meshgrid(np.linspace(np.pi, 0, UP + 1), _around(AROUND), indexing="ij")
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=-1)
    return _grid(points * sizes)


def _around(count: int) -> Array:
    return np.linspace(0.0, 2 * np.pi, count + 1)


def _turned(profile: Array, count: int = AROUND) -> Mesh:
    """A curve of (radius, z), from the lowest point on, turned about the z axis."""
    phi = _around(count)
    x, y = profile[:, :1] * np.cos(phi), profile[:, :1] * np.sin(phi)
    return _grid(np.stack([x, y, np.broadcast_to(profile[:, 1:], x.shape)], axis=-1))


def _cylinder(sizes: Array, _: object) -> Mesh:
    r, h = sizes[0], sizes[1] / 2
    thin = h > 2 * r  # a rod: fewer faces around, more along, so that they are drawn in their order
    side = np.linspace(-h, h, 13 if thin else 2)
    rod = np.column_stack([np.full(len(side), r), side])
    ends = [] if thin else [[0.5 * r, h], [0.5 * r, -h]]
    profile = np.array([[0.0, -h], *ends[1:], *rod, *ends[:1], [0.0, h]])
    return _turned(profile, 10 if thin else AROUND)


def _cone(sizes: Array, _: object) -> Mesh:
    r, h = sizes[0], sizes[1]
    return _turned(np.array([[0.0, 0.0], [r, 0.0], [0.5 * r, 0.5 * h], [0.0, h]]))


def _torus(sizes: Array, _: object) -> Mesh:
    angle = np.linspace(-np.pi, np.pi, UP + 1)
    return _turned(np.stack([sizes[0] + sizes[1] * np.cos(angle), sizes[1] * np.sin(angle)], axis=1))


def _cuboid(sizes: Array, _: object) -> Mesh:
    u, v = np.meshgrid(np.linspace(-0.5, 0.5, 4), np.linspace(-0.5, 0.5, 4))
    top = np.stack([u, v, np.full_like(u, 0.5)], axis=-1)
    turns = [np.roll(top, k, axis=-1) for k in range(3)]
    return _joined([_grid(s * (x if s > 0 else x[::-1]) * sizes) for x in turns for s in (1, -1)])


def _plate(sizes: Array, points: Array) -> Mesh:
    flat, half, n = points * sizes[:2], sizes[2] / 2, len(points)
    x, y = flat.T
    if np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) < 0:  # clockwise
        flat = flat[::-1]
    around = np.arange(n)
    if half == 0:
        return Mesh(np.column_stack([flat, np.zeros(n)]), (around[None, :],), closed=False)
    vertices = np.concatenate([np.column_stack([flat, np.full(n, z)]) for z in (-half, half)])
    after = np.roll(around, -1)
    sides = np.stack([around, after, n + after, n + around], axis=1)
    return Mesh(vertices, (np.stack([around[::-1], n + around]), sides))


def _blade(sizes: Array, _: object) -> Mesh:
    a, h, w = 0.5 * sizes[0], sizes[1], 0.5 * sizes[2]
    edge = [[-0.9 * a, 0.0, 0.0], [0.85 * a, 0.0, 0.0]]
    back = [[-a, -w, h], [a, -w, h], [a, w, h], [-a, w, h]]
    quads, ends = [[0, 1, 3, 2], [1, 0, 5, 4], [2, 3, 4, 5]], [[3, 1, 4], [0, 2, 5]]
    return Mesh(np.array(edge + back), (np.array(quads), np.array(ends)))


def _spring(sizes: Array, _: object) -> Mesh:
    s = np.linspace(0.0, 1.0, 24 * COILS + 1)
    inside = np.minimum(1.0, 12 * np.minimum(s, 1 - s))  # the ends lie on the axis
    angle = 2 * np.pi * COILS * s
    x, y = (sizes[1] * inside * f(angle) for f in (np.cos, np.sin))
    return Mesh(np.zeros((0, 3)), curves=(np.stack([x, y, sizes[0] * s], axis=1),))


def _line(sizes: Array, points: Array) -> Mesh:
    return Mesh(np.zeros((0, 3)), curves=(points * sizes,))


def _surface(sizes: Array, points: Array) -> Mesh:
    return _grid(points * sizes, closed=False)


def _floor(sizes: Array, points: Array) -> Mesh:
    return Mesh(np.zeros((0, 3)))  # it has no size of its own: `plots.space` draws it


_MAKERS: dict[str, Callable[[Array, Any], Mesh]] = {
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "cone": _cone,
    "torus": _torus,
    "cuboid": _cuboid,
    "plate": _plate,
    "blade": _blade,
    "spring": _spring,
    "line": _line,
    "surface": _surface,
    "floor": _floor,
}
