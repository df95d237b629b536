"""Rolling in space: a coin and a wheel by noslip, by Exudyn and by MuJoCo, each in a process of its own.

The truth is a flow of Newton's and Euler's equations about the point of contact, written here with NumPy
and integrated by SciPy; nothing of it comes from noslip. Energy, gap and slip of all are computed alike, from
place, velocity, rotation and angular velocity.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from noslip import rotations, simulate
from noslip.bench.machine import versions
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.markdown import table
from noslip.systems import rolling_coin

WORKER = Path(__file__).with_name("rolling_by.py")
STEPS = (5e-3, 1e-3, 2e-4)
SPAN, SAVED = 5.0, 50
NAMES = {"noslip": "noslip", "exudyn": "Exudyn", "mujoco": "MuJoCo"}
RIVALS: tuple[tuple[str, str, list[int]], ...] = (
    ("noslip", "DiscreteGradient", []),
    ("noslip", "SemiImplicitDLA", []),
    ("noslip", "EnergyCollocation", [2]),
    ("exudyn", "TrapezoidalIndex2", []),
    ("exudyn", "GeneralizedAlpha", []),
    ("mujoco", "RK4", []),
    ("mujoco", "Euler", []),
)
"""Package, its name of the method, and what the method takes."""
UP = np.array([0.0, 0.0, 1.0])
Row = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """A thin disk on a plane; its axis is at the angle `tilt` to the vertical, `rates` are in the body."""

    name: str
    coin: dict[str, float]
    tilt: float
    rates: tuple[float, float, float]

    @property
    def start(self) -> np.ndarray:
        """Place of the centre, rotation and angular velocity in the body, 15 numbers."""
        c, s = np.cos(self.tilt), np.sin(self.tilt)
        turn = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
        return np.concatenate([[0.0, 0.0, self.coin["r"] * s], turn.ravel(), self.rates])

    @property
    def task(self) -> Row:
        """The start as the workers take it."""
        turn = self.start[3:12].reshape(3, 3)
        spin = turn @ self.start[12:]
        return {
            "coin": self.coin,
            "place": self.start[:3].tolist(),
            "turn": turn.tolist(),
            "velocity": (-np.cross(spin, contact(self.coin["r"], turn[:, 2]))).tolist(),
            "rates": list(self.rates),
        }


PROBLEMS = (
    Problem("coin", {"m": 1.0, "r": 0.1, "A": 0.0025, "C": 0.005, "g": 9.81}, 1.25, (1.2, -3.1, 20.8)),
    Problem("wheel", {"m": 2.0, "r": 0.3, "A": 0.0603, "C": 0.12, "g": 9.81}, np.pi / 2, (0.5, 0.0, 6.0)),
)


def contact(r: float, axis: np.ndarray) -> np.ndarray:
    """From the centre to the lowest point of the rim."""
    down = axis[2] * axis - UP
    return r * down / np.linalg.norm(down)


def motion(coin: dict[str, float]) -> Callable[[float, np.ndarray], np.ndarray]:
    """Newton's and Euler's equations with the reaction eliminated, a function of the 15 numbers."""
    m, r, g = coin["m"], coin["r"], coin["g"]
    inertia = np.diag([coin["A"], coin["A"], coin["C"]])

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        turn = y[3:12].reshape(3, 3)
        axis, W = turn[:, 2], turn @ y[12:]
        I, c = turn @ inertia @ turn.T, contact(r, axis)
        moved = np.cross(W, axis)
        down, fall = axis[2] * axis - UP, moved[2] * axis + axis[2] * moved
        size = np.linalg.norm(down)
        dc = r * (fall / size - down * (down @ fall) / size**3)
        torque = m * np.cross(c, g * UP - np.cross(W, dc)) - np.cross(W, I @ W)
        turning = np.linalg.solve(I + m * (c @ c * np.eye(3) - np.outer(c, c)), torque)
        spun = np.cross(W, turn, axisb=0, axisc=0)
        return np.concatenate([-np.cross(W, c), spun.ravel(), turn.T @ turning])

    return rate


def flow(problem: Problem, span: float = SPAN, tolerance: float = 1e-13) -> np.ndarray:
    """The place of the centre at the end."""
    rate = motion(problem.coin)
    found = solve_ivp(rate, (0.0, span), problem.start, method="DOP853", rtol=tolerance, atol=tolerance)
    return np.asarray(found.y[:3, -1])


def observed(coin: dict[str, float], rows: np.ndarray) -> Row:
    """How far energy goes from its first value, and the largest gap to the plane and slip over it."""
    x, v, turns, rates = rows[:, :3], rows[:, 3:6], rows[:, 6:15].reshape(-1, 3, 3), rows[:, 15:]
    arms = np.array([contact(coin["r"], turn[:, 2]) for turn in turns])
    moments = np.array([coin["A"], coin["A"], coin["C"]])
    kinetic = 0.5 * coin["m"] * np.sum(v**2, axis=1) + 0.5 * rates**2 @ moments
    energy = kinetic + coin["m"] * coin["g"] * x[:, 2]
    slip = v + np.cross(np.einsum("kij,kj->ki", turns, rates), arms)
    return {
        "energy": float(np.max(np.abs(energy - energy[0])) / energy[0]),
        "gap": float(np.max(np.abs(x[:, 2] + arms[:, 2]))),
        "slip": float(np.max(np.linalg.norm(slip, axis=1))),
    }


def ask(python: str, package: str, task: Row) -> list[Row]:
    """The answers of two processes in turn, the first with an empty cache; what fails is a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"NOSLIP_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        answers = []
        for _ in range(2):
            done = subprocess.run(
                [python, str(WORKER), package], input=json.dumps(task), capture_output=True, text=True,
                env=os.environ | given,
            )  # fmt: skip
            if done.returncode:
                return [{"failed": (done.stderr.strip().splitlines() or ["no reason given"])[-1]}]
            answers.append(json.loads(done.stdout.splitlines()[-1]))
        return answers


def row_of(
    problem: Problem, rival: tuple[str, str, list[int]], step: float, end: np.ndarray, python: str
) -> Row:
    """One line of the tables."""
    package, method, settings = rival
    steps = round(SPAN / step)
    how = {"method": method, "settings": settings, "step": step, "steps": steps, "every": steps // SAVED}
    name = f"{NAMES[package]} {method}" + (f"({settings[0]})" if settings else "")
    row = {"problem": problem.name, "by": name, "step": step}
    answers = ask(sys.executable if package == "noslip" else python, package, problem.task | how)
    if "failed" in answers[0]:
        return row | answers[0]
    rows = np.array(answers[0]["rows"])
    if len(rows) != SAVED + 1:
        raise ValueError(f"{name} must give {SAVED + 1} rows, but {len(rows)} came")
    return (
        row
        | {"error": float(np.linalg.norm(rows[-1, :3] - end))}
        | observed(problem.coin, rows)
        | {"seconds": min(answer["seconds"] for answer in answers) / SPAN}
        | {"setup": answers[0]["setup"], "setup again": answers[1]["setup"]}
        | {"version": answers[0]["version"]}
    )


def measure(python: str, show: Callable[[Row], None] = lambda row: None) -> Row:
    """All rows; `python` is the interpreter that has Exudyn and MuJoCo."""
    rows: list[Row] = []
    truths: dict[str, Row] = {}
    for problem in PROBLEMS:
        end = flow(problem)
        truths[problem.name] = {
            "place": end.tolist(),
            "tolerance 1e-12": float(np.linalg.norm(flow(problem, tolerance=1e-12) - end)),
            "ReferenceFlow": float(np.linalg.norm(by_reference_flow(problem) - end)),
        }
        for rival in RIVALS:
            for step in STEPS:
                rows.append(row_of(problem, rival, step, end, python))
                show(rows[-1])
    found = {row["by"].split()[0]: row.pop("version") for row in rows if "version" in row}
    return {
        "benchmark": "rolling",
        "versions": found | versions(),
        "span": SPAN,
        "truth": truths,
        "rows": rows,
    }


def by_reference_flow(problem: Problem) -> np.ndarray:
    """The place at the end, by noslip's own reference."""
    task = problem.task
    u = rotations.from_matrix(np.array(task["turn"]))
    q = np.concatenate([task["place"], u])
    v = np.concatenate([task["velocity"], rotations.from_rates(u, np.array(task["rates"]))])
    system = rolling_coin.system(**problem.coin)
    return simulate(system, ReferenceFlow(), q, v, step_size=SPAN / SAVED, steps=SAVED).q[-1, :3]


def markdown(result: Row, problem: str) -> str:
    """The table of a problem."""
    head = (
        "by",
        "step",
        "error of place",
        "energy",
        "gap",
        "slip",
        "time per second",
        "set-up",
        "set-up again",
    )
    lines: list[tuple[str, ...]] = []
    for row in result["rows"]:
        if row["problem"] != problem:
            continue
        if "failed" in row:
            lines.append((row["by"], f"{1e3 * row['step']:g} ms", row["failed"]))
            continue
        sizes = (
            f"{row['error']:.1e} m",
            f"{row['energy']:.0e}",
            f"{row['gap']:.0e} m",
            f"{row['slip']:.0e} m/s",
        )
        times = (f"{1e3 * row['seconds']:.3g} ms", f"{row['setup']:.2g} s", f"{row['setup again']:.2g} s")
        lines.append((row["by"], f"{1e3 * row['step']:g} ms", *sizes, *times))
    return table(head, lines)


def sections(result: Row) -> dict[str, str]:
    """What the page shows: a table for each problem, how sure the truth is, and the versions."""
    sure = [
        (name, f"{found['tolerance 1e-12']:.0e} m", f"{found['ReferenceFlow']:.0e} m")
        for name, found in result["truth"].items()
    ]
    return {
        **{f"rolling {problem}": markdown(result, problem) for problem in result["truth"]},
        "rolling truth": table(("", "SciPy at a tolerance of 1e-12", "noslip's `ReferenceFlow`"), sure),
        "rolling versions": ", ".join(f"{name} {value}" for name, value in result["versions"].items()),
    }
