"""How should a snakeboard wiggle? The rider swings the rotor and steers; gradients find the best swing.

The rotor and the wheels are moved as the rider likes: psi = A sin(w t) and phi = B sin(w t + beta). These are
two more constraints, which contain the time, and their multipliers are the torques that the rider needs. With
equal frequencies this is the gait that drives forward; where the wheels swing twice as often, it does not.

The best gait goes two metres in four cycles, from rest, with the least effort, the integral of the squared
torques. Distance and effort are differentiated by A, B and beta through the steps.

Run it with a folder for the picture, `demo-output` by default.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

from noslip import System, simulate
from noslip.integrators import VelocityNonholonomic
from noslip.systems import snakeboard

CYCLES, STEPS = 4, 40  # and steps in a cycle
FIRST = np.array([0.4, 0.2, 0.3])  # A, B, beta
WANTED, SCALE = 2.0, 50.0  # metres, and the size of the effort


def one_forms(q, p):
    return jnp.concatenate([snakeboard.one_forms(q, p), jnp.eye(5)[3:]])


def drift(q, t, p):
    """Minus the rates of rotor and wheels."""
    rotor = p["A"] * p["w"] * jnp.cos(p["w"] * t)
    wheels = p["B"] * p["ratio"] * p["w"] * jnp.cos(p["ratio"] * p["w"] * t + p["beta"])
    return -jnp.array([0.0, 0.0, rotor, wheels])


BODY = {name: snakeboard.system().parameters[name] for name in ("m", "J", "J_r", "J_w", "l", "k")}
BOARD = System(
    snakeboard.lagrangian, one_forms=one_forms, drift=drift, coordinates=("x", "y", "theta", "psi", "phi"),
    parameters={**BODY, "A": 0.4, "B": 0.2, "beta": 0.3, "w": 2 * np.pi, "ratio": 1.0},
    angles=("theta", "psi"),
)  # fmt: skip


def ride(gait, ratio=1.0):
    """From rest but for what the rider moves."""
    A, B, beta = gait
    parameters = {"A": A, "B": B, "beta": beta, "ratio": ratio}
    q0 = jnp.array([0.0, 0.0, 0.0, 0.0, B * jnp.sin(beta)])
    v0 = BOARD.project_velocity(q0, jnp.zeros(5), 0.0, parameters=parameters)
    how = {"parameters": parameters, "step_size": 1 / STEPS, "steps": CYCLES * STEPS}
    return simulate(BOARD, VelocityNonholonomic(), q0, v0, **how)


def distance_and_effort(run):
    torques = run.multipliers[1:, 2:]
    return jnp.array([jnp.hypot(run.q[-1, 0], run.q[-1, 1]), jnp.sum(torques**2) / STEPS])


def judged(gait):
    return distance_and_effort(ride(gait))


values, slopes = jax.jit(judged), jax.jit(jax.jacrev(judged))


def best(first=FIRST):
    far = {"type": "eq", "fun": lambda x: values(x)[0] - WANTED, "jac": lambda x: slopes(x)[0]}
    return minimize(
        lambda x: (values(x)[1] / SCALE, slopes(x)[1] / SCALE), first, jac=True, method="SLSQP",
        constraints=far, bounds=[(0.1, 2.0), (0.1, 0.9), (-1.5, 1.5)], options={"ftol": 1e-10},
    )  # fmt: skip


def picture(runs, file):
    from matplotlib.figure import Figure

    from noslip.plots.stills import from_above
    from noslip.plots.trajectory import COLOURS, STYLES
    from noslip.scenes import Stage

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    plane, shape = figure.subplots(1, 2, width_ratios=(1.8, 1))
    for k, (name, run) in enumerate(runs.items()):
        style = {"color": COLOURS[k], "linestyle": STYLES[k], "label": name}
        plane.plot(run.q[:, 0], run.q[:, 1], **style)
        shape.plot(run.q[: STEPS + 1, 3], run.q[: STEPS + 1, 4], **style)
    best = runs["best"]
    for q in best.q[:: CYCLES * STEPS // 4]:
        for curve in from_above(Stage(snakeboard.scene, BODY), q):
            plane.plot(*curve.T, color="0.3", lw=1)
    plane.set(xlabel="x", ylabel="y", title="the middle of the board in four cycles", aspect="equal")
    plane.set_ylim(-0.5, 0.6)
    plane.legend(fontsize="small", loc="upper left")
    shape.set(xlabel="rotor psi", ylabel="wheels phi", title="the gaits, one cycle")
    figure.savefig(file, dpi=150)


def main(folder):
    found = best()
    if not found.success:
        raise RuntimeError(found.message)
    print("best gait: A = {:.3f}, B = {:.3f}, beta = {:.3f}".format(*found.x))
    runs = {"first": ride(FIRST), "best": ride(found.x), "first, 2:1": ride(FIRST, 2.0)}
    for name, run in runs.items():
        distance, effort = distance_and_effort(run)
        print(f"{name}: {distance:.3f} m in {CYCLES} cycles, effort {effort:.2f}, ", end="")
        print(f"off the constraints by {np.max(np.abs(run.constraint_residual)):.0e}")
    folder.mkdir(parents=True, exist_ok=True)
    picture(runs, folder / "gait.png")
    print("wrote", folder / "gait.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
