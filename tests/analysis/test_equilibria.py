"""CFHM remark 4.2: on D* every consistent Runge-Kutta method knows which rests of the sleigh are stable."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip.analysis.equilibria import runge_kutta_step, stability_function, step_multipliers
from noslip.systems import chaplygin_sleigh

M, J, A_ = 1.3, 6.0, 0.8
C = A_ * np.sqrt(M) / (J + M * A_**2)  # C_12^1 of (22)
ROOT = np.sqrt(3) / 6
METHODS = {
    "gauss": ([[0.25, 0.25 - ROOT], [0.25 + ROOT, 0.25]], [0.5, 0.5]),
    "radau": ([[5 / 12, -1 / 12], [3 / 4, 1 / 4]], [3 / 4, 1 / 4]),
    "euler": ([[0.0]], [1.0]),
    "midpoint": ([[0.5]], [1.0]),
    "heun": ([[0.0, 0.0], [1.0, 0.0]], [0.5, 0.5]),
}


def rest(rho_2):
    return chaplygin_sleigh.system(m=M, J=J, a=A_), np.array([1.7, -2.4, 2.2, 0.0, rho_2])


@pytest.mark.parametrize("name", METHODS)
def test_the_multipliers_of_a_step_are_r_and_1(name):
    """Of the whole motion (9) on D*, far from the origin and from theta = 0."""
    for rho_2, h in ((2.5, 0.4), (-1.9, 1.3)):
        system, z = rest(rho_2)
        wanted = [stability_function(*METHODS[name], -h * C * rho_2), 1.0]
        found = step_multipliers(system, z, h, *METHODS[name])
        assert_allclose(found, sorted(wanted), atol=1e-12)
        assert (abs(wanted[0]) < 1) == (rho_2 > 0)


def test_explicit_euler_and_its_bound():
    """h < 1/|C rho_2| keeps R positive; stability is lost at twice that, and only where rho_2 > 0."""
    limit = 1 / C
    for h, positive, right in (
        (0.99, True, True),
        (1.01, False, True),
        (1.99, False, True),
        (2.01, False, False),
    ):
        R = stability_function(*METHODS["euler"], -h * limit * C)
        assert (R > 0, abs(R) < 1) == (positive, right)
        assert stability_function(*METHODS["euler"], h * limit * C) > 1


def test_euler_goes_from_the_unstable_rest_to_the_stable_one():
    """The way of figure 3, by the simplest method of all; its energy grows by what Euler makes of it."""
    system, z = rest(-1.5)
    z[3] = 0.01
    for _ in range(300):
        z, _ = runge_kutta_step(system, z, 0.5, *METHODS["euler"])
    assert abs(z[3]) < 1e-4
    assert 1.5 < z[4] < 1.7
