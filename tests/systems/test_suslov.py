"""The body rates of the Suslov problem obey CFHM's reduced equations."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.spatial.transform import Rotation

from noslip.systems import suslov
from noslip.testing.systems import reference


def test_body_rates_belong_to_the_documented_attitude() -> None:
    q, v = map(np.asarray, suslov.typical_state())
    v = v + np.array([0.0, 0.0, 0.7])  # off the constraint, so that all three rates count

    def attitude(q: jax.Array) -> jax.Array:
        phi, theta, psi = q

        def about_z(angle: jax.Array) -> jax.Array:
            return Rotation.from_rotvec(angle * jnp.array([0.0, 0.0, 1.0])).as_matrix()

        about_x = Rotation.from_rotvec(theta * jnp.array([1.0, 0.0, 0.0])).as_matrix()
        return about_z(phi) @ about_x @ about_z(psi)

    R, dR = map(np.asarray, jax.jit(lambda q, v: jax.jvp(attitude, (q,), (v,)))(q, v))
    W = R.T @ dR
    np.testing.assert_allclose(suslov.body_rates(q, v), [W[2, 1], W[0, 2], W[1, 0]], rtol=0, atol=1e-15)


def test_cfhm_reduced_equations() -> None:
    system = suslov.system(I11=1.1, I22=1.7, I33=2.3, I13=0.4, I23=0.25)
    q, v = suslov.typical_state()
    rates = jax.jit(lambda q, v, a: jax.jvp(suslov.body_rates, (q, v), (v, a)))
    w, dw = map(np.asarray, rates(q, v, system.acceleration(q, v)))
    rho, drho = np.array([1.1, 1.7]) * w[:2], np.array([1.1, 1.7]) * dw[:2]
    # CFHM: C^1_12 = I13 / I11, C^2_12 = I23 / I22
    k = 0.4 / 1.1 * rho[0] + 0.25 / 1.7 * rho[1]
    np.testing.assert_allclose(drho, [-k * rho[1] / 1.7, k * rho[0] / 1.1], rtol=0, atol=1e-15)
    assert abs(float(dw[2])) < 1e-15


def test_the_frame_is_that_of_the_body_axes() -> None:
    q, _ = suslov.typical_state()
    X = np.asarray(jax.jit(suslov.frame)(q, {}))
    np.testing.assert_allclose(suslov.body_rates(q, X[:, 0]), [1, 0, 0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(suslov.body_rates(q, X[:, 1]), [0, 1, 0], rtol=0, atol=1e-15)


def test_every_motion_tends_to_a_steady_rotation() -> None:
    system = suslov.system(I13=0.6, I23=-0.5)
    q, v = suslov.typical_state()
    run = reference(system, q, v, t_end=120.0)
    w1, w2, _ = np.asarray(suslov.body_rates(run.q[-1], run.v[-1]))
    start = np.asarray(suslov.body_rates(run.q[0], run.v[0]))
    assert abs(0.6 * float(start[0]) - 0.5 * float(start[1])) > 0.1
    assert abs(0.6 * float(w1) - 0.5 * float(w2)) < 1e-6


def test_without_products_of_inertia_the_rates_are_constant() -> None:
    system = suslov.system(I13=0.0, I23=0.0)
    q, v = suslov.typical_state()
    run = reference(system, q, v, t_end=10.0)
    rates = np.asarray(jax.jit(jax.vmap(suslov.body_rates))(run.q, run.v))
    np.testing.assert_allclose(rates - rates[0], 0, rtol=0, atol=1e-11)
