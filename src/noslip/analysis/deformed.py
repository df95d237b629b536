"""Deformed constraints, JS remark 6.1: phi_delta = phi(q, v) + delta g(q, v) = 0 in the place of phi = 0.

Chetaev's rule with mu_delta = d phi_delta / dv gives JS (92)-(95):

    C_delta   = mu_delta M^-1 mu_delta^T                                               (93)
    lam_delta = -C_delta^-1 (d phi_delta/dq v + mu_delta M^-1 f)                       (95)
    dq/dt = v,   dv/dt = M^-1 (f + mu_delta^T lam_delta)                               (94)

which is what any `System` with a nonlinear constraint does, regular as long as delta is small.
The discrete Lagrange-d'Alembert equations at the original nodes live on such a manifold: JS (88) is the
particle with g = vx vy and delta = h / 2. `kept_system` finds it for any system, with delta = h and

    h g(q, v) = phi_d(q - h v, q) - phi(q, v).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax.numpy as jnp
from jax import Array
from jax.tree_util import PyTreeDef

from noslip.integrators.base import Integrator
from noslip.system import Parameters, System


@dataclass(frozen=True)
class _DeformedConstraint:
    """phi + delta g as a function that is equal by value, so that equal systems share compiled code."""

    one_forms: Callable[[Array, Parameters], Array] | None
    drift: Callable[[Array, Parameters], Array] | None
    constraint: Callable[[Array, Array, Parameters], Array] | None
    g: Callable[[Array, Array, Parameters], Array]

    def __call__(self, q: Array, v: Array, p: Parameters) -> Array:
        if self.constraint is not None:
            phi = jnp.asarray(self.constraint(q, v, p))
        elif self.one_forms is None:
            return jnp.zeros(0)
        else:
            phi = jnp.asarray(self.one_forms(q, p)) @ v
            phi = phi if self.drift is None else phi + jnp.asarray(self.drift(q, p))
        return phi + p["delta"] * jnp.reshape(self.g(q, v, p), phi.shape)


def deformed_system(system: System, g: Callable[[Array, Array, Parameters], Array], delta: float) -> System:
    """The system with the constraint phi + delta g(q, v, p) = 0; g gives m values, `delta` is a parameter.

    What held on the old constraint is left out: frame, first integrals, Chaplygin's multiplier.
    """
    if "delta" in system.parameters:
        raise ValueError("the system has a parameter 'delta' already, which the deformation would hide")
    parameters = {**system.parameters, "delta": delta}
    size = jnp.size(g(jnp.zeros(system.n), jnp.ones(system.n), parameters))
    if size != system.m:
        raise ValueError(f"`g(q, v, p)` must have {system.m} values, one per constraint, but it has {size}")
    return System(
        system.lagrangian,
        constraint=_DeformedConstraint(system.one_forms, system.drift, system.constraint, g),
        coordinates=system.coordinates,
        parameters=parameters,
        angles=system.angles,
        force=system.force,
        fibre=system.fibre,
    )


@dataclass(frozen=True)
class _KeptDeformation:
    """g for what a method keeps; equal by value, like the deformed constraint."""

    structure: PyTreeDef
    integrator: Integrator

    def __call__(self, q: Array, v: Array, p: Parameters) -> Array:
        system = System.tree_unflatten(self.structure, ({k: x for k, x in p.items() if k != "delta"},))
        kept = self.integrator.deformed_constraint(system, q, v, p["delta"])
        return (kept - system.phi(q, v)) / p["delta"]


def kept_system(system: System, integrator: Integrator, step_size: float) -> System:
    """The system with the constraint that a method keeps with this step instead of phi, JS (88) and (91)."""
    if "deformed_constraint" not in integrator.preserves:
        raise ValueError(f"{type(integrator).__name__} does not promise to keep a deformed constraint")
    return deformed_system(system, _KeptDeformation(system.tree_flatten()[1], integrator), step_size)
