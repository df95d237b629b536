"""Mass matrices that are positive on the admissible velocities only, JS (7i)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import double_pendulum, two_forms, two_forms_lagrangian, two_one_forms
from noslip import System, simulate
from noslip.geometry.positivity import least_on_constraint, positive_system
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.systems import appell_hamel


def lagrangian(q, v, p):
    """Two velocities without kinetic energy, one even with a negative one."""
    w = v * jnp.array([1.0, 1.0, 0.0, 0.0])
    return two_forms_lagrangian(q, w, p) - p["s"] * v[3] ** 2


def degenerate(s=0.02):
    return System(
        lagrangian, one_forms=two_one_forms, coordinates=tuple("abcd"), parameters={"k": 0.7, "s": s}
    )


def saddle_point(system, q, v):
    """Acceleration and multipliers from [M, -mu^T; mu, 0], which asks for (7i) only."""

    @jax.jit
    def parts(q, v):
        both = lambda x: (system.momentum(x, v), system.phi(x, v))  # noqa: E731
        dp, dphi = jax.jvp(both, (q,), (v,))[1]
        return system.mass_matrix(q), system.mu(q, v), system.dL_dq(q, v) - dp, dphi

    M, mu, f, dphi = map(np.asarray, parts(q, v))
    found = np.linalg.solve(np.block([[M, -mu.T], [mu, np.zeros((2, 2))]]), np.concatenate([f, -dphi]))
    return found[:4], found[4:]


@jax.jit
def motion(system, q, v):
    return system.acceleration(q, v), system.multipliers(q, v), system.energy(q, v)


def test_the_motion_is_that_of_the_saddle_point_whatever_the_stiffness():
    system, (_, q, _) = degenerate(), two_forms()
    assert np.linalg.eigvalsh(system.mass_matrix(q))[0] < 0
    assert least_on_constraint(system, q) > 0
    mu, M = np.asarray(system.mu(q, np.zeros(4))), np.asarray(system.mass_matrix(q))
    for stiffness in (None, 30.0):
        made = positive_system(system, q, stiffness=stiffness)
        stiff = np.asarray(made.mass_matrix(q))
        if stiffness is not None:
            assert_allclose(stiff - M, stiffness * mu.T @ mu, rtol=0, atol=1e-12)
        assert np.linalg.eigvalsh(stiff)[0] > 0
        v = made.project_velocity(q, [0.9, -0.4, 0.6, 1.1])
        a, lam = saddle_point(system, q, v)
        acceleration, multipliers, energy = motion(made, q, v)
        assert_allclose(acceleration, a, rtol=1e-10)
        assert_allclose(multipliers, lam, rtol=1e-10)
        assert_allclose(energy, system.energy(q, v), rtol=1e-13)


def test_affine_constraints_too():
    _, q, _ = two_forms()
    system = System(
        lagrangian,
        one_forms=two_one_forms,
        drift=lambda q, p: jnp.array([0.4 * q[1], -0.6]),
        coordinates=tuple("abcd"),
        parameters={"k": 0.7, "s": 0.02},
    )
    made = positive_system(system, q)
    v = made.project_velocity(q, [0.9, -0.4, 0.6, 1.1])
    a, lam = saddle_point(system, q, v)
    acceleration, multipliers, _ = motion(made, q, v)
    assert_allclose(acceleration, a, rtol=1e-10)
    assert_allclose(multipliers, lam, rtol=1e-10)


def test_it_runs_and_keeps_the_energy_of_the_first_lagrangian():
    system, (_, q, _) = degenerate(), two_forms()
    made = positive_system(system, q)
    v = made.project_velocity(q, [0.9, -0.4, 0.6, 1.1])
    with pytest.raises(ValueError, match="mass matrix must be positive definite"):
        simulate(system, DiscreteGradient(), q, v, step_size=0.05, steps=2)
    run = simulate(made, DiscreteGradient(), q, v, step_size=0.05, steps=40)
    energies = [float(system.energy(a, b)) for a, b in zip(run.q[::10], run.v[::10], strict=True)]
    assert np.ptp(energies) < 1e-12


def test_what_cannot_be_made_positive_is_refused():
    (_, q, _), far = two_forms(), degenerate(s=5.0)
    with pytest.raises(ValueError, match=r"positive on the admissible velocities, JS \(7i\), but at q"):
        positive_system(far, q)
    with pytest.raises(ValueError, match="`stiffness` must make"):
        positive_system(degenerate(), q, stiffness=1e-9)
    for system in (appell_hamel.system(), double_pendulum()[0]):
        with pytest.raises(ValueError, match="needs linear or affine constraints"):
            positive_system(system, np.zeros(system.n))
