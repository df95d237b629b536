"""The equations on T*Q, LMS (5)-(9), against the Lagrangian side, through the Legendre transform."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System
from noslip.geometry import hamiltonian
from noslip.systems import appell_hamel, chaplygin_sleigh, nonholonomic_particle, turntable_ball
from noslip.testing.integrators import perturbed_case

pytestmark = pytest.mark.thorough

MODULES = [nonholonomic_particle, chaplygin_sleigh, appell_hamel, turntable_ball]
every_module = pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.rpartition(".")[2])


@every_module
@pytest.mark.parametrize("off", [0.0, 0.2], ids=["on the constraint", "off it"])
def test_the_two_sides_agree(module, off):
    case = perturbed_case(module)
    system, q = case.system, case.q0
    v = case.v0 + off * jnp.arange(1.0, system.n + 1)
    p = system.momentum(q, v)
    assert_allclose(hamiltonian.hamiltonian(system, q, p), system.energy(q, v), rtol=0, atol=1e-13)
    assert_allclose(hamiltonian.constraint(system, q, p), system.phi(q, v), rtol=0, atol=1e-13)
    assert_allclose(hamiltonian.reaction_directions(system, q, p), system.mu(q, v), rtol=0, atol=1e-12)
    assert_allclose(hamiltonian.multipliers(system, q, p), system.multipliers(q, v), rtol=0, atol=1e-12)
    dq, dp = hamiltonian.vector_field(system, q, p)
    assert_allclose(dq, v, rtol=0, atol=1e-13)
    acceleration = system.acceleration(q, v)
    assert_allclose(dp, jax.jvp(system.momentum, (q, v), (v, acceleration))[1], rtol=0, atol=1e-12)
    # the motion keeps Psi, and for linear and homogeneous constraints on D also H
    along = jax.jvp(lambda q, p: hamiltonian.constraint(system, q, p), (q, p), (dq, dp))[1]
    assert_allclose(along, 0, rtol=0, atol=1e-12)


@every_module
def test_the_compatibility_matrix_is_that_of_the_lagrangian_side(module):
    """LMS (7) = (8) with the inverse Hessian of L, positive definite for mechanical systems."""
    case = perturbed_case(module)
    q, v, system = case.q0, case.v0, case.system
    C = hamiltonian.compatibility_matrix(system, q, system.momentum(q, v))
    mu, M = np.asarray(system.mu(q, v)), np.asarray(system.mass_matrix(q))
    assert_allclose(C, mu @ np.linalg.solve(M, mu.T), rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(C)[0] > 0


def test_forces_and_gyroscopic_terms_are_part_of_it():
    system = System(
        lambda q, v, p: 0.5 * (1 + q[0] ** 2) * v[0] ** 2 + 0.5 * v[1] ** 2 + q[1] * v[0] - q[0] * q[1],
        one_forms=lambda q, p: jnp.array([[jnp.cos(q[1]), 1.0 + q[0] ** 2]]),
        force=lambda q, v, t, p: jnp.array([t - v[0], q[0] * v[1]]),
        coordinates=("x", "y"),
    )
    q, v, t = jnp.array([0.3, -0.4]), jnp.array([0.7, 0.2]), 0.6
    p = system.momentum(q, v)
    assert_allclose(hamiltonian.multipliers(system, q, p, t), system.multipliers(q, v, t), rtol=0, atol=1e-14)
    dp = jax.jvp(system.momentum, (q, v), (v, system.acceleration(q, v, t)))[1]
    assert_allclose(hamiltonian.vector_field(system, q, p, t)[1], dp, rtol=0, atol=1e-14)


def test_the_equations_can_be_compiled_and_differentiated(particle, particle_state):
    q, v = particle_state
    slope = jax.jit(jax.jacfwd(lambda p: hamiltonian.vector_field(particle, q, p)[1]))(v)
    expected = jax.jacfwd(lambda v: particle.acceleration(q, v))(v)  # unit mass: p = v
    assert_allclose(slope, expected, rtol=0, atol=1e-13)


def test_a_singular_compatibility_matrix_names_its_singular_values():
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        constraint=lambda q, v, p: jnp.array([v[0] ** 2 + v[1] ** 2 - v[2] ** 2, v[0] - 2 * v[1]]),
        coordinates=("x", "y", "z"),
    )
    q = jnp.zeros(3)
    assert hamiltonian.compatibility_matrix(system, q, [2.0, 1.0, 5.0**0.5]).shape == (2, 2)
    with pytest.raises(
        ValueError,
        match=r"compatibility matrix of LMS \(7\) must be regular, but at q = .* singular values are \[5",
    ):
        hamiltonian.compatibility_matrix(system, q, jnp.zeros(3))
    with pytest.raises(ValueError, match="must be regular"):
        hamiltonian.multipliers(system, q, jnp.zeros(3))
    with pytest.raises(ValueError, match=r"`p` must have shape \(3,\), but \(2,\) was provided"):
        hamiltonian.hamiltonian(system, q, [1.0, 2.0])
