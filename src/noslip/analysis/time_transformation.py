"""The error in physical time of a method that steps in tau: FBO proposition 1, its estimate, and the truth.

With F = 1/f along the motion in tau, the trapezoidal rule (35) for t = int F dtau misses by at most

    |delta t_i| <= h^3 / 12 sum_{l <= i} C_l,      C_l >= |F''(r(tau))| on (tau_{l-1}, tau_l)        (36)

F'' is a function of (r, r'), since r'' follows from the Euler-Lagrange equations of Lc (remark 1). The
a-priori bound takes it along the exact motion, the a-posteriori one at (r_{l-1}, (r_l - r_{l-1}) / h), as in
(60). Both are about the quadrature alone; the time that a run reports also carries the error of its
trajectory, which is larger.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.integrate import solve_ivp

from noslip.analysis.reduced import multiplier_along
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.geometry.groups import Group
from noslip.geometry.hamiltonization import Hamiltonization
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.numerics.linear import spd_solve
from noslip.system import System
from noslip.trajectory import Trajectory

INNER = 4  # points in each step at which |F''| is looked at for the a-priori bound


@dataclass(frozen=True)
class TimeErrors:
    """At each tau: the bound (36) with exact and with estimated C_l, and the actual error of `run.t`."""

    tau: np.ndarray
    a_priori: np.ndarray
    a_posteriori: np.ndarray
    actual: np.ndarray


def time_errors(system: System, integrator: HamiltonizedDEL, run: Trajectory) -> TimeErrors:
    """The three along a run that holds every step."""
    if run.info.save_every != 1:
        raise ValueError(f"the run must hold every step, but save_every = {run.info.save_every} was used")
    system = system.with_parameters(run.info.parameters)
    group, h = make_group(system, integrator.group), run.info.step_size
    base = Reduction(system, group).base_index
    r, f = run.q[:, base], multiplier_along(system, group, run.q)
    C = evaluate_anyhow(_second_derivative, group, system, r[:-1], np.diff(r, axis=0) / h, f[:-1])
    estimated = np.concatenate([[0.0], np.cumsum(np.abs(C))])

    fine = np.linspace(0, run.tau[-1], INNER * (len(r) - 1) + 1)
    *exact, t = _motion(system, group, run, fine)
    curved = np.abs(evaluate_anyhow(_second_derivative, group, system, *exact))
    each = np.max(np.stack([curved[k : len(fine) - INNER + k : INNER] for k in range(INNER + 1)]), axis=0)
    true = np.concatenate([[0.0], np.cumsum(each)])
    return TimeErrors(run.tau, h**3 / 12 * true, h**3 / 12 * estimated, run.t - t[::INNER])


def _second_derivative(group: Group, system: System, r: Array, slope: Array, f: Array) -> Array:
    """F'' at (r, r'), where the multiplier is f."""
    made = Hamiltonization(Reduction(system, group))

    def rate(x: Array) -> Array:
        return 1 / (f * made.multiplier(r, x))

    def lagrangian(x: Array, slope: Array) -> Array:
        return made.reduced.constrained_lagrangian(x, slope / rate(x))

    momentum = jax.grad(lagrangian, 1)
    mass = jax.jacfwd(momentum, 1)(r, slope)
    transport = jax.jvp(lambda x: momentum(x, slope), (r,), (slope,))[1]
    bend = spd_solve(
        mass, jax.grad(lagrangian, 0)(r, slope) - transport
    )  # r'' of the Euler-Lagrange equations

    def first(x: Array, slope: Array) -> Array:
        return jax.jvp(rate, (x,), (slope,))[1]

    return jax.jvp(first, (r, slope), (slope, bend))[1]


def _motion(system: System, group: Group, run: Trajectory, tau: np.ndarray) -> tuple[np.ndarray, ...]:
    """r, r', f and t of the exact motion at the times tau."""
    made = Hamiltonization(Reduction(system, group))
    base = made.reduced.base_index

    @jax.jit
    def rate(x: Array) -> Array:
        r, w = x[:-2].reshape(2, -1)
        growth = jnp.dot(made.omega(r), w)
        moving = [w, made.reduced.acceleration(r, w), growth[None], jnp.ones(1)]
        return jnp.concatenate(moving) / jnp.exp(x[-2])

    first = np.concatenate([run.q[0, base], run.v[0, base], [0.0], run.t[:1]])
    solved = solve_ivp(
        lambda _, x: np.asarray(rate(x)), (0, tau[-1]), first, "DOP853", t_eval=tau, rtol=1e-13, atol=1e-14
    ).y
    r, w = solved[:-2].T.reshape(len(tau), 2, -1).swapaxes(0, 1)
    f = np.exp(solved[-2])
    return r, w / f[:, None], f, solved[-1]
