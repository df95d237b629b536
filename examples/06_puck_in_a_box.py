"""Impacts: a round puck on a skate bounces inside a box.

The blade is at (x, y), the centre of mass and of the puck at the distance a before it: a Chaplygin sleigh.
A wall without friction pushes along its normal n, through the centre. The constraint takes part in the
impact: what the push does is the projection d of M^{-1} n^T onto D, and v' = v - (1 + e) (n v) / (n d) d
leaves the wall with e times the speed with which it came, on the constraint. With e = 1 no energy is lost.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from noslip import Event, simulate
from noslip.integrators import DiscreteGradient, ReferenceFlow
from noslip.systems import chaplygin_sleigh

SIDE, RADIUS, METHOD = 2.0, 0.3, DiscreteGradient()
SKATE = chaplygin_sleigh.system(m=1.0, J=0.08, a=0.12)
Q0, V0 = np.array([-0.5, -0.2, 0.6]), np.array([1.4 * np.cos(0.6), 1.4 * np.sin(0.6), 2.5])


def centre(q, p):
    return jnp.array([q[0] + p["a"] * jnp.cos(q[2]), q[1] + p["a"] * jnp.sin(q[2])])


def gaps(q, p):
    """To the right, upper, left and lower wall."""
    c = centre(q, p)
    return SIDE - RADIUS - jnp.concatenate([c, -c])


def bounced(restitution):
    def reset(q, v, p):
        near = jnp.argmin(gaps(q, p))
        outward = jnp.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[near]
        n = outward @ jnp.array(
            [[1.0, 0.0, -p["a"] * jnp.sin(q[2])], [0.0, 1.0, p["a"] * jnp.cos(q[2])]]
        )  # n v is the speed of the centre towards the wall
        here = SKATE.with_parameters(p)
        d = here.project_velocity(q, here.velocity(q, n))
        return q, v - (1 + restitution) * (n @ v) / (n @ d) * d

    return reset


def wall(restitution):
    return Event(lambda q, v, p: jnp.min(gaps(q, p)), direction=-1, reset=bounced(restitution))


def play(restitution=1.0, t_end=60.0, step_size=0.02, method=METHOD):
    return simulate(
        SKATE, method, Q0, V0, step_size=step_size, t_end=t_end, events={"wall": wall(restitution)}
    )


def picture(runs, file):
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle, Rectangle

    from noslip.plots.trajectory import COLOURS

    figure = Figure(figsize=(10, 4.8), layout="constrained")
    box, energy = figure.subplots(1, 2)
    p, run = SKATE.parameters, runs[1.0]
    seen = run.at(np.linspace(0, 12, 1200))
    c = np.array([np.asarray(centre(q, p)) for q in seen.q])
    box.add_patch(Rectangle((-SIDE, -SIDE), 2 * SIDE, 2 * SIDE, fill=False, lw=2))
    box.plot(*c.T, color=COLOURS[0], lw=1.2, label="centre")
    box.plot(seen.q[:, 0], seen.q[:, 1], color=COLOURS[1], lw=0.8, ls="--", label="blade")
    there = run.events["wall"]
    for q in [Q0, *there.q[there.t < 12]]:
        middle = np.asarray(centre(q, p))
        box.add_patch(Circle(middle, RADIUS, fill=False, color="grey", lw=0.8))
        blade = 0.15 * np.array([np.cos(q[2]), np.sin(q[2])])
        box.plot(*np.stack([q[:2] - blade, q[:2] + blade]).T, color="black", lw=2)
    box.set(title="twelve seconds, and the puck at its bounces", aspect="equal")
    box.set(xlim=(-2.1, 2.1), ylim=(-2.1, 2.1))
    box.legend(loc="lower left", fontsize=8)
    for k, (restitution, found) in enumerate(runs.items()):
        energy.plot(found.t, found.energy, color=COLOURS[k], label=f"e = {restitution}")
    energy.set(title="energy", xlabel="t", ylim=(0, 1.15 * float(run.energy[0])))
    energy.legend(loc="center right")
    figure.savefig(file, dpi=150)


def main(folder):
    runs = {e: play(e) for e in (1.0, 0.8)}
    run = runs[1.0]
    there, p = run.events["wall"], SKATE.parameters
    print(f"{len(there)} bounces in 60 s")
    values = [abs(float(jnp.min(gaps(q, p)))) for q in there.q]
    print(f"gap at a bounce at most {max(values):.0e}")
    print(f"energy error {np.max(np.abs(run.energy - run.energy[0])):.0e}")
    print(f"constraint {np.max(np.abs(run.constraint_residual)):.0e}")
    print(f"least gap of a row {min(float(jnp.min(gaps(q, p))) for q in run.q):.0e}")
    exact = play(t_end=10.0, method=ReferenceFlow()).events["wall"].t
    for h in (0.04, 0.02, 0.01):
        found = play(t_end=10.0, step_size=h).events["wall"].t
        away = np.max(np.abs(found - exact))
        print(f"steps of {h}: the first {len(exact)} bounces are {away:.1e} s from the exact ones")
    folder.mkdir(parents=True, exist_ok=True)
    picture(runs, folder / "puck.png")
    print("wrote", folder / "puck.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
