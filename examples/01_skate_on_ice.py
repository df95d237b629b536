"""State a system once: a skate on tilted ice. Its blade moves along itself and never sideways.

Run it with a folder for the picture and the data, `demo-output` by default.
"""

import sys
from pathlib import Path

import jax.numpy as jnp

from noslip import System, load, simulate
from noslip.integrators import VelocityNonholonomic


def lagrangian(q, v, p):
    kinetic = 0.5 * p["m"] * (v[0] ** 2 + v[1] ** 2) + 0.5 * p["J"] * v[2] ** 2
    return kinetic + p["m"] * p["g"] * jnp.sin(p["tilt"]) * q[0]  # x points downhill


def one_forms(q, p):
    return jnp.array([[-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]])  # no motion across the blade


def along_the_blade(q, v, p):
    return v[0] * jnp.cos(q[2]) + v[1] * jnp.sin(q[2]) - p["g"] * jnp.sin(p["tilt"]) * jnp.sin(q[2]) / v[2]


skate = System(
    lagrangian,
    one_forms=one_forms,
    coordinates=("x", "y", "theta"),
    angles=("theta",),
    parameters={"m": 1.0, "J": 0.5, "g": 9.81, "tilt": 0.1},
    first_integrals={"speed_balance": along_the_blade},
)

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output")
    folder.mkdir(parents=True, exist_ok=True)

    # any velocity can be made admissible; here the skate stands still and turns
    q0 = jnp.array([0.0, 0.0, 0.0])
    v0 = skate.project_velocity(q0, jnp.array([0.0, 0.0, 1.5]))
    run = simulate(skate, VelocityNonholonomic(), q0, v0, step_size=0.02, t_end=20.0)

    print(run)
    print("multiplier, the sideways force of the ice, at t = 0 and 1:", run.multipliers[[0, 50], 0])
    print(f"largest constraint residual: {abs(run.constraint_residual).max():.1e}")
    # the surprise of this system: on a slope, the skate moves sideways and does not go down
    print(f"after t = {run.t[-1]:g}: downhill {run.q[-1, 0]:.2f}, across {run.q[-1, 1]:.2f}")

    run.save(folder / "skate.nc")
    assert load(folder / "skate.nc") == run
    run.plot().savefig(folder / "skate.png", dpi=150)
    print("wrote", folder / "skate.nc", "and", folder / "skate.png")
