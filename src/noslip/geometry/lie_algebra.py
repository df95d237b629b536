"""Systems on a Lie algebra: structure constants, an inertia, linear constraints (CFHM section 4.3).

Let [e_i, e_j] = c_ij^k e_k, L = omega^T I omega / 2 on the algebra, and A omega = 0. On the group, in
exponential coordinates q about the identity, the left-invariant ("body") velocity is

    omega = T(q) qdot,      T(q) = sum_k (-ad_q)^k / (k + 1)!,      (ad_q)_kj = q_i c_ij^k

so that the structure constants are all that is needed for a `System`: L(q, v) = (T v)^T I (T v) / 2 with
the one-forms A T(q) and the frame T(q)^-1 E, where the columns of E span the kernel of A. In this frame H
and the structure functions do not depend on q: a method on D* steps the momenta by CFHM's reduced
equations rho_a' = -C_ab^c rho_c dH/drho_b, and q follows.

The chart ends where ad_q has an eigenvalue 2 pi i: for so(3) and se(2) after a whole turn. There a run ends
with the message that the coordinates are singular. Longer ones go piece by piece, each from the last state of
the one before in better coordinates; on the group they are one run:

    q, v = recentred(structure_constants, run.q[-1], run.v[-1])
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike
from scipy.linalg import expm, null_space, orth

from noslip.numerics.linear import solve
from noslip.system import Parameters, System

TERMS = 40  # of the series of T: to the last bit up to the end of the chart
TURN = 2 * np.pi

SO3 = np.zeros((3, 3, 3))
"""c_ij^k at [i, j, k] of so(3): the cross product."""
SE2 = np.zeros((3, 3, 3))
"""c_ij^k of se(2): two translations e1, e2 and the rotation e3."""
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    SO3[_i, _j, _k], SO3[_j, _i, _k] = 1.0, -1.0
for _i, _j, _k, _value in ((2, 0, 1, 1.0), (2, 1, 0, -1.0)):
    SE2[_i, _j, _k], SE2[_j, _i, _k] = _value, -_value


def body_velocity(structure_constants: np.ndarray, q: Array, v: Array) -> Array:
    """omega = T(q) v; `v` may have columns. NaN outside the chart."""
    ad = jnp.einsum("i,ijk->kj", q, structure_constants)
    # Horner: v - ad v / 2 + ad^2 v / 6 - ..., as a loop, since it will be differentiated twice
    omega = lax.scan(lambda total, k: (v - ad @ total / k, None), v, jnp.arange(TERMS + 1.0, 1.0, -1.0))[0]
    # -tr(ad^2) / 2 is the square of the angle of a rotation, or the sum of those of several
    return jnp.where(-jnp.sum(ad * ad.T) / 2 < TURN**2, omega, jnp.nan)


_compiled_velocity = jax.jit(body_velocity)


def recentred(structure_constants: ArrayLike, q: ArrayLike, v: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Other coordinates of the same point of the group, less than half a turn from the identity, with the
    same velocity: q - 2 pi k n / theta, where theta is the angle of the rotation that q stands for and n is q
    without its central part, on which no turn acts."""
    c, q = np.asarray(structure_constants, dtype=float), np.asarray(q, dtype=float)
    ad = np.einsum("i,ijk->kj", q, c)
    theta = np.max(np.abs(np.linalg.eigvals(ad).imag))
    turns = np.round(theta / TURN)
    if turns == 0:
        return q, np.asarray(v, dtype=float)
    miss = np.max(np.abs(expm(TURN / theta * ad) - np.eye(len(q))))
    if miss > 1e-9:
        raise ValueError(
            f"coordinates can be recentred only where a whole turn is the identity, but at q = {q} it "
            f"differs from it by {miss:.1e}"
        )
    new = q - turns * TURN / theta * (q - _central(c, q))
    T = np.asarray(_compiled_velocity(c, new, np.eye(len(q))))
    return new, np.linalg.solve(T, np.asarray(_compiled_velocity(c, q, np.asarray(v, dtype=float))))


def _central(c: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The part of q in the centre, along the brackets [g, g] and what is orthogonal to both."""
    n = len(q)
    centre, brackets = null_space(c.reshape(n, n * n).T), orth(c.reshape(n * n, n).T)
    both = np.hstack([centre, brackets])
    if np.linalg.matrix_rank(both) < both.shape[1]:
        raise ValueError(
            "coordinates can be recentred only where a whole turn is the identity: the centre of the algebra "
            "must not meet its brackets, but it does"
        )
    parts = np.linalg.lstsq(both, q, rcond=None)[0]
    return centre @ parts[: centre.shape[1]]


def left_invariant_system(
    structure_constants: ArrayLike,
    inertia: ArrayLike,
    constraints: ArrayLike,
    coordinates: Sequence[str] | None = None,
) -> System:
    """The system on the group; `constraints` is A, with one row per constraint on omega."""
    c, I, A = (np.asarray(x, dtype=float) for x in (structure_constants, inertia, constraints))
    n = len(I)
    _check(c, I, A)
    E = np.linalg.svd(A)[2][len(A) :].T

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        omega = body_velocity(c, q, v)
        return 0.5 * jnp.dot(omega, I @ omega)

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.dot(A, body_velocity(c, q, jnp.eye(n)))

    def frame(q: Array, p: Parameters) -> Array:
        return solve(body_velocity(c, q, jnp.eye(n)), jnp.asarray(E))

    names = tuple(coordinates) if coordinates else tuple(f"q{i + 1}" for i in range(n))
    return System(lagrangian, one_forms=one_forms, frame=frame, coordinates=names)


def _check(c: np.ndarray, inertia: np.ndarray, A: np.ndarray) -> None:
    n = len(inertia)
    for name, value, shape in (("structure_constants", c, (n, n, n)), ("inertia", inertia, (n, n))):
        if value.shape != shape:
            raise ValueError(f"`{name}` must have shape {shape}, but {value.shape} was provided")
    if A.ndim != 2 or A.shape[1] != n:
        raise ValueError(f"`constraints` must have shape (m, {n}), but {A.shape} was provided")
    if not np.array_equal(c, -c.transpose(1, 0, 2)):
        raise ValueError("`structure_constants` must be skew in the first two indices, but they are not")
    nested = np.einsum("ijl,lkm->ijkm", c, c)
    defect = nested + nested.transpose(1, 2, 0, 3) + nested.transpose(2, 0, 1, 3)
    miss = np.max(np.abs(defect))
    if miss > 1e-12 * max(1.0, np.max(np.abs(c)) ** 2):
        raise ValueError(f"`structure_constants` must satisfy Jacobi's identity, but miss it by {miss:.1e}")
    if np.any(inertia != inertia.T) or np.min(np.linalg.eigvalsh(inertia)) <= 0:
        raise ValueError(
            f"`inertia` must be symmetric and positive definite, but {inertia.tolist()} was provided"
        )
