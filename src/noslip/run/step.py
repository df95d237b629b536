"""What happens in a step: the method advances, angles are wrapped, the solve is recorded, a row is saved.

Everything that runs a method, one trajectory or many, on whatever backend, runs these functions:

    carry, row = first_state(...)                 the start
    carry, ok, _ = step_or_stay(..., carry, h, drive)  a step with its inputs; a failed one changes no state
    row, carry = save(..., carry)                 what a saved time shows
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from noslip.integrators.base import Integrator, Observation, State
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import PyTree, pytree, replaced
from noslip.numerics.sums import Sum
from noslip.system import System
from noslip.system.inputs import Drive, Held

T = TypeVar("T")
TURN = 6.283185307179586  # 2 pi rounded to a double ...
TURN_LOW = 2.4492935982947064e-16  # ... and what the rounding cut off


@pytree
class Interval:
    """The worst of the solves since the last saved row."""

    steps: Array
    iterations: Array
    increment: Array
    residual: Array
    status: Array
    failed_step: Array

    @classmethod
    def empty(cls) -> Interval:
        zero = jnp.array(0)
        return cls(zero, zero, jnp.array(0.0), jnp.array(0.0), zero, jnp.array(-1))


@pytree
class Carry:
    """Everything that the next step needs."""

    state: State
    step: Array
    turns: Array
    interval: Interval
    watch: Any = None  # of a run with events: `events.Watch`
    drive: Drive = None  # the inputs of the step that led here, or of the first


@pytree
class Row:
    """One saved time. Angles are wrapped in `q` and counted in `turns`."""

    step: Array
    t: Array
    q: Array
    turns: Array
    v: Array
    multipliers: Array
    multiplier_t: Array
    energy: Array
    energy_scale: Array
    constraint: Array
    holonomic: Array
    first_integrals: dict[str, Array]
    interval: Interval


def _wrap(system: System, state: State, turns: Array) -> tuple[State, Array]:
    """Bring declared angles to [-pi, pi] without losing a digit, and count the turns taken off."""
    if not system.angles:
        return state, turns
    whole = jnp.where(system.angle_mask, jnp.round(state.q.value / TURN), 0.0)
    q = Sum(state.q.value - whole * TURN, state.q.low - whole * TURN_LOW)
    return replaced(state, q=q), turns + whole


def _total(state: State, history: PyTree) -> Array:
    """The sum of all numbers of a state, in pairs: an addition for each is the cheapest look at them all.
    What is remembered for guesses alone does not count."""
    guesses = {id(leaf) for leaf in jax.tree.leaves(history)}
    leaves = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Sum))
    leaves = [leaf for leaf in leaves if id(leaf) not in guesses]
    parts = [jnp.ravel(leaf.value if isinstance(leaf, Sum) else leaf) for leaf in leaves]
    x = jnp.concatenate([part for part in parts if jnp.issubdtype(part.dtype, jnp.floating)])
    while len(x) > 1:
        half = len(x) // 2
        x = jnp.concatenate([x[:half] + x[half : 2 * half], x[2 * half :]])
    return x[0]


def _begun(
    system: System, integrator: Integrator, carry: Carry, h: Array, drive: Drive
) -> tuple[System, State]:
    """The system with the inputs of a step, and the state with which it begins: another one where inputs have
    switched that the Lagrangian or the constraints contain, or of which the method has a memory."""
    if drive is None:
        return system, carry.state
    now = system.driven(drive)
    switch = isinstance(drive, Held) and any(system.inputs_within(drive.values))
    if not (switch or integrator.remembers_inputs):
        return now, carry.state
    fresh = integrator.switched(system.driven(carry.drive), now, carry.state, h)
    pairs = zip(jax.tree.leaves(drive), jax.tree.leaves(carry.drive), strict=True)
    changed = jnp.any(jnp.array([new != old for new, old in pairs]))
    return now, jax.tree.map(lambda new, old: jnp.where(changed, new, old), fresh, carry.state)


def step_regardless(
    system: System, integrator: Integrator, carry: Carry, h: Array, drive: Drive = None
) -> Carry:
    """One step whatever becomes of it; the interval says whether it failed."""
    system, state = _begun(system, integrator, carry, h, drive)
    state, record = integrator.advance(system, state, h)
    state, turns = _wrap(system, state, carry.turns)
    finite = jnp.isfinite(_total(state, integrator.history(state)))
    status = jnp.where((record.status == Status.SOLVED) & ~finite, Status.NOT_FINITE, record.status)
    solved = status == Status.SOLVED
    old = carry.interval
    interval = Interval(
        old.steps + solved,
        jnp.maximum(old.iterations, record.iterations),
        jnp.maximum(old.increment, record.increment),
        jnp.maximum(old.residual, record.residual),
        jnp.maximum(old.status, status),
        jnp.where(solved | (old.failed_step >= 0), old.failed_step, carry.step + 1),
    )
    return Carry(state, carry.step + solved, turns, interval, drive=drive)


def step(system: System, integrator: Integrator, carry: Carry, h: Array, drive: Drive = None) -> Carry:
    """One step; a failed one leaves the state as it was and says so in the interval."""
    new = step_regardless(system, integrator, carry, h, drive)
    solved = new.step > carry.step
    state, turns, used = jax.tree.map(
        lambda new, kept: jnp.where(solved, new, kept),
        (new.state, new.turns, new.drive),
        (carry.state, carry.turns, carry.drive),
    )
    return Carry(state, new.step, turns, new.interval, drive=used)


Step = Callable[[System, Integrator, Carry, Array, Drive], Carry]


def seen_of(system: System, integrator: Integrator, state: State) -> Observation:
    """What is saved of a state: quaternions of length 1."""
    seen = integrator.observe(state)
    q, v = system.shown(seen.q, seen.v)
    return seen._replace(q=q, v=v)


def row_of(system: System, integrator: Integrator, carry: Carry) -> Row:
    """What the outside sees of a state."""
    system = system.driven(carry.drive)
    seen = seen_of(system, integrator, carry.state)
    lam = system.multipliers(seen.q, seen.v, seen.t) if seen.multipliers is None else seen.multipliers
    return Row(
        carry.step, seen.t, seen.q, carry.turns, seen.v, lam, seen.multiplier_t,
        *energies(system.at(seen.t), seen.q, seen.v), carry.interval,
    )  # fmt: skip


def energies(system: System, q: Array, v: Array) -> tuple[Array, Array, Array, Array, dict[str, Array]]:
    """Energy, its scale, both kinds of constraints and first integrals of one state."""
    integrals = {
        name: jnp.asarray(f(q, v, system.parameters), float) for name, f in system.first_integrals.items()
    }
    return system.energy(q, v), system.energy_scale(q, v), system.phi(q, v), system.g(q), integrals


def save(system: System, integrator: Integrator, carry: Carry) -> tuple[Row, Carry]:
    """The row of a state, and the state with a new record of solves, unless it has failed."""
    failed = carry.interval.status != Status.SOLVED
    fresh = jax.tree.map(lambda zero, old: jnp.where(failed, old, zero), Interval.empty(), carry.interval)
    return row_of(system, integrator, carry), replaced(carry, interval=fresh)


def step_or_stay(
    system: System, integrator: Integrator, carry: Carry, h: Array, drive: Drive = None, step: Step = step
) -> tuple[Carry, Array, tuple[Array, Array]]:
    """One step, unless an earlier one has failed; whether none has; and the two truths of a usual step, that
    no earlier one had failed and that this one was solved."""
    stepped = step(system, integrator, carry, h, drive)
    ok, solved = carry.interval.status == Status.SOLVED, stepped.step > carry.step
    kept = jax.tree.map(lambda new, old: jnp.where(ok, new, old), stepped, carry)
    return kept, kept.interval.status == Status.SOLVED, (ok, solved)


def strong(tree: T) -> T:
    """Without JAX's weak types, so that the first call and all later ones share one compilation."""
    return jax.tree.map(lambda x: lax.convert_element_type(x, x.dtype), tree)


def first_state(
    system: System, integrator: Integrator, q: Array, v: Array, t: Array, h: Array, drive: Drive = None
) -> tuple[Carry, Row]:
    """State and row of the initial time, with the inputs of the first step."""
    whole = jnp.where(system.angle_mask, jnp.round(q / TURN), 0.0)
    state = integrator.init(system.driven(drive), q - whole * TURN, v, t, h)
    carry = strong(Carry(state, jnp.array(0), whole, Interval.empty(), drive=drive))
    return carry, row_of(system, integrator, carry)
