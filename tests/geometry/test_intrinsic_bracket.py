"""CFHM remark 2.1: the bracket on D* from the canonical one, against Pi and against the motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System
from noslip.analysis import jacobiator
from noslip.geometry.bracket import Bracket
from noslip.geometry.frames import Frame, initial_signs
from noslip.geometry.intrinsic_bracket import intrinsic_bracket


def bent(linear):
    """n = 5, m = 2, M(q) full, no analytic frame, and a term a(q) v of that size."""

    def lagrangian(q, v, p):
        u = v + 0.3 * jnp.sin(jnp.roll(q, 1)) * jnp.roll(v, 2)
        return 0.5 * jnp.dot(u, u) + p["a"] * (q[1] ** 2 * v[3] - jnp.sin(q[4]) * v[0]) - jnp.cos(q[0] * q[3])

    def one_forms(q, p):
        return jnp.array(
            [[jnp.sin(q[1]), 0.3 * q[2], 0.0, 1.0, 0.1 * q[4]], [0.2, q[0] ** 2, jnp.cos(q[3]), 0.0, 1.0]]
        )

    return System(lagrangian, one_forms=one_forms, coordinates=tuple("abcde"), parameters={"a": linear})


def f(z):
    return jnp.sin(z[0] * z[6]) + z[3] * z[5] ** 2 + z[7]


def g(z):
    return jnp.cos(z[1] + z[5]) * z[7] + z[4] ** 2 * z[6] + z[2]


def both(system, q, v, a):
    bracket = Bracket(Frame(system, "householder"))
    # along the motion on Q, which knows neither frame nor bracket
    z, dz = jax.jvp(bracket.from_velocity, (q, v), (v, a))
    point = bracket.at(z)
    by_pi = jax.grad(f)(z) @ point.matrix() @ jax.grad(g)(z)
    M, X = system.mass_matrix(q), bracket.frame(q)
    projected = M @ X @ jnp.linalg.solve(X.T @ M @ X, z[5:])

    def combined(c):
        return lambda z: c[0] * f(z) + c[1] * g(z) + c[2] * bracket.energy(z)

    # {f, g}, {g, f} and {f, H}, compiled as one bracket of combinations
    pairs = np.eye(3)[[0, 1, 0]], np.eye(3)[[1, 0, 2]]
    remark, turned, flow = jax.vmap(lambda c, d: intrinsic_bracket(bracket, combined(c), combined(d))(z))(
        *pairs
    )
    return {
        "remark": remark,
        "pi": by_pi,
        "flow": flow,
        "motion": jax.grad(f)(z) @ dz,
        "skew": remark + turned,
        "lift": jnp.max(jnp.abs(projected - point.p)),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("linear", [0.6, 0.0])
def test_the_bracket_of_remark_2_1_is_pi_and_its_flow_the_motion(linear):
    system = bent(linear)
    q = np.array([1.4, -2.3, 0.5, 0.8, -0.4])
    v = system.project_velocity(q, np.array([0.8, 0.3, -0.2, 0.5, 0.9]))
    x = jax.jit(lambda *at: both(system, *at))(q, v, system.acceleration(q, v))
    assert_allclose(x["remark"], x["pi"], atol=2e-14)
    assert_allclose(x["flow"], x["motion"], atol=2e-13)
    assert abs(x["pi"]) > 0.1
    assert x["skew"] == 0
    assert (x["lift"] < 1e-14) == (linear == 0)  # P* is the dual projector where L has no a(q) v


def cyclic_sum(bracket, q, v):
    z, h = bracket.from_velocity(q, v), lambda z: z[5] * z[1]

    def nested(a, b, c):
        return intrinsic_bracket(bracket, a, intrinsic_bracket(bracket, b, c))(z)

    total = nested(f, g, h) + nested(g, h, f) + nested(h, f, g)
    return total, [jax.grad(x)(z) for x in (f, g, h)]


@pytest.mark.slow
def test_jacobis_identity_fails_by_the_jacobiator():
    """Brackets of brackets, as the remark writes them."""
    system = bent(0.0)
    q = jnp.array([0.4, -0.3, 0.5, 0.8, -0.4])
    v = system.project_velocity(q, jnp.array([0.8, 0.3, -0.2, 0.5, 0.9]))
    bracket = Bracket(Frame(system, "householder", initial_signs(system, q)))
    total, slopes = jax.jit(lambda q, v: cyclic_sum(bracket, q, v))(q, v)
    own = jnp.einsum("ijk,i,j,k", jacobiator(system, q, v, "householder"), *slopes)
    assert abs(total) > 1e-3
    assert_allclose(total, own, rtol=1e-10)
