"""Formulas that the papers print for their examples, with the errata applied, hold for the catalogue."""

import jax
import numpy as np
import pytest
from jax import Array
from scipy.special import ellipkinc

from noslip import System
from noslip.systems import (
    fbo_particle,
    gearbox,
    knife_edge,
    nonholonomic_particle,
    quartic,
    rolling_disk,
    sinusoidal_particle,
)

T = np.linspace(0.0, 3.0, 7)


@jax.jit
def frame_and_slopes(system: System, q: Array) -> tuple[Array, Array]:
    assert system.frame is not None
    return system.frame(q, system.parameters), jax.jacfwd(system.frame)(q, system.parameters)


def bracket(X: np.ndarray, dX: np.ndarray, i: int, j: int) -> np.ndarray:
    """Lie bracket [X_i, X_j] of two columns of the frame."""
    found: np.ndarray = dX[:, j] @ X[:, i] - dX[:, i] @ X[:, j]
    return found


def test_lms_example_4_2_equations_of_motion() -> None:
    system = nonholonomic_particle.system()
    q, v = map(np.asarray, nonholonomic_particle.typical_state())
    (x, y, _), (dx, dy, _) = q, v
    expected = np.array([-(2 * x + y * dx * dy), -2 * y * (1 + y**2), -2 * x * y + dx * dy]) / (1 + y**2)
    np.testing.assert_allclose(system.acceleration(q, v), expected, rtol=0, atol=1e-15)


def test_js_79_multiplier_of_the_free_particle() -> None:
    system = nonholonomic_particle.system(k=0.0)
    q, v = map(np.asarray, nonholonomic_particle.typical_state())
    np.testing.assert_allclose(
        np.asarray(system.multipliers(q, v))[0], v[0] * v[1] / (1 + q[1] ** 2), rtol=0, atol=1e-16
    )


def test_fbo_53_is_a_special_case() -> None:
    ax, ay = 0.7, -1.2
    q, _, _ = fbo_particle.exact(T, [0.0, 0.0, 0.0], [ax, ay, 0.0])
    np.testing.assert_allclose(q[:, 0], ax * T)
    np.testing.assert_allclose(
        q[:, 1], ay / ax * np.log(q[:, 0] + np.sqrt(1 + q[:, 0] ** 2)), rtol=0, atol=1e-14
    )


def test_fbo_62_is_a_special_case() -> None:
    ax, ay = 0.7, -1.2
    q, _, _ = sinusoidal_particle.exact(T, [0.0, 0.0, 0.0], [ax, ay, 0.0])
    np.testing.assert_allclose(q[:, 1], ay * ellipkinc(ax * T, -1.0) / ax, rtol=0, atol=1e-14)


def test_fbo_65_is_a_special_case() -> None:
    kappa, omega, alpha = 0.8, 1.3, np.pi / 36
    q, _, _ = knife_edge.exact(T, [0.0, 0.0, 0.0], [kappa, 0.0, omega])
    phi = omega * T
    expected = np.sin(alpha) / (2 * omega**2) * np.sin(phi) ** 2 + kappa / omega * np.sin(phi)
    np.testing.assert_allclose(q[:, 0], expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(q[:, 2], phi)


def test_the_knife_edge_is_regular_across_the_slope() -> None:
    system = knife_edge.system()
    q, v = np.array([0.3, 0.1, np.pi / 2]), np.array([0.0, 0.7, 0.8])
    gravity = np.sin(np.pi / 36)
    np.testing.assert_allclose(system.multipliers(q, v), [-(0.7 * 0.8 + gravity)], rtol=0, atol=1e-15)


def test_cfhm_frame_of_the_rolling_disk() -> None:
    r, m, I = 0.7, 1.9, 0.4
    system = rolling_disk.system(m=m, r=r, I=I, J=0.3)
    q, _ = rolling_disk.typical_state()
    X, dX = map(np.asarray, frame_and_slopes(system, q))
    s, c = np.sin(q)[2], np.cos(q)[2]
    np.testing.assert_allclose(bracket(X, dX, 0, 1), [r * s, -r * c, 0, 0], rtol=0, atol=1e-15)
    # CFHM's complement X3, X4, with the heading in both (erratum 17), is orthogonal to the frame
    complement = np.array([[1 / m, 0, 0, -r / I * c], [0, 1 / m, 0, -r / I * s]])
    np.testing.assert_allclose(complement @ np.asarray(system.mass_matrix(q)) @ X, 0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_quartic_state_has_the_energy_of_cfhm(n: int) -> None:
    system = quartic.system(n)
    q, v = quartic.typical_state(n)
    assert system.n == 2 * n + 1
    assert abs(float(system.energy(q, v)) - 3.06) < 1e-14
    assert abs(float(np.asarray(system.phi(q, v))[0])) < 1e-15


def test_quartic_needs_two_pairs() -> None:
    with pytest.raises(ValueError, match="`n` must be at least 2, but 1 was provided"):
        quartic.system(1)


def test_cfhm_20_and_21_for_the_quartic_system() -> None:
    system = quartic.system()
    q, v = map(np.asarray, quartic.typical_state())
    w, p = q[1:4], np.asarray(system.momentum(q, v))
    assert system.coordinates == ("x", "w1", "w2", "w3", "z1", "z2", "z3")
    X, dX = map(np.asarray, frame_and_slopes(system, q))
    expected = np.eye(6)
    expected[3:, 3:] += np.outer(w, w)
    np.testing.assert_allclose(X.T @ np.asarray(system.mass_matrix(q)) @ X, expected, rtol=0, atol=1e-15)
    # the block of Pi that the text lacks (erratum 17): -[X_i, X_n+j] . p = -kappa delta_ij
    eta = X[:, 3:].T @ p
    kappa = np.dot(w, eta) / (1 + np.dot(w, w))
    block = np.array([[-np.dot(bracket(X, dX, i, j), p) for j in range(6)] for i in range(6)])
    zero, one = np.zeros((3, 3)), np.eye(3)
    np.testing.assert_allclose(block, kappa * np.block([[zero, -one], [one, zero]]), rtol=0, atol=1e-14)


def test_quartic_parameters_scale_their_terms() -> None:
    q = np.asarray(quartic.typical_state()[0])
    rest = np.zeros_like(q)

    def potential(**parameters: float) -> float:
        return float(quartic.system(**parameters).energy(q, rest))

    quadratic, whole = 0.5 * float(np.dot(q, q)), potential()
    assert potential(coupling=0.0) == pytest.approx(quadratic, abs=1e-15)
    assert potential(stiffness=3.0, coupling=2.0) == pytest.approx(2 * whole + quadratic, abs=1e-14)


def test_the_gearbox_energy_is_the_sum_of_its_parts() -> None:
    system = gearbox.system(epsilon=0.3)
    q, v = map(np.asarray, gearbox.typical_state())
    parts = [float(f(q, v, system.parameters)) for f in system.first_integrals.values()]
    assert sum(parts) == pytest.approx(float(system.energy(q, v)), abs=1e-15)
    # kinetic plus potential energy (erratum 16)
    expected = np.cos(q[2]) - 0.3 * np.sin(2 * q[2]) + 0.5 * np.dot(v, v) + 0.5 * (q[0] ** 2 + q[1] ** 2)
    assert float(system.energy(q, v)) == pytest.approx(float(expected), abs=1e-15)
    assert float(gearbox.oscillator_energy(q, v, system.parameters)) == pytest.approx(0.2531, abs=1e-4)
