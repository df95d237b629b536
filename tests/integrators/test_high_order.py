"""Collocation, compositions and SPARK: the orders they claim, and what each keeps on the way there."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from multiprecision import Collocation, Gear, doubles, mp, size
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from noslip import System, ensemble, simulate
from noslip.analysis import constraint_error, energy_error, measured_order
from noslip.cli import app
from noslip.integrators import parse
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.projected import Projected
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import GROWTHS, LIMIT
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.numerics.collocation import gauss_collocation, lobatto, stage_solver
from noslip.numerics.compositions import SCHEMES, coefficients
from noslip.systems import chaplygin_sleigh, gearbox, quartic, rolling_disk_on_incline, turntable_ball
from noslip.testing.integrators import perturbed_case


def largest(x):
    return float(np.max(np.abs(x)))


SLOW, FAST = 1.0, 4.0  # times the typical velocity; the sleigh must turn quickly to have errors to measure

ORDERS = [
    (EnergyCollocation(2), quartic, SLOW, (10, 20, 40)),
    (EnergyCollocation(1), quartic, SLOW, (20, 40, 80)),
    (EnergyCollocation(3), quartic, SLOW, (10, 14, 20)),
    (EnergyCollocation(4), quartic, SLOW, (6, 8, 10, 14)),
    (EnergyCollocation(1), chaplygin_sleigh, FAST, (20, 40, 80)),
    (EnergyCollocation(2), chaplygin_sleigh, FAST, (10, 20, 40)),
    (EnergyCollocation(3), chaplygin_sleigh, FAST, (5, 7, 10, 14)),
    (EnergyCollocation(4), chaplygin_sleigh, FAST, (4, 5, 7)),
    (EnergyCollocation(3, "householder"), chaplygin_sleigh, SLOW, (1, 2, 4)),
    (EnergyCollocation(2, "orthonormal"), chaplygin_sleigh, SLOW, (5, 10, 20)),
    (LobattoSpark(2), quartic, SLOW, (20, 40, 80)),
    (LobattoSpark(3), quartic, SLOW, (10, 20, 40)),
    (LobattoSpark(4), quartic, SLOW, (10, 14, 20)),
    (LobattoSpark(4), chaplygin_sleigh, SLOW, (2, 3, 4)),
    (Composition(), quartic, SLOW, (20, 40, 80)),
    (Composition(scheme="kahan_li6"), quartic, SLOW, (24, 32, 45)),
    (Composition(scheme="kahan_li8"), quartic, SLOW, (14, 16, 20)),
    (Composition(), chaplygin_sleigh, FAST, (20, 40, 80)),
    (Composition(scheme="kahan_li6"), chaplygin_sleigh, FAST, (12, 16, 22)),
    (Composition(scheme="kahan_li8"), chaplygin_sleigh, 2 * FAST, (12, 16, 20)),
    (Composition(DiscreteGradient("mean_value"), "kahan_li8"), gearbox, SLOW, (24, 28, 32)),
    (Composition(VelocityNonholonomic(), "kahan_li6"), gearbox, SLOW, (32, 45, 64)),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "module", "speed", "steps"), ORDERS)
def test_order(method, module, speed, steps):
    """The slope of the global error at t = 2, on a chaotic system and where the mass matrix varies."""
    case = perturbed_case(module)
    v0 = speed * case.v0
    t_end = 4.0 if method == EnergyCollocation(4) and module is quartic else 2.0
    found = measured_order(case.system, method, case.q0, v0, t_end=t_end, steps=steps)
    errors = np.max(found.global_errors[:, :2], axis=1)
    assert np.min(errors) > 1e-13  # above round-off
    slope = np.polyfit(np.log(found.step_sizes), np.log(errors), 1)[0]
    assert_allclose(slope, method.order, atol=max(0.15, 0.05 * method.order))
    run = simulate(case.system, method, case.q0, v0, step_size=0.1 / speed, steps=200)
    kept = method.preserves
    assert ("energy" in kept) == (largest(energy_error(run)) < 5e-15)
    assert constraint_error(run) < 5e-15 * speed


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_coefficients_of_the_compositions(scheme):
    """Sum 1, sum of cubes 0, and for order 6 the sum of fifth powers; symmetric."""
    gamma = coefficients(scheme)
    assert_allclose(gamma, gamma[::-1], rtol=0)
    assert_allclose(gamma.sum(), 1, atol=1e-15)
    for power in range(3, int(scheme[-1]), 2):
        assert_allclose((gamma**power).sum(), 0, atol=1e-15)


def test_the_coefficients_of_collocation():
    three = lobatto(3)
    assert_allclose(three.A, [[0, 0, 0], [5 / 24, 1 / 3, -1 / 24], [1 / 6, 2 / 3, 1 / 6]], atol=1e-16)
    assert_allclose(three.B, [[1 / 6, -1 / 6, 0], [1 / 6, 1 / 3, 0], [1 / 6, 5 / 6, 0]], atol=1e-15)
    two = gauss_collocation(2, 5)
    r = np.sqrt(3) / 6
    assert_allclose(two.A, [[0.25, 0.25 - r], [0.25 + r, 0.25]], atol=1e-15)
    assert_allclose(two.weights.sum(axis=1), 1, atol=1e-15)


def test_one_stage_of_collocation_is_the_mean_value_method():
    case = perturbed_case(gearbox)
    runs = [
        simulate(case.system, method, case.q0, case.v0, step_size=0.1, steps=100)
        for method in (EnergyCollocation(1), DiscreteGradient("mean_value"))
    ]
    assert_allclose(runs[0].q, runs[1].q, atol=1e-13)
    assert_allclose(runs[0].v, runs[1].v, atol=1e-13)


EPSILON = 0.37  # of the gearbox in multiprecision


def start_on_d_star():
    """The gearbox's typical state: (q, v), and z = (q, rho) in the paper's frame."""
    q, v = (np.asarray(x) for x in gearbox.typical_state())
    return q, v, np.concatenate([q, [(1 + np.sin(q[2]) ** 2) * v[1], v[2]]])


@pytest.mark.thorough
@pytest.mark.parametrize("stages", [6, 1, 2, 3, 4, 5])
def test_a_step_is_that_of_the_same_method_in_multiprecision(stages):
    q, v, z = start_on_d_star()
    run = simulate(gearbox.system(EPSILON), EnergyCollocation(stages), q, v, step_size=0.5, steps=1)
    rho = np.array([(1 + np.sin(run.q[1, 2]) ** 2) * run.v[1, 1], run.v[1, 2]])
    with mpmath.workdps(40):
        d = Collocation(stages, stages + 4).step(Gear(1, EPSILON), mp(z), mpmath.mpf(0.5))
        assert_allclose(np.concatenate([run.q[1], rho]), doubles(mp(z) + d), atol=2e-15)


@pytest.mark.thorough
@pytest.mark.parametrize("stages", [6, 5])
def test_orders_10_and_12_in_multiprecision(stages):
    """Double precision ends before errors of that order begin to tell; 34 digits do not."""
    steps = np.array([12, 16, 22])
    with mpmath.workdps(34):
        gear, z, method = Gear(1, EPSILON), mp(start_on_d_star()[2]), Collocation(stages, stages + 4)
        exact = gear.flow(z, mpmath.mpf(1), 4)
        assert abs(gear.energy(exact) - gear.energy(z)) < 1e-26
        errors = []
        for n in steps:
            u = z
            for _ in range(n):
                u = u + method.step(gear, u, mpmath.mpf(1) / int(n))
            assert abs(gear.energy(u) - gear.energy(z)) < 1e-25
            errors.append(float(mpmath.log(size(u - exact))))
    assert_allclose(np.polyfit(-np.log(steps), errors, 1)[0], 2 * stages, atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("stages", [5, 6])
@pytest.mark.parametrize("module", [quartic, chaplygin_sleigh])
def test_energy_and_constraint_at_orders_10_and_12(module, stages):
    case = perturbed_case(module)
    run = simulate(case.system, EnergyCollocation(stages), case.q0, case.v0, step_size=0.5, steps=2000)
    assert largest(energy_error(run)) < 5e-15
    assert constraint_error(run) < 2e-15


@pytest.mark.thorough
@pytest.mark.parametrize("stages", [3, 1, 2, 4, 5, 6])
def test_the_equations_of_all_stages_are_solved_in_the_size_of_one(stages):
    """X - A X J^T = R against the whole matrix I - A (x) J."""
    rng, A = np.random.default_rng(stages), gauss_collocation(stages, stages).A
    J, R = 3 * rng.normal(size=(5, 5)), rng.normal(size=(stages, 5))
    whole = np.linalg.solve(np.eye(5 * stages) - np.kron(A, J), R.ravel()).reshape(stages, 5)
    solved = jax.jit(lambda J, R: stage_solver(A, J)(R))(J, R)
    # T, which diagonalises A, has the condition 600 for six stages
    assert_allclose(solved, whole, atol=1e-12 * largest(whole))


STIFF = System(
    lambda q, v, p: 0.5 * (v @ v) - 0.5 * p["k"] * (q[0] ** 2 + q[1] ** 2) - jnp.cos(q[2]),
    one_forms=gearbox.one_forms,
    frame=gearbox.frame,
    coordinates=("q1", "q2", "q3"),
    angles=("q3",),
    parameters={"k": 1e4},
)
STIFF_STATE = np.array([0.005, -0.003, 0.2]), np.array([-0.4 * np.sin(0.2), 0.4, 2.0])


@pytest.mark.thorough
@pytest.mark.parametrize("stages", [2, 4])
def test_steps_far_longer_than_an_oscillation_are_solved(stages):
    """h omega = 30: the map of the fixed point multiplies errors by about as much."""
    run = simulate(STIFF, EnergyCollocation(stages), *STIFF_STATE, step_size=0.3, steps=500)
    assert run.report.iterations[1:].min() > GROWTHS
    assert run.report.iterations.max() < 2 * LIMIT
    # the positions are stiff: what round-off leaves in them counts 1e4 fold
    assert largest(energy_error(run)) < 1e-13
    assert constraint_error(run) < 2e-15


@pytest.mark.slow
@pytest.mark.native
def test_a_member_that_needs_simplified_newton_has_the_bits_of_its_single_run():
    """One of three members, in one group of lanes, does not contract."""
    method, many = EnergyCollocation(2), np.array([1.0, 1e4, 3.0])
    found = ensemble(STIFF, method, *STIFF_STATE, step_size=0.1, steps=50, parameters={"k": many})
    for i, k in enumerate(many):
        one = simulate(STIFF, method, *STIFF_STATE, step_size=0.1, steps=50, parameters={"k": k})
        assert (one.report.iterations.max() > 20) == (k == 1e4)
        assert_array_equal(found.v[i, -1], one.v[-1])


def test_the_rivals_lose_what_the_paper_says():
    """(15) keeps the energy and visibly not the constraint; SI-DLA, I-DLA and SPARK the other way round."""
    system, (q, v) = gearbox.system(), gearbox.typical_state()

    def defects(method):
        run = simulate(system, method, q, v, step_size=0.1, steps=2000)
        return largest(energy_error(run)), constraint_error(run)

    energy, constraint = defects(FullSpaceDiscreteGradient())
    assert energy < 3e-15
    assert constraint > 1e-3
    for method in (SemiImplicitDLA(), VelocityNonholonomic(0.5), LobattoSpark(2)):
        energy, constraint = defects(method)
        assert energy > 1e-4
        assert constraint < 1e-14


def test_the_difference_quotients_of_15_satisfy_the_constraint_at_the_midpoints():
    case, h = perturbed_case(chaplygin_sleigh), 0.1
    run = simulate(case.system, FullSpaceDiscreteGradient(), case.q0, case.v0, step_size=h, steps=50)
    for q, d in zip((run.q[1:] + run.q[:-1]) / 2, np.diff(run.q, axis=0), strict=True):
        assert largest(np.asarray(case.system.mu(q, d)) @ d) < 1e-14


def test_the_multipliers_of_15_balance_the_momentum_at_the_midpoints(particle, particle_state):
    """H is quadratic, so that gbar is the gradient at the midpoint: v' - v = h (F(qm) + mu(qm)^T lam)."""
    h = 0.2
    run = simulate(particle, FullSpaceDiscreteGradient(), *particle_state, step_size=h, steps=10)
    assert run.info.multiplier_source == "method"
    assert_allclose(run.multiplier_t, np.append(0.0, run.t[1:] - h / 2), atol=1e-15)
    assert_allclose(run.multipliers[0], particle.multipliers(*particle_state), atol=1e-15)
    middle = (run.q[1:] + run.q[:-1]) / 2
    for q, change, lam in zip(middle, np.diff(run.v, axis=0), run.multipliers[1:], strict=True):
        pull = np.asarray(particle.potential_force(q)) + np.asarray(particle.mu(q, q)).T @ lam
        assert_allclose(change / h, pull, atol=1e-13)


@pytest.mark.thorough
@pytest.mark.parametrize("module", [rolling_disk_on_incline, chaplygin_sleigh, gearbox])
def test_the_multipliers_of_15_swing_at_order_1_about_a_mean_of_order_2(module):
    """mu v swings between 0 and c h^2, hence lam by c h; rolling_disk_on_incline has two constraints."""
    case, single, means, hs = perturbed_case(module), [], [], (0.05, 0.025, 0.0125)
    for h in hs:
        n = round(1.0 / h)
        run = simulate(case.system, FullSpaceDiscreteGradient(), case.q0, case.v0, step_size=h, steps=n)
        exact = simulate(case.system, ReferenceFlow(), case.q0, case.v0, step_size=h / 2, steps=2 * n)
        error = run.multipliers[1:] - exact.multipliers[1::2]
        single.append(largest(error))
        means.append(largest((run.multipliers[1:-1] + run.multipliers[2:]) / 2 - exact.multipliers[2:-1:2]))
        assert np.all(np.sum(error[1:] * error[:-1], axis=1) < 0)
    assert_allclose(np.polyfit(np.log(hs), np.log(single), 1)[0], 1, atol=0.1)
    assert_allclose(np.polyfit(np.log(hs), np.log(means), 1)[0], 2, atol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("method", [EnergyCollocation(2), Composition(), LobattoSpark(3)])
def test_order_4_with_a_force(method):
    """Damping and a drive that depends on time: the anchor follows the work at the order of the method."""
    plain, (q, v) = gearbox.system(), gearbox.typical_state()
    system = System(
        plain.lagrangian,
        one_forms=plain.one_forms,
        frame=plain.frame,
        coordinates=plain.coordinates,
        parameters=plain.parameters,
        force=lambda q, v, t, p: -0.1 * v + jnp.array([0.0, 0.2 * jnp.cos(t), 0.0]),
    )
    found = measured_order(system, method, q, v, t_end=2.0, steps=(40, 56, 80))
    assert_allclose(found.global_[:2], 4, atol=0.2)


def test_a_method_made_of_methods_can_be_written_as_text():
    for method in (Composition(DiscreteGradient("mean_value"), "kahan_li6"), Projected(EnergyCollocation(3))):
        assert parse(repr(method)) == method
    assert parse("DiscreteGradient") == DiscreteGradient()
    with pytest.raises(ValueError, match=r"must be written like DiscreteGradient\(\)"):
        parse("3 + 4")
    with pytest.raises(ValueError, match="DiscreteGradient"):
        parse("Composition(base=DiscretGradient())")


def test_a_saved_composition_runs_again(tmp_path):
    system, (q, v) = gearbox.system(), gearbox.typical_state()
    simulate(system, Composition(), q, v, step_size=0.1, steps=5).save(tmp_path / "run.nc")
    done = CliRunner().invoke(app, ["rerun", str(tmp_path / "run.nc")])
    assert done.exit_code == 0, done.output


def test_bases_that_cannot_be_composed_are_refused():
    for base in (VelocityNonholonomic(0.3), DiscreteGradient("coordinate_increment"), EnergyCollocation(2)):
        with pytest.raises(ValueError, match="`base` must be self-adjoint and of order 2"):
            Composition(base)
    assert "linear" in (Composition().applies_to(turntable_ball.system()) or "")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Composition(scheme="yoshida"),
            "`scheme` must be one of 'suzuki4', 'kahan_li6', 'kahan_li8'",
        ),
        (lambda: EnergyCollocation(7), r"`stages` must be in \[1, 6\]"),
        (lambda: EnergyCollocation(3, nodes=2), r"`nodes` must be in \[3, 16\]"),
        (lambda: LobattoSpark(5), "`stages` must be one of 2, 3, 4"),
        (lambda: FullSpaceDiscreteGradient("none"), "`gradient` must be one of"),
    ],
)
def test_bad_parameters_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_spark_with_two_stages_is_the_method_of_the_design():
    """V = v + h/2 (F + mu^T l1), q' = q + h V, (mu + mu')/2 V = 0, v' = V + h/2 (F' + mu'^T l2)."""
    h, system, (q, v) = 0.1, gearbox.system(), gearbox.typical_state()
    run = simulate(system, LobattoSpark(2), q, v, step_size=h, steps=1)
    q1, v1, l2 = run.q[1], run.v[1], run.multipliers[1]
    mu, mu1 = (np.asarray(system.mu(x, np.zeros(3))) for x in (q, q1))
    V = (q1 - np.asarray(q)) / h
    assert_allclose((mu + mu1) @ V, 0, atol=1e-14)
    assert_allclose(v1, V + h / 2 * (np.asarray(system.potential_force(q1)) + mu1.T @ l2), atol=1e-13)
    first = (V - np.asarray(v)) * 2 / h - np.asarray(system.potential_force(q))  # along mu^T
    assert_allclose(first, mu.T[:, 0] * first[0], atol=1e-13)
