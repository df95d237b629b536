"""Linear equations about steady motions: closed forms, the motion itself, and what is refused."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import brentq

import driven
import noslip
from noslip import System, simulate
from noslip.analysis import stability
from noslip.integrators import ReferenceFlow
from noslip.plots.stability import plot_stability

BODY = {"m": 1.3, "R": 0.4, "g": 9.81, "A": 1.3 * 0.4**2 / 4, "C": 1.3 * 0.4**2 / 2}
CYCLIC = ("x", "y", "yaw", "spin")


def disk_lagrangian(q, v, p):
    """A disk that may lean; (x, y) is the point of contact."""
    yaw, lean = q[2], q[3]
    s, c, R = jnp.sin(lean), jnp.cos(lean), p["R"]
    along = v[0] * jnp.cos(yaw) + v[1] * jnp.sin(yaw) + R * v[2] * s
    across = -v[0] * jnp.sin(yaw) + v[1] * jnp.cos(yaw) - R * v[3] * c
    centre = along**2 + across**2 + (R * v[3] * s) ** 2
    turning = p["A"] * (v[3] ** 2 + (v[2] * c) ** 2) + p["C"] * (v[4] + v[2] * s) ** 2
    return 0.5 * (p["m"] * centre + turning) - p["m"] * p["g"] * R * c


DISK = System(
    disk_lagrangian,
    one_forms=lambda q, p: jnp.array(
        [[1.0, 0.0, 0.0, 0.0, -p["R"] * jnp.cos(q[2])], [0.0, 1.0, 0.0, 0.0, -p["R"] * jnp.sin(q[2])]]
    ),
    coordinates=("x", "y", "yaw", "lean", "spin"),
    angles=("yaw", "lean", "spin"),
    parameters=BODY,
)


def upright(spin, yaw=0.7):
    R = BODY["R"]
    return [0.2, -0.1, yaw, 0.0, 0.4], [R * spin * np.cos(yaw), R * spin * np.sin(yaw), 0.0, 0.0, spin]


def circling(lean=0.3, spin=9.0, yaw=0.7):
    """The steady motion on a circle, by its rate of turn."""

    def state(turn):
        q, v = upright(spin, yaw)
        return [*q[:3], lean, q[4]], [*v[:2], turn, 0.0, spin]

    turn = brentq(lambda x: float(DISK.acceleration(*state(x))[3]), -3.0, 0.0, xtol=1e-15)
    return state(turn)


def test_the_upright_disk_has_the_eigenvalues_of_the_closed_form():
    m, R, g, A, C = (BODY[name] for name in ("m", "R", "g", "A", "C"))
    for spin in (1.0, 2.0, 5.0):
        found = noslip.linearize(DISK, *upright(spin), cyclic=CYCLIC)
        assert found.states == ("lean", "yaw'", "lean'", "spin'")
        square = (m * g * R - (C + m * R**2) * C * spin**2 / A) / (A + m * R**2)
        exact = np.array([np.emath.sqrt(square), -np.emath.sqrt(square), 0, 0], complex)
        for value in exact:
            assert np.min(np.abs(found.eigenvalues - value)) < 1e-7  # a double zero costs half the digits
        np.testing.assert_allclose(found.matrix @ found.modes, found.modes * found.eigenvalues, atol=1e-9)


def test_the_uniform_disk_is_stable_above_its_critical_speed():
    speeds = np.sqrt(BODY["g"] * BODY["R"] / 3) * np.array([0.9, 0.99, 1.01, 1.1])
    found = stability(DISK, lambda speed: upright(speed / BODY["R"]), speeds, cyclic=CYCLIC)
    np.testing.assert_array_equal(found.eigenvalues.real.max(axis=1) > 1e-6, [True, True, False, False])
    figure = plot_stability(found, "speed")
    assert figure.axes[0].get_xlabel() == "speed"
    by_parameter = stability(DISK, lambda g: (*upright(3.0), {"g": g}), [1.0, 30.0], cyclic=CYCLIC)
    assert by_parameter.eigenvalues.real[0].max() < 1e-6 < by_parameter.eigenvalues.real[1].max()


@pytest.mark.parametrize("steady", [lambda: upright(6.0), circling], ids=["straight", "circle"])
def test_small_deviations_follow_the_linear_equations(steady):
    q, v = map(np.array, steady())
    found = noslip.linearize(DISK, q, v, cyclic=CYCLIC)
    dx, t, free = np.array([0.3, -0.5, 0.4, 0.2]), 0.3, [2, 3, 4]
    errors = []
    for size in (1e-4, 1e-5):
        q1 = q + size * dx[0] * np.eye(5)[3]
        v1 = DISK.consistent_velocity(
            q1, dict(zip(("yaw", "lean", "spin"), v[free] + size * dx[1:], strict=True))
        )
        end = simulate(DISK, ReferenceFlow(), q1, v1, step_size=t, steps=1)
        moved = np.concatenate([end.q[-1, 3:4], end.v[-1, free]]) - np.concatenate([q[3:4], v[free]])
        errors.append(np.max(np.abs(moved / size - expm(found.matrix * t) @ dx)))
    assert errors[0] < 1e-2
    assert 8 < errors[0] / errors[1] < 12  # of first order in the size: the rest is quadratic


def test_a_frame_that_moves_with_the_body_gives_speeds_that_are_cyclic():
    m, J, a, b, r, I = (driven.BODY[name] for name in "mJabrI")
    A, B = m + 2 * I / r**2, J + m * a**2 + 2 * I * b**2 / r**2
    v = np.asarray(driven.ROBOT.frame(driven.Q0, driven.BODY) @ np.array([0.8, 0.0]))
    found = noslip.linearize(driven.ROBOT, driven.Q0, v, cyclic=driven.ROBOT.coordinates)
    np.testing.assert_allclose(found.matrix, [[0, 0], [0, -m * a * 0.8 / B]], atol=1e-12)
    ahead, turn = 1 / (r * A), b / (r * B)
    assert found.inputs == ("left", "right")
    np.testing.assert_allclose(found.input_matrix, [[ahead, ahead], [-turn, turn]], rtol=1e-10)
    assert found.growth == 0.0
    backwards = noslip.linearize(driven.ROBOT, driven.Q0, -v, cyclic=driven.ROBOT.coordinates)
    np.testing.assert_allclose(backwards.growth, m * a * 0.8 / B, rtol=1e-10)


def test_an_equilibrium_needs_no_cyclic_coordinates():
    pendulum = System(
        lambda q, v, p: 0.5 * p["l"] ** 2 * v[0] ** 2 + jnp.cos(q[0]) * p["l"],
        coordinates=("angle",),
        parameters={"l": 2.0},
        inputs={"torque": 0.0},
        force=lambda q, v, t, p: jnp.array([p["torque"]]),
    )
    found = noslip.linearize(pendulum, [0.0], [0.0])
    np.testing.assert_allclose(found.matrix, [[0, 1], [-0.5, 0]], atol=1e-15)
    np.testing.assert_allclose(found.input_matrix, [[0], [0.25]], atol=1e-15)
    np.testing.assert_allclose(found.eigenvalues, [1j * np.sqrt(0.5), -1j * np.sqrt(0.5)], atol=1e-12)
    np.testing.assert_allclose(noslip.linearize(pendulum, [np.pi], [0.0]).growth, np.sqrt(0.5), rtol=1e-12)


def test_what_is_not_steady_or_not_cyclic_is_said():
    q, v = upright(3.0)
    with pytest.raises(ValueError, match=r"'x' changes at the rate 0\.91.*name it in `cyclic`"):
        noslip.linearize(DISK, q, v, cyclic=("y", "yaw", "spin"))
    with pytest.raises(ValueError, match="the motion must be steady, but 'lean'' changes"):
        noslip.linearize(DISK, [*q[:3], 0.3, q[4]], v, cyclic=CYCLIC)
    with pytest.raises(ValueError, match="'lean' must be cyclic, but the rate of 'lean'' changes with it"):
        noslip.linearize(DISK, q, v, cyclic=(*CYCLIC, "lean"))
    with pytest.raises(ValueError, match="`v` must satisfy the constraint"):
        noslip.linearize(DISK, q, np.ones(5), cyclic=CYCLIC)
    with pytest.raises(TypeError, match="must be a tuple of names, but the string 'lean'"):
        noslip.linearize(DISK, q, v, cyclic="lean")
    with pytest.raises(ValueError, match=r"'lena'.*lean"):
        noslip.linearize(DISK, q, v, cyclic=("lena",))
    moving = System(lambda q, v, t, p: 0.5 * v[0] ** 2 * (1 + t), coordinates=("x",))
    with pytest.raises(ValueError, match="without t"):
        noslip.linearize(moving, [0.0], [0.0])
