"""Car with k trailers: front wheels that steer, and trailers hitched to the axle in front of them.

Coordinates x, y (middle of the car's rear axle), theta (its heading), phi (steering angle), and the headings
theta1..thetak of the trailers. The car has wheelbase l, mass m and inertia J, a trailer the mass m_t and
inertia J_t, both centred on their axles; the steered wheels have the inertia J_s. Trailer i has its axle the
distance d behind that of the one in front of it, at r_i = r_{i-1} - d (cos thetai, sin thetai):

    L = (m |rdot|^2 + J thetadot^2 + J_s (thetadot + phidot)^2 + sum_i (m_t |rdot_i|^2 + J_t thetaidot^2)) / 2
    -xdot sin theta + ydot cos theta = 0                                          (rear wheels of the car)
    -xdot sin(theta + phi) + ydot cos(theta + phi) + l thetadot cos phi = 0       (its front wheels)
    -xdot_i sin thetai + ydot_i cos thetai = 0                                    (trailer i)

There are k + 2 constraints on k + 4 coordinates: the car drives and steers, all else follows. With the speed
u_0 = u of the car's rear axle and theta0 = theta,

    thetadot = u tan(phi) / l,  thetaidot = u_{i-1} sin(theta_{i-1} - thetai) / d,
    u_i = u_{i-1} cos(theta_{i-1} - thetai).

The `drive`, a force along the car, and the `steering`, a torque between car and front wheels, are inputs.
Without them the motion conserves J_s (thetadot + phidot), since nothing else turns the front wheels.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.scenes import (
    GREEN,
    GREY,
    ORANGE,
    SKY,
    Arrow,
    Cuboid,
    Cylinder,
    Mark,
    Scene,
    Solid,
    heading,
    wheel,
)
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program

UP = np.array([0.0, 0.0, 1.0])


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    moving, turning = p["m"] * (v[0] ** 2 + v[1] ** 2), p["J"] * v[2] ** 2 + p["J_s"] * (v[2] + v[3]) ** 2
    x, y = v[0], v[1]
    for own, rate in zip(q[4:], v[4:], strict=True):
        x, y = x + p["d"] * rate * jnp.sin(own), y - p["d"] * rate * jnp.cos(own)
        moving, turning = moving + p["m_t"] * (x**2 + y**2), turning + p["J_t"] * rate**2
    return 0.5 * (moving + turning)


def one_forms(q: Array, p: Parameters) -> Array:
    """Sideways speeds of the rear axle, the front axle and the trailers' axles."""
    k, steered = q.shape[0] - 4, q[2] + q[3]
    none = jnp.zeros(k)
    rows = [
        jnp.concatenate([jnp.array([-jnp.sin(q[2]), jnp.cos(q[2]), 0.0, 0.0]), none]),
        jnp.concatenate(
            [jnp.array([-jnp.sin(steered), jnp.cos(steered), p["l"] * jnp.cos(q[3]), 0.0]), none]
        ),
    ]
    for i in range(k):
        own = q[4 + i]
        arms = [-p["d"] * jnp.cos(own - q[4 + j]) if j <= i else jnp.zeros(()) for j in range(k)]
        head = jnp.array([-jnp.sin(own), jnp.cos(own), 0.0, 0.0])
        rows.append(jnp.concatenate([head, jnp.stack(arms)]))
    return jnp.stack(rows)


def frame(q: Array, p: Parameters) -> Array:
    """Driving with the front wheels at unit speed, and turning them; smooth for every steering angle."""
    speed = jnp.cos(q[3])
    drive = [speed * jnp.cos(q[2]), speed * jnp.sin(q[2]), jnp.sin(q[3]) / p["l"], jnp.zeros(())]
    for ahead, own in zip((q[2], *q[4:]), q[4:], strict=False):
        drive.append(speed * jnp.sin(ahead - own) / p["d"])
        speed = speed * jnp.cos(ahead - own)
    steer = jnp.zeros_like(q).at[3].set(1.0)
    return jnp.stack([jnp.stack(drive), steer], axis=1)


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    head = [p["drive"] * jnp.cos(q[2]), p["drive"] * jnp.sin(q[2]), 0.0, p["steering"]]
    return jnp.concatenate([jnp.array(head), jnp.zeros(q.shape[0] - 4)])


def steering_momentum(q: Array, v: Array, p: Parameters) -> Array:
    return p["J_s"] * (v[2] + v[3])


def system(
    k: int = 1,
    m: float = 1.0,
    J: float = 0.3,
    J_s: float = 0.2,
    l: float = 1.0,
    d: float = 1.2,
    m_t: float = 0.4,
    J_t: float = 0.1,
    drive: float = 0.0,
    steering: float = 0.0,
) -> System:
    """Drive and steering are those where a run gives none."""
    if k < 0:
        raise ValueError(f"`k` must be at least 0, but {k} was provided")
    headings = tuple(f"theta{i}" for i in range(1, k + 1))
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "theta", "phi", *headings),
        parameters={"m": m, "J": J, "J_s": J_s, "l": l, "d": d, "m_t": m_t, "J_t": J_t}
        | {"drive": drive, "steering": steering},
        inputs={"drive": 0.0, "steering": 0.0},
        angles=("theta", "phi", *headings),
        force=force,
        frame=frame,
        first_integrals={"steering_momentum": steering_momentum},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The car with its steered wheels, the trailers with their drawbars, and the forces across the axles."""
    l, d, rows = p["l"], p["d"], q.shape[0] - 2
    size, steered = 0.15 * l, q[2] + q[3]
    at = jnp.array([q[0], q[1], 0.0])
    front = at + l * _ahead(q[2])
    box = Cuboid(1.45 * l, 0.6 * l, 0.3 * l)
    cabin = Cuboid(0.7 * l, 0.5 * l, 0.25 * l)
    bodies = [
        Solid(box, at + 0.475 * l * _ahead(q[2]) + 0.32 * l * UP, heading(q[2]), name="car", colour=SKY),
        Solid(cabin, at + 0.3 * l * _ahead(q[2]) + 0.58 * l * UP, heading(q[2]), name="cabin", colour=SKY),
        *_axle(at, q[2], q[2], l, size),
        *_axle(front, q[2], steered, l, size),
    ]
    arrows = [_sideways(at, q[2], 0, rows), _sideways(front, steered, 1, rows)]
    for i, own in enumerate(q[4:]):
        hitch, at = at, at - d * _ahead(own)
        bed, bar = Cuboid(0.85 * d, 0.6 * l, 0.25 * l), Cuboid(0.4 * d, 0.06 * l, 0.06 * l)
        bodies += [
            Solid(bed, at + 0.175 * d * _ahead(own) + 0.32 * l * UP, heading(own), name=f"trailer {i + 1}",
                  colour=ORANGE),
            Solid(bar, hitch - 0.2 * d * _ahead(own) + 0.2 * l * UP, heading(own), name="drawbar",
                  colour=GREY),
            *_axle(at, own, own, l, size),
        ]  # fmt: skip
        arrows.append(_sideways(at, own, 2 + i, rows))
    marks = [Mark(jnp.array([q[0], q[1], 0.0]), name="car")]
    marks += [Mark(at, name="last trailer", colour=ORANGE)] if q.shape[0] > 4 else []
    return Scene(bodies=(*bodies, _looks.FLOOR), marks=tuple(marks), arrows=tuple(arrows))


def _ahead(angle: Array) -> Array:
    return jnp.array([jnp.cos(angle), jnp.sin(angle), 0.0])


def _axle(at: Array, body: Array, angle: Array, width: Array, size: Array) -> list[Solid]:
    """Two wheels across a body, turned to an angle."""
    across = jnp.array([-jnp.sin(body), jnp.cos(body), 0.0])
    return [
        Solid(Cylinder(size, 0.5 * size), at + x * width * across + size * UP, wheel(angle, 0.0),
              name="wheel", colour=GREY)
        for x in (0.3, -0.3)
    ]  # fmt: skip


def _sideways(at: Array, angle: Array, row: int, rows: int) -> Arrow:
    across = jnp.array([-jnp.sin(angle), jnp.cos(angle), 0.0])
    return Arrow(at, jnp.zeros((rows, 3)).at[row].set(across), name=f"axle {row + 1}", colour=GREEN)


@in_one_program
def typical_state(k: int = 1) -> tuple[Array, Array]:
    """Driving ahead into a turn."""
    headings = [0.5 - 0.35 * i + 0.02 * i**2 for i in range(1, k + 1)]
    q0 = jnp.array([0.3, -0.2, 0.5, 0.4, *headings])
    return q0, frame(q0, {"l": 1.0, "d": 1.2}) @ jnp.array([0.7, 0.15])
