"""Bead on a curve in space: a helix whose axis is level, so that the bead swings between its turns.

Coordinates x (along the axis), y (to the side), z (upwards). The helix has the radius a and the pitch 2 pi
b; mass m, gravity g:

    L = m |v|^2 / 2 - m g z
    y - a sin(x / b) = 0,      z + a cos(x / b) = 0                      (two holonomic constraints)

With s = x / b the motion is that of a pendulum, s'' = -w^2 sin s with w^2 = g a / (a^2 + b^2), which `exact`
solves by Jacobi's elliptic functions: the bead oscillates about the lowest point of one turn, or runs along
through all of them. The energy is conserved.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike
from scipy.special import ellipj, ellipkinc

from noslip.scenes import GREEN, GREY, ORANGE, Arrow, Camera, Line, Mark, Scene, Solid, Sphere
from noslip.system import Parameters, System
from noslip.systems._closed_forms import Floats

_TURNS = np.linspace(-3.5 * np.pi, 3.5 * np.pi, 200)
HELIX = np.stack([_TURNS, np.sin(_TURNS), -np.cos(_TURNS)], axis=1)


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    return p["m"] * (0.5 * jnp.dot(v, v) - p["g"] * q[2])


def holonomic(q: Array, p: Parameters) -> Array:
    s = q[0] / p["b"]
    return jnp.stack([q[1] - p["a"] * jnp.sin(s), q[2] + p["a"] * jnp.cos(s)])


def system(m: float = 1.0, g: float = 1.0, a: float = 1.0, b: float = 0.4) -> System:
    return System(
        lagrangian,
        holonomic=holonomic,
        coordinates=("x", "y", "z"),
        parameters={"m": m, "g": g, "a": a, "b": b},
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The bead on a part of its helix, and the force of the wire."""
    a, b = p["a"], p["b"]
    slope, one, none = a / b, jnp.ones(()), jnp.zeros(())
    s = q[0] / b
    forces = [[-slope * jnp.cos(s), one, none], [-slope * jnp.sin(s), none, one]]
    return Scene(
        bodies=(
            Solid(Sphere(0.12 * a), q, name="bead", colour=ORANGE),
            Solid(Line(x=b, y=a, z=a, points=HELIX), name="wire", colour=GREY),
        ),
        marks=(Mark(q, name="path"),),
        arrows=(Arrow(q, jnp.array(forces), name="reaction", colour=GREEN),),
        camera=Camera(follow=False),
    )


def typical_state() -> tuple[Array, Array]:
    s, rate, b = 0.9, 0.7, 0.4
    return (
        jnp.array([b * s, math.sin(s), -math.cos(s)]),
        jnp.array([rate * b, rate * math.cos(s), rate * math.sin(s)]),
    )


def exact(
    t: ArrayLike, q0: ArrayLike, v0: ArrayLike, *, g: float = 1.0, a: float = 1.0, b: float = 0.4
) -> tuple[Floats, Floats]:
    """q and v from any admissible state, but the one that ends upright.

    With k^2 = sin(s/2)^2 + (sdot / 2 w)^2: for k < 1, sin(s/2) = k sn(w t + c, k^2); for k > 1 the bead
    runs on with s = 2 am(k w t + c, 1/k^2).
    """
    t = np.asarray(t, dtype=float)
    s0, ds0 = np.asarray(q0, dtype=float)[0] / b, np.asarray(v0, dtype=float)[0] / b
    w = np.sqrt(g * a / (a**2 + b**2))
    turns = np.round(s0 / (2 * np.pi))
    start = s0 - 2 * np.pi * turns
    k = np.hypot(np.sin(start / 2), ds0 / (2 * w))
    if k < 1:
        phase = np.arctan2(np.sin(start / 2), ds0 / (2 * w))  # of sn: sin(s/2) = k sin(am)
        sn, cn, _, _ = ellipj(w * t + ellipkinc(phase, k**2), k**2)
        s, ds = 2 * np.arcsin(k * sn), 2 * w * k * cn
    else:
        way = np.sign(ds0)
        _, _, dn, am = ellipj(k * w * t + way * ellipkinc(start / 2, 1 / k**2), 1 / k**2)
        s, ds = 2 * way * am, 2 * way * k * w * dn
    s = s + 2 * np.pi * turns
    q = np.stack([b * s, a * np.sin(s), -a * np.cos(s)], axis=-1)
    return q, ds[:, None] * np.stack([np.full_like(s, b), a * np.cos(s), a * np.sin(s)], axis=-1)
