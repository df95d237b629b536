"""The sleigh's reduced equations and its final heading."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip.systems import chaplygin_sleigh, two_wheeled_robot
from noslip.testing.systems import check_first_integrals, reference


def test_cfhm_22_reduced_equations() -> None:
    m, J, a = 1.3, 6.0, 0.7
    system = chaplygin_sleigh.system(m=m, J=J, a=a)
    q, v = chaplygin_sleigh.typical_state()

    def rho(q: jax.Array, v: jax.Array) -> jax.Array:
        return chaplygin_sleigh.frame(q, system.parameters).T @ system.momentum(q, v)

    (rho1, rho2), rate = jax.jvp(rho, (q, v), (v, system.acceleration(q, v)))
    c = a * m**0.5 / (J + m * a**2)
    np.testing.assert_allclose(rate, [-c * rho1 * rho2, c * rho1**2], rtol=0, atol=1e-15)


@pytest.mark.parametrize("a", [1.0, -0.6])
@pytest.mark.parametrize("rate", [0.4, -0.4])
def test_the_final_heading_is_constant_and_final(a: float, rate: float) -> None:
    system = chaplygin_sleigh.system(a=a)
    q, v = chaplygin_sleigh.typical_state()
    run = reference(system, q, v.at[2].set(rate), t_end=200.0, tolerance=1e-9)
    check_first_integrals(run)
    heading = chaplygin_sleigh.final_heading(q, run.v[0], system.parameters)
    np.testing.assert_allclose(run.q[-1, 2], heading, rtol=0, atol=1e-6)
    along = jnp.dot(run.v[-1, :2], jnp.array([jnp.cos(heading), jnp.sin(heading)]))
    assert float(along) * a > 0  # the centre of mass leads


def test_the_final_heading_is_smooth_near_the_stable_motion() -> None:
    system = chaplygin_sleigh.system()
    q, v = jnp.array([0.0, 0.0, 0.3]), 0.6 * jnp.array([jnp.cos(0.3), jnp.sin(0.3), 0.0])
    for integral in (chaplygin_sleigh.final_cos, chaplygin_sleigh.final_sin):
        left, right = (integral(q, v.at[2].set(e), system.parameters) for e in (-1e-9, 1e-9))
        assert abs(float(left - right)) < 1e-7
        assert np.all(np.isfinite(jax.grad(integral, 1)(q, v, system.parameters)))


def test_the_robot_without_wheel_inertia_is_a_sleigh() -> None:
    q, v = two_wheeled_robot.typical_state()
    robot = two_wheeled_robot.system(m=1.3, J=0.9, a=0.4, I=1e-12)
    sleigh = chaplygin_sleigh.system(m=1.3, J=0.9, a=0.4)
    np.testing.assert_allclose(
        robot.acceleration(q, v)[:3], sleigh.acceleration(q[:3], v[:3]), rtol=0, atol=1e-10
    )
