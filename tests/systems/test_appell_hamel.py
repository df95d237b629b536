"""What is known of the Appell-Hamel system."""

import jax
import numpy as np
import pytest

from noslip.systems import appell_hamel
from noslip.testing.systems import check_exact, reference


def test_the_energy_is_conserved_although_the_constraint_is_nonlinear() -> None:
    system = appell_hamel.system()
    run = reference(system, *appell_hamel.typical_state(), t_end=20.0)
    assert np.ptp(jax.vmap(system.energy)(run.q, run.v)) < 1e-11
    assert np.max(np.abs(run.work)) < 1e-12


def test_the_direction_is_kept_and_the_speed_linear() -> None:
    run = reference(appell_hamel.system(), *appell_hamel.typical_state(), t_end=20.0)
    horizontal = np.asarray(run.v[:, :2])
    speed = np.linalg.norm(horizontal, axis=1)
    np.testing.assert_allclose(
        horizontal / speed[:, None], np.array([[0.6, 0.4]]) / 0.52**0.5 + 0 * horizontal
    )
    np.testing.assert_allclose(speed, 0.52**0.5 + 0.5 / 1.25 * np.asarray(run.t), rtol=1e-13)


def test_a_rising_particle_slows_down_to_the_singular_state() -> None:
    system = appell_hamel.system(c=0.8)
    q, v = appell_hamel.typical_state()
    v = system.project_velocity(q, v.at[2].set(0.5))
    stop = float(np.hypot(v[0], v[1])) * (1 + 0.8**2) / 0.8
    run = reference(system, q, v, t_end=0.99 * stop)
    check_exact(run, appell_hamel.exact)
    assert float(np.hypot(*run.v[-1, :2])) == pytest.approx(0.01 * float(np.hypot(v[0], v[1])), rel=1e-8)
