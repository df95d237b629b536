"""Runge-Kutta methods on D* near an equilibrium of the momenta: CFHM remark 4.2.

On D* the momenta of the Chaplygin sleigh obey (22), rho_1' = -C rho_1 rho_2, rho_2' = C rho_1^2, whatever the
position. The states rho = (0, rho_2) rest, stable if rho_2 > 0. A Runge-Kutta method (A, b) steps the linear
equation of rho_1 by its stability function

    R(x) = 1 + x b^T (1 - x A)^-1 1,      x = -h C rho_2,

and leaves rho_2: the multipliers of a step are R(-h C rho_2) and 1. As R(x) = 1 + x + ..., |R| < 1 for small
x < 0 and |R| > 1 for small x > 0, so every consistent method is right for small steps; that is a property of
the coordinates. Explicit Euler has R = 1 + x: right for rho_2 > 0 if h < 2 / (C rho_2), with R > 0 if h is
below half of that, which is the paper's bound; for rho_2 < 0 it is right for every h.
"""

from __future__ import annotations

import jax
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.bracket import Bracket
from noslip.geometry.frames import Frame
from noslip.system import System

NEWTON_STEPS = 30


def stability_function(A: ArrayLike, b: ArrayLike, x: float) -> float:
    """R(x) of the method (A, b)."""
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    return float(1 + x * b @ np.linalg.solve(np.eye(len(b)) - x * A, np.ones(len(b))))


def runge_kutta_step(
    system: System, z: ArrayLike, step_size: float, A: ArrayLike, b: ArrayLike, frame: str = "system"
) -> tuple[np.ndarray, np.ndarray]:
    """One step of the method (A, b), explicit or implicit, on the motion (9) of D* from z = (q, rho), and its
    Jacobian."""
    z, A, b, h = np.asarray(z, dtype=float), np.asarray(A, dtype=float), np.asarray(b, dtype=float), step_size
    K, size = np.zeros((len(b), len(z))), len(b) * len(z)
    for _ in range(NEWTON_STEPS):
        rates, slopes = evaluate_anyhow(_motion, frame, system, z + h * A @ K)
        matrix = np.eye(size) - h * np.einsum("ij,ikl->ikjl", A, slopes).reshape(size, size)
        change = np.linalg.solve(matrix, (rates - K).ravel())
        K = K + change.reshape(K.shape)
        if np.max(np.abs(change)) <= 1e-15 * np.max(np.abs(K)):
            break
    turned = np.linalg.solve(matrix, slopes.reshape(size, len(z))).reshape(len(b), len(z), len(z))
    return z + h * b @ K, np.eye(len(z)) + h * np.einsum("i,ijk->jk", b, turned)


def step_multipliers(
    system: System, z: ArrayLike, step_size: float, A: ArrayLike, b: ArrayLike, frame: str = "system"
) -> np.ndarray:
    """The eigenvalues of how the momenta after a step of (A, b) depend on those before, by size; z = (q, rho)
    with momenta at rest."""
    jacobian = runge_kutta_step(system, z, step_size, A, b, frame)[1]
    values = np.linalg.eigvals(jacobian[system.n :, system.n :])
    return values[np.argsort(np.abs(values))]


def _motion(frame: str, system: System, z: Array) -> tuple[Array, Array]:
    field = Bracket(Frame(system, frame)).field
    return field(z), jax.jacfwd(field)(z)
