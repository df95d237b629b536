"""Chaplygin's multiplier as the package finds it, what it does to the motion, and when there is none."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from noslip import System, systems
from noslip.errors import NotHamiltonizable
from noslip.geometry.hamiltonization import Hamiltonization, hamiltonize
from noslip.systems import chaplygin_sleigh, fbo_particle, knife_edge, two_wheeled_robot
from noslip.testing.integrators import perturbed_case


def largest(x):
    return float(np.max(np.abs(x)))


def particle(forms, coordinates=("x", "y", "z")):
    """A free particle with one constraint, for the last coordinate."""
    return System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([forms(q)]),
        coordinates=coordinates,
    )


FOUND = {
    "fbo_particle": lambda x, y: (1 + x**2) ** -0.5,
    "sinusoidal_particle": lambda x, y: (1 + np.sin(x) ** 2) ** -0.5,
    "knife_edge": lambda x, phi: np.cos(phi),
    "rolling_disk": lambda theta, phi: 1.0,
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FOUND)
def test_f_is_found_from_metric_and_curvature_alone(name):
    """Not the catalogue's own multiplier, which is taken away; up to a constant factor."""
    case = perturbed_case(systems.find(name))
    made = hamiltonize(dataclasses.replace(case.system, multiplier=None))
    start = np.array([0.3, -0.4])
    multiplier = jax.jit(made.multiplier)
    for step, accuracy in (([0.05, 0.06], 1e-15), ([0.2, -0.1], 1e-12), ([0.5, -0.4], 1e-6)):
        r = start + np.array(step)
        assert_allclose(multiplier(start, r), FOUND[name](*r) / FOUND[name](*start), rtol=accuracy)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "group"), [("fbo_particle", "translations"), ("two_wheeled_robot", "planar")]
)
def test_the_motion_in_tau_is_hamiltonian(name, group):
    """Hamilton's equations of Hc against the reduced motion divided by f."""
    case = perturbed_case(systems.find(name))
    made = hamiltonize(case.system, group)
    base = made.reduced.base_index
    q, w = np.asarray(case.q0)[base], np.asarray(case.v0)[base]

    @jax.jit
    def all_of(start, r, w):
        a = made.reduced.acceleration(r, w)
        P, rate = jax.jvp(lambda r, w: made.momentum(start, r, w), (r, w), (w, a))
        return made.multiplier(start, r), rate, *jax.grad(made.hamiltonian, (1, 2))(start, r, P)

    f, rate, by_r, by_P = map(np.asarray, all_of(q, q + 0.2, w))
    assert_allclose(by_P, w / f, atol=1e-14)
    assert_allclose(-by_r, rate / f, atol=1e-14)


def divergence(made, r):
    """Of f^power times the reduced vector field, in (r, p = G rdot), f(r) = 1."""

    def field(x, power):
        d = len(r)
        w = made.reduced.velocity(x[:d], x[d:])
        dp = jax.jvp(
            lambda r, w: made.reduced.momentum(r, w), (x[:d], w), (w, made.reduced.acceleration(x[:d], w))
        )[1]
        return made.multiplier(r, x[:d]) ** power * jnp.concatenate([w, dp])

    return jax.jit(lambda p, power: jnp.trace(jax.jacfwd(field)(jnp.concatenate([r, p]), power)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["fbo_particle", "sinusoidal_particle", "knife_edge"])
def test_the_invariant_measure(name):
    made = hamiltonize(perturbed_case(systems.find(name)).system)
    r, p = np.array([0.6, 0.4]), np.array([0.7, -0.5])
    diverging = divergence(made, r)
    assert abs(diverging(p, 1.0)) < 1e-14
    assert abs(diverging(p, 0.0)) > 1e-2
    assert_allclose(*jax.jit(lambda r, s: (made.measure(r, s), made.multiplier(r, s)))(r, r + 0.1))


@pytest.mark.slow
def test_three_degrees_of_freedom():
    """zdot = c r x rdot for r in R^3: f = 1 / (1 + c^2 |r|^2), density f^2."""
    c = 0.8

    def one_forms(q, p):
        x, y, z = q[:3]
        swept = c * jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return jnp.hstack([-swept, jnp.eye(3)])

    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - 0.5 * jnp.dot(q[:3], q[:3]),
        one_forms=one_forms,
        coordinates=tuple("xyzabc"),
    )
    made = hamiltonize(system)
    start, r = jnp.array([0.2, -0.3, 0.5]), jnp.array([0.4, 0.6, -0.1])
    f = [1 / (1 + c**2 * float(jnp.dot(x, x))) for x in (start, r)]
    assert_allclose(jax.jit(made.multiplier)(start, r), f[1] / f[0], rtol=1e-5)
    assert_allclose(made.omega(r), -2 * c**2 * r * f[1], atol=1e-15)
    p, diverging = jnp.array([0.5, -0.4, 0.2]), divergence(made, r)
    assert abs(diverging(p, 2.0)) < 1e-14
    assert abs(diverging(p, 1.0)) > 1e-2


def test_a_multiplier_on_the_covering_space_only():
    """The robot's f = exp(linear in the wheel angles): d ln f is closed, but every turn multiplies f."""
    system = two_wheeled_robot.system()
    made, p = hamiltonize(system, "planar"), system.parameters
    B = p["J"] + p["m"] * p["a"] ** 2 + 2 * p["I"] * p["b"] ** 2 / p["r"] ** 2
    slope = p["m"] * p["a"] / B * p["r"] / 2  # A udot = m a thetadot^2, B thetaddot = -m a u thetadot
    assert_allclose(made.omega(jnp.array([0.3, 0.8])), slope, atol=1e-15)
    factors = made.turn_factors(jnp.zeros(2))
    assert_allclose(list(factors.values()), math.exp(2 * math.pi * slope), rtol=1e-12)
    assert set(factors) == {"psi_left", "psi_right"}
    single = hamiltonize(systems.find("sinusoidal_particle").system()).turn_factors(jnp.array([0.1, 0.2]))
    assert_allclose(list(single.values()), 1, rtol=1e-12)
    zeros = hamiltonize(knife_edge.system()).turn_factors(jnp.array([0.1, 0.2]))
    assert math.isnan(zeros["phi"])


# ---- not Hamiltonizable -------------------------------------------------------------------------------
def test_a_system_without_multiplier_is_refused_with_its_defect():
    """zdot + (x + y) ydot = 0: d omega = (1 - u^2) / (1 + u^2)^2, u = x + y."""
    with pytest.raises(
        NotHamiltonizable, match=r"not Hamiltonizable: the integrability defect .* is 0\.9\d* at x ="
    ):
        hamiltonize(particle(lambda q: jnp.array([0.0, q[0] + q[1], 1.0])))
    made = Hamiltonization(hamiltonize(fbo_particle.system()).reduced)
    made = dataclasses.replace(
        made,
        reduced=dataclasses.replace(
            made.reduced, system=particle(lambda q: jnp.array([0.0, q[0] + q[1], 1.0]))
        ),
    )
    u = 0.9
    assert_allclose(
        made.integrability_defect(jnp.array([0.5, 0.4])), (1 - u**2) / (1 + u**2) ** 2, rtol=1e-13
    )
    with pytest.raises(NotHamiltonizable, match="the integrability defect"):
        hamiltonize(chaplygin_sleigh.system())


@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_judgement_does_not_depend_on_the_unit_of_length(unit):
    """The same two systems with all lengths measured in other units."""
    with pytest.raises(NotHamiltonizable, match="the integrability defect"):
        hamiltonize(particle(lambda q: jnp.array([0.0, (q[0] + q[1]) / unit, 1.0])))
    hamiltonize(particle(lambda q: jnp.array([0.0, q[0] / unit, 1.0])))


def test_more_than_two_degrees_of_freedom_may_fail_at_the_first_condition():
    """The particle with one more free coordinate: no f(r) can do for both."""
    system = particle(lambda q: jnp.array([0.0, q[0], 0.0, 1.0]), ("x", "y", "w", "z"))
    with pytest.raises(
        NotHamiltonizable, match=r"the reaction must come from one f\(r\), but misses that by"
    ):
        hamiltonize(system)


@pytest.mark.slow
def test_forces_gyroscopic_terms_and_wrong_multipliers_are_refused():
    plain = fbo_particle.system()

    def variant(**changes):
        return dataclasses.replace(plain, first_integrals={}, **changes)

    with pytest.raises(NotHamiltonizable, match="an applied force has no Hamiltonian"):
        hamiltonize(variant(force=lambda q, v, t, p: -v))
    with pytest.raises(NotHamiltonizable, match="terms of the Lagrangian linear in the velocities leave"):
        hamiltonize(variant(lagrangian=lambda q, v, p: 0.5 * jnp.dot(v, v) + q[0] * v[1]))
    with pytest.raises(NotHamiltonizable, match=r"`multiplier` must have d ln f = omega, but misses"):
        hamiltonize(variant(multiplier=lambda q, p: (1 + q[0] ** 2) ** -0.4))
    robot = two_wheeled_robot.system()
    B = hamiltonize(robot, "planar").omega(jnp.zeros(2))
    given = dataclasses.replace(robot, multiplier=lambda q, p: jnp.exp(B[0] * (q[3] + q[4])))
    with pytest.raises(NotHamiltonizable, match="must be 2 pi-periodic in the declared angles"):
        hamiltonize(given, "planar")


def test_the_derivative_of_ln_f_by_a_parameter():
    """Of the found multiplier; by the ends it is omega, by parameters it comes from the whole path."""

    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[0.0, p["c"] * q[0], 1.0]]),
        coordinates=("x", "y", "z"),
        parameters={"c": 1.0},
    )
    reduced = hamiltonize(system).reduced

    def log_f(c, start, r):
        return Hamiltonization(
            dataclasses.replace(reduced, system=system.with_parameters({"c": c}))
        ).log_ratio(start, r)

    start, r, c = np.array([0.1, 0.2]), np.array([0.4, -0.3]), 0.7

    def exact(c, start, r):
        return -0.5 * jnp.log((1 + c**2 * r[0] ** 2) / (1 + c**2 * start[0] ** 2))

    (value, slopes), (wanted_value, wanted_slopes) = (
        jax.jit(jax.value_and_grad(function, (0, 1, 2)))(c, start, r) for function in (log_f, exact)
    )
    assert_allclose(value, wanted_value, atol=1e-13)
    for found, wanted in zip(slopes, wanted_slopes, strict=True):
        assert_allclose(found, wanted, atol=1e-12)


def test_the_found_multiplier_along_a_long_way():
    """Straight paths are for near points; along the motion f is carried, here by an ODE solver."""
    made = hamiltonize(dataclasses.replace(fbo_particle.system(), multiplier=None))
    rate = jax.jit(lambda x: jnp.dot(made.omega(jnp.array([x, 0.0])), jnp.array([1.0, 0.0])))
    end = solve_ivp(lambda x, _: [float(rate(x))], (0, 5), [0.0], rtol=1e-12, atol=1e-13).y[0, -1]
    assert_allclose(math.exp(end), 26**-0.5, rtol=1e-10)


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1.0, 0.02])
def test_a_zero_of_the_multiplier_is_told_from_a_minimum(width):
    """cos(phi) vanishes at pi/2; (1 + A^2)^(-1/2) with A = 10 / (1 + (x / width)^2) falls to a tenth."""
    made = hamiltonize(knife_edge.system())
    ask = jax.jit(made.vanishes_on_the_way)
    for start, way, met in (
        (1.2, 0.5, True),
        (1.2, 0.3, False),
        (1.5, 2.0, True),
        (-0.5, 1.0, False),
        (1.9, -0.5, True),
    ):
        assert bool(ask(np.array([0.3, start]), np.array([0.2, way]))) == met
    well = hamiltonize(particle(lambda q: jnp.array([0.0, 10 / (1 + (q[0] / width) ** 2), 1.0])))
    ask = jax.jit(well.vanishes_on_the_way)
    for start in (-0.5, -0.37, -0.02):
        assert not ask(np.array([start, 0.0]), np.array([0.9, 0.3]))
