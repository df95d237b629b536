"""Linear equations about steady motions in quaternions: closed forms, and the same bodies in angles."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import noslip
from noslip import System, rotations

A, C, WEIGHT = 0.7, 0.45, 1.9
COIN = {"m": 1.3, "R": 0.4, "g": 9.81}


def same(found, expected):
    """The characteristic polynomials agree: unlike eigenvalues they have no trouble with multiple zeros."""
    one, other = np.poly(found), np.poly(expected)
    assert one.shape == other.shape
    size = np.max(np.abs(np.linalg.eigvals(expected)))
    np.testing.assert_allclose(
        one / size ** np.arange(len(one)), other / size ** np.arange(len(one)), atol=1e-10
    )


@functools.cache
def top():
    """A symmetric top about a fixed point."""

    def lagrangian(q, v, p):
        w = rotations.body_rates(q, v)
        return (
            0.5 * (p["A"] * (w[0] ** 2 + w[1] ** 2) + p["C"] * w[2] ** 2)
            - p["mgl"] * rotations.matrix(q)[2, 2]
        )

    return System(
        lagrangian,
        coordinates=rotations.names("u"),
        rotations=("u",),
        parameters={"A": A, "C": C, "mgl": WEIGHT},
        inputs={"torque": 0.0},
        force=lambda q, v, t, p: p["torque"] * 4 * rotations.frame("space")(q) @ jnp.array([1.0, 0.0, 0.0]),
    )


@functools.cache
def top_in_angles():
    def lagrangian(q, v, p):
        turning = (
            p["A"] * (v[1] ** 2 + (v[0] * jnp.sin(q[1])) ** 2) + p["C"] * (v[2] + v[0] * jnp.cos(q[1])) ** 2
        )
        return 0.5 * turning - p["mgl"] * jnp.cos(q[1])

    return System(lagrangian, coordinates=("phi", "theta", "psi"), parameters={"A": A, "C": C, "mgl": WEIGHT})


def sleeping(spin, turn=0.4):
    u = rotations.from_axis([0.0, 0.0, 1.0], turn)
    return u, rotations.from_rates(u, [0.0, 0.0, spin])


@pytest.mark.parametrize("spin", [3.0, 9.0])
def test_a_sleeping_top_has_the_eigenvalues_of_the_closed_form(spin):
    """In axes that do not turn A z'' - i C W z' - mgl z = 0; in axes of the body they are less by i W."""
    root = np.emath.sqrt(C**2 * spin**2 - 4 * A * WEIGHT)
    one, two = (1j * (C * spin + s * root) / (2 * A) for s in (1, -1))
    still = noslip.linearize(top(), *sleeping(spin), cyclic=[("u", "body", "z")])
    turning = noslip.linearize(top(), *sleeping(spin), cyclic=[("u", "space", "z")])
    assert still.states == ("u_1", "u_2", "u_x'", "u_y'", "u_z'")
    for found, shift in ((still, 0), (turning, -1j * spin)):
        exact = [value for x in (one + shift, two + shift) for value in (x, np.conj(x))] + [0]
        same(found.matrix, np.diag(exact))
        for value in exact:
            assert np.min(np.abs(found.eigenvalues - value)) < 1e-8
    assert (still.growth > 1e-6) == (C**2 * spin**2 < 4 * A * WEIGHT)
    np.testing.assert_allclose(still.input_matrix[:, 0], [0, 0, 1 / A, 0, 0], atol=1e-14)


def test_a_top_in_regular_precession_nutates_as_in_angles():
    theta, psi = 0.7, 11.0
    slow = min(np.roots([(A - C) * np.cos(theta), -C * psi, WEIGHT]), key=abs)
    u = rotations.from_euler("zxz", [0.3, theta, -0.8])
    w = np.array(
        [slow * np.sin(theta) * np.sin(-0.8), slow * np.sin(theta) * np.cos(-0.8), psi + slow * np.cos(theta)]
    )
    found = noslip.linearize(
        top(), 3 * u, 3 * rotations.from_rates(u, w), cyclic=(("u", "space", "z"), ("u", "body", [0, 0, 2]))
    )
    angles = noslip.linearize(top_in_angles(), [0.3, theta, -0.8], [slow, 0.0, psi], cyclic=("phi", "psi"))
    assert found.states == ("u_1", "u_x'", "u_y'", "u_z'")
    same(found.matrix, angles.matrix)


def test_a_free_body_about_its_middle_axis_grows_as_eulers_equations_say():
    inertia, spin = np.array([0.5, 0.8, 1.1]), 1.7

    def lagrangian(q, v, p):
        w = rotations.body_rates(q, v)
        return 0.5 * jnp.dot(p["inertia"] * w, w)

    body = System(
        lagrangian, coordinates=rotations.names("u"), rotations=("u",), parameters={"inertia": inertia}
    )
    u = rotations.from_euler("zyx", [0.3, -0.5, 1.2])
    found = noslip.linearize(body, u, rotations.from_rates(u, [0.0, spin, 0.0]), cyclic=("u",))
    a, b, c = inertia
    assert found.growth == pytest.approx(spin * np.sqrt((b - a) * (c - b) / (a * c)), abs=1e-12)
    assert found.states == ("u_x'", "u_y'", "u_z'")


def test_a_hanging_body_swings_about_both_axes():
    inertia, weight = np.array([0.5, 0.8, 0.3]), 1.1

    def lagrangian(q, v, p):
        w = rotations.body_rates(q, v)
        return 0.5 * jnp.dot(inertia * w, w) + weight * rotations.matrix(q)[2, 2]

    body = System(lagrangian, coordinates=rotations.names("u"), rotations=("u",))
    found = noslip.linearize(body, rotations.from_axis([0.0, 0.0, 1.0], 0.7), np.zeros(4))
    assert found.states == ("u_x", "u_y", "u_z", "u_x'", "u_y'", "u_z'")
    squares = np.sort(weight / inertia[:2])
    same(found.matrix, np.diag(1j * np.array([1, -1, 1, -1, 0, 0]) * np.sqrt(np.repeat([*squares, 0], 2))))


@functools.cache
def coin():
    """A coin in quaternions, its axle along y of the body; its height is a holonomic constraint."""
    m, R, g = (COIN[name] for name in ("m", "R", "g"))
    inertia = m * R**2 * np.array([0.25, 0.5, 0.25])

    def contact(gamma):
        rim = gamma * jnp.array([1.0, 0.0, 1.0])
        return -R * rim / jnp.sqrt(jnp.dot(rim, rim))

    def lagrangian(q, v, p):
        w = rotations.body_rates(q[3:], v[3:])
        return 0.5 * (m * jnp.dot(v[:3], v[:3]) + jnp.dot(inertia * w, w)) - m * g * q[2]

    return contact, System(
        lagrangian,
        one_forms=lambda q, p: jnp.concatenate([jnp.eye(3), rotations.rolling(contact)(q[3:])], axis=1)[:2],
        holonomic=lambda q, p: (q[2] - rotations.height(contact)(q[3:]))[None],
        coordinates=("x", "y", "z", *rotations.names("u")),
        rotations=("u",),
    )


@functools.cache
def coin_in_angles():
    """The same, (x, y) being the point of contact."""
    m, R, g = (COIN[name] for name in ("m", "R", "g"))

    def lagrangian(q, v, p):
        s, c = jnp.sin(q[3]), jnp.cos(q[3])
        along = v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2]) + R * v[2] * s
        across = -v[0] * jnp.sin(q[2]) + v[1] * jnp.cos(q[2]) - R * v[3] * c
        centre = along**2 + across**2 + (R * v[3] * s) ** 2
        turning = m * R**2 / 4 * (v[3] ** 2 + (v[2] * c) ** 2) + m * R**2 / 2 * (v[4] + v[2] * s) ** 2
        return 0.5 * (m * centre + turning) - m * g * R * c

    return System(
        lagrangian,
        one_forms=lambda q, p: jnp.array(
            [[1.0, 0.0, 0.0, 0.0, -R * jnp.cos(q[2])], [0.0, 1.0, 0.0, 0.0, -R * jnp.sin(q[2])]]
        ),
        coordinates=("x", "y", "yaw", "lean", "spin"),
    )


def circling(lean, spin, yaw=0.7):
    """The rate of turn of the steady motion with this lean, and its state in angles."""
    R = COIN["R"]

    def state(turn):
        v = [R * spin * np.cos(yaw), R * spin * np.sin(yaw), turn, 0.0, spin]
        return np.array([0.0, 0.0, yaw, lean, 0.4]), np.array(v)

    if lean == 0:
        return state(0.0)
    return state(brentq(lambda x: float(coin_in_angles().acceleration(*state(x))[3]), -3.0, 0.0, xtol=1e-15))


def in_quaternions(q, v):
    """The state of the coin that the angles give: they turn about z, x and the axle."""
    contact = coin()[0]
    turns = lambda x: rotations.from_euler("zxy", x[2:])  # noqa: E731
    u, du = jax.jvp(turns, (jnp.asarray(q),), (jnp.asarray(v),))
    position = np.concatenate([[0.3, -0.2, rotations.height(contact)(u)], u])
    return position, np.concatenate([-rotations.rolling(contact)(u) @ du, du])


@pytest.mark.parametrize(("lean", "spin"), [(0.0, 6.0), (0.3, 9.0)], ids=["straight", "circle"])
def test_a_rolling_coin_has_the_linear_equations_of_the_one_in_angles(lean, spin):
    q, v = circling(lean, spin)
    angles = noslip.linearize(coin_in_angles(), q, v, cyclic=("x", "y", "yaw", "spin"))
    found = noslip.linearize(
        coin()[1], *in_quaternions(q, v), cyclic=("x", "y", ("u", "space", "z"), ("u", "body", "y"))
    )
    assert found.states == ("u_1", "u_x'", "u_y'", "u_z'")
    same(found.matrix, angles.matrix)


def test_what_is_not_steady_or_not_named_is_said():
    state = sleeping(3.0)
    with pytest.raises(ValueError, match=r"'u_z' changes at the rate 3.*the axis about which it turns"):
        noslip.linearize(top(), *state)
    with pytest.raises(ValueError, match=r"'u1' is of a rotation.*\('u', 'space', 'z'\)"):
        noslip.linearize(top(), *state, cyclic=("u1",))
    with pytest.raises(ValueError, match="axes of 'u' in `cyclic` must not be parallel"):
        noslip.linearize(top(), *state, cyclic=(("u", "space", "z"), ("u", "body", "z")))
    with pytest.raises(ValueError, match="of 'space' or 'body', but 'world'"):
        noslip.linearize(top(), *state, cyclic=(("u", "world", "z"),))
    with pytest.raises(ValueError, match="x, y, z or three numbers, but 'w'"):
        noslip.linearize(top(), *state, cyclic=(("u", "space", "w"),))
    with pytest.raises(ValueError, match="coordinate in `cyclic`"):
        noslip.linearize(top(), *state, cyclic=(("w", "space", "z"),))
    with pytest.raises(ValueError, match="must be cyclic, but the rate of"):
        noslip.linearize(top(), *state, cyclic=("u",))
    lying = circling(0.3, 9.0)
    off = in_quaternions(*lying)[0] + np.eye(7)[2]
    with pytest.raises(ValueError, match="`q` must satisfy the holonomic constraints"):
        noslip.linearize(coin()[1], off, np.zeros(7), cyclic=("x", "y"))
