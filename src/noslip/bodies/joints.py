"""Joints: how a body moves against the one that carries it, or against the ground.

A place `at` in the carrier's axes and a place `own` in the body's are one point, the same numbers where only
one is given: then the axes of both bodies agree while the coordinates are zero, and a model can be
written in the numbers of one drawing. Angles and lengths are coordinates, or functions of time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from noslip import rotations
from noslip.bodies.axes import Axes, about
from noslip.bodies.values import UNIT, AxisLike, OfTime, Vector, VectorLike, axis, of, vector
from noslip.errors import shown
from noslip.numerics.tracing import Real
from noslip.system.derived import Parameters

Triple = tuple[float, float, float]
Named = str | OfTime | None


@dataclass(frozen=True)
class Joint:
    """What a tree is made of. `names` are the coordinates that were named,
    `driven` is the function of time that takes the place of a coordinate."""

    at: Vector
    own: Vector
    names: tuple[str, ...] = ()
    driven: OfTime | None = None

    @property
    def usual(self) -> tuple[str, ...]:
        """The names of coordinates that are not named; an empty one is that of the body."""
        return ()

    @property
    def quaternion(self) -> bool:
        """Whether the last four coordinates are one."""
        return False

    @property
    def turns(self) -> tuple[Triple, ...]:
        """The axes of the last coordinates, where these are angles."""
        return ()

    @property
    def last_axis(self) -> Triple | None:
        """That of the last rotation, which a body that is symmetric about it need not see."""
        return self.turns[-1] if self.turns else None

    def turned(self, base: Axes, x: Sequence[Real], dx: Sequence[Real], spun: bool) -> Axes:
        """After the rotations by `turns`; the last turns the axes only where they are `spun`."""
        A, w = base.A, base.w
        for k, (a, angle, rate) in enumerate(zip(self.turns, x, dx, strict=True)):
            if spun or k + 1 < len(self.turns):
                S = about(a, angle)
                A, w = A @ S, S.T @ w
            w = w + np.array(a) * rate
        return base._replace(A=A, w=w)

    def move(
        self, base: Axes, x: Sequence[Real], dx: Sequence[Real], p: Parameters, spun: bool = True
    ) -> Axes:
        """The axes of the body, from those of its carrier, coordinates and their rates."""
        at = of(self.at, p)
        held = Axes(base.A, base.place(at), of(self.own, p), base.w, base.velocity(at))
        return self.turned(held, x, dx, spun)


class _Fixed(Joint):
    pass


@dataclass(frozen=True)
class _Revolute(Joint):
    axis: Triple = UNIT["z"]

    @property
    def usual(self) -> tuple[str, ...]:
        return ("",)

    @property
    def turns(self) -> tuple[Triple, ...]:
        return (self.axis,)


@dataclass(frozen=True)
class _Prismatic(Joint):
    axis: Triple = UNIT["x"]

    @property
    def usual(self) -> tuple[str, ...]:
        return ("",)

    def move(
        self, base: Axes, x: Sequence[Real], dx: Sequence[Real], p: Parameters, spun: bool = True
    ) -> Axes:
        at = of(self.at, p) + np.array(self.axis) * x[0]
        velocity = base.velocity(at) + base.A @ (np.array(self.axis) * dx[0])
        return Axes(base.A, base.place(at), of(self.own, p), base.w, velocity)


@dataclass(frozen=True)
class _Afloat(Joint):
    """Free to move along some axes, then to turn."""

    sequence: str = ""  # of axes; empty for a quaternion
    directions: int = 3

    @property
    def usual(self) -> tuple[str, ...]:
        angles = {"": ("u",), "z": ("yaw",)}.get(self.sequence, ("yaw", "roll", "pitch"))
        return (*"xyz"[: self.directions], *angles)

    @property
    def quaternion(self) -> bool:
        return not self.sequence

    @property
    def turns(self) -> tuple[Triple, ...]:
        return tuple(UNIT[letter] for letter in self.sequence)

    def move(
        self, base: Axes, x: Sequence[Real], dx: Sequence[Real], p: Parameters, spun: bool = True
    ) -> Axes:
        n, zero = self.directions, (0.0,) * (3 - self.directions)
        along = jnp.stack([jnp.asarray(c, float) for c in (*dx[:n], *zero)])
        at = of(self.at, p) + jnp.stack([jnp.asarray(c, float) for c in (*x[:n], *zero)])
        held = Axes(base.A, base.place(at), of(self.own, p), base.w, base.velocity(at) + base.A @ along)
        if self.sequence:
            return self.turned(held, x[n:], dx[n:], spun)
        u, du = (jnp.stack(list(parts[n:])) for parts in (x, dx))
        S = rotations.matrix(u)
        return held._replace(A=base.A @ S, w=S.T @ base.w + rotations.body_rates(u, du))


def free(
    *,
    at: VectorLike = (0.0, 0.0, 0.0),
    own: VectorLike = (0.0, 0.0, 0.0),
    names: Sequence[str] | None = None,
    sequence: str = "",
) -> Joint:
    """Six degrees of freedom: x, y, z of the point `own` of the body, from `at`, and a quaternion u; or, with
    a `sequence` of axes such as "zxy", three angles about axes that turn with the body, which are singular
    where the second brings the first and the third together."""
    if sequence and (
        len(sequence) != 3 or set(sequence) - set(UNIT) or any(map(str.__eq__, sequence, sequence[1:]))
    ):
        raise ValueError(
            f"`sequence` must be three axes such as 'zxy', no two alike side by side, but {shown(sequence)} "
            "was given"
        )
    return _named(
        "free",
        names,
        6 if sequence else 4,
        lambda given: _Afloat(vector("`at`", at), vector("`own`", own), given, None, sequence),
    )


def planar(
    *, at: VectorLike = (0.0, 0.0, 0.0), own: VectorLike = (0.0, 0.0, 0.0), names: Sequence[str] | None = None
) -> Joint:
    """Motion in the plane of the carrier's x and y: coordinates x, y and yaw."""
    return _named(
        "planar",
        names,
        3,
        lambda given: _Afloat(vector("`at`", at), vector("`own`", own), given, None, "z", 2),
    )


def revolute(
    about: AxisLike, *, at: VectorLike = (0.0, 0.0, 0.0), own: VectorLike | None = None, angle: Named = None
) -> Joint:
    """A hinge with an axis through `at`; `angle` names its coordinate, which is else named as the body, or is
    a function of t, or of t and the parameters."""
    names, driven = _coordinate("angle", angle)
    return _Revolute(vector("`at`", at), _own(own, at), names, driven, axis("the axis of a hinge", about))


def prismatic(
    along: AxisLike, *, at: VectorLike = (0.0, 0.0, 0.0), own: VectorLike | None = None, length: Named = None
) -> Joint:
    """A slide along an axis; `length` is to it what `angle` is to a hinge."""
    names, driven = _coordinate("length", length)
    return _Prismatic(vector("`at`", at), _own(own, at), names, driven, axis("the axis of a slide", along))


def fixed(*, at: VectorLike = (0.0, 0.0, 0.0), own: VectorLike | None = None) -> Joint:
    """No motion at all: the body is a part of its carrier."""
    return _Fixed(vector("`at`", at), _own(own, at))


def _own(own: VectorLike | None, at: VectorLike) -> Vector:
    return vector("`at`", at) if own is None else vector("`own`", own)


def _coordinate(what: str, given: Named) -> tuple[tuple[str, ...], OfTime | None]:
    if given is None or isinstance(given, str):
        return (given,) if given else (), None
    if not callable(given):
        raise ValueError(f"`{what}` must be a name or a function of time, but {shown(given)} was given")
    return (), given


def _named(
    kind: str, names: Sequence[str] | None, count: int, made: Callable[[tuple[str, ...]], Joint]
) -> Joint:
    if names is not None and (
        isinstance(names, str) or len(names) != count or not all(isinstance(name, str) for name in names)
    ):
        raise ValueError(f"`names` of a {kind} joint must be {count} names, but {shown(names)} was given")
    return made(tuple(names or ()))
