"""D* without a frame: H, dH and Pi of CFHM's bracket in the frame P(q) B, and the motion itself."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System
from noslip.geometry.bracket import Bracket
from noslip.geometry.frame_free import LONG, FreeBracket, Plane, oblique_solve
from noslip.geometry.frames import Frame, null_basis
from noslip.geometry.polar import PolarBracket
from noslip.numerics.roots import inverse_root, sylvester
from noslip.testing import frameless

H = jnp.array(0.1)
MAKERS = [frameless.bent_blade, frameless.charged_pair, frameless.ball_in_quaternions]


def nearby(system, q, v):
    """A point on the way from q, with an admissible velocity."""
    there = q + 0.1 * v + 0.02 * jnp.cos(jnp.arange(system.n))
    return there, system.project_velocity(there, v)


def covector(bracket, seed):
    """Any (g, b) with b in D at the middle."""
    x = np.random.default_rng(seed).normal(size=2 * bracket.system.n)
    n = bracket.system.n
    return jnp.concatenate([x[:n], bracket.plane.sharp(jnp.asarray(x[n:]))])


def uncharged():
    """The charged pair with the part of L that is even in v; the rho of CFHM is then B^T p."""
    system, q, v = frameless.charged_pair()

    def lagrangian(q, v, p):
        return (system.lagrangian(q, v, p) + system.lagrangian(q, -v, p)) / 2

    return dataclasses.replace(system, lagrangian=lagrangian), q, v


@pytest.mark.parametrize("isometric", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        frameless.bent_blade,
        pytest.param(uncharged, marks=pytest.mark.slow),
        pytest.param(frameless.ball_in_quaternions, marks=pytest.mark.slow),
    ],
)
def test_all_is_as_in_cfhms_bracket_with_the_frame_that_was_eliminated(make, isometric):
    system, q, v = make()
    n, there = system.n, nearby(system, q, v)
    B = PolarBracket.around(system, q, H).basis
    turned = B @ jnp.asarray(np.random.default_rng(1).normal(size=(B.shape[1],) * 2))  # any basis, or
    B = B if isometric else turned

    def frame(x, p):
        plane = Plane.at(system, x)
        PB = B - plane.lift @ jnp.linalg.solve(plane.C, plane.mu @ B)
        if not isometric:
            return PB
        values, vectors = jnp.linalg.eigh(B.T @ plane.M @ PB)
        return PB @ (vectors / jnp.sqrt(values)) @ vectors.T

    framed = Bracket(Frame(dataclasses.replace(system, frame=frame)))
    free = (PolarBracket if isometric else FreeBracket).around(system, q, H)
    z = free.begin(jnp.concatenate([there[0], system.mass_matrix(there[0]) @ there[1]]))
    point, zeta = free.at(z), jnp.concatenate([z[:n], B.T @ z[n:]])
    assert_allclose(point.v, there[1], atol=1e-15)
    assert_allclose(zeta[n:], framed.from_velocity(*there)[n:], atol=1e-15)
    assert_allclose(point.energy(), framed.energy(zeta), atol=1e-15)
    g = framed.gradient(zeta)
    assert_allclose(point.gradient(), jnp.concatenate([g[:n], B @ g[n:]]), atol=1e-14)
    assert_allclose(free.energy_and_slope(z, 0 * z + 1)[1], jnp.sum(point.gradient()), atol=1e-14)
    for seed in range(3):  # Pi on covectors of all kinds
        x = covector(free, seed)
        y = jnp.linalg.lstsq(B, x[n:])[0]
        k = framed.at(zeta).apply(jnp.concatenate([x[:n], y]))
        found = point.apply(x)
        assert_allclose(jnp.concatenate([found[:n], B.T @ found[n:]]), k, atol=2e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("form", [FreeBracket, PolarBracket])
@pytest.mark.parametrize("make", MAKERS)
def test_pi_grad_h_is_the_motion_and_pi_is_skew(make, form):
    """Also with a magnetic field: q moves with v, and pi as the momentum of the exact acceleration does."""
    system, q, v = make()
    n, (x, w) = system.n, nearby(system, q, v)
    bracket = form.around(system, q, H)

    def coordinates(x, w):
        return bracket.begin(jnp.concatenate([x, system.mass_matrix(x) @ w]))

    z, wanted = jax.jvp(coordinates, (x, w), (w, system.acceleration(x, w)))
    found, B = bracket.field(z), null_basis(bracket.plane.mu)
    assert_allclose(found[:n], w, atol=1e-15)
    assert_allclose((found - wanted)[n:] @ B, 0, atol=1e-14)
    one, two = covector(bracket, 1), covector(bracket, 2)
    point = bracket.at(z)
    assert_allclose(one @ point.apply(two), -two @ point.apply(one), atol=1e-14)
    assert_allclose(one @ point.apply(one), 0, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("form", [FreeBracket, PolarBracket])
@pytest.mark.parametrize("make", MAKERS)
def test_in_the_middle_the_short_formulas_are_the_long_ones(make, form):
    """Where the structure functions vanish; modulo mu_m^T."""
    system, q, v = make()
    bracket = form.around(system, q, H)
    z = jnp.concatenate([q, system.mass_matrix(q) @ v + bracket.plane.mu.T @ jnp.ones(system.m)])
    short, long, n = bracket.middle(z), bracket.at(z), system.n
    assert_allclose(short.v, long.v, atol=1e-15)
    assert_allclose(short.gradient(), long.gradient(), atol=1e-15)
    # the isometric form is short where the covector is that of a discrete gradient, b = v
    x = covector(bracket, 3) if form is FreeBracket else long.gradient()
    difference = short.apply(x) - long.apply(x)
    assert_allclose(difference[:n], 0, atol=1e-15)
    assert_allclose(bracket.plane.sharp(difference[n:]), 0, atol=1e-14)


def test_momenta_count_modulo_the_constraints_in_the_middle():
    system, q, v = frameless.charged_pair()
    x, w = nearby(system, q, v)
    z = jnp.concatenate([x, system.mass_matrix(x) @ w])
    for form in (FreeBracket, PolarBracket):
        bracket = form.around(system, q, H)
        shift = jnp.concatenate([jnp.zeros(4), bracket.plane.mu.T @ jnp.array([0.7, -0.4])])
        z0, one, two = bracket.begin(z), *(bracket.at(bracket.begin(z) + s * shift) for s in (0.0, 1.0))
        assert_allclose(one.energy(), two.energy(), atol=1e-15)
        assert_allclose(one.gradient(), two.gradient(), atol=1e-15)
        assert_allclose(bracket.landed(z, bracket.begin(z) - z0)[0], 0, atol=1e-15)


def test_the_metric_has_the_unit_of_an_energy_and_its_vectors_are_inverse():
    system, q, _ = frameless.charged_pair()
    bracket = FreeBracket.around(system, q, H)
    g = covector(bracket, 4)
    assert_allclose(bracket.dual(bracket.vector(g))[4:], g[4:], atol=1e-14)
    assert_allclose(bracket.dual(bracket.vector(g))[:4], LONG**2 * g[:4], atol=1e-13)
    heavy = dataclasses.replace(system, lagrangian=lambda q, v, p: 1e3 * system.lagrangian(q, v, p))
    d = np.random.default_rng(5).normal(size=8)
    scaled = np.concatenate([d[:4], 1e3 * d[4:]])
    square = d @ bracket.dual(jnp.asarray(d))
    assert_allclose(
        scaled @ FreeBracket.around(heavy, q, H).dual(jnp.asarray(scaled)), 1e3 * square, rtol=1e-13
    )


def test_the_oblique_solve_does_not_see_the_choice_of_one_forms():
    """Rows of mu turned by a right angle between q and the middle: a pivot would be zero."""
    system, q, _ = frameless.charged_pair()
    turned = jnp.array([[0.0, 1.0], [-1.0, 0.0]])
    plane, middle = Plane.at(system, q + 0.1), Plane.at(system, q)
    for A in (jnp.eye(2), turned):
        N, C = A @ plane.lift.T @ middle.mu.T, A @ plane.C @ A.T
        for transposed in (False, True):
            x = oblique_solve(N, C, jnp.array([0.3, -0.8]), transposed)
            assert_allclose((N.T if transposed else N) @ x, [0.3, -0.8], atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("r", [1, 2, 3, 4])
def test_the_inverse_root_and_its_derivative(r):
    rng = np.random.default_rng(r)
    A, dA = rng.normal(size=(2, r, r))
    G, dG = jnp.asarray(np.eye(r) + 0.2 * A @ A.T), jnp.asarray(dA + dA.T)
    W, dW = jax.jvp(inverse_root, (G,), (dG,))
    assert_allclose(W @ G @ W, np.eye(r), atol=1e-14)
    step = 1e-5
    differences = (inverse_root(G + step * dG) - inverse_root(G - step * dG)) / (2 * step)
    assert_allclose(dW, differences, atol=1e-9)
    assert_allclose(jax.grad(lambda G: jnp.vdot(inverse_root(G), dG))(G), dW, atol=1e-13)  # self-adjoint
    x = sylvester(G, dG)
    assert_allclose(G @ x + x @ G, dG, atol=1e-14)


def test_a_frame_of_differences_does_not_know_the_unit_of_time():
    """CFHM remark 3.5 with steps that are displacements: the same for d and -d, in each coordinate's unit."""
    from noslip.geometry.frames import displacements

    system, q, v = frameless.bent_blade()
    units = np.array([1e3, 1e-2, 1.0])
    rescaled = System(
        lambda x, w, p: system.lagrangian(x / units, w / units, p),
        one_forms=lambda x, p: system.one_forms(x / units, p) / units,
        coordinates=system.coordinates,
    )
    steps = displacements(system, q, 0.1 * v)
    assert_allclose(displacements(system, q, -0.1 * v), steps, rtol=1e-15)
    assert_allclose(displacements(rescaled, q * units, 0.1 * v * units), steps * units, rtol=1e-13)
    assert_allclose(displacements(system, q, 0 * v), 1)
