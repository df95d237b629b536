"""Whether single steps of a method keep the canonical form dq ^ dp of T*Q, for systems without constraints.

The flow of a system without constraints is canonical, LMS section 1.2, and so are the maps that a generating
function or a discrete Lagrangian gives (`noslip.geometry.discrete_lagrangian`), as long as the velocity that
the method shows is that of its discrete Legendre transformation: p = dL/dv. A method that shows another
velocity, such as the quotient of two nodes, keeps the form of another chart, JS (56)-(58), and this one only
up to the error of that velocity. With constraints no such form is kept, LMS (11).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.kept import jitted
from noslip.integrators.base import Integrator
from noslip.system import System


def canonical_form_defect(
    system: System, integrator: Integrator, q0: ArrayLike, v0: ArrayLike, *, step_size: float, steps: int = 4
) -> float:
    """The largest entry of S^T J S - J over the first `steps` steps, relative to |S|^2, where S is the
    Jacobian of one step for (q, p), by automatic differentiation."""
    if system.m:
        raise ValueError(f"dq ^ dp is kept without constraints only, but the system has {system.m}")
    if reason := integrator.refusal(system):
        raise ValueError(f"{type(integrator).__name__} cannot run on this system: {reason}")
    q, v, h = (jnp.asarray(x, dtype=float) for x in (q0, v0, step_size))
    z, n, defects = jnp.concatenate([q, system.momentum(q, v)]), system.n, []
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    for _ in range(steps):
        S, z = _jacobian(integrator, system, z, h)
        S = np.asarray(S)
        defects.append(np.max(np.abs(S.T @ J @ S - J)) / np.max(np.abs(S)) ** 2)
    return float(np.max(defects))


@partial(jitted, static=("integrator",))
def _jacobian(integrator: Integrator, system: System, z: Array, h: Array) -> tuple[Array, Array]:
    n = system.n

    def step(z: Array) -> tuple[Array, Array]:
        q, v = z[:n], system.velocity(z[:n], z[n:])
        state = integrator.in_mid_run(system, q, v, jnp.zeros(()), h)
        seen = integrator.observe(integrator.advance(system, state, h)[0])
        after = jnp.concatenate([seen.q, system.momentum(seen.q, seen.v)])
        return after, after

    return jax.jacfwd(step, has_aux=True)(z)
