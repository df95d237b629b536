"""Terms of the Lagrangian linear in the velocities: what symbols and numbers say of the multiplier."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from chaplygin_systems import I, J, R, c, d, m, psi, squares, theta, x, y, z

from noslip import symbolic
from noslip.errors import NotHamiltonizable
from noslip.geometry.chaplygin import reduction
from noslip.geometry.hamiltonization import Hamiltonization, hamiltonize

GYROSCOPIC = {
    "x dx": (lambda: particle_with(c * x * d(x)), True),
    "dy": (lambda: particle_with(c * d(y)), False),
    "dz": (lambda: particle_with(c * d(z)), False),
    "y dx": (lambda: particle_with(c * y * d(x)), True),
    "disk": (lambda: disk_with(sp.sin(theta) * d(psi)), True),
    "disk, fibre": (lambda: disk_with(sp.cos(theta) * d(y) - sp.sin(theta) * d(x)), False),
}


def particle_with(term: sp.Expr) -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z) + term, [x, y, z], [d(z) + x * d(y)], {c: 0.7})


def disk_with(term: sp.Expr) -> symbolic.SymbolicSystem:
    lagrangian = (m * (d(x) ** 2 + d(y) ** 2) + J * d(theta) ** 2 + I * d(psi) ** 2) / 2 + term
    rolling = [d(x) - R * d(psi) * sp.cos(theta), d(y) - R * d(psi) * sp.sin(theta)]
    values = {m: 1.1, J: 0.3, I: 0.6, R: 0.8}
    return symbolic.system(lagrangian, [x, y, theta, psi], rolling, values, fibre=[x, y], angles=[theta, psi])


@pytest.mark.thorough
@pytest.mark.parametrize("name", GYROSCOPIC)
def test_both_halves_agree_on_terms_linear_in_the_velocities(name: str) -> None:
    """In symbols, in numbers, and by the motion: the equations of Lc are the reduced ones just if so."""
    make, holds = GYROSCOPIC[name]
    system = make()
    verdicts = [_verdict(lambda: system.chaplygin().hamiltonization()), _verdict(lambda: hamiltonize(system))]
    assert verdicts == [holds, holds]
    made, r, w = Hamiltonization(reduction(system)), np.array([0.4, -0.3]), np.array([0.7, 0.5])
    assert (jax.jit(functools.partial(_misses_the_motion, made))(r, w) < 1e-13) == holds


def _verdict(hamiltonized: Callable[[], Any]) -> bool:
    try:
        hamiltonized()
    except NotHamiltonizable:
        return False
    return True


def _misses_the_motion(made: Hamiltonization, r: Any, w: Any) -> Any:
    """d/dtau dLc/dr' - dLc/dr along the reduced motion, at r, where f = 1 and r' = w."""

    def momentum(x: Any, slope: Any) -> Any:
        return jax.grad(lambda s: made.lagrangian(r, x, s))(slope)

    growth = jnp.dot(made.omega(r), w)
    bend = made.reduced.acceleration(r, w) - growth * w  # r'' of r' = rdot / f
    change = jax.jvp(momentum, (r, w), (w, bend))[1]
    return jnp.max(jnp.abs(change - jax.grad(lambda x: made.lagrangian(r, x, w))(r)))
