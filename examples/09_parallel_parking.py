"""Parallel parking of a car with a trailer, by optimisation through the steps and by collocation.

Both look for a drive and a position of the steering wheel, held for 16 intervals of a second, that take the
car from rest in the lane to rest in the gap between two parked cars, with the least effort, by SciPy's SLSQP.

Shooting: the controls are the only unknowns. The car is simulated by a method that keeps the constraints, and
the end of the run and the clearances are differentiated through its steps. Every iterate is a motion of the
car, and the last one ends in the gap.

Collocation: the states at the nodes are unknowns as well, and equations say that they fit x' = f(x, controls)
by the rule of Hermite and Simpson, with one or two intervals to a second. Nothing but the accuracy of that
rule keeps the states on the constraints of the wheels. It begins at what shooting has found.

Run it with a folder for the picture, `demo-output` by default.
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import Bounds, minimize

from noslip import System, simulate
from noslip.integrators import LobattoSpark, ReferenceFlow
from noslip.systems import car_with_trailers

N, H = 16, 1.0  # intervals of the controls, and their length
METHOD, STEPS = LobattoSpark(3), 4  # of the simulation, and its steps in each
START, GOAL = np.array([2.2, 1.3, 0.0, 0.0, 0.0]), np.zeros(5)
LIMITS = np.array([1.0, 0.6])  # of the drive and of the wheel; the unknowns are in units of these
PARKED, HALF = np.array([[3.8, 0.0], [-4.1, 0.0]]), np.array([1.0, 0.4])  # middles, half length and width
BODIES = np.array([[1.2, -0.25], [0.72, -0.3]]), 0.35  # front and rear of car and trailer; half their width


def force(q, v, t, p):
    """A motor against drag, and a servo that turns the front wheels to where the wheel says."""
    push = p["drive"] - p["drag"] * (v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2]))
    servo = p["stiffness"] * (p["wheel"] - q[3]) - p["damping"] * v[3]
    return jnp.array([push * jnp.cos(q[2]), push * jnp.sin(q[2]), 0.0, servo, 0.0])


def car():
    bare = car_with_trailers.system(k=1)
    plain = {name: x for name, x in bare.parameters.items() if name not in bare.inputs}
    return System(
        bare.lagrangian, one_forms=bare.one_forms, force=force, coordinates=bare.coordinates,
        parameters={**plain, "drag": 1.0, "stiffness": 1.8, "damping": 1.2},
        inputs={"drive": 0.0, "wheel": 0.0}, angles=("theta", "theta1"),
    )  # fmt: skip


CAR = car()


def clearances(q):
    """Of points along car and trailer from the parked cars, whose corners are a little rounded."""
    (ends, width), d = BODIES, CAR.parameters["d"]
    trailer = q[:2] - d * jnp.array([jnp.cos(q[4]), jnp.sin(q[4])])
    points = []
    for place, heading, (front, rear) in ((q[:2], q[2], ends[0]), (trailer, q[4], ends[1])):
        ahead = jnp.array([jnp.cos(heading), jnp.sin(heading)])
        aside = jnp.array([-ahead[1], ahead[0]])
        along = np.linspace(rear, front, 4)
        points += [place + x * ahead + y * aside for x in along for y in (width, 0.0, -width)]
    away = (jnp.stack(points)[:, None] - PARKED) / HALF
    return jnp.ravel(jnp.sum(away**6, axis=-1) ** (1 / 6) - 1)


def end(q, v):
    """Zero where the car stands in the gap; the other velocities follow from these two."""
    return jnp.concatenate([q - GOAL, v[jnp.array([0, 3])]])


def solve(conditions, first, iterations=200):
    """The least sum of squares of the last 2 N unknowns, the controls, where conditions(x) are (what must be
    zero, what must not be negative). Returns SciPy's result, and the seconds without those of compiling."""
    values, slopes = remembered(jax.jit(conditions)), remembered(jax.jit(jax.jacfwd(conditions)))
    rules = [
        {"type": kind, "fun": lambda x, k=k: values(x)[k], "jac": lambda x, k=k: slopes(x)[k]}
        for k, kind in enumerate(("eq", "ineq"))
    ]
    limits = np.r_[np.full(first.size - 2 * N, np.inf), np.ones(2 * N)]
    controls = np.isfinite(limits).astype(float)
    values(first), slopes(first)
    begun = time.perf_counter()
    found = minimize(
        lambda x: (H * controls @ x**2, 2 * H * controls * x), first, jac=True, method="SLSQP",
        bounds=Bounds(-limits, limits), constraints=rules, options={"maxiter": iterations, "ftol": 1e-10},
    )  # fmt: skip
    return found, time.perf_counter() - begun


def remembered(function):
    """SLSQP asks for equations and inequalities one after the other, at the same x."""
    memory = {}

    def call(x):
        if (key := x.tobytes()) not in memory:
            memory.clear()
            memory[key] = jax.tree.map(np.asarray, function(x))
        return memory[key]

    return call


# ---- shooting --------------------------------------------------------------------------------------------
def motion(x, method=METHOD, steps=STEPS):
    """The run under the controls x."""
    u = jnp.repeat(LIMITS * x.reshape(-1, 2), steps, axis=0)
    inputs = {"drive": u[:, 0], "wheel": u[:, 1]}
    return simulate(CAR, method, START, np.zeros(5), step_size=H / steps, steps=N * steps, inputs=inputs)


def shooting(x):
    run = motion(x)
    return end(run.q[-1], run.v[-1]), jnp.ravel(jax.vmap(clearances)(run.q[:: STEPS // 2]))


def sketch():
    """Back, then ahead, with two turns of the wheel."""
    t = (np.arange(N) + 0.5) / N
    return np.stack([np.where(t < 0.55, -0.4, 0.4), 0.5 * np.cos(4 * np.pi * t)], axis=1).ravel()


# ---- collocation -----------------------------------------------------------------------------------------
def slope(state, u):
    """x' = f(x, u) with x = (q, v); the multipliers are eliminated."""
    q, v = state[:5], state[5:]
    return jnp.concatenate([v, CAR.acceleration(q, v, parameters={"drive": u[0], "wheel": u[1]})])


def unpacked(x):
    """The states at the nodes, those halfway on the cubic between them, and the mean slopes."""
    states = jnp.concatenate([jnp.r_[START, jnp.zeros(5)][None], x[: -2 * N].reshape(-1, 10)])
    h = N * H / (len(states) - 1)
    u = jnp.repeat(LIMITS * x[-2 * N :].reshape(-1, 2), (len(states) - 1) // N, axis=0)
    left, right = jax.vmap(slope)(states[:-1], u), jax.vmap(slope)(states[1:], u)
    middles = (states[:-1] + states[1:]) / 2 + h / 8 * (left - right)
    return states, middles, (left + 4 * jax.vmap(slope)(middles, u) + right) / 6


def collocation(x):
    states, _, mean = unpacked(x)
    intervals = len(states) - 1
    defects = states[1:] - states[:-1] - N * H / intervals * mean
    zero = jnp.concatenate([jnp.ravel(defects), end(states[-1, :5], states[-1, 5:])])
    return zero, jnp.ravel(jax.vmap(clearances)(states[intervals // N :: intervals // N, :5]))


def off_the_constraints(states):
    return np.max(np.abs(jax.vmap(CAR.phi)(states[:, :5], states[:, 5:])), axis=1)


# ---- both ------------------------------------------------------------------------------------------------
def judged(found, seconds, states, between):
    """What is printed and drawn of a solution: its states at and, if it has any, between the nodes, and its
    controls replayed by the exact flow."""
    if not found.success:
        raise RuntimeError(f"no solution was found: {found.message}")
    replay = motion(found.x[-2 * N :], ReferenceFlow(), 1)
    return {
        "unknowns": found.x.size, "iterations": found.nit, "seconds": seconds, "effort": found.fun,
        "states": states, "open": np.max(np.abs(end(states[-1, :5], states[-1, 5:]))),
        "nodes": off_the_constraints(states),
        "between": None if between is None else off_the_constraints(between),
        "replay": replay.q, "missed": np.max(np.abs(replay.q[-1] - GOAL)),
    }  # fmt: skip


def by_shooting():
    found, seconds = solve(shooting, sketch())
    run = motion(found.x)
    states = np.hstack([run.q, run.v])
    return found.x, judged(found, seconds, states, None)


def by_collocation(x, nodes):
    run = motion(x, steps=STEPS)
    first = np.r_[np.hstack([run.q, run.v])[STEPS // nodes :: STEPS // nodes].ravel(), x]
    found, seconds = solve(collocation, first)
    states, between, _ = map(np.asarray, unpacked(found.x))
    return judged(found, seconds, states, between)


def picture(rows, file):
    from matplotlib.figure import Figure

    from noslip.plots.stills import from_above
    from noslip.plots.trajectory import COLOURS, STYLES
    from noslip.scenes import Stage

    figure = Figure(figsize=(12, 4.6), layout="constrained")
    plane, residual = figure.subplots(1, 2, width_ratios=(1.7, 1))
    angle = np.linspace(0, 2 * np.pi, 200)
    shape = np.stack([np.cos(angle), np.sin(angle)])
    shape = shape / (np.cos(angle) ** 6 + np.sin(angle) ** 6) ** (1 / 6)
    for middle in PARKED:
        plane.fill(*(middle[:, None] + HALF[:, None] * shape), color="0.8")
    states = rows["shooting"]["states"]
    for k, shade in zip(range(0, len(states), 8), np.linspace(0.75, 0.0, len(states[::8])), strict=True):
        for curve in from_above(Stage(car_with_trailers.scene, CAR.parameters), states[k, :5]):
            plane.plot(*curve.T, color=str(shade), lw=1)
    for k, (name, row) in enumerate(rows.items()):
        style = {"color": COLOURS[k], "linestyle": STYLES[k], "label": name}
        plane.plot(row["replay"][:, 0], row["replay"][:, 1], marker=".", ms=4, **style)
        t, size = np.linspace(0, N * H, len(row["nodes"]))[1:], row["nodes"][1:]
        if row["between"] is not None:
            t = np.concatenate([t, t - t[0] / 2])
            size = np.concatenate([size, row["between"]])[np.argsort(t)]
        residual.semilogy(np.sort(t), np.maximum(size, 1e-18), **style)
    plane.set(xlabel="x", ylabel="y", aspect="equal", title="the rear axle where the controls really take it")
    plane.legend(loc="upper left", fontsize="small")
    residual.set(xlabel="t", ylabel="largest sideways speed of a wheel", ylim=(1e-18, 1))
    residual.legend(loc="center right", fontsize="small")
    figure.savefig(file, dpi=150)


def main(folder):
    x, row = by_shooting()
    rows = {"shooting": row} | {f"collocation, {n * N}": by_collocation(x, n) for n in (1, 2)}
    print("                 unknowns  effort  end open  off the constraints  end missed")
    print("                                   as found  at nodes   between   in the exact replay")
    for name, row in rows.items():
        between = "-" if row["between"] is None else f"{row['between'].max():.0e}"
        print(
            f"{name:16} {row['unknowns']:8} {row['effort']:8.3f}     {row['open']:.0e}     "
            f"{row['nodes'].max():.0e}     {between:>5}     {row['missed']:.0e}"
        )
    for name, row in rows.items():
        print(f"measured: {name} took {row['iterations']} iterations and {row['seconds']:.1f} s")
    folder.mkdir(parents=True, exist_ok=True)
    picture(rows, folder / "parking.png")
    print("wrote", folder / "parking.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
