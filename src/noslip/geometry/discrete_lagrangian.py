"""Discrete Lagrangians L_d(q0, q1), with or without forces: JS (56)-(58), LMS (4), (17)-(21), PP (2.5)-(2.6).

    S_d = sum_k L_d(q_k, q_{k+1})                                                              JS (57)
    D2 L_d(q_{k-1}, q_k) + D1 L_d(q_k, q_{k+1}) = 0                           JS (58), LMS (4), PP (2.6)
    FL_d^-(q0, q1) = (q0, -D1 L_d),      FL_d^+(q0, q1) = (q1, D2 L_d)         Legendre transformations
    Omega_d = (FL_d^-)* dq ^ dp = (FL_d^+)* dq ^ dp,   which the flow (q_{k-1}, q_k) -> (q_k, q_{k+1}) keeps
    J_d(q0, q1) . xi = D2 L_d . xi_Q(q1) = -D1 L_d . xi_Q(q0),   kept if L_d is invariant under a group

The last equality is the invariance of L_d; the flow keeps J_d where it holds, JS after (58). With a one-form
alpha0 dq0 + alpha1 dq1 (LMS: minus the impulse of the forces over the step) all this becomes

    p0 = -D1 L_d + alpha0,      p1 = D2 L_d - alpha1                                           LMS (17)
    det(D1 D2 L_d - d alpha0/dq1) != 0,   by which (q0, p0) -> (q1, p1) is a map              LMS (19), (24)
    D2 L_d(q_{k-1}, q_k) + D1 L_d(q_k, q_{k+1}) = alpha1(q_{k-1}, q_k) + alpha0(q_k, q_{k+1})     LMS (21)

and N steps are again of that form: `composed(N)` has S^{Nh}(q0, qN) = sum S^h and the one-form that the sum
of the alpha becomes on the pairs (q0, qN), LMS (20). For the exact S^h that is theorem 3.1, and without
forces theorem 1.1. PP calls L_d regular where D1 D2 L_d is, right and left regular where p0 and p1 can be
solved for the other point, and hyperregular where the solutions are unique: see `second_points`,
`first_points` and `monotonicity`. Regular does not imply the rest: exp(q1 - q0) has no q1 for p0 < 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from noslip.numerics.linear import solve
from noslip.numerics.pytrees import PyTree

Pair = Callable[[Array, Array], Array]
NEWTON_STEPS = 30
SOLVED = 1e-10
SAME = 1e-6  # two solutions nearer than this, relative to their size, are one


@dataclass(frozen=True, eq=False)
class DiscreteLagrangian:
    """L_d(q0, q1), and the one-form (alpha0, alpha1) of forces where there are any."""

    L_d: Pair
    alpha0: Pair | None = None
    alpha1: Pair | None = None

    # ---- momenta --------------------------------------------------------------------------------------
    def departing(self, q0: Array, q1: Array) -> Array:
        """p0 of (17): FL_d^- without forces."""
        p0 = -jax.grad(self.L_d, 0)(q0, q1)
        return p0 if self.alpha0 is None else p0 + self.alpha0(q0, q1)

    def arriving(self, q0: Array, q1: Array) -> Array:
        """p1 of (17): FL_d^+ without forces."""
        p1 = jax.grad(self.L_d, 1)(q0, q1)
        return p1 if self.alpha1 is None else p1 - self.alpha1(q0, q1)

    def momentum_map(self, q0: Array, q1: Array, generator: Callable[[Array], Array]) -> Array:
        """J_d . xi for the field xi_Q of shape (n,), or for several as columns (n, k); JS after (58)."""
        return self.arriving(q0, q1) @ generator(q1)

    def invariance_defect(self, q0: Array, q1: Array, generator: Callable[[Array], Array]) -> Array:
        """D1 L_d . xi_Q(q0) + D2 L_d . xi_Q(q1): zero where L_d is invariant under the diagonal action."""
        D1, D2 = jax.grad(self.L_d, (0, 1))(q0, q1)
        return D1 @ generator(q0) + D2 @ generator(q1)

    # ---- the equations --------------------------------------------------------------------------------
    def action(self, points: Array) -> Array:
        """S_d of a sequence of shape (N + 1, n), JS (57)."""
        return jnp.sum(jax.vmap(self.L_d)(points[:-1], points[1:]))

    def euler_lagrange(self, before: Array, x: Array, after: Array) -> Array:
        """JS (58), with forces LMS (21): p1 of one pair minus p0 of the next."""
        return self.arriving(before, x) - self.departing(x, after)

    def regularity_matrix(self, q0: Array, q1: Array) -> Array:
        """D1 D2 L_d - d alpha0/dq1, rows for q0 and columns for q1: LMS (19), without forces PP section 2."""
        return -jax.jacfwd(self.departing, 1)(q0, q1)

    def symplectic_form(self, q0: Array, q1: Array, end: str = "plus") -> Array:
        """Omega_d at (q0, q1), the pull-back of dq ^ dp by FL_d^+ or FL_d^-, as a matrix (2n, 2n)."""
        if end not in ("plus", "minus"):
            raise ValueError(f"`end` must be 'plus' or 'minus', but {end!r} was provided")
        n = len(q0)

        def legendre(z: Array) -> Array:
            a, b = z[:n], z[n:]
            p = self.arriving(a, b) if end == "plus" else self.departing(a, b)
            return jnp.concatenate([b if end == "plus" else a, p])

        S = jax.jacfwd(legendre)(jnp.concatenate([q0, q1]))
        return S[:n].T @ S[n:] - S[n:].T @ S[:n]

    # ---- solved -----------------------------------------------------------------------------------------
    def second_point(self, q0: Array, p0: Array, near: Array) -> Array:
        """q1 with that p0 (PP: right regularity), by Newton's method from `near`; NaN where none is found."""
        return root(lambda q1, at: self.departing(at[0], q1) - at[1], near, (q0, p0))

    def first_point(self, q1: Array, p1: Array, near: Array) -> Array:
        """q0 with that p1 (PP: left regularity)."""
        return root(lambda q0, at: self.arriving(q0, at[0]) - at[1], near, (q1, p1))

    def step(self, q0: Array, p0: Array, near: Array) -> tuple[Array, Array]:
        """G_h of LMS (17): (q0, p0) -> (q1, p1)."""
        q1 = self.second_point(q0, p0, near)
        return q1, self.arriving(q0, q1)

    def next_point(self, before: Array, x: Array) -> Array:
        """The point after the pair (before, x): the discrete flow of JS (58) or LMS (21)."""
        return self.second_point(x, self.arriving(before, x), 2 * x - before)

    def second_points(self, q0: Array, p0: Array, starts: Iterable[ArrayLike]) -> np.ndarray:
        """All q1 with that p0 that Newton's method finds from those starts, each once. Two of them show that
        L_d is not hyperregular (PP); that it is, no search can show, but see `monotonicity`."""
        return _distinct(jax.jit(lambda near: self.second_point(q0, p0, near)), starts)

    def first_points(self, q1: Array, p1: Array, starts: Iterable[ArrayLike]) -> np.ndarray:
        """All q0 with that p1 that Newton's method finds from those starts, each once."""
        return _distinct(jax.jit(lambda near: self.first_point(q1, p1, near)), starts)

    def monotonicity(self, q0: Array, q1s: Array) -> float:
        """The least eigenvalue of the symmetric part of d p0/dq1 over the rows of q1s: where it is positive
        on all of a convex set, p0 has at most one q1 there (hyperregularity on that set)."""
        matrices = jax.jit(jax.vmap(lambda q1: -self.regularity_matrix(q0, q1)))
        slopes = np.asarray(matrices(jnp.asarray(q1s)))
        return float(np.min(np.linalg.eigvalsh((slopes + slopes.transpose(0, 2, 1)) / 2)))

    # ---- several steps ------------------------------------------------------------------------------------
    def stationary_points(self, q0: Array, qN: Array, N: int) -> Array:
        """q_0, ..., q_N of shape (N + 1, n) with those ends, between which (58) or (21) holds."""

        def equations(inner: Array, ends: tuple[Array, Array]) -> Array:
            points = jnp.concatenate([ends[0][None], inner.reshape(N - 1, -1), ends[1][None]])
            return jax.vmap(self.euler_lagrange)(points[:-2], points[1:-1], points[2:]).ravel()

        straight = q0 + jnp.arange(1, N)[:, None] / N * (qN - q0)
        inner = root(equations, straight.ravel(), (q0, qN)).reshape(N - 1, -1)
        return jnp.concatenate([q0[None], inner, qN[None]])

    def composed(self, N: int) -> DiscreteLagrangian:
        """S^{Nh} and alpha^{Nh} of LMS (20), functions of (q_0, q_N)."""

        def points(q0: Array, qN: Array) -> Array:
            return self.stationary_points(q0, qN, N)

        def total(q0: Array, qN: Array) -> Array:
            return self.action(points(q0, qN))

        def pulled_back(end: int) -> Pair:
            def alpha(q0: Array, qN: Array) -> Array:
                x, pull = jax.vjp(points, q0, qN)
                pushed = jnp.zeros_like(x)
                if self.alpha0 is not None:
                    pushed = pushed.at[:-1].add(jax.vmap(self.alpha0)(x[:-1], x[1:]))
                if self.alpha1 is not None:
                    pushed = pushed.at[1:].add(jax.vmap(self.alpha1)(x[:-1], x[1:]))
                return pull(pushed)[end]

            return alpha

        if self.alpha0 is None and self.alpha1 is None:
            return DiscreteLagrangian(total)
        return DiscreteLagrangian(total, pulled_back(0), pulled_back(1))


def with_jacobian(f: Callable[[Array], PyTree], x: Array) -> tuple[PyTree, PyTree]:
    """The derivative of f at x and f(x), of one evaluation."""
    derivative, value = jax.jacfwd(lambda x: (f(x),) * 2, has_aux=True)(x)
    return derivative, value


def root(f: Callable[[Array, PyTree], Array], near: Array, at: PyTree) -> Array:
    """x with f(x, at) = 0 by Newton's method, differentiable by `at` any number of times; NaN for none."""

    def increment(g: Callable[[Array], Array], x: Array) -> Array:
        return solve(*with_jacobian(g, x))

    def search(g: Callable[[Array], Array], x: Array) -> Array:
        def again(_: Array, at: tuple[Array, Array]) -> tuple[Array, Array]:
            x = at[0] - at[1]
            return x, increment(g, x)

        x, last = lax.fori_loop(0, NEWTON_STEPS + 1, again, (x, jnp.zeros_like(x)))
        good = jnp.max(jnp.abs(last)) <= SOLVED * (1 + jnp.max(jnp.abs(x)))
        return jnp.where(good, x, jnp.nan)

    def linear_solve(g: Callable[[Array], Array], y: Array) -> Array:
        return solve(jax.jacfwd(g)(y), y)

    return lax.custom_root(lambda x: f(x, at), lax.stop_gradient(near), search, linear_solve)


def _distinct(solved: Callable[[Array], Array], starts: Iterable[ArrayLike]) -> np.ndarray:
    found: list[np.ndarray] = []
    for start in starts:
        x = np.asarray(solved(jnp.asarray(start, dtype=float)))
        near = SAME * (1 + np.max(np.abs(x)))
        if np.all(np.isfinite(x)) and all(np.max(np.abs(x - other)) > near for other in found):
            found.append(x)
    return np.array(found)
