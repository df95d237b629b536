"""The discrete momentum map of FBO (12): what symmetries of the Hamiltonized system keep constant.

A field xi on M = Q/G that leaves f and Lc(r, r') = l_c(r, f r') as they are gives the motion the integral
P . xi(r), P = f dl_c/drdot. If xi is affine, xi(r) = c + S r, it leaves the discrete Lagrangians (13), (32)
and that of (44) as they are too, since these only take means and differences of points, and then

    J_d(r, r') . xi = D2 L_d(r, r') . xi(r')                                                         (12)

is the same for every pair of a sequence that satisfies the discrete Euler-Lagrange equations (10): with the
symplectic form this is what "variational" means. The discrete reactions of (21) have no such integral. Since
D2 L_d is the momentum that arrives at r', and methods show the velocity that belongs to it, J_d is read off
the states of a run, of any method.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.analysis.reduced import multiplier_along
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry import chaplygin, hamiltonization
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.geometry.groups import Group
from noslip.geometry.hamiltonization import Hamiltonization
from noslip.integrators.base import Integrator
from noslip.system import System
from noslip.trajectory import Trajectory

SAMPLES = 60
TOLERANCE = 1e-9  # of the largest change: what is below is no change


@dataclass(frozen=True)
class MomentumMap:
    """J_d at the pairs of a run, a column for each of the fields c + S (r - centre), rows of `constant` and
    `linear` of shape (k, d) and (k, d, d); and by how much it changes, relative to the terms of J_d."""

    centre: np.ndarray
    constant: np.ndarray
    linear: np.ndarray
    values: np.ndarray
    defect: np.ndarray


def momentum_map(system: System, integrator: Integrator, run: Trajectory) -> MomentumMap | None:
    """Along a run, for all affine fields that leave the Hamiltonized system as it is. None where there are
    none, or the system is not Hamiltonizable under the method's group, by default translations."""
    system = system.with_parameters(run.info.parameters)
    group = make_group(system, integrator.symmetry or "translations")
    if chaplygin.refusal(system, group) or hamiltonization.refusal(Reduction(system, group)):
        return None
    base = Reduction(system, group).base_index
    r = run.q[:, base]
    centre, constant, linear = affine_symmetries(system, group, r, run.v[:, base])
    if not len(constant):
        return None
    f = multiplier_along(system, group, run.q)
    P = f[:, None] * evaluate_anyhow(_momentum, group, system, r, run.v[:, base])
    xi = constant + np.einsum("kij,tj->tki", linear, r - centre)
    values = np.einsum("ti,tki->tk", P, xi)[1:]
    terms = np.max(np.einsum("ti,tki->tk", np.abs(P), np.abs(xi)), axis=0)
    return MomentumMap(centre, constant, linear, values, (values - values[0]) / terms)


def affine_symmetries(
    system: System, group: Group, r: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The centre, c and S of all independent fields c + S (r - centre) that leave f and Lc as they are, near
    the points r: the null space of the change of both, which is linear in (c, S)."""
    rng, d = np.random.default_rng(3), r.shape[1]
    centre, width = np.mean(r, axis=0), np.maximum(np.std(r, axis=0), 1e-3 * (1 + np.abs(r[0])))
    speed = np.max(np.abs(w), axis=0) + 1e-3 * np.max(np.abs(w))
    points = r[rng.integers(len(r), size=SAMPLES)] + 0.1 * width * rng.normal(size=(SAMPLES, d))
    slopes = speed * rng.normal(size=(SAMPLES, d))
    # unit fields: c along each coordinate, then S with a single entry, both in units of `width`
    fields = width[:, None] * np.eye(d, d * (d + 1))
    fields = [fields] + [np.zeros((d, d * (d + 1))) for _ in range(d)]
    for j in range(d):
        fields[j + 1][:, d * (j + 1) : d * (j + 2)] = np.diag(width) / width[j]
    A = np.stack(fields)  # field at r: A[0] + sum_j A[j + 1] (r - centre)_j, columns the unit fields
    found = evaluate_anyhow(_changes, group, (system, A, centre), points, slopes)
    rows = np.concatenate([x[np.isfinite(x).all(axis=1)] for x in found])
    _, sizes, directions = np.linalg.svd(rows, full_matrices=True)
    kept = directions[np.sum(sizes > TOLERANCE * sizes[0]) :]
    return centre, kept @ A[0].T, np.einsum("ku,jiu->kij", kept, A[1:])


def _changes(group: Group, fixed: Any, r: Array, slope: Array) -> tuple[Array, Array]:
    """Of Lc and of ln f under each unit field, Lc relative to its kinetic energy."""
    system, A, centre = fixed
    made = Hamiltonization(Reduction(system, group))

    def field(x: Array) -> Array:
        return A[0] + jnp.einsum("jiu,j->iu", A[1:], x - centre)

    def lagrangian(x: Array, w: Array) -> Array:
        return made.reduced.constrained_lagrangian(x, made.multiplier(r, x) * w)

    along_r, along_w = jax.grad(lagrangian, (0, 1))(r, slope)
    turned = jnp.einsum("iuj,j->iu", jax.jacfwd(field)(r), slope)
    kinetic = jnp.dot(slope, made.reduced.metric(r) @ slope)
    return (along_r @ field(r) + along_w @ turned) / kinetic, made.omega(r) @ field(r)


def _momentum(group: Group, system: System, r: Array, w: Array) -> Array:
    return Reduction(system, group).momentum(r, w)
