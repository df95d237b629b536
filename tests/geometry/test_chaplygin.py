"""Chaplygin reduction: its conditions, FBO's formulas, and the reduced motion against the full one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from noslip import System, simulate, systems
from noslip.geometry.chaplygin import cyclic_coordinates, reduction
from noslip.geometry.groups import Planar, Translations
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.systems import (
    chaplygin_sleigh,
    fbo_particle,
    gearbox,
    knife_edge,
    rolling_disk,
    rolling_disk_on_incline,
    turntable_ball,
    two_wheeled_robot,
)
from noslip.testing.integrators import perturbed_case

REDUCIBLE = {
    "fbo_particle": "translations",
    "knife_edge": "translations",
    "nonholonomic_particle": "translations",
    "rolling_disk": "translations",
    "chaplygin_sleigh": "translations",
    "two_wheeled_robot": "planar",
}


def reduced_case(name):
    case = perturbed_case(systems.find(name))
    return case, reduction(case.system, REDUCIBLE[name])


def test_the_running_example_of_fbo():
    """A_y = x, B_xy = -1, (26) and F = (-x ydot^2, x xdot ydot), (27) as it must be."""
    reduced = reduction(fbo_particle.system())
    x, xdot, ydot = 0.7, 0.5, -0.9
    assert reduced.base == ("x", "y")

    @jax.jit
    def all_of(r, w):
        geometry = reduced.connection(r), reduced.curvature(r)
        return *geometry, reduced.constrained_lagrangian(r, w), reduced.reaction(r, w)

    connection, curvature, lagrangian, reaction = all_of(np.array([x, 0.2]), np.array([xdot, ydot]))
    assert_allclose(connection, [[0, x]])
    assert_allclose(np.asarray(curvature)[0], [[0, -1], [1, 0]])
    assert_allclose(lagrangian, (xdot**2 + (1 + x**2) * ydot**2) / 2)
    assert_allclose(reaction, [-x * ydot**2, x * xdot * ydot])


@pytest.mark.thorough
@pytest.mark.parametrize("name", REDUCIBLE)
def test_the_reduced_equations_are_those_of_the_full_system(name):
    case, reduced = reduced_case(name)

    @jax.jit
    def all_of(q, v):
        r, w = q[reduced.base_index], v[reduced.base_index]
        power, again = jnp.dot(reduced.reaction(r, w), w), reduced.velocity(r, reduced.momentum(r, w))
        accelerations = reduced.acceleration(r, w), case.system.acceleration(q, v)[reduced.base_index]
        return reduced.lift(q, w), accelerations, power, (again, w)

    lifted, accelerations, power, velocities = all_of(case.q0, case.v0)
    assert_allclose(lifted, case.v0, atol=1e-15)
    assert_allclose(*accelerations, atol=1e-14)
    assert abs(float(power)) < 1e-15
    assert_allclose(*velocities, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["knife_edge", "two_wheeled_robot"])
def test_the_reduced_flow_with_reconstruction_is_the_full_flow(name):
    """(5) and (6) integrated by SciPy against the reference flow on Q."""
    case, reduced = reduced_case(name)
    d = len(reduced.base)

    @jax.jit
    def rate(x):
        r, w = x[:d], x[d : 2 * d]
        q = reduced.joined(r, x[2 * d :])
        return jnp.concatenate([w, reduced.acceleration(r, w), reduced.lift(q, w)[reduced.fibre_index]])

    q0, v0 = np.asarray(case.q0), np.asarray(case.v0)
    start = [q0[reduced.base_index], v0[reduced.base_index], q0[reduced.fibre_index]]
    end = solve_ivp(
        lambda _, x: np.asarray(rate(x)), (0, 1.2), np.concatenate(start), "DOP853", rtol=1e-13, atol=1e-14
    ).y[:, -1]
    full = simulate(case.system, ReferenceFlow(), case.q0, case.v0, step_size=1.2, steps=1)
    assert_allclose(end[:d], full.q[-1, reduced.base_index], atol=1e-11)
    assert_allclose(end[2 * d :], full.q[-1, reduced.fibre_index], atol=1e-11)
    assert_allclose(end[d : 2 * d], full.v[-1, reduced.base_index], atol=1e-11)


def test_the_curvature_of_a_nonabelian_group_needs_its_structure_constants():
    """For the robot A is constant, so that the whole curvature is the bracket."""
    _, reduced = reduced_case("two_wheeled_robot")
    r = np.array([0.3, -0.2])
    both = jax.jit(lambda r: (reduced.connection(r), reduced.curvature(r)))
    (A, curvature), (elsewhere, _) = (map(np.asarray, both(x)) for x in (r, r + 1.0))
    assert_allclose(elsewhere, A)
    e, f = A.T  # e1, e2 translations, e3 the rotation: [e3, e1] = e2, [e3, e2] = -e1
    bracket = [f[2] * e[1] - e[2] * f[1], e[2] * f[0] - f[2] * e[0], 0.0]
    assert_allclose(curvature[:, 0, 1], bracket, atol=1e-15)
    assert np.max(np.abs(bracket)) > 0.1


# ---- the groups ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("group", [Translations(("x", "y", "phi")), Planar(("x", "y", "phi"))])
def test_the_groups(group):
    def times(g, f):
        return g + group.displacement(g, f)

    @jax.jit
    def pairs(s, f, xi):
        """Which must be equal."""
        fields = jax.jacfwd(group.body_fields)(s)  # [i, b, j] = d_j E_ib
        E = group.body_fields(s)
        bracket = jnp.einsum("jb,icj->ibc", E, fields) - jnp.einsum("jc,ibj->ibc", E, fields)
        return {
            "associative": (times(times(s, f), xi), times(s, times(f, xi))),
            "relative": (group.relative(s, times(s, f)), f),
            "retract": (times(group.retract(xi), group.retract(-xi)), jnp.zeros(3)),
            "unretract": (group.unretract(group.retract(xi)), xi),
            "body_fields": (E, jax.jacfwd(lambda f: times(s, f))(jnp.zeros(3))),
            "space_fields": (group.space_fields(s), jax.jacfwd(lambda g: times(g, s))(jnp.zeros(3))),
            "brackets": (bracket, jnp.einsum("ia,abc->ibc", E, group.structure_constants)),
        }

    elements = np.array([[0.3, -0.5, 0.7], [0.2, 0.4, -0.3], [0.5, -0.1, 0.9]])
    for name, pair in pairs(*elements).items():
        assert_allclose(*pair, atol=1e-15, err_msg=name)


# ---- what is refused ----------------------------------------------------------------------------------
def test_a_group_of_the_wrong_dimension():
    with pytest.raises(
        ValueError, match=r"as many directions as there are constraints, but it has 3 and the"
    ):
        reduction(chaplygin_sleigh.system(), Planar(("x", "y", "theta")))


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (
            gearbox,
            r"translations of \('q1',\): the Lagrangian must be invariant, but it changes by .* when q = ",
        ),
        (rolling_disk_on_incline, "the Lagrangian must be invariant"),
        (two_wheeled_robot, "the Lagrangian must be invariant"),
        (turntable_ball, "the constraints must be linear in the velocities, but they are affine"),
    ],
)
def test_what_is_no_chaplygin_system(module, message):
    with pytest.raises(ValueError, match=message):
        reduction(module.system())


def test_constraints_that_are_not_invariant_or_not_transversal():
    def make(forms, fibre="z"):
        def lagrangian(q, v, p):
            return 0.5 * jnp.dot(v, v)

        return System(
            lagrangian, one_forms=lambda q, p: forms(q), coordinates=("x", "y", "z"), fibre=(fibre,)
        )

    with pytest.raises(ValueError, match="the constraints must be invariant, but their span turns by"):
        reduction(make(lambda q: jnp.array([[0.0, q[2], 1.0]])))
    scaled = make(lambda q: (2 + jnp.sin(q[2])) * jnp.array([[0.0, q[0], 1.0]]))
    assert reduction(scaled).base == ("x", "y")  # the same distribution
    with pytest.raises(ValueError, match="T_qQ must be vertical"):
        reduction(make(lambda q: jnp.array([[0.0, q[1], 1.0]]), fibre="x"))


def test_a_force_must_be_invariant_too():
    def with_force(force):
        return dataclasses.replace(fbo_particle.system(), force=force, first_integrals={})

    damped = reduction(with_force(lambda q, v, t, p: -0.3 * v))
    q, v = map(np.asarray, fbo_particle.typical_state())
    full = np.asarray(damped.system.acceleration(q, v))[damped.base_index]
    assert_allclose(jax.jit(damped.acceleration)(q[:2], v[:2]), full, atol=1e-15)
    with pytest.raises(ValueError, match="the force must be invariant"):
        reduction(with_force(lambda q, v, t, p: jnp.array([0.0, 0.0, q[2]])))


def test_cyclic_coordinates():
    assert cyclic_coordinates(fbo_particle.system()) == ("y", "z")
    assert cyclic_coordinates(rolling_disk.system()) == ("x", "y", "phi")
    assert cyclic_coordinates(knife_edge.system()) == ("y",)
    assert cyclic_coordinates(gearbox.system()) == ()
