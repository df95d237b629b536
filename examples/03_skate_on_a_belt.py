"""A force of your own and an affine constraint: a skate on a moving belt, with drag.

The blade slides along itself relative to the belt, which moves with speed u along x:

    -sin(theta) (xdot - u) + cos(theta) ydot = 0

so one_forms(q) v + drift(q) = 0 with drift = u sin(theta). The belt does work, and so does the drag:
the energy is not constant, but its balance must close.
"""

import jax.numpy as jnp

from noslip import System, simulate
from noslip.analysis.conservation import energy_balance, energy_error
from noslip.integrators import SemiImplicitDLA


def lagrangian(q, v, p):
    return 0.5 * (v[0] ** 2 + v[1] ** 2 + p["J"] * v[2] ** 2)


def one_forms(q, p):
    return jnp.array([[-jnp.sin(q[2]), jnp.cos(q[2]), 0.0]])


def drift(q, p):
    return jnp.array([p["u"] * jnp.sin(q[2])])


def drag(q, v, t, p):
    return -p["c"] * jnp.array([v[0] - p["u"], v[1], v[2]])


skate_on_belt = System(
    lagrangian,
    one_forms=one_forms,
    drift=drift,
    force=drag,
    coordinates=("x", "y", "theta"),
    angles=("theta",),
    parameters={"J": 0.5, "u": 0.3, "c": 0.05},
)

if __name__ == "__main__":
    q0 = jnp.array([0.0, 0.0, 0.4])
    v0 = skate_on_belt.project_velocity(q0, jnp.array([1.0, 0.0, 0.8]))
    for h in (0.1, 0.05, 0.025):
        run = simulate(skate_on_belt, SemiImplicitDLA(), q0, v0, step_size=h, t_end=20.0)
        change, defect = abs(energy_error(run)).max(), abs(energy_balance(skate_on_belt, run)).max()
        print(
            f"h = {h:5}: constraint {abs(run.constraint_residual).max():.0e}, "
            f"energy changes by {change:.2f}, its balance is open by {defect:.1e}"
        )

    # parameters can be replaced for one run: a belt at rest does no work, without drag nothing does
    run = simulate(
        skate_on_belt, SemiImplicitDLA(), [0.0, 0.0, 0.0], [1.0, 0.0, 0.8],
        step_size=0.1, t_end=20.0, parameters={"u": 0.0, "c": 0.0},
    )  # fmt: skip
    print(f"at rest and without drag: energy error {abs(energy_error(run)).max():.1e}")
