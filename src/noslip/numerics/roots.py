"""The inverse square root of a small symmetric positive definite matrix, with its derivative."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from noslip.numerics.linear import spd_solve

ITERATIONS = 7  # doubles the digits each time; eigenvalues between 1/30 and 30 have all of them by then


def inverse_root(G: Array) -> Array:
    """G^(-1/2): in closed form for sizes 1 and 2, above that by Denman and Beavers' iteration

        Y' = (Y + Z^-1) / 2,    Z' = (Z + Y^-1) / 2,    Y -> G^(1/2),    Z -> G^(-1/2)

    without branches, for matrices that are not far from the identity."""
    if len(G) == 1:
        return 1 / jnp.sqrt(G)
    if len(G) == 2:
        s = jnp.sqrt(G[0, 0] * G[1, 1] - G[0, 1] * G[1, 0])
        adjugate = jnp.array([[G[1, 1], -G[0, 1]], [-G[1, 0], G[0, 0]]])
        return (adjugate / s + jnp.eye(2)) / jnp.sqrt(G[0, 0] + G[1, 1] + 2 * s)
    return _iterated(G)


@jax.custom_jvp
def _iterated(G: Array) -> Array:
    one = jnp.eye(len(G))
    Y, Z = G, one
    for _ in range(ITERATIONS):
        Y, Z = (Y + spd_solve(Z, one)) / 2, (Z + spd_solve(Y, one)) / 2
    return Z


@_iterated.defjvp
def _derivative(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """W = G^(-1/2) and dW of Sylvester's equation W^-1 dW + dW W^-1 = -W dG W."""
    (G,), (dG,) = primals, tangents
    W = _iterated(G)
    return W, -sylvester(G @ W, W @ dG @ W)


def sylvester(R: Array, S: Array) -> Array:
    """The x of R x + x R = S, for R symmetric positive definite."""
    one = jnp.eye(len(R))
    return spd_solve(jnp.kron(R, one) + jnp.kron(one, R), S.ravel()).reshape(S.shape)
