"""Veselova's problem: Euler's equations with a vertical torque, and what they keep."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

from noslip import simulate
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import suslov, veselova
from noslip.testing.systems import reference

MOMENTS = {"I1": 1.3, "I2": 0.8, "I3": 1.7}


def attitude(q: Any) -> np.ndarray:
    """Rz(phi) Rx(theta) Rz(psi), the attitude that `body_rates` belongs to."""
    return Rotation.from_euler("ZXZ", np.asarray(q)).as_matrix()


def test_gamma_is_the_vertical_of_space_in_the_body() -> None:
    q, _ = veselova.typical_state()
    np.testing.assert_allclose(veselova.vertical(q), attitude(q)[2], rtol=0, atol=1e-15)


def test_the_forbidden_rotation_is_the_one_about_the_vertical() -> None:
    q, v = veselova.typical_state()
    v = v.at[0].add(0.7)  # off the constraint
    about_the_vertical = np.dot(suslov.body_rates(q, v), veselova.vertical(q))
    np.testing.assert_allclose(veselova.system().phi(q, v)[0], about_the_vertical, rtol=0, atol=1e-15)


def test_euler_equations_with_a_vertical_torque() -> None:
    """d(I omega)/dt = I omega x omega + k gamma x I gamma + lam gamma."""
    system = veselova.system(**MOMENTS, k=0.9)
    q, v = veselova.typical_state()
    I, gamma = jnp.array(list(MOMENTS.values())), veselova.vertical(q)
    w, dw = jax.jvp(suslov.body_rates, (q, v), (v, system.acceleration(q, v)))
    lam = system.multipliers(q, v)[0]
    torque = 0.9 * jnp.cross(gamma, I * gamma) + lam * gamma
    np.testing.assert_allclose(I * dw, jnp.cross(I * w, w) + torque, rtol=0, atol=3e-15)
    assert abs(float(lam)) > 0.01


def test_without_the_field_both_horizontal_momenta_in_space_are_constant() -> None:
    system = veselova.system(**MOMENTS, k=0.0)
    run = reference(system, *veselova.typical_state(), t_end=10.0)
    I = jnp.array(list(MOMENTS.values()))
    momenta = np.einsum("tij,tj->ti", attitude(run.q), I * jax.vmap(suslov.body_rates)(run.q, run.v))
    np.testing.assert_allclose(momenta[:, :2] - momenta[0, :2], 0, rtol=0, atol=1e-10)
    assert np.ptp(momenta[:, 2]) > 0.1  # the vertical one is not
    own = system.first_integrals["horizontal_momentum"](run.q[0], run.v[0], system.parameters)
    np.testing.assert_allclose(own, momenta[0, 0] ** 2 + momenta[0, 1] ** 2, rtol=1e-14)


def test_the_typical_motion_avoids_the_singular_coordinates() -> None:
    """As the docstring says, until t = 1000."""
    start = veselova.typical_state()
    run = simulate(
        veselova.system(), VelocityNonholonomic(), *start, step_size=0.01, steps=100_000, save_every=5
    )
    theta = run.q[:, 1]
    assert 0.91 < float(theta.min()) < 0.92
    assert 2.23 < float(theta.max()) < 2.24
