"""Looks between the steps of a run: shortened steps of its method, which the run itself does not notice."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from noslip.engine.kept import jitted
from noslip.integrators.base import Integrator
from noslip.integrators.solve import without_derivatives
from noslip.numerics.pytrees import replaced
from noslip.run.step import Carry, Row, Step, row_of, step
from noslip.system import System
from noslip.system.inputs import Drive

# traced once, however often a function contains them
step_once = jitted(step, static=("integrator",))


@partial(jitted, static=("integrator",))
def plain_step(system: System, integrator: Integrator, carry: Carry, h: Array, drive: Drive = None) -> Carry:
    """The same where nobody differentiates it."""
    with without_derivatives():
        return step(system, integrator, carry, h, drive)


def shortened(
    system: System,
    integrator: Integrator,
    carry: Carry,
    h: Array,
    part: Array,
    drive: Drive = None,
    step: Step = step,
) -> Carry:
    """After a step of part * h, 0 < part <= 1, from a state whose steps have the length h. What the state
    holds of earlier steps to guess the next are increments, and shrink with it."""
    state = integrator.for_step(system, carry.state, part * h)
    if (history := integrator.history(state)) is not None:
        state = integrator.with_history(state, jax.tree.map(lambda x: part * x, history))
    begun = Carry(state, carry.step, carry.turns, carry.interval, drive=carry.drive)
    return step(system, integrator, begun, part * h, drive)


def row_aside(
    system: System, integrator: Integrator, carry: Carry, h: Array, part: Array, drive: Drive = None
) -> Row:
    """What is seen there; where `part` is 0, at the state itself."""
    here = part == 0
    seen = shortened(system, integrator, carry, h, jnp.where(here, 1.0, part), drive)
    plain = replaced(carry, watch=None)
    return row_of(system, integrator, jax.tree.map(lambda a, b: jnp.where(here, a, b), plain, seen))
