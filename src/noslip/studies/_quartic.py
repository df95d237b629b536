"""The chaotic system of CFHM section 4.1: its five methods and random states of the energy 3.06."""

from __future__ import annotations

import numpy as np

from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import quartic

METHODS: dict[str, Integrator] = {
    "SI-DLA": SemiImplicitDLA(),
    "I-DLA": VelocityNonholonomic(),
    "SPARK": LobattoSpark(),
    "AVF": DiscreteGradient("mean_value"),
    "GONZALEZ": DiscreteGradient(),
}
"""As CFHM names them."""
ENERGY_PRESERVING = ("AVF", "GONZALEZ")
SEED = 0


def random_states(members: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """States on the constraint, positions normal with deviation 0.7, velocities scaled to the energy 3.06."""
    rng, system = np.random.default_rng(seed), quartic.system()
    q0s: list[np.ndarray] = []
    v0s: list[np.ndarray] = []
    while len(q0s) < members:
        q, v = 0.7 * rng.normal(size=7), rng.normal(size=7)
        v[0] = -(q[1:4] @ v[4:])
        potential = _potential(q, system.parameters["stiffness"], system.parameters["coupling"])
        if potential > 2.8:
            continue
        q0s.append(q)
        v0s.append(v * np.sqrt(2 * (quartic.ENERGY - potential) / (v @ v)))
    return np.array(q0s), np.array(v0s)


def _potential(q: np.ndarray, stiffness: float, coupling: float) -> float:
    w, z = q[1:4], q[4:]
    quartic_terms = z[0] ** 2 * z[1] ** 2 + np.sum(w**2 * z**2)
    return float(0.5 * (stiffness * q @ q + coupling * quartic_terms))
