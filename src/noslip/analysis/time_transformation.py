"""The error in physical time of a method that steps in tau: FBO proposition 1, its estimate, and the truth.

With F = 1/f along the motion in tau, the rule by which a method finds t = int F dtau misses by at most

    trapezoidal (35):   h^3 / 12 sum_l C_l,       C_l >= |F''(r(tau))| on (tau_{l-1}, tau_l)            (36)
    Simpson's:          h^5 / 2880 sum_l C_l + 2 h / 3 sum_l |F(r_l) - F(r(tau_l - h / 2))|,   C_l >= |F''''|

where r_l is the midpoint that the method takes, from the cubic through both ends. Derivatives of F are
functions of (r, r'), since r'' follows from the Euler-Lagrange equations of Lc (remark 1).

The a-priori bound takes them along the exact motion, with C_l = (|g| at both ends + the variation of g in
between) / 2, g = F'' or F'''': nothing in the step can be larger, and where g rises and falls once it is its
maximum. The a-posteriori estimate takes g at (r_{l-1}, (r_l - r_{l-1}) / h), as in (60), and leaves the
midpoint out. Both are about the quadrature alone; the time that a run reports also carries the error of its
trajectory, which is larger.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.integrate import solve_ivp

from noslip.analysis.reduced import multiplier_along
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.kept import jitted
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.geometry.groups import Group
from noslip.geometry.hamiltonization import Hamiltonization
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.numerics.linear import spd_solve
from noslip.system import System
from noslip.trajectory import Trajectory

RULES = {"trapezoid": (2, 1 / 12), "simpson": (4, 1 / 2880)}  # derivative of F, constant


@dataclass(frozen=True)
class TimeErrors:
    """At each tau, of the rule that the method uses: the bound on its error along the exact motion, the
    estimate of it from the computed points, and the actual error of `run.t`."""

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
    base, (order, constant) = Reduction(system, group).base_index, RULES[integrator.time_rule]
    r, f = run.q[:, base], multiplier_along(system, group, run.q)
    how = group, order
    C = evaluate_anyhow(_derivative, how, system, r[:-1], np.diff(r, axis=0) / h, f[:-1])
    estimated = constant * h ** (order + 1) * np.abs(C)

    halves = np.linspace(0, run.tau[-1], 2 * len(r) - 1)
    r, slope, f, t, variation = _motion(system, group, order, run, halves)
    ends = np.abs(evaluate_anyhow(_derivative, how, system, r[::2], slope[::2], f[::2]))
    C = (ends[:-1] + ends[1:] + np.diff(variation[::2])) / 2
    bound = constant * h ** (order + 1) * C
    if integrator.time_rule == "simpson":
        middle = (r[:-2:2] + r[2::2]) / 2 + h / 8 * (slope[:-2:2] - slope[2::2])
        taken = evaluate_anyhow(_rate, group, system, r[:-2:2], middle, f[:-2:2])
        bound = bound + 2 * h / 3 * np.abs(taken - 1 / f[1::2])
    a_priori, a_posteriori = (np.concatenate([[0.0], np.cumsum(x)]) for x in (bound, estimated))
    return TimeErrors(run.tau, a_priori, a_posteriori, run.t - t[::2])


def _rate(group: Group, system: System, r: Array, x: Array, f: Array) -> Array:
    """F at x, where the multiplier at r is f."""
    return 1 / (f * Hamiltonization(Reduction(system, group)).multiplier(r, x))


def _derivative(how: tuple[Group, int], system: System, r: Array, slope: Array, f: Array) -> Array:
    """The derivative of F of that order at (r, r'), where the multiplier is f."""
    group, order = how
    reduced = Reduction(system, group)

    def lagrangian(x: Array, slope: Array) -> Array:
        return reduced.constrained_lagrangian(x, slope / _rate(group, system, r, x, f))

    momentum = jax.grad(lagrangian, 1)

    def field(x: Array, slope: Array) -> tuple[Array, Array]:
        """(r', r''), by the Euler-Lagrange equations."""
        transport = jax.jvp(lambda x: momentum(x, slope), (x,), (slope,))[1]
        push = jax.grad(lagrangian, 0)(x, slope) - transport
        return slope, spd_solve(jax.jacfwd(momentum, 1)(x, slope), push)

    def along(g: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
        return lambda x, slope: jax.jvp(g, (x, slope), field(x, slope))[1]

    g: Callable[[Array, Array], Array] = lambda x, _: _rate(group, system, r, x, f)  # noqa: E731
    for _ in range(order):
        g = along(g)
    return g(r, slope)


@functools.partial(jitted, static=("group", "order"))
def _exact_rate(system: System, x: Array, group: Group, order: int) -> Array:
    """d/dtau of x = (r, rdot, ln f, t, variation of the derivative of F of that order)."""
    made = Hamiltonization(Reduction(system, group))
    (r, w), f = x[:-3].reshape(2, -1), jnp.exp(x[-3])
    growth = jnp.dot(made.omega(r), w)
    moving = [w, made.reduced.acceleration(r, w), growth[None], jnp.ones(1)]
    varied = jnp.abs(_derivative((group, order + 1), system, r, w / f, f))
    return jnp.concatenate([*(x / f for x in moving), varied[None]])


def _motion(
    system: System, group: Group, order: int, run: Trajectory, tau: np.ndarray
) -> tuple[np.ndarray, ...]:
    """r, r', f, t and the variation of the derivative of F of that order, of the exact motion at the times
    tau."""
    base = Reduction(system, group).base_index

    def rate(_: float, x: np.ndarray) -> np.ndarray:
        return np.asarray(_exact_rate(system, x, group=group, order=order))

    first = np.concatenate([run.q[0, base], run.v[0, base], [0.0], run.t[:1], [0.0]])
    solved = solve_ivp(rate, (0, tau[-1]), first, "DOP853", t_eval=tau, rtol=1e-13, atol=1e-14).y
    r, w = solved[:-3].T.reshape(len(tau), 2, -1).swapaxes(0, 1)
    f = np.exp(solved[-3])
    return r, w / f[:, None], f, solved[-2], solved[-1]
