"""The bracket on D* without a frame's formula: CFHM remark 2.1.

With i*: T*Q -> D*, (q, p) -> (q, X^T p), and P*: D* -> T*Q, which takes (q, rho) to the momentum p on the
Legendre image of D with X^T p = rho, and the canonical bracket {F, G} = F_q G_p - F_p G_q of T*Q,

    {f, g}_D* = {f o i*, g o i*} o P*,      df/dt = {f, H}_D* along the motion.

It is the bivector Pi of (8): {f, g}_D* = df^T Pi dg. The paper's P* is the dual of the orthogonal projector
onto D, that is p = M X G^-1 rho. Where L has a term a(q) v, momenta of velocities in D are M X y + a, and P*
must be that affine map, or neither Pi nor the motion comes out; for a = 0 the two are the same.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.bracket import Bracket

Function = Callable[[Array], Array]
"""Of z = (q, rho)."""
OnPhaseSpace = Callable[[Array, Array], Array]
"""Of q and p."""


def canonical_bracket(F: OnPhaseSpace, G: OnPhaseSpace) -> OnPhaseSpace:
    """{F, G} of functions of (q, p)."""

    def bracket(q: Array, p: Array) -> Array:
        (F_q, F_p), (G_q, G_p) = jax.grad(F, (0, 1))(q, p), jax.grad(G, (0, 1))(q, p)
        return jnp.dot(F_q, G_p) - jnp.dot(F_p, G_q)

    return bracket


def intrinsic_bracket(bracket: Bracket, f: Function, g: Function) -> Function:
    """{f, g}_D* as a function of z, by remark 2.1 alone; brackets of brackets may be formed."""

    def value(z: Array) -> Array:
        X = bracket.frame.around(z[: bracket.n])

        def lifted(function: Function) -> OnPhaseSpace:
            return lambda q, p: function(jnp.concatenate([q, X(q).T @ p]))

        return canonical_bracket(lifted(f), lifted(g))(z[: bracket.n], bracket.at(z).p)

    return value
