"""A robot with two motors follows a figure of eight, steered by model-predictive control at 1 kHz.

Every millisecond the controller looks 0.3 s ahead: it simulates its model with six pairs of voltages, takes
the exact derivative of that run by all of them, and makes one Gauss-Newton step towards the path, within
what the battery can give (the real-time iteration: the next tick goes on from there). The first pair of
voltages is held for a millisecond of the plant, a prepared run that is taken one step at a time.

The plant is not the model: it carries 25 % more mass, its wheels have more friction, and for half a
second the left motor loses 4 volts. Voltages computed beforehand (inverse dynamics of the path) would be
right for the model.

Run it with a folder for the picture, `demo-output` by default.
"""

import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from noslip import prepare, simulate
from noslip.integrators import RungeKutta4, SemiImplicitDLA
from noslip.systems import differential_drive

TICK, LOOK, AHEAD = 1e-3, 0.05, 6  # seconds of a tick, seconds of a step of the model, their number
BATTERY = 12.0
MODEL = differential_drive.system(m=8.0, J=0.3, a=0.05, b=0.2, r=0.1, I=0.02, k=0.8, R=1.5, c=0.02)
PLANT = MODEL.with_parameters({"m": 10.0, "c": 0.05})
OUTAGE = (2.0, 2.5, -4.0)  # from, until, volts at the left motor


def path(t):
    """x, y and heading: a figure of eight in 8 s, two metres wide."""
    w = 2 * jnp.pi / 8.0
    x, y = jnp.sin(w * t), 0.5 * jnp.sin(2 * w * t)
    return x, y, jnp.arctan2(w * jnp.cos(2 * w * t), w * jnp.cos(w * t))


def rates(t):
    """Speed ahead and turning rate."""
    _, (dx, dy, turn) = jax.jvp(path, (t,), (1.0,))
    return jnp.hypot(dx, dy), turn


def voltages(t):
    """Those that drive the model along the path: its reduced equations, read backwards."""
    p = MODEL.parameters
    (u, w), (du, dw) = jax.jvp(rates, (t,), (1.0,))
    A = p["m"] + 2 * p["I"] / p["r"] ** 2
    B = p["J"] + p["m"] * p["a"] ** 2 + 2 * p["I"] * p["b"] ** 2 / p["r"] ** 2
    loss, gain = 2 * (p["k"] ** 2 / p["R"] + p["c"]) / p["r"] ** 2, p["k"] / (p["r"] * p["R"])
    total = (A * du - p["m"] * p["a"] * w**2 + loss * u) / gain
    difference = (B * dw + p["m"] * p["a"] * u * w + loss * p["b"] ** 2 * w) / (gain * p["b"])
    return jnp.array([total - difference, total + difference]) / 2


def plan(seconds):
    """Path, heading (unwrapped) and voltages at every tick, and as far beyond as the controller looks."""
    t = TICK * np.arange(round(seconds / TICK) + 1 + round(AHEAD * LOOK / TICK))
    (x, y, heading), planned = jax.jit(jax.vmap(lambda t: (path(t), voltages(t))))(t)
    return np.stack([x, y, np.unwrap(heading)], axis=1), np.asarray(planned)


def start(poses):
    """On the path, with its speed."""
    q = np.array([*poses[0], 0.0, 0.0])
    return q, np.asarray(jax.jit(MODEL.frame)(q, MODEL.parameters)) @ np.array(jax.jit(rates)(0.0))


def misses(V, q, v, poses, planned):
    """What a plan V of voltages gets wrong, weighted: places (5 cm), headings (0.1), voltages (20 V)."""
    inputs = {"voltage_left": V[:, 0], "voltage_right": V[:, 1]}
    run = simulate(MODEL, RungeKutta4(), q, v, step_size=LOOK, steps=AHEAD, inputs=inputs)
    weights = jnp.array([1 / 0.05, 1 / 0.05, 1 / 0.1])
    found = jnp.concatenate([jnp.ravel((run.q[1:, :3] - poses) * weights), jnp.ravel(V - planned) / 20])
    return found, found


@jax.jit
def better(V, q, v, poses, planned):
    """One Gauss-Newton step within the limits: a small quadratic program, by accelerated projections."""
    D, r = jax.jacfwd(misses, has_aux=True)(V, q, v, poses, planned)
    D = D.reshape(r.size, -1)
    H, g, low, high = D.T @ D, D.T @ r, -BATTERY - jnp.ravel(V), BATTERY - jnp.ravel(V)
    step = 1 / jnp.linalg.norm(H)

    def improve(k, state):
        d, ahead = state
        new = jnp.clip(ahead - step * (H @ ahead + g), low, high)
        return new, new + k / (k + 3) * (new - d)

    first = jnp.clip(-jnp.linalg.solve(H, g), low, high)
    d, _ = jax.lax.fori_loop(0, 10, improve, (first, first))
    return V + d.reshape(V.shape)


def drive(seconds, controlled, plant=PLANT, outage=OUTAGE):
    """The poses of the plant, those wanted, and the time of each tick, by the clock and of the processor."""
    poses, planned = plan(seconds)
    q, v = start(poses)
    robot = prepare(plant, SemiImplicitDLA(), step_size=TICK, steps=1).start(q, v)
    looks = round(LOOK / TICK) * np.arange(1, AHEAD + 1)
    V = planned[looks - looks[0]]
    if controlled:
        V = np.asarray(better(V, q, v, poses[looks], V))  # compiles
    steps = round(seconds / TICK)
    seen, ticks = np.empty((steps + 1, 3)), np.empty((steps, 2))
    seen[0] = q[:3]
    for k in range(steps):
        begun, worked = time.perf_counter(), time.process_time()
        if controlled:
            V = np.asarray(better(V, robot.q, robot.v, poses[k + looks], planned[k + looks - looks[0]]))
            left, right = V[0]
        else:
            left, right = np.clip(planned[k], -BATTERY, BATTERY)
        ticks[k] = time.perf_counter() - begun, time.process_time() - worked
        lost = outage[2] if outage[0] <= k * TICK < outage[1] else 0.0
        robot.step({"voltage_left": float(left) + lost, "voltage_right": float(right)})
        seen[k + 1] = robot.q[:3]
    return seen, poses[: steps + 1], ticks


def picture(runs, wanted, ticks, file):
    from matplotlib.figure import Figure

    from noslip.plots.trajectory import COLOURS, STYLES

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    plane, error, times = figure.subplots(1, 3, width_ratios=(1.3, 1, 1))
    plane.plot(wanted[:, 0], wanted[:, 1], color="black", lw=4, alpha=0.25, label="path")
    t = TICK * np.arange(len(wanted))
    for k, (label, seen) in enumerate(runs.items()):
        style = {"color": COLOURS[k], "linestyle": STYLES[k], "label": label}
        plane.plot(seen[:, 0], seen[:, 1], **style)
        error.semilogy(t[1:], 1e3 * np.linalg.norm((seen - wanted)[1:, :2], axis=1), **style)
    plane.set(xlabel="x in m", ylabel="y in m", aspect="equal", adjustable="datalim")
    plane.legend(loc="upper center", ncols=3, fontsize="small")
    plane.margins(y=0.25)
    error.axvspan(*OUTAGE[:2], color="black", alpha=0.12)
    error.set(xlabel="t in s", ylabel="distance from where it should be, mm", ylim=(0.1, 3e3))
    error.set_title("grey: the left motor loses 4 V")
    edges = np.geomspace(0.1, 10, 60)
    for k, label in enumerate(("clock", "processor")):
        style = {"color": COLOURS[k], "linestyle": STYLES[k], "label": label}
        times.hist(np.clip(1e3 * ticks[:, k], 0.1, 10), edges, histtype="step", lw=1.6, **style)
    times.axvline(1.0, color="black", lw=0.8)
    times.set(xscale="log", xlabel="time of a tick in ms", ylabel="ticks", title="line: 1 ms")
    times.legend()
    figure.savefig(file, dpi=150)


def main(folder, seconds=8.0):
    runs = {}
    for label, controlled in (("planned voltages", False), ("controlled", True)):
        runs[label], wanted, ticks = drive(seconds, controlled)
        away = np.linalg.norm(runs[label][:, :2] - wanted[:, :2], axis=1)
        print(
            f"{label}: off the path by {1e3 * np.sqrt(np.mean(away**2)):.0f} mm (root mean square), ", end=""
        )
        print(f"{1e3 * away.max():.0f} mm at most, {1e3 * away[-1]:.0f} mm at the end")
    for name, x in zip(("clock", "processor"), 1e3 * ticks.T, strict=True):
        median, late, worst = np.percentile(x, [50, 99, 100])
        print(
            f"measured by the {name}: a tick takes {median:.2f} ms (median), {late:.2f} ms (99 %), ", end=""
        )
        print(f"{worst:.1f} ms at most; {np.mean(x < 1):.1%} of {len(x)} ticks are under 1 ms")
    folder.mkdir(parents=True, exist_ok=True)
    picture(runs, wanted, ticks, folder / "control.png")
    print("wrote", folder / "control.png")


if __name__ == "__main__":
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
