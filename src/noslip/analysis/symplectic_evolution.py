"""How the symplectic form changes along a nonholonomic method: FBO section 2.2.

The reaction is no derivative of a function, so the form is not kept; what is known is by how much it changes.
For a closed curve of states, the form over any surface that it bounds is the integral of p dq along it
(Stokes), and with the reaction mu^T lam of the motion

    d/dt oint p dq = oint lam_a mu^a                                             the motion, on Q

For the discrete Lagrange-d'Alembert equations (15), with the momentum p_k = D2 L_d(q_{k-1}, q_k),

    oint p_{k+1} dq_{k+1} - oint p_k dq_k = h oint lam_a mu^a(q_k) dq_k          on Q
    oint P_{k+1} dr_{k+1} - oint P_k dr_k = oint F^- dr_k + F^+ dr_{k+1}         on M, (21), (24)-(25)

to round-off, because oint dL_d = 0: the change of the form comes from the reaction alone, as in the motion,
and nothing else of the discretisation changes it. Where there is no reaction the form is kept.
Along the curve functions are periodic, so equally spaced states and Fourier's derivative give all digits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.ensembles import ensemble
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.geometry.groups import Group
from noslip.integrators.base import Integrator
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.system import System


@dataclass(frozen=True)
class SymplecticEvolution:
    """`action`: oint p dq at each node, on Q after the first. `reaction`: what the reaction adds from each
    of them to the next. `defect`: what is missing between them, relative to oint |p dq|."""

    action: np.ndarray
    reaction: np.ndarray
    defect: np.ndarray


def symplectic_evolution(
    system: System, integrator: Integrator, q0s: ArrayLike, v0s: ArrayLike, *, step_size: float, steps: int
) -> SymplecticEvolution:
    """On Q, along the runs from a closed curve of admissible states, equally spaced in a parameter of it;
    for methods with an L_d and multipliers at the nodes."""
    if integrator.symmetry is not None:
        raise ValueError(f"a method on Q is needed, but {integrator} is one on M = Q/G")
    runs = ensemble(system, integrator, q0s, v0s, step_size=step_size, steps=steps, save_every=1)
    q = np.asarray(runs.q)
    dq, h = _along(q), np.full(steps, step_size)
    p = _rows(_arriving, integrator, system, q[:, :-1], q[:, 1:], h)
    # the multipliers of the step from q_k are saved with q_{k+1}
    pull = _rows(_reaction, None, system, q[:, 1:-1], np.asarray(runs.multipliers)[:, 2:])
    return _compared(p, dq[:, 1:], step_size * _loop(pull, dq[:, 1:-1]))


def reduced_symplectic_evolution(
    system: System, integrator: ReducedDLA, q0s: ArrayLike, v0s: ArrayLike, *, step_size: float, steps: int
) -> SymplecticEvolution:
    """On M, with the forces of the curvature (24)-(25); from the first state on."""
    if integrator.forces != "curvature" or integrator.start != "legendre":
        raise ValueError(f"forces='curvature' and start='legendre' are needed, but it is {integrator}")
    runs = ensemble(system, integrator, q0s, v0s, step_size=step_size, steps=steps, save_every=1)
    group = make_group(system, integrator.group)
    base = Reduction(system, group).base_index
    r, w = np.asarray(runs.q)[..., base], np.asarray(runs.v)[..., base]
    dr, h = _along(r), np.full(steps, step_size)
    P = _rows(_momentum, group, system, r, w)
    half = _rows(_force, (group, integrator.nodes), system, r[:, :-1], r[:, 1:], h)
    return _compared(P, dr, _loop(half, dr[:, :-1]) + _loop(half, dr[:, 1:]))


def _compared(p: np.ndarray, dq: np.ndarray, reaction: np.ndarray) -> SymplecticEvolution:
    action, terms = _loop(p, dq), np.max(_loop(np.abs(p), np.abs(dq)))
    return SymplecticEvolution(action, reaction, (np.diff(action) - reaction) / terms)


def _along(q: np.ndarray) -> np.ndarray:
    """dq/ds on the curve, s from 0 to 1, members first."""
    waves = 2j * np.pi * np.fft.fftfreq(len(q), 1 / len(q))
    waves[len(q) // 2] *= len(q) % 2  # the highest wave of an even number of points has no derivative
    return np.real(np.fft.ifft(waves[:, None, None] * np.fft.fft(q, axis=0), axis=0))


def _loop(p: np.ndarray, dq: np.ndarray) -> np.ndarray:
    return np.mean(np.sum(p * dq, axis=2), axis=0)


def _rows(
    function: Callable[..., Array], static: Hashable, system: System, *arrays: np.ndarray
) -> np.ndarray:
    """A function of a state, over all members and times; an array of times is the same for all members."""
    members, times = arrays[0].shape[:2]
    flat = [np.tile(x, members) if x.ndim == 1 else x.reshape(members * times, *x.shape[2:]) for x in arrays]
    return np.asarray(evaluate_anyhow(function, static, system, *flat)).reshape(members, times, -1)


def _arriving(integrator: Integrator, system: System, q: Array, q1: Array, h: Array) -> Array:
    return jax.grad(integrator.discrete_lagrangian, 2)(system, q, q1, h)


def _reaction(_: None, system: System, q: Array, lam: Array) -> Array:
    return lam @ system.mu(q, jnp.zeros_like(q))


def _momentum(group: Group, system: System, r: Array, w: Array) -> Array:
    return Reduction(system, group).momentum(r, w)


def _force(how: Any, system: System, r: Array, r1: Array, h: Array) -> Array:
    group, nodes = how
    reduced = Reduction(system, group)
    forces = [reduced.reaction(r + e * (r1 - r), (r1 - r) / h) for e in nodes]
    return h / 2 * sum(forces[1:], forces[0]) / len(forces)
