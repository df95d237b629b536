"""What is promised of multipliers, momenta and reversibility, and that each promise could fail."""

import numpy as np
import pytest

from noslip import integrators, simulate, systems
from noslip.analysis import nonholonomic_momentum, reversibility_defect
from noslip.geometry.finite_difference_map import RhoFunctions
from noslip.integrators.base import VOCABULARY
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.lagrange_dalembert_chaplygin import LagrangeDAlembertChaplygin
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh, rolling_disk_on_incline, two_wheeled_robot
from noslip.testing import CheckFailed
from noslip.testing import integrators as claims
from noslip.testing.symmetric import symmetric_cases

VARIANTS = [v for cls in integrators.discover().values() for v in cls.variants()]
WITNESSES = {word: DiscreteLagrangeDAlembert(0.2) for word in VOCABULARY} | {
    "deformed_constraint": RungeKutta4(),
    "momentum_equation": LagrangeDAlembertChaplygin("previous"),
    "symplectic_reduced": RungeKutta4(),
    "momentum_map": ReducedDLA(),
}
RHO = RhoFunctions(lambda q, p: q + 0.3 * (p - q), lambda q, p, h: (p - q) / h)


# ---- multipliers --------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", [DiscreteLagrangeDAlembert(0.0), DiscreteLagrangeDAlembert(rho=RHO)])
def test_the_first_multiplier_of_a_two_point_method_converges_for_every_map(method):
    """Two constraints. The start of beta = 1/2 made it wrong by a constant for all others."""
    case, errors = claims.perturbed_case(rolling_disk_on_incline), []
    exact = np.asarray(case.system.multipliers(case.q0, case.v0, 0.0))
    for h in (0.02, 0.01):
        run = simulate(case.system, method, case.q0, case.v0, step_size=h, steps=2)
        assert run.multiplier_t[1] == 0
        errors.append(np.max(np.abs(run.multipliers[1] - exact)))
    assert errors[0] < 0.05
    assert errors[1] < 0.55 * errors[0] + 1e-13


def test_multipliers_that_do_not_converge_are_said_to_have_order_zero():
    """CFHM (15) with the unsymmetric (13): mu v swings by O(h) from node to node, so lam by a constant."""
    method = FullSpaceDiscreteGradient("coordinate_increment")
    assert (method.multiplier_order, FullSpaceDiscreteGradient().multiplier_order) == (0, 1)
    claims.check_order(method, claims.perturbed_case(chaplygin_sleigh))


def test_a_wrong_order_of_multipliers_is_found():
    class Boastful(DiscreteLagrangeDAlembert):
        multiplier_order = 2

    class Silent(DiscreteLagrangeDAlembert):
        multiplier_order = None

    case = claims.perturbed_case(chaplygin_sleigh)
    with pytest.raises(CheckFailed, match=r"claims multipliers of order 2, but 1\.0. was measured on chap"):
        claims.check_order(Boastful(), case)
    with pytest.raises(
        CheckFailed, match="must claim a `multiplier_order` just if it has multipliers of its"
    ):
        claims.check_order(Silent(), case)


# ---- momenta ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("method", "kept"),
    [
        (VelocityNonholonomic(0.3), True),
        (VelocityNonholonomic(rho=RHO), True),
        (LagrangeDAlembertChaplygin("next"), True),
        (LagrangeDAlembertChaplygin("previous"), False),
        (GeneratingFunction(0.0, symmetric=True), True),
        (GeneratingFunction(1.0, projected=True), True),
        (GeneratingFunction(0.3, symmetric=True), False),
    ],
    ids=str,
)
def test_the_momentum_equation_is_that_of_the_methods_own_lagrangian(method, kept):
    """Non-constant mass matrix; the nodes of L_d are not those that are saved."""
    case = claims.perturbed_case(chaplygin_sleigh)
    run = simulate(case.system, method, case.q0, case.v0, step_size=0.1, steps=50)
    found = nonholonomic_momentum(case.system, method, run)
    assert (np.max(np.abs(found.defect)) < 1e-13) == kept == ("momentum_equation" in method.preserves)
    assert np.ptp(found.values) > 1e-3


def test_a_method_without_a_discrete_lagrangian_says_so():
    without = {type(v).__name__ for v in VARIANTS if not v.defines("discrete_lagrangian")}
    assert {"RungeKutta4", "DiscreteGradient", "LobattoSpark", "Composition", "HamiltonizedDEL"} <= without
    assert not any("momentum_equation" in v.preserves for v in VARIANTS if type(v).__name__ in without)
    case = claims.perturbed_case(chaplygin_sleigh)
    run = simulate(case.system, RungeKutta4(), case.q0, case.v0, step_size=0.1, steps=3)
    assert nonholonomic_momentum(case.system, RungeKutta4(), run) is None
    with pytest.raises(NotImplementedError, match="RungeKutta4 is not made from a discrete Lagrangian"):
        RungeKutta4().discrete_lagrangian(case.system, run.q[0], run.q[1], 0.1)
    assert "momentum_equation" not in Composition(VelocityNonholonomic()).preserves


# ---- reversibility ------------------------------------------------------------------------------------
def test_reversibility_is_that_of_the_whole_state():
    """The reflection remembers its reaction, which must go back with it; a composition cannot use that."""
    case = claims.perturbed_case(two_wheeled_robot)
    method = GeometricNonholonomic()
    assert reversibility_defect(case.system, method, case.q0, case.v0, step_size=0.05, steps=40) < 1e-13
    with pytest.raises(ValueError, match="must not remember its reaction, but that is not so of Geometric"):
        Composition(GeometricNonholonomic())


# ---- words --------------------------------------------------------------------------------------------
@pytest.mark.thorough
@pytest.mark.parametrize("word", sorted(VOCABULARY.keys() - {"holonomic"}))  # without that it is refused
def test_every_word_can_fail_on_three_systems(word):
    made = [claims.perturbed_case(systems.find(name)) for name in claims.CAN_FAIL[word]]
    cases, witness = made or symmetric_cases(), WITNESSES[word]
    assert len({case.name for case in cases}) >= 3
    for case in cases[:3]:
        run = simulate(case.system, witness, case.q0, case.v0, step_size=0.05, steps=20)
        assert claims.defect(word, witness, case, run) > claims.BROKEN, case.name


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_promise_where_it_can_fail(variant):
    for case in claims.further_cases(variant):
        claims.check_promises(variant, case, 300)
