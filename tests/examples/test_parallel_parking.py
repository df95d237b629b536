"""Parking a car with a trailer: its motion keeps the constraints, and the optimum ends in the gap."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from worked import assert_page_shows, example

parking = example("09_parallel_parking")


def test_clearances_are_positive_in_the_gap_and_negative_in_a_parked_car() -> None:
    clearances = jax.jit(parking.clearances)
    assert np.min(np.asarray(clearances(parking.START))) > 0
    assert np.min(np.asarray(clearances(parking.GOAL))) > 0
    for x in (2.0, -2.0):  # too far ahead, too far back
        assert np.min(np.asarray(clearances(np.array([x, 0.0, 0.0, 0.0, 0.0])))) < 0


def test_the_sketch_is_a_motion_of_the_car() -> None:
    """On the constraints to round-off, and near the motion that SciPy finds, driven by the same controls."""
    run = parking.motion(parking.sketch())
    assert np.max(np.abs(run.constraint_residual)) < 1e-13
    rate = jax.jit(lambda car, x: jnp.concatenate([x[5:], car.acceleration(x[:5], x[5:])]))
    states = [np.r_[parking.START, np.zeros(5)]]
    for u in parking.LIMITS * parking.sketch().reshape(-1, 2)[:3]:
        car = parking.CAR.with_parameters({"drive": u[0], "wheel": u[1]})

        def slope(t: float, x: np.ndarray, car: object = car) -> np.ndarray:
            return np.asarray(rate(car, x))

        states.append(solve_ivp(slope, (0.0, parking.H), states[-1], rtol=1e-6, atol=1e-8).y[:, -1])
    np.testing.assert_allclose(np.hstack([run.q, run.v])[:13:4], states, rtol=0, atol=2e-3)


@pytest.mark.slow
@pytest.mark.all_pairs  # a minute of optimising
def test_the_page_shows_what_the_script_prints(tmp_path: Path, capsys) -> None:
    parking.main(tmp_path)
    output = capsys.readouterr().out
    assert_page_shows("parallel_parking", output, tolerance=0.3)
    rows = {line.split("  ")[0]: line.split()[-6:] for line in output.splitlines()[2:5]}
    found = {name: [float("nan" if x == "-" else x) for x in row] for name, row in rows.items()}
    _, _, end, nodes, _, missed = found["shooting"]
    assert max(end, nodes) < 1e-10
    for intervals in (16, 32):  # the polynomials leave the constraints, and their controls miss the gap
        _, _, end, _, between, away = found[f"collocation, {intervals}"]
        assert end < 1e-10
        assert between > 1e-5
        assert away > 10 * missed
    assert (tmp_path / "parking.png").read_bytes().startswith(b"\x89PNG")
