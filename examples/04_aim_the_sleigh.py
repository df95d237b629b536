"""Gradients through a whole simulation: with which push does the sleigh pass through a given point?

`simulate` is differentiable in the initial state and the parameters; each implicit step contributes
its exact derivative, not that of its iterations.
"""

import jax
import jax.numpy as jnp
import numpy as np

from noslip import simulate
from noslip.integrators import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh

TARGET = jnp.array([3.0, 2.0])
SLEIGH = chaplygin_sleigh.system()
Q0 = jnp.array([0.0, 0.0, 0.0])


@jax.jit
def end(push):
    """Where the sleigh is at t = 6, for push = (speed along the blade, turning rate)."""
    v0 = jnp.array([push[0], 0.0, push[1]])
    return simulate(SLEIGH, VelocityNonholonomic(), Q0, v0, step_size=0.05, steps=120).q[-1, :2]


def miss(push):
    return jnp.sum((end(push) - TARGET) ** 2)


if __name__ == "__main__":
    push = jnp.array([0.5, 0.1])
    gradient = jax.grad(miss)(push)
    eps = 1e-6
    differences = [(miss(push + eps * d) - miss(push - eps * d)) / (2 * eps) for d in np.eye(2)]
    print("gradient of the miss:          ", gradient)
    print("the same by finite differences:", np.array(differences))

    jacobian = jax.jit(jax.jacobian(end))
    for iteration in range(8):
        print(f"{iteration}: push {np.asarray(push)}, misses by {float(jnp.sqrt(miss(push))):.1e}")
        if miss(push) < 1e-20:
            break
        push = push - jnp.linalg.solve(jacobian(push), end(push) - TARGET)  # Newton's method
