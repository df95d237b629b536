"""Cases with symmetries after reduction, on which a method can break the promise `momentum_map`.

No first integral is declared, so that none is kept by being asked for, and no multiplier: f is found.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import jax.numpy as jnp
from jax import Array

from noslip.system import Parameters, System
from noslip.systems import sinusoidal_particle
from noslip.testing.frameless import admissible
from noslip.testing.integrators import Case, perturbed_case


def symmetric_cases() -> list[Case]:
    """One along y; one along y with m = 2 and a mass matrix that varies; one about a point of the plane."""
    particle = perturbed_case(sinusoidal_particle)
    bare = replace(particle.system, first_integrals={}, multiplier=None)
    return [Case("bare_particle", bare, particle.q0, particle.v0), _two_rails(), _turning()]


@functools.cache
def _two_rails() -> Case:
    """zdot + sin(x) ydot = 0, udot + x^2 ydot / 2 = 0, all in motion along y but nothing depends on y."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        heavy = 1 + p["m"] * jnp.cos(q[0]) ** 2
        kinetic = heavy * v[0] ** 2 + 1.2 * v[1] ** 2 + v[2] ** 2 + heavy * v[3] ** 2 + 0.4 * v[1] * v[2]
        return 0.5 * (kinetic - p["k"] * q[0] ** 2)

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[0.0, jnp.sin(q[0]), 1.0, 0.0], [0.0, q[0] ** 2 / 2, 0.0, 1.0]])

    system = System(
        lagrangian, one_forms=one_forms, coordinates=("x", "y", "z", "u"), parameters={"m": 0.6, "k": 0.7}
    )
    return _case("two_rails", system, [0.8, -0.3, 0.2, 0.5], [0.6, 0.9, 0.0, 0.0])


@functools.cache
def _turning() -> Case:
    """zdot = (x ydot - y xdot) / 2 in a round well: after reduction, the angular momentum about its axis."""

    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        r2 = q[0] ** 2 + q[1] ** 2
        kinetic = (1 + p["m"] * r2) * (v[0] ** 2 + v[1] ** 2) + v[2] ** 2
        return 0.5 * (kinetic - p["k"] * r2)

    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[q[1] / 2, -q[0] / 2, 1.0]])

    system = System(
        lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"m": 0.3, "k": 0.8}
    )
    return _case("turning", system, [0.9, -0.4, 0.3], [0.3, 0.8, 0.0])


def _case(name: str, system: System, q: list[float], v: list[float]) -> Case:
    return Case(name, system, jnp.array(q), admissible(system, q, v))
