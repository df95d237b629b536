"""The benchmarks compare like with like: same equations, same scheme; nothing is timed here."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gonzalez_numpy as script
from benchmarks import page, peers, researcher, solvers
from benchmarks.problems import problems
from noslip import simulate
from noslip.analysis.work_precision import errors_at_end
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.studies import cfhm_variance
from noslip.systems import quartic

DOCS = Path(__file__).parents[2] / "docs"
PROBLEMS = {problem.name: problem for problem in problems()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_formulas_by_hand_are_those_of_the_system(name):
    problem = PROBLEMS[name]
    system, rng = problem.system, np.random.default_rng(3)
    q = problem.state[0] + 0.4 * rng.normal(size=system.n)
    v = np.asarray(system.project_velocity(q, problem.state[1] + 0.4 * rng.normal(size=system.n)))
    acceleration = np.asarray(problem.acceleration(math, q.tolist(), v.tolist()))
    np.testing.assert_allclose(acceleration, system.acceleration(q, v), atol=1e-14)
    np.testing.assert_allclose(np.diag(problem.masses), system.mass_matrix(q), atol=1e-15)
    mu, rate = (np.array(x, float) for x in problem.forms(math, q.tolist(), v.tolist()))
    np.testing.assert_allclose(mu, system.mu(q, v), atol=1e-15)
    np.testing.assert_allclose(mu @ acceleration + rate @ v, 0.0, atol=1e-14)
    reaction = mu.T @ np.asarray(system.multipliers(q, v)) / problem.masses
    np.testing.assert_allclose(acceleration, problem.force(math, q.tolist()) + reaction, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("peer", solvers.PEERS, ids=lambda peer: peer.name)
def test_a_peer_solves_the_same_problem(peer):
    if peer.absent:
        pytest.skip(f"{peer.package} is not installed")
    if peer.name in ("solve_dae Radau", "diffrax Kvaerno5", "scipy Radau"):
        pytest.skip("takes long, or fails: the benchmark says so")
    problem = PROBLEMS["particle"]
    q, v = peer.make(problem, max(1e-9, peer.finest))()
    errors = errors_at_end(problem.system, problem.state, lambda t: problem.end)
    assert errors(problem.span, q, v)[0] < 1e-4  # the tolerance is local and the span long


def test_an_absent_peer_is_a_row(monkeypatch):
    monkeypatch.setattr(peers, "METHODS", {})
    monkeypatch.setattr(solvers.Peer, "absent", True)
    rows = list(peers.rows_of(PROBLEMS["particle"]))
    assert len(rows) == len(solvers.PEERS)
    assert rows[-1] == {
        "system": "particle", "by": "heyoka Taylor", "setting": "-",
        "absent": "the package heyoka is not installed",
    }  # fmt: skip


@pytest.mark.native
def test_a_call_of_noslip_is_a_row_with_its_stepping(monkeypatch):
    monkeypatch.setattr(peers, "METHODS", {"Gonzalez": (DiscreteGradient(), (400,))})
    monkeypatch.setattr(solvers.Peer, "absent", True)
    row = next(peers.rows_of(PROBLEMS["particle"]))
    assert (row["by"], row["setting"]) == ("noslip Gonzalez", "400 steps")
    assert 0 < row["stepping"] < row["seconds"]
    assert 1e-8 < row["error"] < 1e-1
    assert max(row["energy error"], row["constraint error"]) < 1e-13


def test_the_quickest_points_within_the_accuracy():
    rows = [
        {"system": "s", "by": "noslip A", "setting": "1", "seconds": 2.0, "error": 1e-11, "stepping": 0.5},
        {"system": "s", "by": "noslip B", "setting": "1", "seconds": 1.0, "error": 1e-9, "stepping": 0.1},
        {"system": "s", "by": "peer", "setting": "1", "seconds": 9.0, "error": 1e-12},
        {"system": "s", "by": "peer", "setting": "2", "seconds": 6.0, "error": 1e-10},
        {"system": "s", "by": "crude", "setting": "1", "seconds": 0.1, "error": 1e-3},
        {"system": "s", "by": "gone", "setting": "-", "absent": "not installed"},
    ]
    found = {row["rival"]: row for row in peers.quickest({"rows": rows})}
    assert (found["noslip"]["by"], found["noslip"]["ratio"]) == ("noslip A", 1.0)
    assert (found["peer"]["setting"], found["peer"]["ratio"]) == ("2", 3.0)
    assert found["peer"]["ratio to stepping"] == 12.0
    assert found["crude"]["missing"] == "no point below 1e-10"
    assert found["gone"]["missing"] == "no point below 1e-10: not installed"


def test_the_scheme_in_numpy_is_the_scheme():
    q, v, z = researcher.initial_state()
    rng, h = np.random.default_rng(1), 0.05
    start, end = z + 0.1 * rng.normal(size=13), z + 0.1 * rng.normal(size=13)
    level, e = script.energy(start), 1e-6
    differences = np.stack(
        [
            script.residual(end + e * x, start, level, h) - script.residual(end - e * x, start, level, h)
            for x in np.eye(13)
        ],
        axis=1,
    )
    np.testing.assert_allclose(script.jacobian(end, start, level, h), differences / (2 * e), atol=1e-8)
    assert script.energy(z) == pytest.approx(quartic.ENERGY, abs=1e-14)
    run = simulate(quartic.system(), DiscreteGradient(), q, v, step_size=h, steps=20)
    for solve in (script.by_powell, script.by_newton, script.by_fixed_point):
        np.testing.assert_allclose(script.run(z, h, 20, solve)[:7], run.q[-1], atol=1e-13)


def test_the_line_of_the_variance_and_its_errors():
    """A random walk of known variance per unit time, from an offset of known variance."""
    rng, t = np.random.default_rng(2), np.linspace(0.0, 1000.0, 41)
    steps = rng.normal(size=(4000, 40)) * np.sqrt(2e-4 * 25.0) * 0.1**2
    walk = np.concatenate([np.zeros((4000, 1)), np.cumsum(steps, axis=1)], axis=1)
    oscillation = np.where(t > 0, 0.3 * 0.1**2, 0) * rng.normal(size=walk.shape)
    found = cfhm_variance.fit(t, 3.06 + walk + oscillation, 0.1)
    assert abs(found["slope"] - 2e-4) < 4 * found["slope error"]
    assert abs(found["offset"] - 0.09) < 4 * found["offset error"]
    assert found["slope error"] < 2e-5


@pytest.mark.parametrize("name", page.PAGES)
def test_the_pages_show_what_was_measured(name):
    results = page.load(DOCS / "measured")
    text = (DOCS / name).read_text()
    assert page.filled(text, page.sections(results)) == text
    assert "begin -->\n<!--" not in text


def test_measured_results_name_their_versions():
    for path in (DOCS / "measured").glob("*.json"):
        assert {"python", "jax", "numpy"} <= set(json.loads(path.read_text())["versions"]), path
