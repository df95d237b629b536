"""Symmetric projection: energy and every declared first integral at round-off, at the order of the base."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System, simulate
from noslip.analysis import constraint_error, energy_error, first_integral_errors, measured_order
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.integrators.families.projection import multipliers
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.projected import Projected
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import gearbox, knife_edge
from noslip.testing import frameless
from noslip.testing.integrators import perturbed_case


def worst(run):
    errors = [energy_error(run), *first_integral_errors(run).values()]
    return max(float(np.max(np.abs(e))) for e in errors)


@pytest.mark.thorough
@pytest.mark.parametrize("base", [DiscreteGradient(), DiscreteGradient("mean_value"), EnergyCollocation(3)])
def test_the_parts_of_the_rotating_gearbox_are_kept(base):
    """t = 1000 with Gonzalez as base, whose own drift is per cents; the energy is the sum of the parts."""
    system, (q, v) = gearbox.system(), gearbox.typical_state()
    run = simulate(system, Projected(base), q, v, step_size=0.1, t_end=1000.0, save_every=10)
    assert worst(run) < 1e-14
    assert constraint_error(run) < 1e-15


@pytest.mark.slow
def test_the_order_of_a_fourth_order_base_is_kept():
    case, method = perturbed_case(knife_edge), Projected(EnergyCollocation(2, "householder"))
    found = measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(5, 10, 20))
    assert_allclose(found.global_[:2], 4, atol=0.2)
    assert worst(simulate(case.system, method, case.q0, case.v0, step_size=0.1, steps=500)) < 1e-13


@pytest.mark.parametrize(
    ("q", "v"),
    [
        ([0.0, 0.0, 0.2], [0.0, 0.0, 2.0]),  # oscillator at rest
        ([0.0, 1e-9, 0.2], [0.0, 0.0, 2.0]),  # nearly so
        ([0.3, 0.0, 0.0], [0.0, 0.2, 0.0]),  # pendulum at its upper equilibrium
    ],
)
def test_integrals_without_a_gradient_do_no_harm(q, v):
    run = simulate(gearbox.system(epsilon=0.0), Projected(), q, v, step_size=0.1, steps=500)
    assert run.success
    for values in run.first_integrals.values():
        assert float(np.max(np.abs(values - values[0]))) < 5e-15


def stiff_blade(k):
    """The bent blade with a spring beside it, which takes no part in its motion: two energies, no frame."""
    blade, q, v = frameless.bent_blade()

    def lagrangian(q, v, p):
        return blade.lagrangian(q[1:], v[1:], p) + 0.5 * v[0] ** 2 - 0.5 * k * q[0] ** 2

    system = System(
        lagrangian,
        one_forms=lambda q, p: jnp.concatenate([jnp.zeros((1, 1)), blade.one_forms(q[1:], p)], axis=1),
        coordinates=("s", "x", "y", "phi"),
        angles=("phi",),
        first_integrals={"spring": lambda q, v, p: 0.5 * v[0] ** 2 + 0.5 * k * q[0] ** 2},
    )
    return system, jnp.array([1e-4, *q]), jnp.array([0.3, *v])


def stiff_pair(k):
    """The charged pair on a stiff spring: two constraints and a mass matrix that varies."""
    pair, q, v = frameless.charged_pair()

    def lagrangian(q, v, p):
        return pair.lagrangian(q, v, p) - 0.5 * k * (q[0] - 0.4) ** 2

    return dataclasses.replace(pair, lagrangian=lagrangian), q, v


@pytest.mark.thorough
@pytest.mark.parametrize(("frame", "step_size"), [("none", 0.1), ("none", 0.01), ("householder", 0.1)])
def test_it_solves_where_its_base_does_and_finds_the_same_motion(frame, step_size):
    """A spring of 1e8, up to a thousand radians per step: a solution with a large mu is another motion."""
    base = DiscreteGradient(frame=frame)
    system, q, v = stiff_pair(1e8)
    plain, run = (simulate(system, m, q, v, step_size=step_size, steps=300) for m in (base, Projected(base)))
    # of an elongation that is a small part of q: one rounding of q changes the energy by 2e-13
    assert worst(run) < 10 * worst(plain) < 2e-11
    assert_allclose(run.q, plain.q, atol=1e-11)


def test_the_energy_of_a_stiff_part_is_kept():
    """A thousand radians per step; nearly all of the gradient of the energy is that of the spring."""
    (system, q, v), (blade, q1, v1) = stiff_blade(1e8), frameless.bent_blade()
    run = simulate(system, Projected(), q, v, step_size=0.1, steps=300)
    assert worst(run) < 2e-12
    assert worst(simulate(system, DiscreteGradient(), q, v, step_size=0.1, steps=300)) > 1e-4
    alone = simulate(blade, DiscreteGradient(), q1, v1, step_size=0.1, steps=300)
    assert_allclose(run.q[:, 1:], alone.q, atol=1e-3)


def test_the_multipliers_of_dependent_integrals():
    """Of which the first ones take it all; what they do is that of the minimum-norm solution."""
    B = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.5, 0.5, 1e-4], [0.0, 1.0, 0.0]])
    wanted = B @ np.array([0.3, -0.2, 0.7])
    mu = np.asarray(jax.jit(multipliers)(B @ B.T, np.arange(5.0), B @ B.T @ np.arange(5.0) - wanted))
    assert mu[1] == mu[4] == 0
    assert_allclose(B.T @ mu, [0.3, -0.2, 0.7], atol=1e-7)
    assert_allclose(B @ (B.T @ mu), wanted, atol=1e-13)


@pytest.mark.slow
def test_derivatives_pass_through_the_projection():
    q0, v0 = gearbox.typical_state()

    @jax.jit
    def end(x):
        system = gearbox.system().with_parameters({"epsilon": 0.2 + x})
        run = simulate(system, Projected(), q0, v0 * (1 + x), step_size=0.1, steps=5)
        return jnp.concatenate([run.q[-1], run.v[-1]])

    differences = (end(1e-5) - end(-1e-5)) / 2e-5
    assert_allclose(jax.jit(jax.jacfwd(end))(0.0), differences, atol=1e-9)


def test_an_integral_that_the_motion_changes_is_refused():
    """Held to x, the run would stand still in x and call its steps solved."""

    def of_gearbox(integral):
        return dataclasses.replace(gearbox.system(), first_integrals={"wrong": integral})

    q, v = gearbox.typical_state()
    for integral in (lambda q, v, p: q[0], lambda q, v, p: v[0] ** 2 + q[0] ** 2 + 1e-6 * v[1]):
        with pytest.raises(ValueError, match="the first integral 'wrong' changes at a rate of"):
            simulate(of_gearbox(integral), Projected(), q, v, step_size=0.1, steps=2)
    for rest in (q, v), (q, np.zeros(3)):
        assert len(simulate(gearbox.system(), Projected(), *rest, step_size=0.1, steps=2).t) == 3


def test_other_bases_and_forces_are_refused():
    with pytest.raises(ValueError, match="`base` must be a method on D"):
        Projected(FullSpaceDiscreteGradient())
    with pytest.raises(ValueError, match=r"`base` must be a method on D\*.*, but it is SemiImplicitDLA"):
        Projected(SemiImplicitDLA())
    plain = gearbox.system()
    forced = type(plain)(
        plain.lagrangian,
        one_forms=plain.one_forms,
        coordinates=plain.coordinates,
        parameters=plain.parameters,
        force=lambda q, v, t, p: -0.1 * v,
    )
    assert "`force`" in (Projected().applies_to(forced) or "")
