"""Surfaces to roll on, fixed to the ground or to a body of the model, which may move.

A surface is where its distance d(x) vanishes, x in the axes of the body that has it; d grows along the normal
n = dd/dx, to the side on which things roll. Any convex shape touches a plane where its middle c and its arm,
of `shapes`, say. Other surfaces are met by spheres: c is at the distance r, and touches at c - r n.

    plane      d = n . (x - point)             bowl   d = R - |x - point|, or its negative outside
    cylinder   d = R - (distance from the axis), or its negative outside
    cone       d = s sin(alpha) - (distance from the axis) cos(alpha),   s along the axis from the tip
    z = h(x, y)   d = (c - P) . n at the P with c - P along n, by Newton's method for its x and y
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.bodies.values import AxisLike, Number, NumberLike, Vector, VectorLike, axis, number, of, vector
from noslip.errors import shown
from noslip.numerics.tracing import Values
from noslip.scenes import Floor, Shape, Sphere, Surface, turned_sheet
from noslip.system.derived import Parameters

Triple = tuple[float, float, float]
Height = Callable[..., float | Array]  # h(x, y), or h(x, y, p)
_FALL = np.linspace(0.0, 0.5 * np.pi, 10)
LOWER_HALF = turned_sheet(np.stack([np.sin(_FALL), -np.cos(_FALL)], axis=1))
TUBE = turned_sheet([[1.0, z] for z in np.linspace(-1.0, 1.0, 9)])
CONE = turned_sheet([[2 * s, 2 * s] for s in np.linspace(0.0, 1.0, 8)])
NEWTON_STEPS = 8  # for the point of a graph under a ball


@dataclass(frozen=True)
class RollingSurface:
    """`up` is the direction that normals must not be opposite to."""

    point: Vector
    up: Triple

    sizes: ClassVar[tuple[str, ...]] = ()
    flat: ClassVar[bool] = False

    @property
    def shaped_by(self) -> Height | None:
        """The user's function, where there is one."""
        return None

    def distance(self, x: Values, p: Parameters) -> Array:
        """d(x)."""
        raise NotImplementedError

    def normal(self, x: Values, p: Parameters) -> Values:
        """n(x), of length 1."""
        return jax.grad(lambda y: self.distance(y, p))(x)

    def drawn(self, p: Parameters) -> tuple[Shape, Triple] | None:
        """What it looks like about its point, and the axis of the body that is the third of that; None for
        what has no look of its own."""
        return None

    def tangents(self, n: Values) -> tuple[Values, Values]:
        """Two directions at right angles to n and to each other: those of the plane at right angles to `up`,
        turned with it on the shortest way."""
        e1, e2, up = _triad(self.up)
        a, b, c = (jnp.dot(e, n) for e in (e1, e2, up))
        s, t = a / (1 + c), b / (1 + c)
        return e1 * (1 - a * s) - e2 * (a * t) - up * a, e2 * (1 - b * t) - e1 * (a * t) - up * b


@dataclass(frozen=True)
class _Plane(RollingSurface):
    flat: ClassVar[bool] = True

    def distance(self, x: Values, p: Parameters) -> Array:
        return jnp.dot(np.array(self.up), x - of(self.point, p))

    def normal(self, x: Values, p: Parameters) -> Values:
        return np.array(self.up)

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        return Floor(), self.up

    def tangents(self, n: Values) -> tuple[Values, Values]:
        return _triad(self.up)[:2]


@dataclass(frozen=True)
class _Bowl(RollingSurface):
    radius: Number = 1.0
    side: float = 1.0  # -1 outside

    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    def distance(self, x: Values, p: Parameters) -> Array:
        away = x - of(self.point, p)
        return self.side * (of(self.radius, p) - jnp.sqrt(jnp.dot(away, away)))

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        r = of(self.radius, p)
        return (Surface(x=r, y=r, z=r, points=LOWER_HALF) if self.side > 0 else Sphere(r)), self.up


@dataclass(frozen=True)
class _Tube(RollingSurface):
    radius: Number = 1.0
    side: float = 1.0

    sizes: ClassVar[tuple[str, ...]] = ("radius",)

    def distance(self, x: Values, p: Parameters) -> Array:
        return self.side * (of(self.radius, p) - _along_and_off(self.up, x - of(self.point, p))[1])

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        r = of(self.radius, p)
        return Surface(x=r, y=r, z=2 * r, points=TUBE), self.up


@dataclass(frozen=True)
class _Cone(RollingSurface):
    angle: Number = 0.5

    sizes: ClassVar[tuple[str, ...]] = ("angle",)

    def distance(self, x: Values, p: Parameters) -> Array:
        along, off = _along_and_off(self.up, x - of(self.point, p))
        alpha = of(self.angle, p)
        return along * jnp.sin(alpha) - off * jnp.cos(alpha)

    def drawn(self, p: Parameters) -> tuple[Shape, Triple]:
        return Surface(z=1 / jnp.tan(of(self.angle, p)), points=CONE), self.up


@dataclass(frozen=True)
class _Graph(RollingSurface):
    height: Height = lambda x, y: 0.0
    takes_parameters: bool = False

    @property
    def shaped_by(self) -> Height:
        return self.height

    def _height(self, y: Values, p: Parameters) -> Array:
        rest = (p,) if self.takes_parameters else ()
        return jnp.asarray(self.height(y[0], y[1], *rest), float)

    def _foot(self, x: Values, p: Parameters) -> Array:
        """The x and y of the P: there the slope of |x - P|^2 vanishes."""

        def slope(y: Array) -> Array:
            return y - x[:2] + (self._height(y, p) - x[2]) * jax.grad(self._height)(y, p)

        y = jnp.stack([x[0], x[1]])
        for k in range(NEWTON_STEPS):
            if k == NEWTON_STEPS - 2:  # at the root two steps have all derivatives up to the third
                y = jax.lax.stop_gradient(y)
            (a, b), (c, d) = jax.jacfwd(slope)(y)
            s, t = slope(y)
            y = y - jnp.stack([d * s - b * t, a * t - c * s]) / (a * d - b * c)
        return y

    def distance(self, x: Values, p: Parameters) -> Array:
        y = self._foot(x, p)
        slopes = jax.grad(self._height)(y, p)
        off = jnp.dot(slopes, y - x[:2]) + x[2] - self._height(y, p)
        return off / jnp.sqrt(1 + jnp.dot(slopes, slopes))

    def normal(self, x: Values, p: Parameters) -> Values:
        a, b = jax.grad(self._height)(self._foot(x, p), p)
        return jnp.stack([-a, -b, jnp.ones_like(a)]) / jnp.sqrt(1 + a * a + b * b)


def plane(*, normal: AxisLike = "z", point: VectorLike = (0.0, 0.0, 0.0)) -> RollingSurface:
    """A plane through a point; things roll on the side of its normal."""
    return _Plane(vector("`point`", point), axis("`normal`", normal))


def incline(angle: float, *, point: VectorLike = (0.0, 0.0, 0.0)) -> RollingSurface:
    """The plane that falls by an angle along x."""
    slope = number("`angle`", angle)
    if isinstance(slope, str) or not abs(slope) < np.pi / 2:
        raise ValueError(f"`angle` must be a number between -pi/2 and pi/2, but {shown(angle)} was given")
    return plane(normal=(np.sin(slope), 0.0, np.cos(slope)), point=point)


def cylinder(
    radius: NumberLike, along: AxisLike, *, point: VectorLike = (0.0, 0.0, 0.0), outside: bool = False
) -> RollingSurface:
    """A round cylinder with an axis through a point; things roll inside, or outside."""
    up = axis("the axis of a cylinder", along)
    return _Tube(vector("`point`", point), up, number("`radius`", radius), -1.0 if outside else 1.0)


def cone(angle: NumberLike, *, along: AxisLike = "z", tip: VectorLike = (0.0, 0.0, 0.0)) -> RollingSurface:
    """The inside of a cone that opens along an axis, with `angle` between the axis and its side."""
    return _Cone(vector("`tip`", tip), axis("the axis of a cone", along), number("`angle`", angle))


def bowl(
    radius: NumberLike, *, centre: VectorLike = (0.0, 0.0, 0.0), up: AxisLike = "z", outside: bool = False
) -> RollingSurface:
    """The inside of a sphere, or its outside. The point of the inside against `up` is its bottom; that
    opposite to it, where directions on the surface have no place, must not be reached."""
    side = -1.0 if outside else 1.0
    return _Bowl(vector("`centre`", centre), axis("`up`", up), number("`radius`", radius), side)


def graph(height: Height) -> RollingSurface:
    """The surface z = height(x, y), or height(x, y, p), made of jax.numpy's functions; things roll above. Its
    hollows must be wider than what rolls in them."""
    if not callable(height):
        raise ValueError(f"`height` must be a function of x and y, but {shown(height)} was given")

    return _Graph((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), height, len(inspect.signature(height).parameters) > 2)


def _triad(up: Triple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two unit vectors at right angles to `up`, and `up`; x and y for z."""
    third = np.array(up)
    k = int(np.argmin(np.abs(third) + np.array([0.0, 1e-9, 2e-9])))
    first = np.eye(3)[k] - third[k] * third
    first = first / np.linalg.norm(first)
    return first, np.cross(third, first), third


def _along_and_off(up: Triple, x: Values) -> tuple[Array, Array]:
    """How far a place is along an axis, and off it."""
    along = jnp.dot(np.array(up), x)
    away = x - np.array(up) * along
    return along, jnp.sqrt(jnp.dot(away, away))
