"""The cut-off of JS (30) and the curve of definition 3.1, which lies in D without being a motion."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import simulate
from noslip.geometry.interpolation import chi_0, chi_1, curve_in_d
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import appell_hamel, chaplygin_sleigh, rolling_disk_on_incline

pytestmark = pytest.mark.thorough

EDGES = [-3.0, -0.0, 0.0, 5e-324, 1e-300, 1e-16, 1e-4, 1 - 1e-16, 1.0, np.nextafter(1.0, 2.0), 7.0]


def test_the_cut_off_is_the_printed_formula_inside():
    tau = np.linspace(0.01, 0.99, 99)
    assert_allclose(chi_0(tau), (1 + np.tanh(1 / np.tan(np.pi * tau))) / 2, rtol=0, atol=1e-15)
    assert_allclose(np.asarray(chi_0(tau)) + np.asarray(chi_1(tau)), 1, rtol=0, atol=1e-15)
    assert float(chi_0(0.5)) == 0.5


first, second, third = jax.grad(chi_0), jax.grad(jax.grad(chi_0)), jax.grad(jax.grad(jax.grad(chi_0)))
with_derivatives = jax.jit(lambda tau: (chi_0(tau), first(tau), second(tau), third(tau)))


@pytest.mark.parametrize("tau", EDGES)
def test_the_cut_off_and_its_derivatives_are_finite_at_the_ends(tau):
    assert [float(x) for x in with_derivatives(tau)] == [1.0 if tau < 0.5 else 0.0, 0.0, 0.0, 0.0]


def test_the_derivative_of_the_cut_off_inside():
    tau = np.linspace(0.003, 0.997, 400)
    slope = np.asarray(jax.jit(jax.vmap(jax.grad(chi_0)))(tau))
    expected = -np.pi / 2 / np.sin(np.pi * tau) ** 2 / np.cosh(1 / np.tan(np.pi * tau)) ** 2
    assert_allclose(slope, expected, rtol=1e-12)
    assert np.all(slope <= 0)


CASES = [chaplygin_sleigh, rolling_disk_on_incline, appell_hamel]


@pytest.mark.parametrize("module", CASES, ids=lambda m: m.__name__.rpartition(".")[2])
def test_the_curve_joins_two_states_inside_d(module):
    """JS proposition 3.1, for linear and nonlinear constraints."""
    system, (q0, v0) = module.system(), module.typical_state()
    run = simulate(system, VelocityNonholonomic(), q0, v0, step_size=0.2, steps=2)
    start, end = (run.q[0], run.v[0]), (run.q[2], run.v[2])
    curve = curve_in_d(system, start, end, duration=0.4)

    @jax.jit
    @jax.vmap
    def with_phi(t):
        q, v = curve(t)
        return q, v, system.phi(q, v)

    q, v, phi = map(np.asarray, with_phi(np.linspace(0, 0.4, 41)))
    for k, state in ((0, start), (-1, end)):
        assert_allclose((q[k], v[k]), state, rtol=0, atol=1e-14)
    assert np.max(np.abs(phi)) < 1e-14


def test_its_positions_are_no_integral_curve():
    """JS (33) is a curve in D, but dq/dt is not v: erratum 10."""
    system, (q0, v0) = chaplygin_sleigh.system(), chaplygin_sleigh.typical_state()
    run = simulate(system, VelocityNonholonomic(), q0, v0, step_size=0.2, steps=1)
    curve = curve_in_d(system, (run.q[0], run.v[0]), (run.q[1], run.v[1]), duration=0.2)
    (_, v), (dq, _) = map(np.asarray, jax.jit(lambda t: jax.jvp(curve, (t,), (1.0,)))(0.05))
    assert np.max(np.abs(dq - v)) > 0.1 * np.max(np.abs(dq))


def test_states_off_the_constraint_are_refused(particle, particle_state):
    q, v = particle_state
    with pytest.raises(ValueError, match="`end` must be a state on the constraint"):
        curve_in_d(particle, (q, v), (q, v + 0.1), duration=0.1)
    with pytest.raises(ValueError, match="`duration` must be positive, but -1"):
        curve_in_d(particle, (q, v), (q, v), duration=-1)
