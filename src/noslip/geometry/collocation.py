"""Coefficients of collocation: Gauss for energy-preserving methods, Lobatto IIIA and IIIB for SPARK.

All integrals of Lagrange polynomials l_j are taken by Gauss's rule on products, exact up to rounding.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from noslip.geometry.discrete_gradients import gauss


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
