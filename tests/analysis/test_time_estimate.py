"""FBO section 5.1: the error of the recovered time from two orders of accuracy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import make_interp_spline

from noslip import simulate
from noslip.analysis import time_errors, two_order_estimate
from noslip.analysis.reduced import multiplier_along
from noslip.geometry.chaplygin import make_group
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.systems import fbo_particle
from noslip.testing.symmetric import symmetric_cases

PARTICLE = [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]


def true_error(system, run):
    """Of the quadrature: the integral of a spline of degree 9 through 1/f at the points."""
    rate = 1 / multiplier_along(system, make_group(system), run.q)
    whole = make_interp_spline(run.tau, rate, k=9).antiderivative()
    return run.t - run.t[0] - (whole(run.tau) - whole(0.0))


def test_the_particle_of_the_paper():
    """Its bound (61) is 2.14e-3 at the end, the estimate what the quadrature really misses there."""
    system, method = fbo_particle.system(), HamiltonizedDEL(start="taylor1")
    run = simulate(system, method, *PARTICLE, step_size=0.05, steps=60)
    found = two_order_estimate(system, method, run)
    assert_allclose(found[1:], true_error(system, run)[1:], rtol=1e-4)
    assert np.all(np.abs(found) <= 1.01 * time_errors(system, method, run).a_priori)


@pytest.mark.thorough
@pytest.mark.parametrize(("rule", "order"), [("trapezoid", 2), ("simpson", 4)])
def test_it_follows_the_rule_that_the_method_uses(rule, order):
    """With m = 2 and a mass matrix that varies; the estimate is as good as its own order."""
    case, method = symmetric_cases()[1], HamiltonizedDEL(time_rule=rule)
    sizes, misses = [], []
    for steps in (20, 40):
        run = simulate(case.system, method, case.q0, case.v0, step_size=1.0 / steps, steps=steps)
        found, true = two_order_estimate(case.system, method, run), true_error(case.system, run)
        sizes.append(np.max(np.abs(found)))
        misses.append(np.max(np.abs(found - true)) / np.max(np.abs(true)))
    assert misses[0] < 0.15
    assert misses[1] < misses[0] / 3
    assert_allclose(np.log2(sizes[0] / sizes[1]), order, atol=0.2)


def test_what_has_no_estimate():
    system, method = fbo_particle.system(), HamiltonizedDEL()
    thin = simulate(system, method, *PARTICLE, step_size=0.05, steps=10, save_every=2)
    with pytest.raises(ValueError, match="the run must hold every step, but save_every = 2"):
        two_order_estimate(system, method, thin)
    plain = simulate(system, ReducedDLA(), *PARTICLE, step_size=0.05, steps=10)
    with pytest.raises(ValueError, match="only a method in tau has a time to recover"):
        two_order_estimate(system, ReducedDLA(), plain)
    short = simulate(system, method, *PARTICLE, step_size=0.05, steps=3)
    assert abs(two_order_estimate(system, method, short)[-1] - 0.05**3 / 12 * 3) < 2e-7
