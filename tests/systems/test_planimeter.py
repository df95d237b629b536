"""The planimeter's own equations: equal areas in equal times, unless a torque acts."""

import jax
import jax.numpy as jnp
import numpy as np

from noslip import System
from noslip.systems import planimeter
from noslip.testing.systems import reference

PARAMETERS = {"c": 1.3, "k": 0.7, "k_z": 2.1}


def start(system: System) -> tuple[np.ndarray, np.ndarray]:
    q, v = planimeter.typical_state()
    return np.asarray(q), np.asarray(system.project_velocity(q, v))


def test_the_areas_are_driven_by_the_cross_product() -> None:
    system = planimeter.system(**PARAMETERS)
    q, v = start(system)
    np.testing.assert_allclose(v[3:], 1.3 * np.cross(q[:3], v[:3]), rtol=0, atol=1e-15)


def test_a_torque_turns_particle_and_flywheels() -> None:
    """d(r x rdot)/dt = N / (1 + c^2 r^2), and the multipliers are c times that."""
    system = planimeter.system(**PARAMETERS)
    q, v = start(system)
    r, acceleration = q[:3], np.asarray(system.acceleration(q, v))[:3]
    torque = np.cross(r, -np.array([0.7, 0.7, 2.1]) * r)
    expected = torque / (1 + 1.3**2 * np.dot(r, r))
    change = np.cross(r, acceleration)
    np.testing.assert_allclose(change, expected, rtol=0, atol=1e-15)
    np.testing.assert_allclose(system.multipliers(q, v), 1.3 * expected, rtol=0, atol=1e-15)
    assert np.max(np.abs(expected)) > 0.05


def test_a_central_force_never_needs_the_constraint() -> None:
    """With equal springs the particle is a free oscillator, and the flywheels turn evenly."""
    system = planimeter.system(c=1.3, k=0.7, k_z=0.7)
    q, v = start(system)
    run = reference(system, q, v, t_end=20.0)
    w, t = np.sqrt(0.7), np.asarray(run.t)[:, None]
    r = np.cos(w * t) * q[:3] + np.sin(w * t) / w * v[:3]
    np.testing.assert_allclose(run.q, np.hstack([r, q[3:] + t * v[3:]]), rtol=0, atol=1e-10)
    multipliers = jax.vmap(system.multipliers)(run.q, run.v, run.t)
    np.testing.assert_allclose(multipliers, 0, rtol=0, atol=1e-13)


def test_the_reduced_metric_and_reaction_of_the_docstring() -> None:
    """G rddot + (dG/dt rdot - dl_c/dr) = reaction, with the metric and the reaction written out."""
    system = planimeter.system(**PARAMETERS)
    q, v = start(system)
    r, rdot, c2 = q[:3], v[:3], 1.3**2

    def metric(r: jax.Array) -> jax.Array:
        return (1 + c2 * jnp.dot(r, r)) * jnp.eye(3) - c2 * jnp.outer(r, r)

    def reduced_lagrangian(r: jax.Array, rdot: jax.Array) -> jax.Array:
        potential = 0.7 * (r[0] ** 2 + r[1] ** 2) + 2.1 * r[2] ** 2
        return 0.5 * (rdot @ metric(r) @ rdot - potential)

    @jax.jit
    def left_side(r: jax.Array, rdot: jax.Array, acceleration: jax.Array) -> jax.Array:
        momentum = jax.grad(reduced_lagrangian, 1)
        change = jax.jvp(momentum, (r, rdot), (rdot, acceleration))[1]
        return change - jax.grad(reduced_lagrangian)(r, rdot)

    acceleration = np.asarray(system.acceleration(q, v))[:3]
    reaction = -2 * c2 * (r * np.dot(rdot, rdot) - rdot * np.dot(r, rdot))
    np.testing.assert_allclose(left_side(r, rdot, acceleration), reaction, rtol=0, atol=1e-14)
