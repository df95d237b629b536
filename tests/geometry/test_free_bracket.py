"""D* without a frame: H, dH and Pi of CFHM's bracket in the frame P(q) B, and the motion itself."""

import dataclasses
import functools

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

H = 0.1
MAKERS = [frameless.bent_blade, frameless.charged_pair, frameless.ball_in_quaternions]


def nearby(system, q, v):
    """A point on the way from q, with an admissible velocity."""
    there = np.asarray(q) + 0.1 * np.asarray(v) + 0.02 * np.cos(np.arange(system.n))
    return there, system.project_velocity(there, v)


def covector(bracket, seed):
    """Any (g, b) with b in D at the middle."""
    x = np.random.default_rng(seed).normal(size=2 * bracket.system.n)
    n = bracket.system.n
    return jnp.concatenate([x[:n], bracket.plane.sharp(x[n:])])


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
    n = system.n
    B = np.asarray(jax.jit(lambda q: PolarBracket.around(system, q, H).basis)(q))
    if not isometric:
        B = B @ np.random.default_rng(1).normal(size=(B.shape[1],) * 2)  # any basis

    def frame(x, p):
        plane = Plane.at(system, x)
        PB = B - plane.lift @ jnp.linalg.solve(plane.C, plane.mu @ B)
        if not isometric:
            return PB
        values, vectors = jnp.linalg.eigh(B.T @ plane.M @ PB)
        return PB @ (vectors / jnp.sqrt(values)) @ vectors.T

    framed = Bracket(Frame(dataclasses.replace(system, frame=frame)))

    @jax.jit
    def all_of(q, there, w):
        free = (PolarBracket if isometric else FreeBracket).around(system, q, H)
        z = free.begin(jnp.concatenate([there, system.mass_matrix(there) @ w]))
        point, zeta = free.at(z), jnp.concatenate([z[:n], B.T @ z[n:]])
        same, gradient = framed.at(zeta), point.gradient()

        def applied(x):  # Pi on a covector, by both
            k, y = point.apply(x), jnp.linalg.lstsq(B, x[n:])[0]
            return jnp.concatenate([k[:n], B.T @ k[n:]]), same.apply(jnp.concatenate([x[:n], y]))

        g = same.gradient()
        return {
            "v": (point.v, w),
            "rho": (zeta[n:], framed.from_velocity(there, w)[n:]),
            "H": (point.energy(), same.energy()),
            "dH": (gradient, jnp.concatenate([g[:n], B @ g[n:]])),
            "slope": (free.energy_and_slope(z, jnp.ones_like(z))[1], jnp.sum(gradient)),
            "Pi": jax.vmap(applied)(jnp.stack([covector(free, seed) for seed in range(3)])),
        }

    found = all_of(q, *nearby(system, q, v))
    for name, atol in {
        "v": 1e-15,
        "rho": 1e-15,
        "H": 1e-15,
        "dH": 1e-14,
        "slope": 1e-14,
        "Pi": 2e-14,
    }.items():
        assert_allclose(*found[name], atol=atol, err_msg=name)


@pytest.mark.thorough
@pytest.mark.parametrize("form", [FreeBracket, PolarBracket])
@pytest.mark.parametrize("make", MAKERS)
def test_pi_grad_h_is_the_motion_and_pi_is_skew(make, form):
    """Also with a magnetic field: q moves with v, and pi as the momentum of the exact acceleration does."""
    system, q, v = make()
    n, (x, w) = system.n, nearby(system, q, v)

    @jax.jit
    def all_of(q, x, w, a):
        bracket = form.around(system, q, H)

        def coordinates(x, w):
            return bracket.begin(jnp.concatenate([x, system.mass_matrix(x) @ w]))

        z, wanted = jax.jvp(coordinates, (x, w), (w, a))
        found, B = bracket.field(z), null_basis(bracket.plane.mu)
        pair = jnp.stack([covector(bracket, 1), covector(bracket, 2)])
        return found[:n], (found - wanted)[n:] @ B, pair @ jax.vmap(bracket.at(z).apply)(pair).T

    moved, off, products = map(np.asarray, all_of(q, x, w, system.acceleration(x, w)))
    assert_allclose(moved, w, atol=1e-15)
    assert_allclose(off, 0, atol=1e-14)
    assert_allclose(products, -products.T, atol=1e-14)
    assert_allclose(np.diag(products), 0, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("form", [FreeBracket, PolarBracket])
@pytest.mark.parametrize("make", MAKERS)
def test_in_the_middle_the_short_formulas_are_the_long_ones(make, form):
    """Where the structure functions vanish; modulo mu_m^T."""
    system, q, v = make()
    n = system.n

    @jax.jit
    def both(q, v):
        bracket = form.around(system, q, H)
        z = jnp.concatenate([q, system.mass_matrix(q) @ v + bracket.plane.mu.T @ jnp.ones(system.m)])
        short, long = bracket.middle(z), bracket.at(z)
        gradients = short.gradient(), long.gradient()
        # the isometric form is short where the covector is that of a discrete gradient, b = v
        x = covector(bracket, 3) if form is FreeBracket else gradients[1]
        difference = short.apply(x) - long.apply(x)
        return (short.v, long.v), gradients, difference[:n], bracket.plane.sharp(difference[n:])

    velocities, gradients, off_q, off_p = both(q, v)
    assert_allclose(*velocities, atol=1e-15)
    assert_allclose(*gradients, atol=1e-15)
    assert_allclose(off_q, 0, atol=1e-15)
    assert_allclose(off_p, 0, atol=1e-14)


def test_momenta_count_modulo_the_constraints_in_the_middle():
    system, q, v = frameless.charged_pair()
    x, w = nearby(system, q, v)
    z = np.concatenate([x, np.asarray(system.mass_matrix(x)) @ np.asarray(w)])

    @functools.partial(jax.jit, static_argnums=0)
    def all_of(form, q, z):
        bracket = form.around(system, q, H)
        shift = jnp.concatenate([jnp.zeros(4), bracket.plane.mu.T @ jnp.array([0.7, -0.4])])
        z0 = bracket.begin(z)

        def at(s):
            point = bracket.at(z0 + s * shift)
            return point.energy(), point.gradient()

        return *jax.vmap(at)(jnp.array([0.0, 1.0])), bracket.landed(z, jnp.zeros_like(z0))[0]

    for form in (FreeBracket, PolarBracket):
        energies, gradients, back = map(np.asarray, all_of(form, q, z))
        assert_allclose(energies[0], energies[1], atol=1e-15)
        assert_allclose(gradients[0], gradients[1], atol=1e-15)
        assert_allclose(back, 0, atol=1e-15)


def test_the_metric_has_the_unit_of_an_energy_and_its_vectors_are_inverse():
    system, q, _ = frameless.charged_pair()
    heavy = dataclasses.replace(system, lagrangian=lambda q, v, p: 1e3 * system.lagrangian(q, v, p))
    d = np.random.default_rng(5).normal(size=8)
    scaled = np.concatenate([d[:4], 1e3 * d[4:]])

    @jax.jit
    def all_of(q, d, scaled):
        bracket = FreeBracket.around(system, q, H)
        g = covector(bracket, 4)
        squares = d @ bracket.dual(d), scaled @ FreeBracket.around(heavy, q, H).dual(scaled)
        return g, bracket.dual(bracket.vector(g)), squares

    g, again, (square, of_heavy) = jax.tree.map(np.asarray, all_of(q, d, scaled))
    assert_allclose(again[4:], g[4:], atol=1e-14)
    assert_allclose(again[:4], LONG**2 * g[:4], atol=1e-13)
    assert_allclose(of_heavy, 1e3 * square, rtol=1e-13)


def test_the_oblique_solve_does_not_see_the_choice_of_one_forms():
    """Rows of mu turned by a right angle between q and the middle: a pivot would be zero."""
    system, q, _ = frameless.charged_pair()
    turned, wanted = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([0.3, -0.8])

    @jax.jit
    def solved(q, A):
        plane, middle = Plane.at(system, q + 0.1), Plane.at(system, q)
        N, C = A @ plane.lift.T @ middle.mu.T, A @ plane.C @ A.T
        return N @ oblique_solve(N, C, wanted, False), N.T @ oblique_solve(N, C, wanted, True)

    for A in (np.eye(2), turned):
        for found in solved(q, A):
            assert_allclose(found, wanted, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("r", [1, 2, 3, 4])
def test_the_inverse_root_and_its_derivative(r):
    rng = np.random.default_rng(r)
    A, dA = rng.normal(size=(2, r, r))
    G, dG, step = np.eye(r) + 0.2 * A @ A.T, dA + dA.T, 1e-5

    @jax.jit
    def all_of(G, dG):
        W, dW = jax.jvp(inverse_root, (G,), (dG,))
        differences = (inverse_root(G + step * dG) - inverse_root(G - step * dG)) / (2 * step)
        by_grad = jax.grad(lambda G: jnp.vdot(inverse_root(G), dG))(G)
        return W, dW, differences, by_grad, sylvester(G, dG)

    W, dW, differences, by_grad, x = map(np.asarray, all_of(G, dG))
    assert_allclose(W @ G @ W, np.eye(r), atol=1e-14)
    assert_allclose(dW, differences, atol=1e-9)
    assert_allclose(by_grad, dW, atol=1e-13)  # self-adjoint
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
    found = jax.jit(lambda q, d: displacements(system, q, d))
    q, d = np.asarray(q), 0.1 * np.asarray(v)
    steps = np.asarray(found(q, d))
    assert_allclose(found(q, -d), steps, rtol=1e-15)
    rescaled_steps = jax.jit(lambda q, d: displacements(rescaled, q, d))(q * units, d * units)
    assert_allclose(rescaled_steps, steps * units, rtol=1e-13)
    assert_allclose(found(q, 0 * d), 1)
