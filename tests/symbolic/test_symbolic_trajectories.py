"""The same system written in JAX and in SymPy moves in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from jax import Array
from sympy.physics.mechanics import dynamicsymbols

from noslip import System, simulate, symbolic
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh

pytestmark = pytest.mark.thorough

t = dynamicsymbols._t


@dataclass
class Pair:
    by_hand: System
    by_sympy: symbolic.SymbolicSystem
    q0: Array
    v0: Array


def contact(q: Array, p: Any) -> Array:
    return jnp.array([[-q[1], 0.0, 1.0]])


def particle() -> Pair:
    """With a potential, a gyroscopic term and a force that depends on time."""
    k, c = sp.symbols("k c")
    x, y, z = dynamicsymbols("x y z")
    vx, vy, vz = (u.diff(t) for u in (x, y, z))
    by_sympy = symbolic.system(
        0.5 * (vx**2 + vy**2 + vz**2) + c * x * vy - k * (x**2 + y**2 + x**4 / 7),
        [x, y, z],
        [vz - y * vx],
        {k: 0.7, c: 0.3},
        force=[-0.1 * vx, 0, sp.cos(2 * t)],
    )

    def lagrangian(q: Array, v: Array, p: Any) -> Array:
        potential = p["k"] * (q[0] ** 2 + q[1] ** 2 + q[0] ** 4 / 7)
        return 0.5 * jnp.dot(v, v) + p["c"] * q[0] * v[1] - potential

    def force(q: Array, v: Array, t: Array, p: Any) -> Array:
        return jnp.array([-0.1 * v[0], 0.0, jnp.cos(2 * t)])

    by_hand = System(
        lagrangian,
        one_forms=contact,
        coordinates=("x", "y", "z"),
        parameters={"k": 0.7, "c": 0.3},
        force=force,
    )
    return Pair(by_hand, by_sympy, jnp.array([0.2, 0.5, -0.1]), jnp.array([0.8, 0.6, 0.4]))


def sleigh() -> Pair:
    m, J, a = sp.symbols("m J a", positive=True)
    x, y, theta = dynamicsymbols("x y theta")
    vx, vy, turn = (u.diff(t) for u in (x, y, theta))
    sideways = vy * sp.cos(theta) - vx * sp.sin(theta)
    by_sympy = symbolic.system(
        ((J + m * a**2) * turn**2 + m * (vx**2 + vy**2 + 2 * a * turn * sideways)) / 2,
        [x, y, theta],
        [sp.Eq(vy * sp.cos(theta), vx * sp.sin(theta))],
        {m: 1.2, J: 5, a: sp.Rational(4, 5)},
        angles=[theta],
        fibre=[y],
        frame=sp.Matrix([[0, sp.cos(theta)], [0, sp.sin(theta)], [1, 0]]),
    )
    return Pair(chaplygin_sleigh.system(m=1.2, J=5.0, a=0.8), by_sympy, *chaplygin_sleigh.typical_state())


def rolling_disk() -> Pair:
    """Upright on a plane with a slope: position x, y, angle of rolling, heading."""
    m, I, J, R, g = sp.symbols("m I J R g")
    coordinates = dynamicsymbols("x y roll phi")
    x, phi = coordinates[0], coordinates[3]
    vx, vy, spin, turn = (u.diff(t) for u in coordinates)
    by_sympy = symbolic.system(
        (m * (vx**2 + vy**2) + I * spin**2 + J * turn**2) / 2 - m * g * x,
        coordinates,
        [vx - R * spin * sp.cos(phi), vy - R * spin * sp.sin(phi)],
        {m: 2.0, I: 0.5, J: 0.3, R: 0.7, g: 0.4},
        angles=["roll", phi],
        first_integrals={"turning": J * turn},
    )

    def lagrangian(q: Array, v: Array, p: Any) -> Array:
        rotation = p["I"] * v[2] ** 2 + p["J"] * v[3] ** 2
        return 0.5 * (p["m"] * (v[0] ** 2 + v[1] ** 2) + rotation) - p["m"] * p["g"] * q[0]

    def turning(q: Array, v: Array, p: Any) -> Array:
        return p["J"] * v[3]

    def one_forms(q: Array, p: Any) -> Array:
        c, s = p["R"] * jnp.cos(q[3]), p["R"] * jnp.sin(q[3])
        return jnp.array([[1.0, 0.0, -c, 0.0], [0.0, 1.0, -s, 0.0]])

    by_hand = System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "roll", "phi"),
        parameters={"m": 2.0, "I": 0.5, "J": 0.3, "R": 0.7, "g": 0.4},
        angles=("roll", "phi"),
        first_integrals={"turning": turning},
    )
    v0 = jnp.array([0.7 * 1.1 * jnp.cos(0.3), 0.7 * 1.1 * jnp.sin(0.3), 1.1, 0.9])
    return Pair(by_hand, by_sympy, jnp.array([0.1, -0.2, 0.0, 0.3]), v0)


def moving_floor() -> Pair:
    """Affine: a contact form whose floor moves with speed w x."""
    k, w = sp.symbols("k w")
    x, y, z = dynamicsymbols("x y z")
    vx, vy, vz = (u.diff(t) for u in (x, y, z))
    by_sympy = symbolic.system(
        (vx**2 + vy**2 + vz**2) / 2 - k * z**2 / 2, [x, y, z], [vz - y * vx - w * x], {k: 1.5, w: 0.6}
    )
    by_hand = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - 0.5 * p["k"] * q[2] ** 2,
        one_forms=contact,
        drift=lambda q, p: jnp.array([-p["w"] * q[0]]),
        coordinates=("x", "y", "z"),
        parameters={"k": 1.5, "w": 0.6},
    )
    return Pair(by_hand, by_sympy, jnp.array([0.5, 0.4, 0.1]), jnp.array([0.3, -0.2, 0.42]))


def appell_hamel() -> Pair:
    """Nonlinear: vertical speed proportional to the horizontal one."""
    a, g = sp.symbols("a g")
    x, y, z = dynamicsymbols("x y z")
    vx, vy, vz = (u.diff(t) for u in (x, y, z))
    by_sympy = symbolic.system(
        (vx**2 + vy**2 + vz**2) / 2 - g * z, [x, y, z], [vx**2 + vy**2 - a**2 * vz**2], {a: 2.0, g: 0.5}
    )

    def constraint(q: Array, v: Array, p: Any) -> Array:
        return jnp.array([v[0] ** 2 + v[1] ** 2 - (p["a"] * v[2]) ** 2])

    by_hand = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - p["g"] * q[2],
        constraint=constraint,
        coordinates=("x", "y", "z"),
        parameters={"a": 2.0, "g": 0.5},
    )
    return Pair(by_hand, by_sympy, jnp.array([0.0, 0.1, 0.2]), jnp.array([1.2, 1.6, -1.0]))


PAIRS = {f.__name__: f for f in (particle, sleigh, rolling_disk, moving_floor, appell_hamel)}
KINDS = {"moving_floor": "affine", "appell_hamel": "nonlinear"}


@pytest.fixture(scope="module", params=PAIRS)
def pair(request: pytest.FixtureRequest) -> Pair:
    return PAIRS[request.param]()


def test_kind_names_and_parameters_are_found(pair: Pair, request: pytest.FixtureRequest) -> None:
    assert pair.by_sympy.kind == KINDS.get(request.node.callspec.params["pair"], "linear")
    assert pair.by_sympy.coordinates == pair.by_hand.coordinates
    assert pair.by_sympy.parameters == pair.by_hand.parameters
    assert pair.by_sympy.angles == pair.by_hand.angles
    assert pair.by_sympy.fibre == pair.by_hand.fibre


@pytest.mark.parametrize("integrator", [VelocityNonholonomic(), SemiImplicitDLA()], ids=repr)
def test_trajectories_are_equal(pair: Pair, integrator: Any) -> None:
    runs = [
        simulate(system, integrator, pair.q0, pair.v0, step_size=0.01, steps=100)
        for system in (pair.by_hand, pair.by_sympy)
    ]
    assert np.max(np.abs(runs[1].q[-1] - runs[1].q[0])) > 0.1
    for name in ("q", "v", "multipliers", "energy"):
        np.testing.assert_allclose(getattr(runs[1], name), getattr(runs[0], name), rtol=0, atol=1e-12)
    for name, values in runs[1].first_integrals.items():
        np.testing.assert_allclose(values, runs[0].first_integrals[name], rtol=0, atol=1e-12)


def test_symbolic_motion_is_the_numerical_one(pair: Pair) -> None:
    system = pair.by_sympy
    s = system.model.symbols
    q, v = pair.q0 + 0.1, pair.v0 + jnp.array([0.1, -0.2, 0.3, 0.05][: system.n])  # off the constraint
    values = dict(zip((*s.q, *s.v), [*map(float, q), *map(float, v)], strict=True))
    values |= dict(zip(s.c, system.parameters.values(), strict=True)) | {sp.Symbol("t", real=True): 0.6}
    own = {s.write(symbol): value for symbol, value in values.items()}

    def evaluated(matrix: Any) -> np.ndarray:
        return np.array(matrix.xreplace(own).evalf(), dtype=float)

    close = {"rtol": 1e-12, "atol": 1e-12}
    lam, a = system.multipliers(q, v, 0.6), system.acceleration(q, v, 0.6)
    np.testing.assert_allclose(evaluated(system.multipliers_expr)[:, 0], lam, **close)
    np.testing.assert_allclose(evaluated(system.acceleration_expr)[:, 0], a, **close)
    np.testing.assert_allclose(evaluated(system.mass_matrix_expr), pair.by_hand.mass_matrix(q), **close)
    np.testing.assert_allclose(evaluated(system.momentum_expr)[:, 0], pair.by_hand.momentum(q, v), **close)
    np.testing.assert_allclose(evaluated(system.one_forms_expr), pair.by_hand.mu(q, v), **close)
    np.testing.assert_allclose(evaluated(system.constraints_expr)[:, 0], pair.by_hand.phi(q, v), **close)
    energy = evaluated(sp.Matrix([system.energy_expr]))[0, 0]
    np.testing.assert_allclose(energy, pair.by_hand.energy(q, v), **close)


def test_a_step_costs_no_more_operations_than_by_hand() -> None:
    made, method = sleigh(), VelocityNonholonomic()
    counts = []
    for system in (made.by_hand, made.by_sympy):
        state = method.init(system, made.q0, made.v0, jnp.array(0.0), jnp.array(0.1))
        step = jax.make_jaxpr(lambda system, state: method.advance(system, state, jnp.array(0.1)))
        counts.append(operations(step(system, state).jaxpr))
    assert counts[1] <= 1.05 * counts[0]


def operations(jaxpr: Any) -> int:
    total = 0
    for equation in jaxpr.eqns:
        inner = [getattr(x, "jaxpr", x) for x in jax.tree.leaves(equation.params, is_leaf=is_jaxpr)]
        inner = [x for x in inner if hasattr(x, "eqns")]
        total += sum(map(operations, inner)) if inner else 1
    return total


def is_jaxpr(x: Any) -> bool:
    return hasattr(x, "eqns") or hasattr(x, "jaxpr")
