"""Robot, snakeboard and car with trailers, against equations reduced by hand and written in NumPy."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from noslip.systems import car_with_trailers, differential_drive, snakeboard


def accelerations(
    module: ModuleType, parameters: dict, q: np.ndarray, rates: list, **arguments: int
) -> tuple:
    """The velocity with these components in the frame, and the acceleration that the system derives."""
    system = module.system(**arguments, **parameters)
    v = np.asarray(module.frame(q, parameters)) @ np.array(rates)
    return v, np.asarray(system.acceleration(q, v))


def test_the_motors_drive_the_robot_by_its_reduced_equations() -> None:
    m, J, a, b, r, I, k, R, c, left, right = 3.0, 0.2, 0.07, 0.25, 0.09, 0.013, 0.6, 1.1, 0.04, 5.0, -2.0
    names = ("m", "J", "a", "b", "r", "I", "k", "R", "c", "voltage_left", "voltage_right")
    parameters = dict(zip(names, (m, J, a, b, r, I, k, R, c, left, right), strict=True))
    q, u, w = np.array([0.3, -0.2, 0.8, 0.1, 0.4]), 0.7, -1.2
    system = differential_drive.system(**parameters)
    v = np.array([u * np.cos(q[2]), u * np.sin(q[2]), w, (u - b * w) / r, (u + b * w) / r])
    A, B, D = m + 2 * I / r**2, J + m * a**2 + 2 * I * b**2 / r**2, k**2 / R + c
    du = (m * a * w**2 - 2 * D * u / r**2 + k * (left + right) / (r * R)) / A
    dw = (-m * a * u * w - 2 * D * b**2 * w / r**2 + k * b * (right - left) / (r * R)) / B
    cos, sin = np.cos(q[2]), np.sin(q[2])
    expected = [du * cos - u * w * sin, du * sin + u * w * cos, dw, (du - b * dw) / r, (du + b * dw) / r]
    np.testing.assert_allclose(system.acceleration(q, v), expected, rtol=1e-12)


def test_the_snakeboard_obeys_its_momentum_equation() -> None:
    m, J, J_r, J_w, l, k, on_rotor, on_wheels = 3.0, 0.2, 0.15, 0.03, 0.4, 0.7, 0.35, -0.11
    names = ("m", "J", "J_r", "J_w", "l", "k", "rotor_torque", "wheel_torque")
    parameters = dict(zip(names, (m, J, J_r, J_w, l, k, on_rotor, on_wheels), strict=True))
    q, (s, dpsi, dphi) = np.array([0.3, -0.2, 0.8, 0.1, 0.6]), (0.9, -1.4, 0.8)
    v, found = accelerations(snakeboard, parameters, q, [s, dpsi, dphi])
    sin, cos, theta, whole = np.sin(q[4]), np.cos(q[4]), q[2], J + J_r + 2 * J_w
    # d/dt of the momentum along the wheels, A s + J_r sin(phi) psidot, is the momentum on the frame's change
    A, slope = m * (l * cos) ** 2 + whole * sin**2, 2 * sin * cos * (whole - m * l**2)
    change = dphi * (-m * l**2 * cos * sin * s + cos * (whole * sin * s + J_r * dpsi))
    change -= slope * dphi * s + J_r * cos * dphi * dpsi + sin * (on_rotor - J_r * cos * dphi * s)
    ds = change / (A - J_r * sin**2)
    turn, speed, gain = cos * dphi * s + sin * ds, l * cos * s, l * (cos * ds - sin * dphi * s)
    ahead, aside = np.array([np.cos(theta), np.sin(theta)]), np.array([-np.sin(theta), np.cos(theta)])
    expected = [*(gain * ahead + speed * v[2] * aside), turn, on_rotor / J_r - turn]
    np.testing.assert_allclose(found, [*expected, (on_wheels - k * q[4]) / (2 * J_w)], rtol=1e-12)


def driving(q: np.ndarray, l: float, d: float) -> tuple[np.ndarray, list]:
    """What unit speed of the front wheels changes, and the speeds of the trailers."""
    speed, ahead, speeds = np.cos(q[3]), q[2], []
    rates = [speed * np.cos(ahead), speed * np.sin(ahead), np.sin(q[3]) / l, 0.0 * q[0]]
    for own in q[4:]:
        rates.append(speed * np.sin(ahead - own) / d)
        speed, ahead = speed * np.cos(ahead - own), own
        speeds.append(speed)
    return np.array(rates), speeds


@pytest.mark.parametrize(
    "k", [2, pytest.param(0, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)]
)
def test_the_car_gains_the_energy_that_drive_and_steering_give(k: int) -> None:
    m, J, J_s, l, d, m_t, J_t, drive, steering = 1.3, 0.4, 0.15, 0.9, 1.1, 0.5, 0.2, 0.8, -0.3
    names = ("m", "J", "J_s", "l", "d", "m_t", "J_t", "drive", "steering")
    parameters = dict(zip(names, (m, J, J_s, l, d, m_t, J_t, drive, steering), strict=True))
    q, s, w = np.array([0.3, -0.2, 0.5, 0.6, 0.1, -0.3, 0.2, 0.9, -1.0])[: 4 + k], 0.8, -0.4
    v, found = accelerations(car_with_trailers, parameters, q, [s, w], k=k)

    def inertia(q: np.ndarray) -> np.ndarray:
        rates, speeds = driving(q, l, d)
        trailers = sum(m_t * u**2 + J_t * w**2 for u, w in zip(speeds, rates[4:], strict=True))
        return m * np.cos(q[3]) ** 2 + J * rates[2] ** 2 + trailers

    def along(f) -> np.ndarray:  # the derivative along the motion, by a complex step
        return np.imag(f(q + 1e-30j * v)) / 1e-30

    # T = A s^2 / 2 + J_s (thetadot + phidot)^2 / 2 gains drive . u + steering . phidot
    push = drive * np.cos(q[3]) - steering * np.sin(q[3]) / l - 0.5 * s * along(inertia)
    rates = driving(q, l, d)[0]
    expected = rates * push / inertia(q) + s * along(lambda q: driving(q, l, d)[0])
    expected[3] = steering / J_s - expected[2]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_negative_number_of_trailers_is_refused() -> None:
    with pytest.raises(ValueError, match="`k` must be at least 0, but -1 was provided"):
        car_with_trailers.system(k=-1)
