"""The benchmarks compare like with like: same equations, same scheme; nothing is timed here."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gonzalez_numpy as script
from benchmarks import page, peers, peers_of_bodies, researcher, solvers
from benchmarks.problems import bodies, problems
from noslip import simulate
from noslip.analysis.work_precision import errors_at_end
from noslip.engine.backends.numpy_rows import evaluate
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.studies import cfhm_variance
from noslip.systems import quartic

DOCS = Path(__file__).parents[2] / "docs"
BY_FORMS, BODIES = ("knife edge", "rolling disk", "particle", "gearbox"), peers_of_bodies.BODIES


@functools.cache
def made():
    """The problems by name, made where a test needs them: a bicycle takes a second."""
    found = {problem.name: problem for problem in (*problems(), *bodies())}
    assert tuple(found) == BY_FORMS + BODIES
    return found


@pytest.mark.parametrize("name", BY_FORMS)
def test_the_formulas_by_hand_are_those_of_the_system(name):
    problem = made()[name]
    system, rng = problem.system, np.random.default_rng(3)
    q, v = (x + 0.4 * rng.normal(size=system.n) for x in problem.state)
    rows = evaluate(derived, None, system, q[None], v[None])
    v, expected, masses, one_forms, multipliers = (x[0] for x in rows)
    acceleration = np.asarray(problem.acceleration(math, q.tolist(), v.tolist()))
    np.testing.assert_allclose(acceleration, expected, atol=1e-14)
    np.testing.assert_allclose(np.diag(problem.masses), masses, atol=1e-15)
    mu, rate = (np.array(x, float) for x in problem.forms(math, q.tolist(), v.tolist()))
    np.testing.assert_allclose(mu, one_forms, atol=1e-15)
    np.testing.assert_allclose(mu @ acceleration + rate @ v, 0.0, atol=1e-14)
    reaction = mu.T @ multipliers / problem.masses
    np.testing.assert_allclose(acceleration, problem.force(math, q.tolist()) + reaction, atol=1e-14)


def derived(_, system, q, v):
    """All that the formulas by hand say, of a velocity that is put on the constraint."""
    v = system.project_velocity(q, v)
    return v, system.acceleration(q, v), system.mass_matrix(q), system.mu(q, v), system.multipliers(q, v)


@pytest.mark.parametrize("name", BODIES)
def test_newton_and_euler_say_of_a_body_what_its_lagrangian_says(name):
    problem, rng = made()[name], np.random.default_rng(5)
    system, (q, v) = problem.system, problem.state
    q = q + 0.3 * rng.normal(size=system.n)
    if name == "ball":
        q[2:] /= np.linalg.norm(q[2:])

    def motion(_, system, q, v):
        return system.project_velocity(q, v), system.acceleration(q, system.project_velocity(q, v))

    rows = evaluate(motion, None, system, q[None], (v + 0.3 * rng.normal(size=system.n))[None])
    v, expected = (x[0] for x in rows)
    by_hand = problem.acceleration(np, q, v)
    np.testing.assert_allclose(by_hand, expected, rtol=1e-10, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_FORMS + BODIES)
def test_two_ways_to_the_true_end_agree(name):
    assert peers._from_truth(made()[name]) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_a_simulator_comes_nearer_with_smaller_steps(body):
    problem = made()[body]
    errors = errors_at_end(problem.system, problem.state, lambda t: problem.end)
    for peer in solvers.SIMULATORS[body]:
        if peer.absent:
            pytest.skip(f"{peer.package} is not installed")
        coarse, fine = (errors(problem.span, *peer.make(problem, steps)())[0] for steps in (2000, 8000))
        assert fine < coarse / 2 < 5e-3


def test_the_sentences_about_bodies_follow_from_the_rows():
    def row(by, seconds, error, setting="10 steps"):
        numbers = dict.fromkeys(("first call", "energy error", "constraint error"), 1e-3)
        return {"system": "ball", "by": by, "setting": setting, "seconds": seconds, "error": error} | numbers

    rows = [
        row("noslip A", 2e-3, 1e-5) | {"stepping": 1e-3}, row("noslip A", 8e-3, 1e-9) | {"stepping": 7e-3},
        row("noslip B", 3e-3, 1e-6) | {"stepping": 1e-3},
        row("noslip ReferenceFlow", 1e-3, 1e-9, "tolerance 1e-09"), row("peer C", 4e-3, 1e-5),
        {"system": "ball", "by": "peer D", "setting": "-", "absent": "not installed"},
    ]  # fmt: skip
    result = {"rows": rows, "truth": {"ball": {"span": 20.0, "ReferenceFlow": 1e-14}}}
    shown = peers_of_bodies.sections(result)
    assert "No point within 1e-04: peer D." in shown["ball 1e-04"]
    assert "| noslip A | 10 steps | 2 ms | 2 | 100 us |" in shown["ball 1e-04"]
    first, second, *_ = shown["bodies found"].splitlines()
    assert first == (
        "- The ball, error 1e-04: the quickest is noslip ReferenceFlow with 1 ms. The quickest of noslip's "
        "methods that step, A, takes 2 ms; beside it peer C takes 2 times as long and `ReferenceFlow` 0.5 "
        "times."
    )
    assert second.endswith("A, takes 8 ms; beside it `ReferenceFlow` takes 0.125 times as long.")


@pytest.mark.thorough
@pytest.mark.parametrize("peer", solvers.PEERS, ids=lambda peer: peer.name)
def test_a_peer_solves_the_same_problem(peer):
    if peer.absent:
        pytest.skip(f"{peer.package} is not installed")
    if peer.name in ("solve_dae Radau", "diffrax Kvaerno5", "scipy Radau"):
        pytest.skip("takes long, or fails: the benchmark says so")
    problem = made()["particle"]
    q, v = peer.make(problem, max(1e-9, peer.finest))()
    errors = errors_at_end(problem.system, problem.state, lambda t: problem.end)
    assert errors(problem.span, q, v)[0] < 1e-4  # the tolerance is local and the span long


def test_an_absent_peer_is_a_row(monkeypatch):
    monkeypatch.setattr(peers, "METHODS", {})
    monkeypatch.setattr(peers, "FLOWS", ())
    monkeypatch.setattr(solvers.Peer, "absent", True)
    rows = list(peers.rows_of(made()["particle"]))
    assert len(rows) == len(solvers.PEERS)
    assert rows[-1] == {
        "system": "particle", "by": "heyoka Taylor", "setting": "-",
        "absent": "the package heyoka is not installed",
    }  # fmt: skip


@pytest.mark.native
def test_a_call_of_noslip_is_a_row_with_its_stepping(monkeypatch):
    monkeypatch.setattr(peers, "METHODS", {"Gonzalez": (DiscreteGradient(), (400,))})
    monkeypatch.setattr(peers, "FLOWS", ())
    monkeypatch.setattr(solvers.Peer, "absent", True)
    row = next(peers.rows_of(made()["particle"]))
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
