"""Coefficients of collocation: Gauss for energy-preserving methods, Lobatto IIIA and IIIB for SPARK.

`stage_solver` solves the linear equations of a simplified Newton step, never of more unknowns than one stage.
All integrals of Lagrange polynomials l_j are taken by Gauss's rule on products, exact up to rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from noslip.numerics import linear
from noslip.numerics.discrete_gradients import gauss

Map = Callable[[Array], Array]


def lagrange(nodes: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """l_j(tau) at [..., j]."""
    tau = np.asarray(tau, dtype=float)
    columns = []
    for j, c in enumerate(nodes):
        others = np.delete(nodes, j)
        columns.append(np.prod((tau[..., None] - others) / (c - others), axis=-1))
    return np.stack(columns, axis=-1)


def integrals(nodes: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """int_0^tau l_j at [..., j]."""
    c, b = gauss(len(nodes))
    tau = np.asarray(tau, dtype=float)
    return np.einsum("k,...kj->...j", b, lagrange(nodes, tau[..., None] * (0.5 + c))) * tau[..., None]


@dataclass(frozen=True)
class GaussCollocation:
    """Of s stages: nodes c, weights b, Butcher matrix A; and at `nodes` points tau_k of [0, 1] with
    weights w_k, between[k, j] = int_0^tau_k l_j and weights[j, k] = w_k l_j(tau_k) / b_j."""

    c: np.ndarray
    b: np.ndarray
    A: np.ndarray
    between: np.ndarray
    weights: np.ndarray


@functools.cache
def gauss_collocation(stages: int, nodes: int) -> GaussCollocation:
    """Coefficients of energy-preserving collocation at Gauss's points."""
    offsets, b = gauss(stages)
    c = 0.5 + offsets
    at, w = gauss(nodes)
    tau = 0.5 + at
    weights = (w[:, None] * lagrange(c, tau) / b).T
    return GaussCollocation(c, b, integrals(c, c), integrals(c, tau), weights)


def stage_solver(A: np.ndarray, J: Array) -> Map:
    """R -> X with X - A X J^T = R, for X and R with one row per stage: the linear part of a collocation step.

    With A T = T B, B of blocks [lam] and [[alpha, beta], [-beta, alpha]], and X = T Y, R = T S, it remains
    Y - B Y J^T = S. Let B' be 0 for the former and B^T for the latter, so that t = B + B' and d = B' B are
    diagonal, with equal entries in a block. Then, with one matrix of the size of J for each block,

        (I - t J + d J^2) y = (S - B' S J^T), row by row

    The products are loops, since this is for places that run rarely.
    """
    T, pairs, block = _real_blocks(A)
    t = [2 * alpha if beta else alpha for alpha, beta in pairs]
    d = [alpha**2 + beta**2 if beta else 0.0 for alpha, beta in pairs]
    inverse_T = np.linalg.inv(T)
    other = np.diag(np.take(t, block)) - inverse_T @ A @ T  # B'
    J2 = lax.map(lambda row: row @ J, J)
    inverses = lax.map(lambda x: linear.inverse(jnp.eye(len(J)) - x[0] * J + x[1] * J2), jnp.array([t, d]).T)

    def solved(R: Array) -> Array:
        S = inverse_T @ R
        right = S - lax.map(lambda row: J @ row, other @ S)
        return jnp.dot(T, lax.map(lambda x: x[0] @ x[1], (inverses[block], right)))

    return solved


def _real_blocks(A: np.ndarray) -> tuple[np.ndarray, list[tuple[float, float]], np.ndarray]:
    """T, from the real and imaginary parts of the eigenvectors; the eigenvalues (alpha, beta), beta >= 0; and
    for each column of T the number of its eigenvalue."""
    values, vectors = np.linalg.eig(A)
    pairs: list[tuple[float, float]] = []
    columns, block = [], []
    for value, vector in zip(values, vectors.T, strict=True):
        if value.imag >= 0:
            parts = [vector.real, vector.imag] if value.imag else [vector.real]
            columns += parts
            block += [len(pairs)] * len(parts)
            pairs.append((float(value.real), float(value.imag)))
    return np.stack(columns, axis=1), pairs, np.array(block)


@dataclass(frozen=True)
class Lobatto:
    """Nodes c, weights b, the matrices A of IIIA and B of IIIB."""

    c: np.ndarray
    b: np.ndarray
    A: np.ndarray
    B: np.ndarray


@functools.cache
def lobatto(stages: int) -> Lobatto:
    """Lobatto IIIA and IIIB of 2 or more stages."""
    basis = np.polynomial.legendre.Legendre.basis(stages - 1)
    inner = np.sort(np.real(basis.deriv().roots()))
    inner = (inner - inner[::-1]) / 2
    c = (1 + np.concatenate([[-1.0], inner, [1.0]])) / 2
    A = integrals(c, c)
    b = A[-1]
    return Lobatto(c, b, A, b * (1 - A.T / b[:, None]))
