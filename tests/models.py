"""Systems that tests of several rooms use, each with an admissible state: (system, q, v)."""

import jax.numpy as jnp

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
