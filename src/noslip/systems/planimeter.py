"""Planimeter in space: a particle on springs drives three flywheels by the areas that it sweeps.

Coordinates r = (x, y, z) and the turns area_x, area_y, area_z of the flywheels, written s. Unit masses and
inertias, springs k across and k_z along the z axis:

    L = (|rdot|^2 + |sdot|^2) / 2 - (k (x^2 + y^2) + k_z z^2) / 2
    sdot = c cross(r, rdot)

s is 2 c times the area swept about the origin, seen along the three axes. In the plane this is the system of
Brockett, the Heisenberg group. With the translations of s as group it is a Chaplygin system with a base of
three dimensions. Its reduced metric is (1 + c^2 r^2) 1 - c^2 r r^T and the reaction on the base
-2 c^2 (r |rdot|^2 - rdot (r . rdot)); it is Hamiltonizable with the multiplier f = 1 / (1 + c^2 r^2), and
f^2 dr dp is an invariant measure.

A torque N = -cross(r, grad V) on the particle turns the flywheels too: d cross(r, rdot) / dt = N / (1 + c^2
r^2), so the multipliers are c N / (1 + c^2 r^2) and x ydot - y xdot is constant, N having no z component. A
central force (k = k_z) never needs the constraint: free particles sweep equal areas in equal times.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from noslip.rotations import compose
from noslip.scenes import ORANGE, SKY, Camera, Cylinder, Mark, Scene, Solid, Sphere, along, heading
from noslip.system import Parameters, System
from noslip.systems._states import in_one_program


def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
    x, y, z = q[:3]
    return 0.5 * (jnp.dot(v, v) - p["k"] * (x**2 + y**2) - p["k_z"] * z**2)


def sweep(q: Array, p: Parameters) -> Array:
    """The matrix of rdot -> c cross(r, rdot)."""
    x, y, z = q[:3]
    return p["c"] * jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def one_forms(q: Array, p: Parameters) -> Array:
    return jnp.concatenate([-sweep(q, p), jnp.eye(3)], axis=1)


def frame(q: Array, p: Parameters) -> Array:
    return jnp.concatenate([jnp.eye(3), sweep(q, p)])


def multiplier(q: Array, p: Parameters) -> Array:
    return 1 / (1 + p["c"] ** 2 * jnp.dot(q[:3], q[:3]))


def area_rate(q: Array, v: Array, p: Parameters) -> Array:
    """x ydot - y xdot."""
    return q[0] * v[1] - q[1] * v[0]


def system(c: float = 0.8, k: float = 1.0, k_z: float = 1.7) -> System:
    return System(
        lagrangian,
        one_forms=one_forms,
        coordinates=("x", "y", "z", "area_x", "area_y", "area_z"),
        parameters={"c": c, "k": k, "k_z": k_z},
        frame=frame,
        first_integrals={"area_rate": area_rate},
        fibre=("area_x", "area_y", "area_z"),
        multiplier=multiplier,
        scene=scene,
    )


def scene(q: Array, p: Parameters) -> Scene:
    """The particle among its three flywheels, each about the axis that it sweeps its area about."""
    wheels = []
    for k, name in enumerate("xyz"):
        axis = jnp.zeros(3).at[k].set(1.0)
        turned, _ = along(jnp.zeros(3), axis)
        wheels.append(
            Solid(Cylinder(0.45, 0.08), -1.5 * axis, compose(turned, heading(q[3 + k])), name=f"area_{name}",
                  colour=SKY, pattern="sectors")
        )  # fmt: skip
    return Scene(
        bodies=(Solid(Sphere(0.07), q[:3], name="particle", colour=ORANGE), *wheels),
        marks=(Mark(q[:3], name="path"),),
        camera=Camera(azimuth=40.0, follow=False),
    )


@in_one_program
def typical_state() -> tuple[Array, Array]:
    q0 = jnp.array([0.7, -0.4, 0.5, 0.1, -0.2, 0.3])
    return q0, frame(q0, {"c": 0.8}) @ jnp.array([0.35, 0.9, -0.6])
