"""Motions of the catalogue's bodies that are known in closed form, or that return, beside what is run."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from noslip import Event, rotations, simulate
from noslip.integrators import (
    DiscreteGradient,
    EnergyCollocation,
    GeometricNonholonomic,
    LobattoSpark,
    Projected,
    ReferenceFlow,
)
from noslip.systems import (
    ball_in_cylinder,
    bead_on_a_curve,
    chaplygin_sphere,
    rattleback,
    rolling_coin,
    varying_turntable_ball,
)

slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("h", [0.0, 0.2])
def test_a_coin_on_its_circle_returns(h):
    """Place and axis after one turn; the coin has rolled on by an angle that nothing has to bring back."""
    parameters = {"m": 1.3, "r": 0.8, "h": h, "A": 0.25, "C": 0.43, "g": 1.7}
    system, turn = rolling_coin.system(**parameters), 0.9
    q, v = rolling_coin.steady(1.1, turn, parameters)
    run = simulate(system, ReferenceFlow(), q, v, step_size=2 * np.pi / turn / 4, steps=4)
    axis = np.asarray(jax.vmap(rotations.matrix)(run.q[:, 3:]))[:, :, 2]
    np.testing.assert_allclose(run.q[4, :3], run.q[0, :3], atol=1e-10)
    np.testing.assert_allclose(axis[4], axis[0], atol=1e-10)
    np.testing.assert_allclose(run.q[2, :2], -run.q[0, :2], atol=1e-10)  # half a turn: the other side
    np.testing.assert_allclose(run.q[:, 2], run.q[0, 2], atol=1e-10)


@slow
def test_the_height_of_a_ball_in_a_cylinder_oscillates_with_sqrt_2_7_of_the_turn():
    m, r = 1.4, 0.6
    parameters = {"m": m, "r": r, "I": 0.4 * m * r**2, "R": 1.2, "g": 0.9}
    system = ball_in_cylinder.system(**parameters)
    q, v = ball_in_cylinder.typical_state()
    q = system.project_position(q)
    v = np.asarray(system.project_velocity(q, v))
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.5, steps=40)
    turn = (q[0] * v[1] - q[1] * v[0]) / 1.2**2
    np.testing.assert_allclose(run.q[:, 2], ball_in_cylinder.height(run.t, q, v, parameters), atol=1e-10)
    angle = np.unwrap(np.arctan2(run.q[:, 1], run.q[:, 0]))
    np.testing.assert_allclose(angle - angle[0], turn * run.t, atol=1e-10)
    # one period of the height is sqrt(7/2) turns: after it the ball is at the same height again
    period = np.sqrt(3.5) * 2 * np.pi / abs(turn)
    after = simulate(system, ReferenceFlow(), q, v, step_size=period, steps=1)
    assert after.q[1, 2] == pytest.approx(q[2], abs=1e-10)
    assert after.v[1, 2] == pytest.approx(v[2], abs=1e-10)


@slow
def test_the_ball_on_the_varying_turntable_runs_along_its_closed_form():
    parameters = {"m": 1.2, "r": 0.7, "I": 0.3, "Omega": 0.8, "swing": 0.6, "pace": 1.7}
    system = varying_turntable_ball.system(**parameters)
    q, v = varying_turntable_ball.typical_state()
    v = np.asarray(system.project_velocity(q, v, 0.0))
    run = simulate(system, ReferenceFlow(), q, v, step_size=2.0, steps=5)
    expected = [varying_turntable_ball.centre(t, q, v, parameters) for t in run.t]
    np.testing.assert_allclose(run.q[:, 0] + 1j * run.q[:, 1], expected, atol=1e-10)


@pytest.mark.parametrize("rate", [0.9, -2.7, 3.1])
def test_the_bead_swings_like_a_pendulum_or_runs_along_its_helix(rate):
    """Against the pendulum's equation, solved apart, from a start in another turn of the helix."""
    g, a, b, s = 0.8, 1.1, 0.35, 7.4
    t = np.linspace(0, 9, 10)
    w = g * a / (a**2 + b**2)
    found = solve_ivp(
        lambda t, y: [y[1], -w * np.sin(y[0])], (0, 9), [s, rate], t_eval=t, rtol=1e-12, atol=1e-12
    ).y
    q0, v0 = [b * s, a * np.sin(s), -a * np.cos(s)], rate * np.array([b, a * np.cos(s), a * np.sin(s)])
    q, v = bead_on_a_curve.exact(t, q0, v0, g=g, a=a, b=b)
    np.testing.assert_allclose(q[:, 0], b * found[0], atol=1e-10)
    np.testing.assert_allclose(v[:, 0], b * found[1], atol=1e-10)
    np.testing.assert_allclose(v[:, 2], a * np.sin(found[0]) * found[1], atol=1e-10)


@slow
def test_a_run_of_the_bead_meets_its_closed_form():
    q0, v0 = bead_on_a_curve.typical_state()
    system = bead_on_a_curve.system()
    run = simulate(system, EnergyCollocation(2), q0, v0, step_size=0.01, steps=900, save_every=100)
    q, v = bead_on_a_curve.exact(run.t, q0, v0)
    np.testing.assert_allclose(run.q, q, atol=1e-8)
    np.testing.assert_allclose(run.v, v, atol=1e-8)


def cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


SQUARES, OFFSET = np.array([0.2, 0.03, 0.02]) ** 2, np.array([0.0, 0.0, 0.01])
INERTIA = np.array([[2e-4, -2e-5, 0.0], [-2e-5, 1.6e-3, 0.0], [0.0, 0.0, 1.7e-3]])


def of_newton_and_euler(t, y):
    """Of Kane's and Levinson's rattleback, in body axes: v = a x w, the force is R = dv/dt + w x v + g gamma,
    J dw/dt + w x J w = a x R, dgamma/dt = gamma x w."""
    gamma, w = y[:3], y[3:]
    size, turn = np.sqrt(SQUARES @ gamma**2), cross(gamma, w)
    a = OFFSET - SQUARES * gamma / size
    da = -SQUARES * turn / size + SQUARES * gamma * (SQUARES @ (gamma * turn)) / size**3
    known = cross(da, w) + cross(w, cross(a, w)) + 9.81 * gamma
    arm = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    slope = np.linalg.solve(INERTIA - arm @ arm, cross(a, known) - cross(w, INERTIA @ w))
    return np.concatenate([turn, slope])


@slow
def test_the_rattleback_reverses_when_newton_and_euler_say_so():
    """The times at which its spin about the vertical is zero: seven, for it hesitates before it turns."""
    system, (q, v) = rattleback.system(), rattleback.typical_state()
    start = np.concatenate([rotations.matrix(q[3:])[2], rotations.body_rates(q[3:], v[3:])])

    def spin(t, y):
        return y[:3] @ y[3:]

    apart = solve_ivp(
        of_newton_and_euler, (0, 3), start, method="DOP853", rtol=1e-13, atol=1e-14, events=spin
    )
    times = apart.t_events[0]
    assert len(times) == 7
    vertical = Event(lambda q, v, p: rotations.space_rates(q[3:], v[3:])[2])
    run = simulate(system, ReferenceFlow(), q, v, step_size=0.01, steps=300, events={"turns": vertical})
    np.testing.assert_allclose(run.events["turns"].t, times, atol=1e-8)


@slow
def test_the_momentum_about_the_contact_of_chaplygins_sphere():
    """Projected promises it and the energy; Lobatto's method and GNI keep it here without a promise; the
    discrete gradient does not."""
    system, (q, v) = chaplygin_sphere.system(), chaplygin_sphere.typical_state()

    def changes(method):
        run = simulate(system, method, q, v, step_size=0.05, steps=20_000, save_every=20)
        return max(np.max(np.abs(x - x[0])) for x in run.first_integrals.values()), np.ptp(run.energy)

    momentum, energy = changes(Projected(DiscreteGradient()))
    assert momentum < 1e-14
    assert energy < 1e-14
    assert changes(LobattoSpark())[0] < 1e-13
    assert changes(GeometricNonholonomic())[0] < 1e-12  # its rounding errors add up
    assert changes(DiscreteGradient())[0] > 1e-3
