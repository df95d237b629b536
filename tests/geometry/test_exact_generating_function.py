"""LMS section 3 with the exact S^h: (12)-(15), theorem 3.1, (30)-(31), and the constraint error of 3.1.

What is verified: (12) along families of motions on the constraint, which needs nothing beyond them; (13) with
S^h extended by the flow of all velocities, as full partial derivatives; (14) and (15) for pairs on the
constraint.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import simulate
from noslip.geometry import exact_generating_function as exact
from noslip.geometry import hamiltonian
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.systems import nonholonomic_particle, rolling_disk_on_incline, turntable_ball
from noslip.testing.integrators import perturbed_case

pytestmark = pytest.mark.thorough

H = 0.2
MODULES = [nonholonomic_particle, rolling_disk_on_incline, turntable_ball]
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])


@every_module
def test_the_arc_is_the_motion(module):
    case = perturbed_case(module)
    arc = exact.arc(case.system, case.q0, case.v0, H)
    run = simulate(case.system, ReferenceFlow(), case.q0, case.v0, step_size=H, steps=1)
    assert_allclose(arc.q1, run.q[-1], rtol=0, atol=1e-14)
    assert_allclose(arc.v1, run.v[-1], rtol=0, atol=1e-14)


@every_module
def test_12_along_families_of_motions_on_the_constraint(module):
    case = perturbed_case(module)
    system, n = case.system, case.system.n
    turn, push = 0.3 * np.cos(np.arange(n)), 0.4 * np.sin(1.0 + np.arange(n))

    def member(s):
        """The motion from (q0(s), v0(s)) in D."""
        q0 = case.q0 + s * turn
        v0 = system.project_velocity(q0, case.v0 + s * push)
        return q0, v0, exact.arc(system, q0, v0, H)

    @jax.jit
    def sides(s):
        (q0, v0, arc), (dq0, _, d) = jax.jvp(member, (s,), (1.0,))
        p0, p1 = system.momentum(q0, v0), system.momentum(arc.q1, arc.v1)
        work = jnp.sum(arc.weights[:, None] * arc.force * d.q)
        return p1 @ d.q1 - p0 @ dq0, d.action + work, work

    left, right, work = map(float, sides(0.0))
    assert_allclose(left, right, rtol=0, atol=1e-14)
    assert abs(work) > 1e-3


@every_module
def test_13_14_15(module):
    case = perturbed_case(module)
    system = case.system
    first = exact.terms(system, case.q0, case.v0, H)
    second = exact.terms(system, first.q1, first.v1, H)
    for pair in (first, second):
        assert_allclose(pair.p0, -pair.D1 - pair.force0, rtol=0, atol=1e-13)  # (13)
        assert_allclose(pair.p1, pair.D2 + pair.force1, rtol=0, atol=1e-13)
    psi = hamiltonian.constraint(system, case.q0, -first.D1 - first.force0)
    assert_allclose(psi, 0, rtol=0, atol=1e-13)  # (14)
    assert_allclose(first.D2 + second.D1, -first.force1 - second.force0, rtol=0, atol=1e-13)  # (15)
    assert np.max(np.abs(first.D2 + second.D1)) > 1e-3
    if system.kind == "linear":  # (30), (31), in one place and the other
        for q, covector in ((case.q0, first.D1 + first.force0), (first.q1, first.D2 + first.force1)):
            assert_allclose(system.projectors(q)[1].T @ covector, 0, rtol=0, atol=1e-13)
    # off the constraint (13) holds too: this is what makes its partial derivatives meaningful
    off = exact.terms(system, case.q0, case.v0 + 0.1, H)
    assert_allclose(off.p0, -off.D1 - off.force0, rtol=0, atol=1e-13)
    assert np.max(np.abs(system.phi(case.q0, case.v0 + 0.1))) > 1e-3


def test_the_partial_derivatives_are_those_of_s():
    """D1, D2 by the chain rule against central differences of S^h(q0, q1), found by shooting."""
    case = perturbed_case(nonholonomic_particle)
    pair = exact.terms(case.system, case.q0, case.v0, H)
    assert_allclose(exact.initial_velocity(case.system, case.q0, pair.q1, H), case.v0, rtol=0, atol=1e-13)

    def S(d0, d1):
        return float(exact.generating_function(case.system, case.q0 + d0, pair.q1 + d1, H))

    assert_allclose(S(0.0, 0.0), pair.S, rtol=0, atol=1e-15)
    e = 1e-4 * np.eye(3)
    zero = np.zeros(3)
    assert_allclose([(S(d, zero) - S(-d, zero)) / 2e-4 for d in e], pair.D1, rtol=0, atol=1e-7)
    assert_allclose([(S(zero, d) - S(zero, -d)) / 2e-4 for d in e], pair.D2, rtol=0, atol=1e-7)


def test_theorem_3_1_the_generating_function_of_two_steps_is_the_sum():
    case = perturbed_case(nonholonomic_particle)
    first = exact.terms(case.system, case.q0, case.v0, H)
    second = exact.terms(case.system, first.q1, first.v1, H)
    whole = exact.terms(case.system, case.q0, case.v0, 2 * H)
    assert_allclose(whole.S, first.S + second.S, rtol=0, atol=1e-14)
    assert_allclose(whole.q1, second.q1, rtol=0, atol=1e-14)


def exponent(hs, errors):
    return np.polyfit(np.log(hs), np.log(errors), 1)[0]


@pytest.mark.parametrize(("alpha", "r"), [(0.5, 2), (0.0, 1), (0.7, 1)])
@pytest.mark.slow
def test_the_constraint_error_of_section_3_1(alpha, r):
    """S_alpha differs from S^h by h^(r+1), but phi~ (18) on exact pairs by h^r; one step from M misses it by
    h^(r+1) again, where M is the constraint in T*Q."""
    hs = np.array([0.1, 0.05, 0.025])
    case = perturbed_case(rolling_disk_on_incline)
    system = case.system
    in_S, in_phi, in_step = [], [], []
    for h in hs:
        arc = exact.arc(system, case.q0, case.v0, h)
        node, w = (1 - alpha) * case.q0 + alpha * arc.q1, (arc.q1 - case.q0) / h
        in_S.append(abs(h * system.lagrangian(node, w, system.parameters) - arc.action))
        phi = exact.approximate_constraint(system, case.q0, arc.q1, h, alpha)
        in_phi.append(np.max(np.abs(phi)))
        run = simulate(system, GeneratingFunction(alpha), case.q0, case.v0, step_size=h, steps=1)
        in_step.append(np.max(np.abs(run.constraint_residual[1])))
    assert abs(exponent(hs, in_S) - (r + 1)) < 0.1
    assert abs(exponent(hs, in_phi) - r) < 0.1
    assert abs(exponent(hs, in_step) - (r + 1)) < 0.1


def test_the_approximate_constraint_is_that_of_the_momentum_with_which_a_step_leaves(
    particle, particle_state
):
    """LMS (17)-(18): -D1 S - (1 - alpha) h F is the momentum at q0, which satisfies Psi at the start."""
    run = simulate(particle, GeneratingFunction(0.2), *particle_state, step_size=H, steps=1)
    phi = exact.approximate_constraint(particle, run.q[0], run.q[1], H, 0.2)
    assert_allclose(phi, 0, rtol=0, atol=1e-14)
    assert np.max(np.abs(exact.approximate_constraint(particle, run.q[0], run.q[1], H, 0.5))) > 1e-4


def test_a_step_that_is_too_long_is_refused(particle, particle_state):
    with pytest.raises(ValueError, match="`h` must be well below the time scale of the motion"):
        exact.terms(particle, *particle_state, 30.0)
    with pytest.raises(ValueError, match="no motion from q0 = "):
        exact.initial_velocity(particle, particle_state[0], particle_state[0] + 50.0, 20.0)
