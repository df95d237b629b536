"""Contact oscillator: three oscillators, two of them coupled by the third (McLachlan, Perlmutter 2006).

Coordinates x, y, z, unit mass and stiffness:

    L = (xdot^2 + ydot^2 + zdot^2) / 2 - (x^2 + y^2 + z^2 + epsilon x^2 z^2) / 2 + s sin(z) zdot
    xdot + y zdot = 0

The constraint does no work on y: the energies of y and of x with z are constant one by one. For epsilon = 0
the motion is integrable and reversible (Modin, Verdier 2014); epsilon keeps both energies and the reversal.

The term with s is the time derivative of -s cos z, so it adds nothing to the motion: positions and velocities
are the same for every s. Momenta are not, p_z = zdot + s sin z, and the reversal of velocities is no longer
(q, p) -> (q, -p). Steps of a method need not know that: a mean of a derivative is no difference. Those of
Modin, Verdier 2020, which are integrable and no longer reversible in (q, p), are of this kind; the form of
the term is ours. A self-adjoint method that keeps its energy error bounded at s = 0 may lose that.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.scenes import Scene
from noslip.system import Parameters, System
from noslip.systems import _looks


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    potential = 0.5 * (jnp.dot(q, q) + p["epsilon"] * q[0] ** 2 * q[2] ** 2)
    return 0.5 * jnp.dot(v, v) - potential + p["s"] * jnp.sin(q[2]) * v[2]


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[1.0, 0.0, q[1]]])


def frame(q: Array, p: Parameters) -> Array:
    return jnp.array([[-q[1], 0.0], [0.0, 1.0], [1.0, 0.0]])


def y_energy(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * (v[1] ** 2 + q[1] ** 2)


def xz_energy(q: Array, v: Array, p: Parameters) -> Array:
    moving = v[0] ** 2 + v[2] ** 2
    return 0.5 * (moving + q[0] ** 2 + q[2] ** 2 + p["epsilon"] * q[0] ** 2 * q[2] ** 2)


def system(epsilon: float = 0.0, s: float = 0.2) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "z"),
        parameters={"epsilon": epsilon, "s": s},
        frame=frame,
        first_integrals={"y_energy": y_energy, "xz_energy": xz_energy},
        fibre=("x",),
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """A particle on three springs, the plane of its velocities, and the reaction."""
    return _looks.particle(q, one_forms(q, p))


def typical_state() -> tuple[Array, Array]:
    y, rate = 0.4, 0.5
    return jnp.array([1.0, y, 0.3]), jnp.array([-y * rate, 0.9, rate])
