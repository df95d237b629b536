"""JS section 4: a step of a method as the time-eps map of a periodically forced motion.

Proposition 4.1 and corollary 4.1: a method of order p is the evolution over a period eps of the motion
with the perturbation eps^p g(t / eps, z), periodic and bounded as eps goes to zero. For the schemes (71)
and (76) on the particle of LMS (zdot = y xdot, in a potential) we measure the power of eps by which a
step misses the motion, how |g| changes when eps is halved (to a limit, if p is right; it would double if
p were too large by one), and how well the perturbed motion, integrated to high accuracy, lands on the
method's own points. The perturbed differential-algebraic form is (54); (55), which rests on lemma 4.4,
is not the same. See the errata of JS, 3.
"""

from __future__ import annotations

import jax
import numpy as np
from scipy.integrate import solve_ivp

from noslip.analysis.embedding import Embedding
from noslip.analysis.order import slope
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import DeclaredRow, Study, Track, exponent, judge, statement
from noslip.studies._rules import BOUNDED, ZERO
from noslip.systems import nonholonomic_particle

PAPER = "JS"
EPS, PERIODS = 0.1, 2
SCHEMES = (("(71)", VelocityNonholonomic(0.0), 1), ("(76)", VelocityNonholonomic(0.5), 2))


def _rows(name: str, p: int) -> dict[str, DeclaredRow]:
    return {
        f"{name} power": exponent(f"{name}: power of eps by which a step misses the motion", p + 1),
        f"{name} bounded": statement(
            f"{name}: largest |g| for eps / 2 over that for eps", "bounded as eps -> 0", BOUNDED, spread=1e-2
        ),
        f"{name} points": statement(
            f"{name}: perturbed motion against the method, {PERIODS} steps",
            "the method's own points",
            ZERO,
            spread=None,
        ),
        f"{name} (54)": statement(
            f"{name}: (54) against (50), relative to the perturbation", "equal", ZERO, spread=None
        ),
        f"{name} (55)": statement(
            f"{name}: (55) against (50), relative to the perturbation",
            "equal",
            ZERO,
            reason="lemma 4.4 fails if m < n, so (54) stands and (55) does not (errata JS 3)",
        ),
    }


ROWS = {key: row for name, _, p in SCHEMES for key, row in _rows(name, p).items()}


def run(full: bool, track: Track) -> Study:
    halvings = (0.1, 0.05, 0.025, 0.0125) if full else (0.1, 0.05, 0.025)
    taus = np.linspace(0.02, 0.98, 49) if full else np.linspace(0.04, 0.96, 24)
    system, (q0, v0) = nonholonomic_particle.system(), nonholonomic_particle.typical_state()
    ours: dict[str, float] = {}
    curves: list[Curve] = []
    misses = []
    for name, method, _ in track(SCHEMES, "embedding"):
        sizes, missed = [], []
        for eps in halvings:
            e = Embedding(system, method, step_size=eps, near=(q0, v0))
            z = e.coordinates(q0, v0)
            g = [float(np.max(np.abs(e.g(tau, z)))) for tau in taus]
            sizes.append(max(g))
            missed.append(float(np.max(np.abs(e.exact_flow(eps, z) - e.discrete_flow(z)))))
            if eps in (halvings[0], halvings[-1]):
                curves.append(Curve(f"{name}, eps = {eps:g}", taus, g))
        misses.append(Curve(name, halvings, missed, "marked"))
        e = Embedding(system, method, step_size=EPS, near=(q0, v0))
        of_54, of_55 = _dae(e)
        ours |= {
            f"{name} power": slope(np.array(halvings), np.array(missed)),
            f"{name} bounded": sizes[-1] / sizes[-2],
            f"{name} points": _distance(e, method),
            f"{name} (54)": of_54,
            f"{name} (55)": of_55,
        }
    return Study(
        {"system": "nonholonomic_particle", "q0": q0, "v0": v0, "eps": halvings},
        judge(ROWS, ours),
        (
            Panel("a step against the motion", "eps", "largest difference of (q, v)", tuple(misses), "xy"),
            Panel("the perturbation", "tau = t / eps", "largest |g(tau, z)|", tuple(curves)),
        ),
    )


def _distance(e: Embedding, method: VelocityNonholonomic) -> float:
    """Largest difference of the perturbed motion from the method after each period."""
    q0, v0 = nonholonomic_particle.typical_state()
    run = simulate(e.system, method, q0, v0, step_size=EPS, steps=PERIODS)
    z, away = np.asarray(e.coordinates(q0, v0)), 0.0

    def field(t: float, z: np.ndarray) -> np.ndarray:  # (45); e.vector_field would be compiled once more
        return np.asarray(e.unperturbed(z) + EPS**e.order * e.g(t / EPS, z))

    for k in range(1, PERIODS + 1):
        span = (EPS * (k - 1), EPS * k)
        out = solve_ivp(field, span, z, method="DOP853", rtol=1e-13, atol=1e-14)
        z = out.y[:, -1]
        away = max(away, float(np.max(np.abs(z - e.coordinates(run.q[k], run.v[k])))))
    return away


def _dae(e: Embedding, tau: float = 0.4) -> tuple[float, float]:
    """Differences of (54) and of (55) from (50), relative to the perturbation of v."""
    system = e.system
    z = e.coordinates(*nonholonomic_particle.typical_state())
    q, v = e.state(z)
    _, dv, _ = e.dae_right_hand_side(tau * EPS, q, v)
    g_q, g_v = (EPS**e.order * g for g in e.perturbation_of_states(tau, q, v))
    x50 = system.acceleration(q, v) + g_v
    mu = system.mu(q, v)
    lift = np.linalg.solve(system.mass_matrix(q), mu.T)
    along = jax.jvp(lambda x: system.phi(x, v), (q,), (g_q,))[1]
    x55 = system.acceleration(q, v) - lift @ np.linalg.solve(mu @ lift, along)
    size = float(np.max(np.abs(g_v)))
    return float(np.max(np.abs(dv - x50))) / size, float(np.max(np.abs(x55 - x50))) / size
