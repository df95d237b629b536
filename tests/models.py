"""Systems that tests of several rooms use, each with an admissible state: (system, q, v)."""

import functools

import jax.numpy as jnp
import numpy as np

from noslip import System
from noslip.systems import (
    appell_hamel_spring,
    chaplygin_sleigh,
    nonholonomic_particle,
    rolling_disk_on_incline,
    turntable_ball,
)
from noslip.testing.integrators import perturbed_case


def catalogue(module):
    """A catalogue system at parameters other than its defaults."""

    def make():
        case = perturbed_case(module)
        return case.system, case.q0, case.v0

    return make


OF_EVERY_KIND = {
    "particle": catalogue(nonholonomic_particle),
    "sleigh": catalogue(chaplygin_sleigh),  # its mass matrix is not constant
    "disk": catalogue(rolling_disk_on_incline),  # two constraints
    "turntable": catalogue(turntable_ball),  # affine
    "spring": catalogue(appell_hamel_spring),  # nonlinear
}


def five_lagrangian(q, v, p):
    stretched = v * (1 + 0.2 * jnp.sin(jnp.roll(q, 1)))
    return 0.5 * jnp.dot(stretched, stretched) + 0.4 * q[4] * v[1] - 0.5 * jnp.dot(q, q)


@functools.cache
def five(shift=lambda q: 0.2 * q[0], fibre=None):
    """Two quadratic constraints in five dimensions, which no rescaling of velocities keeps."""

    def constraint(q, v, p):
        return jnp.array(
            [
                v[3] ** 2 - (1 + 0.3 * q[1] ** 2) * (v[0] ** 2 + v[1] ** 2) - 1,
                (v[4] - shift(q)) ** 2 - v[2] ** 2 - 0.5 * v[1] ** 2 - 1,
            ]
        )

    system = System(five_lagrangian, constraint=constraint, coordinates=tuple("abcde"), fibre=fibre)
    q = jnp.array([0.3, -0.6, 0.2, 0.5, -0.4])
    return system, q, system.project_velocity(q, [0.5, 0.4, 0.6, 1.2, -1.3])


def double_pendulum_lagrangian(q, v, p):
    T = 0.5 * (p["m"] + p["w"]) * v[0] ** 2 + 0.5 * p["w"] * p["l"] ** 2 * v[1] ** 2
    T += p["w"] * p["l"] * v[0] * v[1] * jnp.cos(q[0] - q[1])
    return T + p["g"] * ((p["m"] + p["w"]) * jnp.cos(q[0]) + p["w"] * p["l"] * jnp.cos(q[1]))


@functools.cache
def double_pendulum():
    """No constraints; a mass matrix that is not constant."""
    system = System(
        double_pendulum_lagrangian,
        coordinates=("a", "b"),
        parameters={"m": 1.3, "w": 0.7, "l": 0.8, "g": 2.1},
        angles=("a", "b"),
    )
    return system, np.array([5.3, 2.2]), np.array([0.9, -1.4])


def kepler_lagrangian(q, v, p):
    return 0.5 * p["m"] * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) + p["k"] / q[0]


@functools.cache
def kepler():
    """Kepler's problem in polar coordinates, which has a closed form; the angle is cyclic."""
    system = System(
        kepler_lagrangian,
        coordinates=("r", "angle"),
        parameters={"m": 1.7, "k": 2.3},
        angles=("angle",),
        first_integrals={"angular momentum": lambda q, v, p: p["m"] * q[0] ** 2 * v[1]},
    )
    return system, np.array([1.4, 2.0]), np.array([0.3, 0.7])


def two_forms_lagrangian(q, v, p):
    stretched = v * (1 + 0.3 * jnp.sin(jnp.roll(q, 1)))
    return (
        0.5 * jnp.dot(stretched, stretched) + 0.2 * v[0] * v[2] - p["k"] * (jnp.cos(q[0]) + 0.1 * q[3] ** 2)
    )


def two_one_forms(q, p):
    return jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.1 * q[0], 0.3], [0.2 * q[3], 0.5, 1.0, q[1]]])


@functools.cache
def two_forms():
    """Two linear constraints, a mass matrix neither constant nor diagonal, no frame; far from zero."""
    system = System(
        two_forms_lagrangian, one_forms=two_one_forms, coordinates=tuple("abcd"), parameters={"k": 0.7}
    )
    q = np.array([2.3, -1.7, 4.1, 1.2])
    return system, q, np.asarray(system.project_velocity(q, [0.9, -0.4, 0.6, 1.1]))
