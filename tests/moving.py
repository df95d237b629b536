"""Systems whose Lagrangian and constraints contain t, and their motion computed without this package: SymPy
differentiates L and phi, NumPy solves for the acceleration, SciPy integrates."""

import functools

import jax.numpy as jnp
import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

from noslip import System

K = 0.7  # not the default of either system
NAMES = ("x", "y", "z", "w")


def lagrangian(q, v, t, p, xp=jnp):
    """Mass, gyroscopic term and potential all vary with place and time."""
    stretch = 1 + 0.3 * xp.sin(t) ** 2 + 0.2 * xp.cos(q[0])
    kinetic = stretch * v[0] ** 2 + (2 + xp.sin(q[1] - t)) * v[1] ** 2 + v[2] ** 2 + 1.5 * v[3] ** 2
    mixed = 0.2 * v[0] * v[2] * xp.cos(q[3]) + 0.1 * v[1] * v[3]
    gyroscopic = xp.sin(2 * t) * q[1] * v[0] + 0.3 * t * q[0] * v[2]
    return (kinetic + mixed) / 2 + gyroscopic - p["k"] * q[0] ** 2 * (1 + 0.4 * xp.cos(t)) - xp.cos(q[2] - t)


def rows(q, t, p, xp=jnp):
    return [
        [-xp.sin(q[2] + 0.3 * t), xp.cos(q[2] + 0.3 * t), 0.2 * q[3], 0.1],
        [0.3 * q[1], 0.1 * xp.sin(t), 1.0, q[0] * (1 + 0.1 * t)],
    ]


def one_forms(q, t, p):
    return jnp.array([[1.0 * x for x in row] for row in rows(q, t, p)])


def drift_values(q, t, p, xp=jnp):
    return [0.4 * xp.sin(t + q[3]), 0.2 * p["k"] * xp.cos(2 * t)]


def drift(q, t, p):
    return jnp.array(drift_values(q, t, p))


def constraint_values(q, v, t, p, xp=jnp):
    return [
        v[2] ** 2 + 0.3 * v[3] ** 2 - (1 + 0.3 * xp.sin(t)) * (v[0] ** 2 + v[1] ** 2) - 0.2 * p["k"] * q[1]
    ]


def constraint(q, v, t, p):
    return jnp.array(constraint_values(q, v, t, p))


PARAMETERS = {"k": K}
Q0 = np.array([0.4, -0.3, 0.2, 0.5])
T0 = 0.6

LINEAR = System(lagrangian, one_forms=one_forms, coordinates=NAMES, parameters={"k": 1.0})
AFFINE = System(lagrangian, one_forms=one_forms, drift=drift, coordinates=NAMES, parameters={"k": 1.0})
NONLINEAR = System(lagrangian, constraint=constraint, coordinates=NAMES, parameters={"k": 1.0})
SYSTEMS = {"linear": LINEAR, "affine": AFFINE, "nonlinear": NONLINEAR}


def start(kind):
    """An admissible state at T0."""
    system = SYSTEMS[kind].with_parameters(PARAMETERS)
    v = system.project_velocity(Q0, np.array([0.5, 0.3, 0.9, -0.4]), T0)
    return Q0, np.asarray(v)


def truth(kind, times, q0, v0):
    """(q, v, lam) at the times, the first of which is that of the start."""
    return flow(_equations(kind), times, q0, v0)


def flow(field, times, q0, v0):
    """The same for a field that gives acceleration and multipliers."""
    n = len(q0)

    def slope(t, y):
        return np.concatenate([y[n:], field(y[:n], y[n:], t)[0]])

    found = solve_ivp(
        slope, (times[0], times[-1]), np.concatenate([q0, v0]), "DOP853", times, rtol=1e-13, atol=1e-14
    )
    q, v = found.y[:n].T, found.y[n:].T
    return q, v, np.array([field(a, b, t)[1] for a, b, t in zip(q, v, times, strict=True)])


@functools.cache
def _equations(kind):
    """Acceleration and multipliers of (q, v, t)."""
    t = sp.Symbol("t")
    q, v = sp.symbols("q:4"), sp.symbols("v:4")
    L = lagrangian(q, v, t, PARAMETERS, sp)
    if kind == "nonlinear":
        phi = sp.Matrix(constraint_values(q, v, t, PARAMETERS, sp))
    else:
        phi = sp.Matrix(rows(q, t, PARAMETERS, sp)) * sp.Matrix(v)
        if kind == "affine":
            phi += sp.Matrix(drift_values(q, t, PARAMETERS, sp))
    return equations(L, phi, q, v, t)


def equations(L, phi, q, v, t):
    """The same of any L and phi in these symbols."""
    p = sp.Matrix([L]).jacobian(v).T
    M, mu = p.jacobian(v), phi.jacobian(v)
    f = sp.Matrix([L]).jacobian(q).T - p.jacobian(q) * sp.Matrix(v) - p.diff(t)
    dphi = phi.jacobian(q) * sp.Matrix(v) + phi.diff(t)
    numbers = sp.lambdify([q, v, t], [M, mu, f, dphi], "numpy", cse=True)

    def field(x, u, s):
        M, mu, f, dphi = (np.asarray(a, float) for a in numbers(x, u, s))
        matrix = np.block([[M, -mu.T], [mu, np.zeros((len(mu), len(mu)))]])
        solved = np.linalg.solve(matrix, np.concatenate([f[:, 0], -dphi[:, 0]]))
        return solved[: len(x)], solved[len(x) :]

    return field
