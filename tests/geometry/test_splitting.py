"""Constraints as y^u = C^u(x, y^ubar): solved from any system, and the equations PP (2.2) of the motion."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from models import OF_EVERY_KIND
from noslip import System, simulate
from noslip.geometry.splitting import splitting, system_from_splitting
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import (
    appell_hamel_spring,
    nonholonomic_particle,
)

pytestmark = pytest.mark.thorough

ABCDE = ("a", "b", "c", "d", "e")


def coupled_lagrangian(q, v, p):
    """Mass matrix, gyroscopic term and potential that depend on all coordinates."""
    s = v * (1 + 0.2 * jnp.sin(jnp.roll(q, 1)))
    return (
        0.5 * jnp.dot(s, s) + 0.3 * v[0] * v[3] + q[4] * v[1] - 0.4 * q[2] * v[4] - jnp.sum(jnp.cos(q + 0.3))
    )


def two_quadratics(q, v, p):
    return jnp.array(
        [
            v[3] ** 2 - (1 + q[1] ** 2) * (v[0] ** 2 + v[1] ** 2) - 0.2 * v[4] * v[2],
            v[4] * v[3] - v[2] ** 2 - 0.3 * q[3] * v[0] - 0.5,
        ]
    )


def coupled():
    """Five coordinates, two quadratic constraints, neither homogeneous nor solved for anything."""
    system = System(coupled_lagrangian, constraint=two_quadratics, coordinates=ABCDE)
    q = jnp.array([0.3, -0.6, 0.2, 0.5, -0.4])
    return system, q, system.project_velocity(q, [0.7, 0.5, 0.4, 0.9, 0.8])


def pushed():
    """A particle with friction and a push that depends on time."""
    system = System(
        nonholonomic_particle.lagrangian,
        one_forms=nonholonomic_particle.one_forms,
        force=lambda q, v, t, p: -0.3 * v + jnp.array([jnp.cos(t), q[2], 0.2]),
        coordinates=("x", "y", "z"),
        parameters={"k": 1.3},
    )
    return system, *nonholonomic_particle.typical_state()


CASES = OF_EVERY_KIND | {"coupled": coupled, "forced": pushed}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    system, *state = CASES[request.param]()
    q, v = map(np.asarray, state)
    return system, q, v, splitting(system, q, v)


def test_the_fibre_velocities_are_solved_for(case):
    system, q, v, split = case
    base = v[split.base_index]
    C, velocity = jax.jit(split.C), jax.jit(split.velocity)
    assert_allclose(C(q, base), v[split.fibre_index], rtol=0, atol=1e-13)
    other = base * 1.07 + 0.03
    found = np.asarray(velocity(q, other))
    assert_allclose(system.phi(q, found), 0, rtol=0, atol=1e-13)
    assert_allclose(found[split.base_index], other, rtol=0, atol=0)


def test_derivatives_of_c_are_those_of_the_implicit_function_theorem(case):
    _, q, v, split = case
    base = v[split.base_index]

    @jax.jit
    def all_of(q, base, v):
        by_ad = jax.jacfwd(split.C, 1)(q, base), jax.jacrev(split.C, 0)(q, base)
        return *by_ad, split.slope(q, v), split.position_derivative(q, v)

    by_base, by_q, slope, position = map(np.asarray, all_of(q, base, v))
    assert_allclose(by_base, slope, rtol=0, atol=1e-12)
    assert_allclose(by_q, position, rtol=0, atol=1e-12)
    dq, dw = 1e-6 * np.cos(np.arange(1.0, q.size + 1)), 1e-6 * np.sin(np.arange(1.0, base.size + 1))
    there, back = (np.asarray(jax.jit(split.C)(q + s * dq, base + s * dw)) for s in (1, -1))
    assert_allclose(position @ dq + slope @ dw, (there - back) / 2, rtol=1e-7, atol=1e-14)


def test_second_derivatives_of_c_are_right_too(case):
    _, q, v, split = case
    base, step = v[split.base_index], 1e-5
    direction = step * np.cos(np.arange(1.0, base.size + 1))

    @jax.jit
    def both(q, base):
        there, back = (jax.jacfwd(split.C, 1)(q, base + s * direction) for s in (1, -1))
        return jax.jacfwd(jax.jacrev(split.C, 1), 1)(q, base) @ direction, (there - back) / 2

    assert_allclose(*both(q, base), rtol=0, atol=1e-11)


def signed(function):
    """Its values for both signs."""
    return jax.jit(lambda *at: (function(*at, sign=1.0), function(*at, sign=-1.0)))


def test_virtual_displacements_are_the_kernel_of_the_constraint_forces(case):
    system, q, v, split = case
    mu, (X, other) = np.asarray(system.mu(q, v)), map(np.asarray, signed(split.displacements)(q, v))
    assert X.shape == (system.n, system.n - system.m)
    assert_allclose(mu @ X, 0, rtol=0, atol=1e-13)
    assert np.max(np.abs(mu @ other)) > 1e-2


def test_pp_2_2_with_plus_is_the_motion_and_with_minus_is_not(case):
    system, q, v, split = case
    motion = np.asarray(system.acceleration(q, v, 0.7))
    right, printed = map(np.asarray, signed(split.acceleration)(q, v, 0.7))
    assert_allclose(right, motion, rtol=1e-11, atol=1e-11)
    assert np.max(np.abs(printed - motion)) > 1e-3


def test_the_equations_do_not_depend_on_the_fibre(case):
    system, q, v, split = case
    mu = np.asarray(system.mu(q, v))
    choices = [list(at) for at in itertools.combinations(range(system.n), system.m)]
    quality = [np.linalg.svd(mu[:, at], compute_uv=False)[-1] for at in choices]
    best = [tuple(system.coordinates[i] for i in choices[k]) for k in np.argsort(quality)[:-4:-1]]
    other = next(names for names in best if set(names) != set(split.fibre))
    acceleration = jax.jit(splitting(system, q, v, fibre=other).acceleration)(q, v, 0.2)
    assert_allclose(acceleration, system.acceleration(q, v, 0.2), rtol=0, atol=1e-10)


def test_the_constrained_lagrangian_is_l_on_the_constraint(case):
    system, q, v, split = case
    found = jax.jit(split.constrained_lagrangian)(q, v[split.base_index])
    wanted = jax.jit(lambda q, v: system.lagrangian(q, v, system.parameters))(q, v)
    assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_the_velocity_nearby_chooses_the_branch():
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        constraint=lambda q, v, p: jnp.array([v[2] ** 2 - (1 + q[0] ** 2) * (v[0] ** 2 + v[1] ** 2)]),
        coordinates=("x", "y", "z"),
        fibre=("z",),
    )
    q, base = np.array([0.4, 0.7, -0.2]), np.array([0.5, -0.3])
    up = splitting(system, q, [0.5, -0.3, 0.6])
    down = splitting(system, q, [0.5, -0.3, -0.6])

    @jax.jit
    def branches(q, base):
        return up.C(q, base), down.C(q, base), up.C(q, base, near=[0.5, -0.3, -0.6])

    above, below, chosen = map(np.asarray, branches(q, base))
    assert above[0] > 0
    assert_allclose(below, -above, rtol=1e-14)
    assert_allclose(chosen, below, rtol=1e-14)


def test_a_fibre_that_cannot_be_solved_for_is_refused():
    system = nonholonomic_particle.system()
    q, v = nonholonomic_particle.typical_state()
    with pytest.raises(ValueError, match=r"must determine the velocities of the fibre \('y',\)"):
        splitting(system, q, v, fibre=("y",))
    spring = appell_hamel_spring.system()
    with pytest.raises(ValueError, match=r"must determine the velocities of the fibre \('y',\)"):
        splitting(spring, [0.1, 0.2, 0.3], [0.6, 0.0, -0.3], fibre=("y",))


# ---- from L and C to a system -----------------------------------------------------------------------
def lagrangian(q, v, p):
    return 0.5 * (jnp.dot(v, v) + q[1] ** 2 * v[0] ** 2) - p["k"] * (q[0] ** 2 + q[1] ** 2)


def linear(q, w, p):
    return jnp.array([p["k"] * q[1] * w[0] - 0.3 * w[1]])


def affine(q, w, p):
    return linear(q, w, p) + 0.2 * q[2] + 0.1


def nonlinear(q, w, p):
    return p["k"] * jnp.sqrt(1 + w[:1] ** 2 + q[1] ** 2 * w[1:] ** 2)


MAPS = {"linear": linear, "affine": affine, "nonlinear": nonlinear}
GIVEN = {"coordinates": ("x", "z", "y"), "fibre": ("z",), "parameters": {"k": 0.8}}


@pytest.mark.parametrize("kind", MAPS)
def test_a_system_made_from_l_and_c(kind):
    system = system_from_splitting(lagrangian, MAPS[kind], kind=kind, **GIVEN)
    assert (system.kind, system.m, system.fibre) == (kind, 1, ("z",))
    q, base = np.array([0.3, -0.4, 0.6]), np.array([0.7, -0.5])
    split = splitting(system, q)

    @jax.jit
    def all_of(q, base):
        v = split.velocity(q, base)
        return v, split.C(q, base), MAPS[kind](q, base, system.parameters), split.acceleration(q, v)

    v, C, given, acceleration = map(np.asarray, all_of(q, base))
    assert_allclose(C, given, rtol=0, atol=1e-15)
    assert_allclose(acceleration, system.acceleration(q, v), rtol=0, atol=1e-12)
    general = system_from_splitting(lagrangian, MAPS[kind], **GIVEN)
    assert general.kind == "nonlinear"
    assert_allclose(general.acceleration(q, v), system.acceleration(q, v), rtol=0, atol=1e-12)
    run = simulate(system, VelocityNonholonomic(), q, v, step_size=0.05, steps=20)
    assert np.max(np.abs(run.constraint_residual)) < 1e-14


def test_two_systems_from_equal_parts_share_compiled_code():
    first, second = (
        jax.tree.structure(system_from_splitting(lagrangian, linear, kind="linear", **GIVEN))
        for _ in range(2)
    )
    assert first == second
    assert hash(first) == hash(second)


def test_mistakes_in_a_splitting_are_named():
    with pytest.raises(ValueError, match="`C` was declared linear in the base velocities, but it is not"):
        system_from_splitting(lagrangian, affine, kind="linear", **GIVEN)
    with pytest.raises(ValueError, match="`C` was declared affine in the base velocities, but it is not"):
        system_from_splitting(lagrangian, nonlinear, kind="affine", **GIVEN)
    with pytest.raises(ValueError, match="'quadratic'"):
        system_from_splitting(lagrangian, nonlinear, kind="quadratic", **GIVEN)
    with pytest.raises(ValueError, match="'w'"):
        system_from_splitting(lagrangian, linear, **{**GIVEN, "fibre": ("w",)})
    with pytest.raises(ValueError, match=r"must have shape|must name"):
        system_from_splitting(
            lagrangian, lambda q, w, p: jnp.array([w[0], w[1]]), **{**GIVEN, "fibre": ("z",)}
        )
