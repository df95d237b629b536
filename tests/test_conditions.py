"""What a system must be is asked where it runs: at the start, around it, and along the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noslip
from noslip import System, ensemble, simulate
from noslip.errors import NotHamiltonizable
from noslip.geometry.chaplygin import reduction
from noslip.geometry.hamiltonization import hamiltonize
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.poincare_hamiltonized_del import PoincareHamiltonizedDEL
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import knife_edge

XYZ = ("x", "y", "z")
STATE = ([0.2, 0.5, -0.1], [0.8, 0.6, 0.4])


def free(q, v, p):
    return 0.5 * jnp.dot(v, v)


def flat(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])


def rolling(q, p):
    return jnp.array([[0.0, q[0], 1.0]])


def frame(q, p):
    return jnp.array([[1.0, 0.0], [0.0, 1.0], [q[1], 0.0]])


def made(lagrangian=free, one_forms=flat, **more):
    return System(lagrangian, one_forms=one_forms, coordinates=XYZ, **more)


def run(system, method=None, state=STATE, **more):
    return simulate(system, method or RungeKutta4(), *state, **{"step_size": 0.1, "steps": 10} | more)


BROKEN = {
    "`frame` must satisfy one_forms(q) @ frame(q) = 0": {"frame": lambda q, p: jnp.ones((3, 2))},
    "`y` was declared an angle, but the constraint is not 2 pi-periodic in it": {"angles": ("y",)},
    "`x` was declared an angle, but the lagrangian is not 2 pi-periodic in it": {
        "lagrangian": lambda q, v, p: 1e-9 * (0.5 * jnp.dot(v, v) - q[0] ** 2),
        "angles": ("x",),
    },
    "`lagrangian` must be quadratic in v (": {"lagrangian": lambda q, v, p: jnp.sum(v**4) / jnp.sum(v**2)},
    "`lagrangian` must be quadratic in v": {"lagrangian": lambda q, v, p: -jnp.sqrt(1 - jnp.dot(v, v) / 9)},
    "the frame must have full rank 2": {"frame": lambda q, p: jnp.zeros((3, 2))},
    "the frame must have full rank 2, but": {
        "frame": lambda q, p: jnp.array([[1.0, 2], [0, 0], [q[1], 2 * q[1]]])
    },
    "the frame must be finite": {"frame": lambda q, p: frame(q, p) * jnp.log(-q[0])},
    "the force must be finite": {"force": lambda q, v, t, p: v * jnp.sqrt(q[2])},
    "the first integral I must be finite": {"first_integrals": {"I": lambda q, v, p: jnp.log(q[2])}},
    "the lagrangian must be finite, but at q = ": {
        "lagrangian": lambda q, v, p: free(q, v, p) + jnp.log(q[2])
    },
}


@pytest.mark.parametrize("sentence", BROKEN)
def test_a_condition_that_fails_at_the_start_is_told_with_the_place(sentence):
    method = DiscreteGradient() if "frame" in sentence else RungeKutta4()
    with pytest.raises(ValueError, match=r"at q = \[") as caught:
        run(made(**BROKEN[sentence]), method)
    assert sentence in str(caught.value)


def test_a_lagrangian_whose_square_root_hides_its_quartic_terms_in_the_unit_cube_is_refused():
    def lagrangian(q, v, p):
        return jnp.log(q[0] - 5) * jnp.dot(v, v) + 0.3 * v[0] ** 3 + v[1] ** 4

    with pytest.raises(ValueError, match="must be quadratic in v"):
        run(made(lagrangian, rolling), state=([7.0, 0.2, 0.1], [0.5, 0.4, -2.8]))


def root(q, p):
    return jnp.array([[0.0, jnp.sqrt(q[0] - 2), 1.0]])


def test_a_system_that_is_good_where_it_runs_is_not_refused_for_what_it_is_elsewhere():
    system = made(one_forms=root)
    start = ([3.0, 0.2, 0.1], [0.3, 0.5, -0.5])
    for method in (RungeKutta4(), VelocityNonholonomic(), ReducedDLA()):
        assert run(system, method, start).success
    assert reduction(system, at=start[0])
    with pytest.raises(ValueError, match=r"not finite at any point looked at.*give `at`"):
        reduction(system)


def half_space(q, p):
    return jnp.array([[0.0, -jnp.sqrt(q[0] ** 2), 1.0]])  # |x|


def test_a_frame_that_is_right_on_one_side_only_is_taken_there():
    def right(q, p):
        return jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, q[0]]])

    for x in (0.3, 1e-12, 4e6):
        system = made(one_forms=half_space, frame=right)
        assert run(system, state=([x, 0.2, 0.1], [0.0, 1.0, x])).success
    with pytest.raises(ValueError, match="`frame` must satisfy"):
        run(system, state=([-0.3, 0.2, 0.1], [0.0, 1.0, 0.3]))


def test_a_frame_that_is_lost_on_the_way_ends_the_run_there():
    def lost(q, p):  # right, and of no use from x = 1 on
        return frame(q, p) * jnp.where(q[0] < 1.0, 1.0, 0.0)

    system = made(frame=lost)
    with pytest.raises(noslip.SolveFailed, match="frame must have full rank 2, but at q = ") as caught:
        run(system, steps=40)
    kept = caught.value.trajectory
    assert kept.q[-1, 0] < 1.5
    assert not kept.success
    assert not run(system, steps=40, throw=False).success


def test_a_lagrangian_that_stops_being_quadratic_on_the_way_is_found():
    system = made(lambda q, v, p: free(q, v, p) + jnp.maximum(q[0] - 1.0, 0.0) * v[1] ** 3)
    with pytest.raises(noslip.SolveFailed, match="must be quadratic in v"):
        run(system, steps=60)


# ---- Chaplygin systems --------------------------------------------------------------------------------
def depends_on_the_fibre(q, v, p):
    return 0.5 * jnp.dot(v, v) - 0.1 * jnp.log(q[0] - 2) - q[2]


@pytest.mark.parametrize("method", [ReducedDLA(), HamiltonizedDEL(), PoincareHamiltonizedDEL()], ids=repr)
def test_a_lagrangian_that_depends_on_the_fibre_outside_the_unit_cube_is_refused(method):
    system = made(depends_on_the_fibre, rolling)
    v = system.project_velocity([3.0, 0.0, 0.5], [0.3, 0.5, 0.0])
    with pytest.raises(ValueError, match="the Lagrangian must be invariant, but it changes by"):
        run(system, method, ([3.0, 0.0, 0.5], v))


def sloping(q, p):
    return jnp.array([[0.0, q[0] + q[1], 1.0]])


def test_a_system_without_a_multiplier_is_refused_wherever_its_lagrangian_lives():
    system = made(lambda q, v, p: 0.5 * jnp.sqrt(q[0] - 2) * jnp.dot(v, v), sloping)
    with pytest.raises(NotHamiltonizable, match="integrability defect"):
        hamiltonize(system, at=[3.0, 0.4, 0.0])
    with pytest.raises(ValueError, match="give `at`"):
        hamiltonize(system)
    v = system.project_velocity([3.0, 0.4, 0.0], [0.3, 0.5, 0.0])
    with pytest.raises(ValueError, match="integrability defect"):
        run(system, HamiltonizedDEL(), ([3.0, 0.4, 0.0], v))


def test_an_invariance_that_ends_with_the_domain_of_the_lagrangian_is_none():
    system = made(
        lambda q, v, p: free(q, v, p) + 0.0 * jnp.log(q[2]) + jnp.where(q[2] > 0, 0.0, jnp.nan), rolling
    )
    with pytest.raises(ValueError, match="the Lagrangian must be invariant"):
        run(system, ReducedDLA(), ([1.0, 0.4, 0.1], [0.3, 0.5, -0.5]))


# ---- admissible velocities ----------------------------------------------------------------------------
@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1.0, 1e9])
def test_admissibility_is_judged_against_the_terms_of_phi(scale):
    def scaled(q, p):  # a form in other units, and lengths in other units
        return jnp.array([[0.0, p["s"] * q[0], p["s"]]])

    for system, q, length in (
        (made(one_forms=scaled, parameters={"s": scale}), [3.0, 0.2, 0.1], 1.0),
        (made(one_forms=lambda q, p: jnp.array([[0.0, q[0], 1.0]])), [3.0 * scale, 0.2, 0.1], scale),
    ):
        run(system, state=(q, [0.3, 0.5, -1.5 * length * (1 + 1e-10)]))
        with pytest.raises(ValueError, match=r"`v0` must satisfy the constraint, but phi\(q0, v0\) = "):
            run(system, state=(q, [0.3, 0.5, -1.5 * length * (1 + 1e-7)]))
        many = np.array([[0.3, 0.5, -1.5 * length], [0.3, 0.5, -1.5 * length * (1 + 1e-7)]])
        with pytest.raises(ValueError, match="1 of 2 members do not, first member 1"):
            ensemble(system, RungeKutta4(), q, many, step_size=0.1, steps=1)


def test_what_the_rounding_of_an_angle_leaves_of_phi_is_admissible():
    q, v = [0.0, 0.0, np.pi / 2], [0.0, 1.0, 0.3]  # a blade along y, up to cos(pi / 2) = 6e-17
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.0]]),
        coordinates=("x", "y", "phi"),
        angles=("phi",),
    )
    assert system.phi(q, v)[0] != 0
    assert system.is_admissible(q, v)
    assert run(system, state=(q, v)).success
    assert not system.is_admissible(q, [1e-12, 1e-4, 0.3])


def test_nonlinear_and_affine_constraints_are_judged_by_their_terms_too():
    cone = System(
        free, constraint=lambda q, v, p: jnp.array([v[2] ** 2 - v[0] ** 2 - v[1] ** 2]), coordinates=XYZ
    )
    v = np.array([3e-7, 4e-7, 5e-7])
    assert cone.is_admissible([0.0, 0, 0], v)
    assert not cone.is_admissible([0.0, 0, 0], v * [1, 1, 1.001])
    moving = made(one_forms=flat, drift=lambda q, p: jnp.array([1e-8]))
    assert moving.is_admissible([0.0, 0, 0], [0.0, 0, -1e-8])
    assert not moving.is_admissible([0.0, 0, 0], [0.0, 0, 0.0])


# ---- times --------------------------------------------------------------------------------------------
def test_t_end_is_taken_inside_jit_where_all_else_is_traced():
    system = knife_edge.system()
    q, v = (jnp.asarray(x) for x in knife_edge.typical_state())

    def end(q, v, **times):
        return simulate(system, RungeKutta4(), q, v, step_size=0.1, **times).q[-1]

    expected = end(q, v, steps=5)
    np.testing.assert_allclose(jax.jit(lambda q, v: end(q, v, t_end=0.5))(q, v), expected, rtol=1e-12)
    with pytest.raises(ValueError, match="when t0, t_end or step_size is traced"):
        jax.jit(lambda T: end(q, v, t_end=T))(0.5)


SWITCHED = System(
    lambda q, v, p: 0.5 * jnp.dot(v, v),
    one_forms=flat,
    coordinates=XYZ,
    force=lambda q, v, t, p: jnp.where(t < 1.0, 4.0, -2.0) * jnp.array([1.0, 0.0, 0.0]),
)


@pytest.mark.parametrize(
    "method",
    [
        VelocityNonholonomic(),
        LobattoSpark(stages=3),
        RungeKutta4(),
        GeneratingFunction(0.0, symmetric=True),
    ],
    ids=repr,
)
def test_a_force_that_switches_at_a_node_costs_no_order(method):
    # x = 1 + 2 after a second at force 4, then v = 5 and force -2: x(2) = 3 + 5 - 1 = 7; all quadratic in t
    for t0, h in ((0.0, 0.1), (0.0, 0.05), (0.3, 0.1)):
        run = simulate(SWITCHED, method, [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], step_size=h, t_end=2.0, t0=t0)
        first = 1.0 - t0
        speed = 1 + 4 * first
        exact = first + 2 * first**2 + speed - 1
        assert abs(run.q[-1, 0] - exact) < 1e-13


def test_a_state_near_a_good_one_is_looked_at_by_itself():
    def hole(q, p):
        return frame(q, p) * jnp.where(jnp.abs(q[0] - 0.21) < 1e-3, 0.0, 1.0)

    system = made(frame=hole)
    assert run(system, steps=0).success
    with pytest.raises(ValueError, match="the frame must have full rank 2"):
        run(system, state=([0.21, 0.5, -0.1], STATE[1]))


def test_a_velocity_may_be_off_by_its_rounding_where_the_terms_of_a_constraint_vanish():
    """At the lowest point of a rail the rate of z has no terms but itself; a fast body rounds all speeds."""
    rail = System(
        lambda q, v, p: 0.5 * (2.0 * v[0] ** 2 + v[1] ** 2 + 3.0 * v[2] ** 2),
        holonomic=lambda q, p: jnp.array([q[2] - q[0] ** 2]),
        coordinates=("x", "y", "z"),
    )
    assert rail.is_admissible([0.0, 1.0, 0.0], [3.0, 5.0, 1e-15])
    assert not rail.is_admissible([0.0, 1.0, 0.0], [3.0, 5.0, 1e-13])
    assert not rail.is_admissible([0.0, 1.0, 0.0], [0.0, 0.0, 1e-15])
