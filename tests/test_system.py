"""What is derived from a Lagrangian and constraints agrees with what can be computed by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from noslip import System, simulate
from noslip.engine.backends import native
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.energy_collocation import EnergyCollocation
from noslip.system import checks
from noslip.systems import chaplygin_sleigh


def test_multiplier_of_the_particle_is_that_of_js(particle):
    q, v = [0.3, 0.7, 0.1], [0.5, -0.4, 0.35]
    lam = particle.multipliers(q, v, parameters={"k": 0.0})
    assert_allclose(lam, [0.5 * -0.4 / (1 + 0.7**2)], rtol=1e-15)  # JS after (79)


def test_acceleration_of_the_particle_is_that_of_lms(particle):
    (x, y, _), (vx, vy, _) = q, v = [0.3, 0.7, 0.1], [0.5, -0.4, 0.35]
    expected = [-(2 * x + y * vx * vy) / (1 + y**2), -2 * y, (-2 * x * y + vx * vy) / (1 + y**2)]
    assert_allclose(particle.acceleration(q, v), expected, rtol=1e-14)  # LMS example 4.2


def test_sleigh_mass_matrix_momentum_velocity_energy():
    m, J, a, theta = 1.3, 2.0, 0.7, 0.4
    system = chaplygin_sleigh.system(m=m, J=J, a=a)
    q, v = np.array([0.1, -0.2, theta]), np.array([0.3, 0.5, -0.8])
    s, c = np.sin(theta), np.cos(theta)
    M = np.array([[m, 0, -m * a * s], [0, m, m * a * c], [-m * a * s, m * a * c, J + m * a**2]])
    assert_allclose(system.mass_matrix(q), M, rtol=0, atol=1e-15)
    assert_allclose(system.momentum(q, v), M @ v, rtol=1e-14)
    assert_allclose(system.velocity(q, M @ v), v, rtol=1e-13)
    assert_allclose(system.energy(q, v), v @ M @ v / 2, rtol=1e-14)


def test_gyroscopic_terms_are_part_of_everything():
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) + p["B"] * (q[0] * v[1] - q[1] * v[0]) - q[2] ** 2

    system = System(
        lagrangian,
        one_forms=lambda q, p: jnp.array([[0.0, jnp.sin(q[0]), 1.0]]),
        coordinates=("x", "y", "z"),
        parameters={"B": 0.7},
    )
    q = np.array([0.4, 0.2, -0.3])

    @jax.jit
    def all_of(q, w):
        v = system.project_velocity(q, w)
        again = system.velocity(q, system.momentum(q, v))
        return v, again, system.energy(q, v), system.multipliers(q, v), system.acceleration(q, v)

    v, again, energy, multipliers, acceleration = map(np.asarray, all_of(q, np.array([0.5, 0.9, 0.1])))
    assert_allclose(again, v, rtol=1e-14)
    assert_allclose(energy, v @ v / 2 + q[2] ** 2, rtol=1e-14)
    free = np.array([2 * 0.7 * v[1], -2 * 0.7 * v[0], -2 * q[2]])  # magnetic force and spring
    mu = np.array([0.0, np.sin(0.4), 1.0])
    lam = -(np.cos(0.4) * v[0] * v[1] + mu @ free) / (mu @ mu)
    assert_allclose(multipliers, [lam], rtol=1e-13)
    assert_allclose(acceleration, free + lam * mu, rtol=1e-13)


@pytest.mark.parametrize("kind", ["linear", "affine", "nonlinear"])
def test_the_vector_field_is_tangent_to_the_constraint(kind):
    forms = {
        "linear": {"one_forms": lambda q, p: jnp.array([[jnp.sin(q[1]), 1.0, q[0]]])},
        "affine": {
            "one_forms": lambda q, p: jnp.array([[jnp.sin(q[1]), 1.0, q[0]]]),
            "drift": lambda q, p: jnp.array([q[2] ** 2 - 0.3]),
        },
        "nonlinear": {
            "constraint": lambda q, v, p: jnp.array([v[2] - q[0] * jnp.sqrt(v[0] ** 2 + v[1] ** 2)])
        },
    }
    system = System(
        lambda q, v, p: 0.5 * (v[0] ** 2 * (2 + q[1] ** 2) + v[1] ** 2 + v[2] ** 2) - jnp.cos(q[0]),
        coordinates=("x", "y", "z"),
        force=lambda q, v, t, p: -0.2 * v + jnp.array([jnp.sin(t), 0.0, 0.0]),
        **forms[kind],
    )

    @jax.jit
    def all_of(q, v, t):
        (phi, _), (rate, dp) = jax.jvp(
            lambda q, v: (system.phi(q, v), system.momentum(q, v)), (q, v), (v, system.acceleration(q, v, t))
        )
        reaction = dp - system.dL_dq(q, v) - system.applied_force(q, v, t)
        return phi, rate, reaction, system.mu(q, v).T @ system.multipliers(q, v, t)

    q = np.array([0.7, 0.3, -0.4])
    v = np.asarray(system.project_velocity(q, [0.5, 0.6, 0.2]))
    phi, rate, reaction, along = all_of(q, v, 0.8)
    assert_allclose(phi, [0.0], rtol=0, atol=1e-14)
    assert_allclose(rate, [0.0], rtol=0, atol=1e-13)
    # the reaction is along dphi/dv: JS (2a) with the sign + mu^T lam
    assert_allclose(reaction, along, rtol=0, atol=1e-13)


def test_projectors_are_complementary_and_orthogonal_in_the_kinetic_metric():
    system = chaplygin_sleigh.system()
    q, v = np.array([0.2, 0.1, 0.9]), np.array([0.3, -0.7, 0.4])

    @jax.jit
    def all_of(q, v):
        found = system.mass_matrix(q), system.mu(q, v), system.project_velocity(q, v)
        return *system.projectors(q), *found

    P, Q, M, mu, projected = map(np.asarray, all_of(q, v))
    assert_allclose(P + Q, np.eye(3), rtol=0, atol=1e-15)
    assert_allclose(P @ P, P, rtol=0, atol=1e-14)
    assert_allclose(mu @ P, 0, rtol=0, atol=1e-14)
    assert_allclose(P.T @ M @ Q, 0, rtol=0, atol=1e-13)
    assert_allclose(projected, P @ v, rtol=0, atol=1e-14)


def test_parameters_are_leaves_and_can_be_overridden_by_keyword(particle):
    q, v = jnp.array([0.2, 0.5, -0.1]), jnp.array([0.8, 0.6, 0.4])
    assert jax.tree.leaves(particle) == [1.0]
    stiffer = particle.energy(q, v, parameters={"k": 3.0})
    assert_allclose(stiffer - particle.energy(q, v), 2 * (0.2**2 + 0.5**2), rtol=1e-14)
    slope = jax.grad(lambda k: particle.energy(q, v, parameters={"k": k}))(1.0)
    assert_allclose(slope, 0.2**2 + 0.5**2, rtol=1e-14)


def test_two_systems_from_the_same_functions_share_compiled_code(monkeypatch):
    made, q = [], [0.2, 0.1, 0.9]
    compiled = native.map_function
    monkeypatch.setattr(native, "map_function", lambda *x: made.append(x) or compiled(*x))

    def lagrangian(q, v, p):
        return p["m"] * (v @ v) / 2

    def system(m):
        return System(lagrangian, coordinates=("x", "y", "z"), parameters={"m": m})

    first = system(1.0).momentum(q, q)
    assert len(made) == 1
    assert_array_equal(system(2.0).momentum(q, q), 2 * first)
    assert len(made) == 1


STATE = np.array([0.9, 0.3, 2.1, -1.2]), np.array([0.5, -0.3, 0.2, 0.4])


def wedge(**more):
    """Two affine constraints, a mass matrix that is not constant, a gyroscopic term and a force."""
    return System(
        lambda q, v, p: 0.5 * (v @ v + jnp.sin(q[3]) * v[0] * v[1]) + q[0] * v[3] - jnp.cos(q[2]),
        one_forms=lambda q, p: jnp.array([[1.0, 0.0, q[3], 0.0], [0.0, jnp.exp(q[0]), 0.0, 1.0]]),
        drift=lambda q, p: jnp.array([q[1], p["b"]]),
        force=lambda q, v, t, p: -p["b"] * t * v,
        coordinates=("x", "y", "z", "w"),
        parameters={"b": 0.7},
        **more,
    )


@pytest.mark.parametrize(
    "name", ["energy", "momentum", "mu", "phi", "velocity", "project_velocity", "multipliers", "acceleration"]
)
def test_what_the_engine_derives_is_what_xla_derives_and_xla_is_not_asked(name, compilations):
    system = wedge()
    clock = (1.5,) if name in ("multipliers", "acceleration") else ()
    with compilations() as count:
        found = [getattr(system, name)(*STATE, *clock) for _ in range(2)]
        assert count() == 0
    assert isinstance(found[0], jax.Array)
    assert_array_equal(*found)
    traced = jax.jit(lambda q, v: getattr(system, name)(q, v, *clock))(*STATE)
    assert_allclose(found[0], traced, rtol=1e-12, atol=1e-14)


def test_what_has_no_scalar_program_is_derived_by_xla():
    def lagrangian(q, v, p):
        return 0.5 * v @ v - jnp.sum(jnp.linalg.svd(jnp.outer(q, q), compute_uv=False))

    system = System(lagrangian, coordinates=("x", "y"))
    assert_allclose(system.energy([3.0, 4.0], [1.0, 2.0]), 2.5 + 25.0, rtol=1e-14)


def test_a_state_where_the_forms_are_parallel_is_named_with_their_singular_values():
    system = System(
        lambda q, v, p: 0.5 * v @ v,
        one_forms=lambda q, p: jnp.array([[q[0], 0.0, 0.0]]),
        coordinates=("x", "y", "z"),
    )
    with pytest.raises(
        ValueError, match=r"one-forms must have full rank, but at q = \[0. 1. 2.\] .* are \[0.\]"
    ):
        system.acceleration([0.0, 1.0, 2.0], [0.0, 0.0, 1.0])


def test_what_has_passed_the_checks_is_not_checked_again_for_other_parameters(monkeypatch):
    def lagrangian(q, v, p):
        return 0.5 * v @ v - p["k"] @ q**2 * strength

    def made(k):
        return System(lagrangian, coordinates=("x", "y"), parameters={"k": k})

    seen = []
    check = checks.check_structure
    monkeypatch.setattr(checks, "check_structure", lambda system: seen.append(system) or check(system))
    strength = 1.0
    made([1.0, 2.0])
    assert made([3.0, 0.0]).parameters["k"].tolist() == [3.0, 0.0]
    assert len(seen) == 1
    strength = np.ones(2)  # what it reads is part of a system
    with pytest.raises(ValueError, match=r"must have shape \(\), but \(2,\) was returned"):
        made([1.0, 2.0])
    strength = 1.0
    with pytest.raises(ValueError, match="failed with TypeError"):
        made([1.0, 2.0, 3.0])


def test_a_frame_is_traced_once_for_all_methods(monkeypatch):
    calls, sinh = [], jnp.sinh
    monkeypatch.setattr(jnp, "sinh", lambda x: calls.append(x) or sinh(x))
    system = System(
        lambda q, v, p: 0.5 * v @ v - q[0] ** 2,
        one_forms=lambda q, p: jnp.array([[-(q[1] ** 3), 0.0, 1.0]]),
        frame=lambda q, p: jnp.array(
            [[1.0, jnp.sinh(q[0])], [0.0, 1.0], [q[1] ** 3, q[1] ** 3 * jnp.sinh(q[0])]]
        ),
        coordinates=("x", "y", "z"),
    )
    start = np.array([0.2, 0.5, -0.1]), np.array([0.8, 0.6, 0.1])
    simulate(system, DiscreteGradient(), *start, step_size=0.1, steps=2)
    before = len(calls)
    assert before < 20  # two for each time, some of them by the checks at the start
    simulate(system, EnergyCollocation(), *start, step_size=0.1, steps=2)
    assert len(calls) == before
