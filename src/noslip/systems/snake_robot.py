"""Snake robot of k links: each stands on passive wheels in its middle, and the joints are what moves it.

Coordinates x, y (middle of the first link) and the headings theta1..thetak. Each link has the length 2 l,
the mass m and the moment of inertia J about its middle; link i + 1 follows behind link i. With e_i = (cos
thetai, sin thetai), n_i = (-sin thetai, cos thetai):

    r_1 = (x, y),      r_{i+1} = r_i - l (e_i + e_{i+1})
    L = sum_i (m |rdot_i|^2 + J thetaidot^2) / 2 - c sum_i (1 - cos(thetai - theta_{i+1}))
    n_i . rdot_i = 0                                                     (k rows: no wheel slips sideways)

c is a spring in each joint that holds it straight. A wave of torques runs along the body: in the joint
between links i and i + 1 it is torque sin(pace t - lag i), which turns the link in front and pushes the one
behind back; its size `torque` is an input. The k constraints leave two velocities: the head drives and
turns, all else follows by

    l thetadot_{i+1} = n_{i+1} . (rdot_i - l thetadot_i n_i)

Without a torque the energy is conserved.
"""

from __future__ import annotations

from itertools import pairwise

import jax.numpy as jnp
from jax import Array

from noslip.scenes import BLUE, ORANGE, SKY, VERMILION, Cuboid, Mark, Scene, Solid, heading
from noslip.system import Parameters, System
from noslip.systems import _looks
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    x, y = v[0], v[1]
    energy = p["m"] * (x**2 + y**2) + p["J"] * v[2] ** 2
    for i in range(3, q.shape[0]):
        for j in (i - 1, i):
            x, y = x + p["l"] * v[j] * jnp.sin(q[j]), y - p["l"] * v[j] * jnp.cos(q[j])
        energy = energy + p["m"] * (x**2 + y**2) + p["J"] * v[i] ** 2
    return 0.5 * energy - p["c"] * jnp.sum(1 - jnp.cos(q[2:-1] - q[3:]))


def one_forms(q: Array, p: Parameters) -> Array:
    heads, l = q[2:], p["l"]
    rows, none = [], jnp.zeros(())
    for i, own in enumerate(heads):
        # rdot_i = rdot_1 - l (thetadot_1 n_1 + 2 thetadot_2 n_2 + ... + thetadot_i n_i)
        arms = [
            -l * (1 if j in (0, i) else 2) * jnp.cos(own - other) if j <= i and i else none
            for j, other in enumerate(heads)
        ]
        rows.append(jnp.stack([-jnp.sin(own), jnp.cos(own), *arms]))
    return jnp.stack(rows)


def frame(q: Array, p: Parameters) -> Array:
    """The head drives, and the head turns."""
    columns = []
    for speed, turn in ((1.0, 0.0), (0.0, 1.0)):
        x, y, rate = speed * jnp.cos(q[2]), speed * jnp.sin(q[2]), turn * jnp.ones(())
        column = [x, y, rate]
        for ahead, own in pairwise(q[2:]):
            x, y = x + p["l"] * rate * jnp.sin(ahead), y - p["l"] * rate * jnp.cos(ahead)  # the joint
            rate = (-x * jnp.sin(own) + y * jnp.cos(own)) / p["l"]
            x, y = x + p["l"] * rate * jnp.sin(own), y - p["l"] * rate * jnp.cos(own)
            column.append(rate)
        columns.append(jnp.stack(column))
    return jnp.stack(columns, axis=1)


def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
    joints = jnp.arange(1.0, q.shape[0] - 2)
    torques, none = p["torque"] * jnp.sin(p["pace"] * t - p["lag"] * joints), jnp.zeros(1)
    turning = jnp.concatenate([torques, none]) - jnp.concatenate([none, torques])
    return jnp.concatenate([jnp.zeros(2), turning])


def system(
    k: int = 3,
    m: float = 1.0,
    J: float = 0.1,
    l: float = 0.5,
    c: float = 0.4,
    torque: float = 0.0,
    pace: float = 2.0,
    lag: float = 1.2,
) -> System:
    """The torque is that where a run gives none."""
    if k < 2:
        raise ValueError(f"`k` must be at least 2, but {k} was provided")
    headings = tuple(f"theta{i}" for i in range(1, k + 1))
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", *headings),
        parameters={"m": m, "J": J, "l": l, "c": c, "torque": torque, "pace": pace, "lag": lag},
        inputs={"torque": 0.0},
        angles=headings,
        force=force,
        frame=frame,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The links on their wheels, the head in another colour, and the forces across them."""
    l, rows = p["l"], q.shape[0] - 2
    bodies, arrows = [], []
    at, last = jnp.array([q[0], q[1], 0.0]), q[2]
    for i, own in enumerate(q[2:]):
        at = at if i == 0 else at - l * (_looks.ahead(last) + _looks.ahead(own))
        last = own
        link, up = Cuboid(1.8 * l, 0.3 * l, 0.2 * l), l * jnp.array([0.0, 0.0, 0.25])
        bodies.append(
            Solid(link, at + up, heading(own), name=f"link {i + 1}", colour=ORANGE if i == 0 else SKY)
        )
        bodies += _looks.wheels_across(at, own, 0.25 * l, 0.18 * l)
        arrows.append(_looks.across(at, own, i, rows))
    marks = (
        Mark(jnp.array([q[0], q[1], 0.0]), name="head", colour=VERMILION),
        Mark(at, name="tail", colour=BLUE),
    )
    return Scene(bodies=(*bodies, _looks.FLOOR), marks=marks, arrows=tuple(arrows))


@in_one_program
def typical_state(k: int = 3) -> tuple[Array, Array]:
    """Bent to and fro, moving on."""
    q0 = jnp.array([0.3, -0.2, *(0.35 * (-1) ** i + 0.11 * i for i in range(1, k + 1))])
    return q0, frame(q0, {"l": 0.5}) @ jnp.array([0.7, 0.25])
