# trapezoid.py
"""The trapezoidal rule for nonholonomic systems, with the constraint at the new point.

With f = dL/dq + force, the step (q, v) -> (q1, v1) is

    q1 = q + h (v + v1) / 2
    dL/dv(q1, v1) - dL/dv(q, v) = h (f(q, v) + f(q1, v1)) / 2 + h (mu(q) + mu(q1))^T lam / 2
    phi(q1, v1) = 0

The unknowns are d = v1 - v and the multipliers lam, which are forces and belong to the middle of the step.
"""

from dataclasses import dataclass

from jax import Array

from noslip.integrators.base import Integrator, Observation, Sum, kinetic_sizes, pytree


@pytree
class State:
    """All that the next step needs, and what is shown of the last one."""

    t: Sum
    q: Sum
    v: Sum
    lam: Array
    lam_t: Array


@pytree
class Unknown:
    """v1 - v and the multipliers; as a residual: the balance of momenta and the constraint."""

    d: Array
    lam: Array


@dataclass(frozen=True)
class Trapezoid(Integrator):
    """The trapezoidal rule: stays on the constraint, order 2, self-adjoint."""

    order = 2
    multiplier_order = 2
    preserves = frozenset({"constraint", "reversible"})
    reference = "an example of the pages"

    def init(self, system, q, v, t, h):
        return State(Sum.start(t), Sum.start(q), Sum.start(v), system.multipliers(q, v, t), t)

    def guess(self, system, state, h):
        q, v, t = state.q.value, state.v.value, state.t.value
        return Unknown(h * system.acceleration(q, v, t), system.multipliers(q, v, t))

    def scale(self, system, state, guess, h):
        return Unknown(*kinetic_sizes(system, state.q.value, state.v.value, guess.d, h))

    def residual(self, system, state, x, h):
        q, v, t = state.q.value, state.v.value, state.t.value
        v1 = v + x.d
        q1 = q + h * (v + v1) / 2
        f = system.dL_dq(q, v) + system.applied_force(q, v, t)
        f1 = system.dL_dq(q1, v1) + system.applied_force(q1, v1, t + h)
        mu = (system.mu(q, v) + system.mu(q1, v1)) / 2
        balance = system.momentum(q1, v1) - system.momentum(q, v) - h * ((f + f1) / 2 + mu.T @ x.lam)
        return Unknown(balance, system.phi(q1, v1))

    def update(self, system, state, x, h):
        t, v = state.t.plus(h), state.v.plus(x.d)
        q = state.q.plus(h * (state.v.value + v.value) / 2)
        return State(t, q, v, x.lam, t.value - h / 2)

    def observe(self, state):
        return Observation(state.t.value, state.q.value, state.v.value, state.lam, state.lam_t)
