"""Discrete Lagrange-d'Alembert-Chaplygin equations in base and fibre coordinates (PP section 3).

A discrete Lagrangian L_d(z_0, z_1) and a discrete constraint x^u_{i+1} = C^u(x_i, x^ubar_{i+1}). Pairs are
(i - 1) = (x_{i-1}, x_i) and (i) = (x_i, x_{i+1}); d_0, d_1 differentiate by the first and second point:

    EL   = d_0 L_d(i) + d_1 L_d(i - 1)                                                        PP (2.6)
    EL_ubar + c^u_ubar EL_u = 0,      c^u_ubar = d_1ubar C^u at (i - 1) or (i)                 PP (3.2)
    its derivative by x^ubar_{i+1} is  (1, d_1 C(i))^T  d_1 d_0 L_d(i)  (1, c)                 PP prop. 3.1

The induced Lagrangian LL(z_0, z_1^ubar) = L_d(z_0, C(z_0, z_1^ubar), z_1^ubar) has the forms

    ELL_ubar = d_0ubar LL(i) + d_1ubar LL(i - 1),      ELL_u = d_0u LL(i)

and, for every L_d, C, and x_{i-1}, x_i, x_{i+1} that satisfy the constraint (PP theorem 3.2, corrected),

    ELL_ubar + c^u_ubar ELL_u = EL_ubar + c^u_ubar EL_u
        + d_1u L_d(i) (d_0ubar C^u(i) + c^v_ubar d_0v C^u(i))
        + d_1u L_d(i - 1) (d_1ubar C^u(i - 1) - c^u_ubar)

whose last term vanishes for the slope at the previous pair. PP prints -c for c, without the part of the
last term that then remains (errata, items 30 to 30b); `sign=-1` puts -c for c, to reproduce the paper only.
L_d and C may be any: `discretize` makes both of a finite-difference map rho, L_d = h L o rho and C from
phi o rho = 0; (3.1) is rho^0. Back from the discrete constraint, `differential_constraint` is the
(C(x, x^ubar + h y) - x^u) / h of PP section 3, from which `splitting.system_from_splitting` makes a system.
The integrator `LagrangeDAlembertChaplygin` gives the same sequences with multipliers instead of a fibre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from noslip.geometry.discrete_lagrangian import DiscreteLagrangian, root, with_jacobian
from noslip.geometry.finite_difference_map import FiniteDifferenceMap
from noslip.geometry.splitting import Splitting
from noslip.numerics.linear import solve

NEWTON_STEPS = 30


@dataclass(frozen=True, eq=False)
class DiscreteChaplygin:
    """L_d(z_0, z_1), C(z_0, z_1^ubar) of shape (m,), and the positions of fibre and base coordinates."""

    L_d: Callable[[Array, Array], Array]
    C: Callable[[Array, Array], Array]
    fibre_index: np.ndarray
    base_index: np.ndarray

    def point(self, z0: Array, base1: Array) -> Array:
        """The point after z0 with those base coordinates."""
        out = jnp.zeros_like(z0).at[self.base_index].set(base1)
        return out.at[self.fibre_index].set(self.C(z0, base1))

    def induced(self, z0: Array, base1: Array) -> Array:
        """LL(z_0, z_1^ubar), the induced Lagrangian."""
        return self.L_d(z0, self.point(z0, base1))

    def slope(self, before: Array, x: Array, after: Array, pair: str = "previous") -> Array:
        """c^u_ubar = d_1ubar C^u at the previous or the next pair, shape (m, n - m); PP (3.3)."""
        if pair not in ("previous", "next"):
            raise ValueError(f"`pair` must be 'previous' or 'next', but {pair!r} was provided")
        z0, z1 = (before, x) if pair == "previous" else (x, after)
        return jax.jacfwd(self.C, 1)(z0, z1[self.base_index])

    def euler_lagrange(self, before: Array, x: Array, after: Array) -> Array:
        """EL of PP (2.6), shape (n,)."""
        return DiscreteLagrangian(self.L_d).euler_lagrange(before, x, after)

    def equations(
        self, before: Array, x: Array, after: Array, pair: str = "previous", sign: float = 1.0
    ) -> Array:
        """EL_ubar + sign c EL_u, shape (n - m,); PP (3.2) for sign = 1 corrected, for -1 as printed."""
        EL, c = self.euler_lagrange(before, x, after), self.slope(before, x, after, pair)
        return EL[self.base_index] + sign * c.T @ EL[self.fibre_index]

    def differential_constraint(self, h: float) -> Callable[[Array, Array], Array]:
        """C~(x, y^ubar) = (C(x, x^ubar + h y^ubar) - x^u) / h, of shape (m,), PP before (3.1)."""

        def C(x: Array, y: Array) -> Array:
            return (self.C(x, x[self.base_index] + h * y) - x[self.fibre_index]) / h

        return C

    def regularity_matrix(self, before: Array, x: Array, base: Array, sign: float = 1.0) -> Array:
        """Derivative of (3.2), slope at the previous pair, by x^ubar_{i+1}; PP proposition 3.1.

        Rows are equations, columns unknowns. Where it is singular the equations determine no step.
        """
        after = self.point(x, base)
        D = jax.jacfwd(jax.grad(self.L_d, 0), 1)(x, after)
        left = self._columns(sign * self.slope(before, x, after))
        return left.T @ D @ self._columns(jax.jacfwd(self.C, 1)(x, base))

    def induced_form(
        self, before: Array, x: Array, after: Array, pair: str = "previous", sign: float = 1.0
    ) -> Array:
        """ELL_ubar + sign c ELL_u, the left side of theorem 3.2."""
        b0, b1 = x[self.base_index], after[self.base_index]
        here = jax.grad(self.induced, 0)(x, b1)
        ELL = here[self.base_index] + jax.grad(self.induced, 1)(before, b0)
        return ELL + sign * self.slope(before, x, after, pair).T @ here[self.fibre_index]

    def induced_correction(
        self, before: Array, x: Array, after: Array, pair: str = "previous", sign: float = 1.0
    ) -> Array:
        """What theorem 3.2, corrected, adds to `equations` to make `induced_form`."""
        u, base = self.fibre_index, self.base_index
        c = sign * self.slope(before, x, after, pair)
        dC = jax.jacfwd(self.C, 0)(x, after[base])
        here, earlier = jax.grad(self.L_d, 1)(x, after)[u], jax.grad(self.L_d, 1)(before, x)[u]
        return (dC[:, base] + dC[:, u] @ c).T @ here + (self.slope(before, x, after) - c).T @ earlier

    def next_point(self, before: Array, x: Array, pair: str = "previous", sign: float = 1.0) -> Array:
        """x_{i+1} from x_{i-1} and x_i by (3.2), with Newton's method from the extrapolated point."""

        def equations(base: Array) -> Array:
            return self.equations(before, x, self.point(x, base), pair, sign)

        def newton(_: Array, base: Array) -> Array:
            return base - solve(*with_jacobian(equations, base))

        guess = (2 * x - before)[self.base_index]
        return self.point(x, lax.fori_loop(0, NEWTON_STEPS, newton, guess))

    def sequence(
        self, x0: ArrayLike, x1: ArrayLike, steps: int, *, pair: str = "previous", sign: float = 1.0
    ) -> Array:
        """x_0, x_1, ..., x_steps of shape (steps + 1, n), from the first pair."""
        first = jnp.asarray(x0, dtype=float), jnp.asarray(x1, dtype=float)

        @partial(jax.jit, static_argnums=1)
        def run(first: tuple[Array, Array], count: int) -> Array:
            def step(two: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
                after = self.next_point(*two, pair, sign)
                return (two[1], after), after

            return lax.scan(step, first, None, length=count)[1]

        return jnp.concatenate([jnp.stack(first), run(first, steps - 1)])

    def _columns(self, slope: Array) -> Array:
        """The columns (1, slope) in the order of the coordinates, shape (n, n - m)."""
        k = len(self.base_index)
        out = jnp.zeros((k + len(self.fibre_index), k)).at[self.base_index].set(jnp.eye(k))
        return out.at[self.fibre_index].set(slope)


def discretize(
    splitting: Splitting, step_size: float, rho: FiniteDifferenceMap | None = None
) -> DiscreteChaplygin:
    """L_d = h L(z_0, (z_1 - z_0) / h) and z_1^u = z_0^u + h C^u(z_0, (z_1 - z_0)^ubar / h), PP (3.1);
    with a finite-difference map L_d = h L o rho, and the z_1^u with phi(rho(z_0, z_1)) = 0.

    External forces have no place in L_d: a system with one is refused.
    """
    system, h = splitting.system, step_size
    if system.force is not None:
        raise ValueError(
            "the discrete equations PP (3.2) have no external force, but the system has one; "
            "use the integrator LagrangeDAlembertChaplygin"
        )
    fibre, base = splitting.fibre_index, splitting.base_index

    def L_d(z0: Array, z1: Array) -> Array:
        if rho is not None:
            return rho.discrete_lagrangian(system, z0, z1, h)
        return h * system.lagrangian(z0, (z1 - z0) / h, system.parameters)

    def C(z0: Array, base1: Array) -> Array:
        straight = z0[fibre] + h * splitting.C(z0, (base1 - z0[base]) / h)
        if rho is None:
            return straight
        return root(
            lambda fibre1, at: _missed(splitting, rho, at[0], fibre1, at[1], h), straight, (z0, base1)
        )

    return DiscreteChaplygin(L_d, C, fibre, base)


def _missed(
    splitting: Splitting, rho: FiniteDifferenceMap, z0: Array, fibre1: Array, base1: Array, h: float
) -> Array:
    """phi_d = phi o rho of a pair, JS proposition 5.2."""
    return rho.discrete_constraint(splitting.system, z0, splitting.join(fibre1, base1), h)
