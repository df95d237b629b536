"""How far the nonholonomic bracket is from a Poisson bracket, CFHM remark 2.1."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from noslip.geometry.bracket import Bracket, refusal
from noslip.geometry.frames import Frame, initial_signs, uses_signs
from noslip.system import System


def jacobiator(system: System, q: ArrayLike, v: ArrayLike, frame: str = "system") -> Array:
    """{z_i, {z_j, z_k}} + cyclic at [i, j, k], z = (q, rho), at an admissible state."""
    if reason := refusal(system):
        raise ValueError(reason)
    q, v = jnp.asarray(q, dtype=float), jnp.asarray(v, dtype=float)
    signs = initial_signs(system, q) if uses_signs(system, frame) else None
    return _jacobiator(Bracket(Frame(system, frame, signs)), q, v)


def jacobi_defect(system: System, q: ArrayLike, v: ArrayLike, frame: str = "system") -> float:
    """The largest component of the `jacobiator`: zero, up to rounding, where the constraints are holonomic
    and so the bracket is Poisson; its size depends on the frame, its vanishing does not."""
    return float(jnp.max(jnp.abs(jacobiator(system, q, v, frame))))


def _jacobiator(bracket: Bracket, q: Array, v: Array) -> Array:
    z = bracket.from_velocity(q, v)
    Pi = bracket.matrix(z)
    dPi = jax.jacfwd(bracket.matrix)(z)
    # {z_i, {z_j, z_k}} = Pi_il d_l Pi_jk
    nested = jnp.einsum("il,jkl->ijk", Pi, dPi)
    return nested + nested.transpose(1, 2, 0) + nested.transpose(2, 0, 1)
