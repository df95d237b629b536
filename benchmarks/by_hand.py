"""A ball and a bicycle by Newton's and Euler's laws, written for the benchmarks: none of it is noslip's.

The numbers are those of `noslip.bench.ball` and `noslip.bench.bicycle`, which write both by Lagrangians.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noslip.bench import ball as of_ball
from noslip.bench import bicycle as of_bicycle

Numbers = Sequence[Any]


# ---- the ball --------------------------------------------------------------------------------------------
def _cross(a: Numbers, b: Numbers) -> tuple[Any, Any, Any]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def _dot(a: Numbers, b: Numbers) -> Any:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def times(u: Any, w: Any) -> tuple[Any, ...]:
    """The quaternion u (0, w)."""
    turned = _cross(u[1:], w)
    return -_dot(u[1:], w), *(u[0] * w[i] + turned[i] for i in range(3))


def spin(u: Any, du: Any) -> list[Any]:
    """The angular velocity in the body."""
    crossed = _cross(u[1:], du[1:])
    return [2.0 * (u[0] * du[1 + i] - du[0] * u[1 + i] - crossed[i]) for i in range(3)]


def ball(m: Any, q: Numbers, v: Numbers) -> Numbers:
    """Accelerations for any numbers that add and multiply: Euler's equations about the centre.

    With w in the body, g the vertical and F the spring's pull there, moment r^2 m of the mass at the contact:
    (I + r^2 m (1 - g g^T)) w' = (I w) x w - r g x F, a matrix that differs from a diagonal one by rank one.
    """
    mass, r, pull, inertia = of_ball.MASS, of_ball.RADIUS, of_ball.SPRING, of_ball.INERTIA.tolist()
    u, du = q[2:], v[2:]
    w = spin(u, du)
    ahead = _rows(u)  # the axes of space, seen in the body
    F = [-pull * (q[0] * ahead[0][i] + q[1] * ahead[1][i]) for i in range(3)]
    g = ahead[2]
    gyroscopic, moment = _cross([inertia[i] * w[i] for i in range(3)], w), _cross(g, F)
    torque = [gyroscopic[i] + r * moment[i] for i in range(3)]
    eased = [1.0 / (inertia[i] + mass * r * r) for i in range(3)]
    first, second = ([eased[i] * x[i] for i in range(3)] for x in (torque, g))
    more = mass * r * r * _dot(g, first) / (1.0 - mass * r * r * _dot(g, second))
    dw = [first[i] + more * second[i] for i in range(3)]
    turned, begun = times(du, w), times(u, dw)
    return (
        r * _dot(ahead[1], dw),
        -r * _dot(ahead[0], dw),
        *(0.5 * (turned[i] + begun[i]) for i in range(4)),
    )


def _rows(u: Numbers) -> list[list[Any]]:
    """Of the rotation from the body to space."""
    a, b, c, d = u
    return [
        [a * a + b * b - c * c - d * d, 2.0 * (b * c - a * d), 2.0 * (b * d + a * c)],
        [2.0 * (b * c + a * d), a * a - b * b + c * c - d * d, 2.0 * (c * d - a * b)],
        [2.0 * (b * d - a * c), 2.0 * (c * d + a * b), a * a - b * b - c * c + d * d],
    ]


# ---- the bicycle -----------------------------------------------------------------------------------------
class _Point(NamedTuple):
    """Velocity J q', acceleration J q'' + rate."""

    J: Any
    rate: Any


class _Part(NamedTuple):
    """A body of the bicycle: its rotation, its angular velocity W = J q', and W' = J q'' + rate."""

    turn: Any
    J: Any
    W: Any
    rate: Any

    def hinged(self, axis: Any, turn: Any, place: int, speed: Any) -> _Part:
        """One that turns on this one, about an axis that is fixed here and given in space."""
        J = self.J + axis[:, None] * np.eye(9)[place]
        return _Part(turn, J, self.W + axis * speed, self.rate + _skew(self.W) @ axis * speed)

    def carried(self, point: _Point, arm: Any) -> _Point:
        """A point of it, at `arm` from one that is known."""
        spun = _skew(self.W)
        rate = point.rate + _skew(self.rate) @ arm + spun @ (spun @ arm)
        return _Point(point.J - _skew(arm) @ self.J, rate)


CROSSES = np.cross(np.eye(3)[:, None], np.eye(3)).transpose(0, 2, 1)
"""The matrix of e_i x, for each i."""


def _skew(a: Any) -> Any:
    """The matrix of a x."""
    return a[0] * CROSSES[0] + a[1] * CROSSES[1] + a[2] * CROSSES[2]


def turn(m: Any, axis: int, angle: Any) -> Any:
    """The rotation about a coordinate axis, by Rodrigues' formula."""
    k = CROSSES[axis]
    return np.eye(3) + m.sin(angle) * k + (1.0 - m.cos(angle)) * (k @ k)


def parts(m: Any, q: Any, v: Any) -> tuple[list[_Part], list[_Point]]:
    """Rear wheel, rear frame, fork and front wheel, and their mass centres."""
    x, y, z = np.eye(3)
    ground = _Part(np.eye(3), np.zeros((3, 9)), np.zeros(3), np.zeros(3))
    yawed = turn(m, 2, q[3])
    leant = yawed @ turn(m, 0, q[4])
    part = ground.hinged(z, yawed, 3, v[3]).hinged(yawed @ x, leant, 4, v[4])
    frame = part.hinged(leant @ y, leant @ turn(m, 1, q[5]), 5, v[5])
    head = frame.turn @ turn(np, 1, of_bicycle.TILT)
    turned = head @ turn(m, 2, q[6]) @ turn(np, 1, -of_bicycle.TILT)
    fork = frame.hinged(head @ z, turned, 6, v[6])
    rear = frame.hinged(frame.turn @ y, frame.turn @ turn(m, 1, q[7]), 7, v[7])
    front = fork.hinged(turned @ y, turned @ turn(m, 1, q[8]), 8, v[8])
    hub, R, P = _Point(np.eye(3, 9), np.zeros(3)), of_bicycle.REAR, of_bicycle.PIVOT
    pivot = frame.carried(hub, frame.turn @ (P - R))
    centres = [
        hub,
        frame.carried(hub, frame.turn @ (of_bicycle.BODY - R)),
        fork.carried(pivot, turned @ (of_bicycle.HANDLEBAR - P)),
        fork.carried(pivot, turned @ (of_bicycle.FRONT - P)),
    ]
    return [rear, frame, fork, front], centres


def _touching(wheel: _Part, carrier: _Part, hub: _Point, r: float) -> _Point:
    """The lowest point of a wheel, at rest; the arm to it swings with the axle, not with the wheel."""
    axle, down = wheel.turn[:, 1], np.array([0.0, 0.0, 1.0])
    moved = _skew(carrier.W) @ axle
    low, fall = down - axle[2] * axle, -moved[2] * axle - axle[2] * moved
    size = (low @ low) ** 0.5
    arm, swing = r * low / size, r * (fall / size - low * (low @ fall) / size**3)
    return _Point(hub.J - _skew(arm) @ wheel.J, hub.rate + _skew(wheel.rate) @ arm + _skew(wheel.W) @ swing)


def bicycle(m: Any, q: Any, v: Any) -> Any:
    """Accelerations by NumPy or jax.numpy: Newton's and Euler's laws of four bodies, with six reactions."""
    bodies, centres = parts(m, q, v)
    M, f = np.zeros((9, 9)), np.zeros(9)
    for part, (J, rate), mass, moments in zip(
        bodies, centres, of_bicycle.MASSES, of_bicycle.INERTIAS, strict=True
    ):
        I = part.turn @ moments @ part.turn.T
        M = M + mass * J.T @ J + part.J.T @ I @ part.J
        f = f + J.T @ (mass * (np.array([0.0, 0.0, of_bicycle.GRAVITY]) - rate))
        f = f - part.J.T @ (I @ part.rate + _skew(part.W) @ (I @ part.W))
    rear, frame, fork, front = bodies
    low = [
        _touching(rear, frame, centres[0], -of_bicycle.REAR[2]),
        _touching(front, fork, centres[3], -of_bicycle.FRONT[2]),
    ]
    C, c = (m.concatenate(x) for x in zip(*low, strict=True))
    whole = m.block([[M, -C.T], [C, np.zeros((6, 6))]])
    return m.linalg.solve(whole, m.concatenate([f, -c]))[:9]
