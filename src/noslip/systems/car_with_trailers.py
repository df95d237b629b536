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

from noslip.system import Parameters, System
from noslip.systems._pictures import placed


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    moving, turning = p["m"] * (v[0] ** 2 + v[1] ** 2), p["J"] * v[2] ** 2 + p["J_s"] * (v[2] + v[3]) ** 2
    x, y = v[0], v[1]
    for heading, rate in zip(q[4:], v[4:], strict=True):
        x, y = x + p["d"] * rate * jnp.sin(heading), y - p["d"] * rate * jnp.cos(heading)
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
    )


def picture(q: np.ndarray, p: Parameters) -> tuple[np.ndarray, ...]:
    """Seen from above: the car and its front wheels, then each trailer with its drawbar and its axle."""
    l, d = float(p["l"]), float(p["d"])
    width = 0.35 * l
    box = np.array([[-0.25, -1.0], [1.2, -1.0], [1.2, 1.0], [-0.25, 1.0], [-0.25, -1.0]]) * [l, width]
    wheel, axle = np.array([[-0.2 * l, 0.0], [0.2 * l, 0.0]]), np.array([[0.0, -width], [0.0, width]])
    front = [placed(wheel, l, side, q[3]) for side in (width, -width)]
    curves = [placed(part, q[0], q[1], q[2]) for part in (box, axle, *front)]
    x, y = q[0], q[1]
    for heading in q[4:]:
        x, y = x - d * np.cos(heading), y - d * np.sin(heading)
        bed = np.array([[-0.25, -1.0], [0.6, -1.0], [0.6, 1.0], [-0.25, 1.0], [-0.25, -1.0]]) * [d, width]
        bar = np.array([[0.6 * d, 0.0], [d, 0.0]])
        curves += [placed(part, x, y, heading) for part in (bed, axle, bar)]
    return tuple(curves)


def typical_state(k: int = 1) -> tuple[Array, Array]:
    """Driving ahead into a turn."""
    headings = [0.5 - 0.35 * i + 0.02 * i**2 for i in range(1, k + 1)]
    q0 = jnp.array([0.3, -0.2, 0.5, 0.4, *headings])
    return q0, frame(q0, {"l": 1.0, "d": 1.2}) @ jnp.array([0.7, 0.15])
