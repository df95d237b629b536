"""Whether a start is good beyond doubt: the usual answer, and a quick one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.often import evaluate_often
from noslip.engine.program import CannotTranslate
from noslip.system import System
from noslip.system.conditions import ADMISSIBLE
from noslip.system.positions import placement

SURELY = 1e-10  # a ratio of eigenvalues that no round-off makes of a singular matrix
NOTHING = 1e-24  # of the terms of the other constraints is a vanishing one, rounded twice
SMALL = 6  # coordinates up to which all questions about a start are quick to answer


def surely_admissible(system: System, numbers: Sequence[float] | None, q: np.ndarray, v: np.ndarray) -> bool:
    """Whether a few multiplications can tell that mass matrix, constraints, frame and velocity are good, and
    all values finite. It is the usual answer, and the factorisations that give the precise one take longer
    than a short run. Of a small system `numbers` are those of `numbers_of_start`, in a row."""
    if numbers is None:
        return _by_values(system, q, v)
    n, m, k = system.n, system.rows, system.k
    sizes = [n * n, m * m, (n - m) ** 2 if system.frame else 0, m, m, k, k]
    mass, gram, frame, phi, terms, g, allowed, rest = _cut(numbers, sizes)
    return (
        _surely_regular(mass, n)
        and _surely_regular(gram, m)
        and _surely_regular(frame, n - m if frame else 0)
        and all(abs(x) <= ADMISSIBLE * size for x, size in zip(phi, terms, strict=True))
        and all(abs(x) <= size for x, size in zip(g, allowed, strict=True))
        and all(map(math.isfinite, rest))
    )


def _by_values(system: System, q: np.ndarray, v: np.ndarray) -> bool:
    """The same where there are too many numbers for Python: singular values are quicker then than bounds."""
    try:
        found = evaluate_often(_start, None, system, np.asarray(q)[None], np.asarray(v)[None])
    except CannotTranslate:
        return False
    numbers = [x[0] for x in found]
    if not all(np.isfinite(x).all() for x in numbers):
        return False
    mass, mu, frame, phi, terms, *rest = numbers
    g, allowed = rest[:2] if system.k else (phi, terms)
    values = [np.linalg.eigvalsh(mass), *(np.linalg.svd(x, compute_uv=False)[::-1] for x in (mu, frame))]
    if not all(x[0] > SURELY * abs(x[-1]) for x in values if len(x)) or np.any(np.abs(g) > allowed):
        return False
    return bool(np.all(np.abs(phi) <= ADMISSIBLE * terms + NOTHING * np.max(terms, initial=0.0)))


def _start(_: None, system: System, q: Array, v: Array) -> tuple[Array, ...]:
    mu, p = system.mu(q, v), system.parameters
    X = jnp.zeros((system.n, 0)) if system.frame is None else system.frame(q, p)
    integrals = [jnp.asarray(f(q, v, p), float) for f in system.first_integrals.values()]
    rest = [system.energy(q, v), *integrals]
    rest = [*placement(None, system, q), *rest] if system.k else rest
    return system.mass_matrix(q), mu, X, system.phi(q, v), system.constraint_size(q, v), *rest


def _cut(numbers: Sequence[float], sizes: Sequence[int]) -> list[Sequence[float]]:
    """Pieces of these sizes, and the rest."""
    ends = list(itertools.accumulate(sizes, initial=0))
    return [*(numbers[a:b] for a, b in itertools.pairwise(ends)), numbers[ends[-1] :]]


def numbers_of_start(system: System, q: Array, v: Array) -> tuple[Array, ...]:
    """What a start is judged by: mass matrix, products of one-forms and of frame vectors, and the rest."""
    mass, mu, X, *rest = _start(None, system, q, v)
    return mass, mu @ mu.T, X.T @ X, *rest


def _surely_regular(matrix: Sequence[float], n: int) -> bool:
    """Whether a symmetric matrix is positive definite and far from singular: the ratio of its least to its
    largest eigenvalue is at least det / trace^n. False may mean that this cannot tell."""
    rows = [list(matrix[i * n : (i + 1) * n]) for i in range(n)]
    trace, ratio = sum(matrix[:: n + 1]), 1.0
    for k, pivots in enumerate(rows):
        if not 0 < pivots[k] < math.inf:
            return False
        ratio *= pivots[k] / trace
        for row in rows[k + 1 :]:
            factor = row[k] / pivots[k]
            for j in range(k + 1, n):
                row[j] -= factor * pivots[j]
    return ratio > SURELY  # far above the round-off of the elimination
