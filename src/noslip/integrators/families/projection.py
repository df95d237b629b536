"""What the symmetric projection needs: state, integrals as functions on D*, and the minimum-norm solve."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from noslip.geometry.bracket import Bracket
from noslip.integrators.base import Sum
from noslip.integrators.families.bracket import BracketState
from noslip.numerics.discrete_gradients import noise
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import pytree, replaced

DEPENDENT = 1e-7  # eigenvalues of W below this are those of dependent integrals


@pytree
class ProjectedState(BracketState):
    """A state of the base, the values to keep, their normalised gradients and noise, and earlier (mu, e)."""

    targets: Array
    normals: Array
    sizes: Array  # of the gradients
    levels: Array  # of the noise, relative to `sizes`
    extra: Array


@pytree
class ProjectedUnknown:
    """The unknown of the base, the multipliers of the projection, and the whole increment."""

    x: Array
    mu: Array
    e: Array


def integrals(bracket: Bracket, z: Array) -> Array:
    """g(z): the energy and the declared first integrals."""
    system, point = bracket.frame.system, bracket.at(z)
    others = [f(point.q, point.v, system.parameters) for f in system.first_integrals.values()]
    return jnp.stack([point.energy(), *others])


def gradients(bracket: Bracket, z: Array) -> Array:
    """B = dg(z), one row per integral."""
    return jax.jacrev(lambda z: integrals(bracket, z))(z)


def completed(bracket: Bracket, state: BracketState, targets: Array, extra: Array) -> ProjectedState:
    """The state of the base with the gradients of the integrals there."""
    B = gradients(bracket, state.z)
    sizes = jnp.sqrt(jnp.sum(B**2, axis=1))
    sizes = jnp.where(sizes > 0, sizes, 1.0)
    last = extra[0, targets.size :]
    levels = jax.vmap(noise, (0, 0, None))(jnp.abs(targets), B, last) / sizes
    inherited = {name: getattr(state, name) for name in BracketState.__dataclass_fields__}
    return ProjectedState(
        **inherited, targets=targets, normals=B / sizes[:, None], sizes=sizes, levels=levels, extra=extra
    )


def displaced(bracket: Bracket, state: ProjectedState, shift: Array) -> ProjectedState:
    """The state at z + shift, whose energy there is what the base shall keep."""
    z, n = state.z + shift, bracket.n
    point = bracket.at(z)
    return replaced(
        state,
        q=Sum.start(z[:n]),
        rho=Sum.start(z[n:]),
        energy=Sum.start(point.energy()),
        gradient=point.gradient(),
    )


def minimum_norm(W: Array, mu: Array, defect: Array) -> Array:
    """The mu of least norm with W mu = W mu_old - defect, W being positive semidefinite.

    Tikhonov's regularisation, iterated once, so that what is not dependent feels its square only.
    """
    right, regular = W @ mu - defect, W + DEPENDENT * jnp.eye(mu.size)
    once = spd_solve(regular, right)
    return once + spd_solve(regular, right - W @ once)
