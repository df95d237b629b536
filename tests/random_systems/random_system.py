"""Random mechanical systems, twice: as a `System`, and as a motion in NumPy that knows nothing of noslip.

With s(q) = sin(W q + d), a vector of a few waves, and random coefficients

    L = |B(q) v|^2 / 2 + a(q) . v - V(q),    B = B0 + B1 s,    a = a1 s,    V = c . s + k . (q - centre)^2 / 2
    phi = mu(q) v + b(q) + kappa sqrt(1 + v . v),    mu = mu0 + mu1 s,    b = b0 + b1 s
    force = cos(t) F s - D v

The coefficients are parameters, so that all systems of one `Shape` share compiled code. In NumPy the
derivatives are written out by hand and the motion is the solution of the whole system of equations

    M dv/dt - mu^T lam = dL/dq - (d2L/dv dq) v + force,      mu dv/dt = -(dphi/dq) v

by LU factorisation, integrated by SciPy's DOP853: no mass matrix, force, multiplier or projection of noslip.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from noslip import System

WAVES = 3
KINDS = ("linear", "affine", "nonlinear")
FORMS = ("plain", "framed", "chaplygin", "hamiltonizable")
Coefficients = dict[str, np.ndarray]


@dataclass(frozen=True)
class Shape:
    """What compiled code depends on.

    Of the forms, "framed" has mu = (A, 1) with an analytic frame, "chaplygin" nothing that depends on the
    last m coordinates, "hamiltonizable" besides a diagonal mass matrix and an A of one base coordinate only.
    """

    n: int
    m: int
    kind: str = "linear"
    form: str = "plain"
    forced: bool = False
    angle: bool = False  # the first coordinate is one

    @property
    def base(self) -> int:
        return self.n - self.m


def random_shape(rng: np.random.Generator, largest: int = 8) -> Shape:
    """Any shape."""
    form = str(rng.choice(FORMS, p=[0.55, 0.15, 0.15, 0.15]))
    n = int(rng.integers(2, largest + 1))
    least = {"plain": 0, "hamiltonizable": max(1, n - 2)}.get(form, 1)
    m = int(rng.integers(least, n))
    kind = str(rng.choice(KINDS)) if form == "plain" and m > 0 else "linear"
    forced = form != "hamiltonizable" and rng.random() < 0.3
    return Shape(n, m, kind, form, bool(forced), bool(rng.random() < 0.3))


def random_coefficients(rng: np.random.Generator, shape: Shape) -> Coefficients:
    """One system of that shape."""
    n, m, r = shape.n, shape.m, shape.base
    normal = rng.standard_normal
    p = {
        "W": normal((WAVES, n)) / np.sqrt(n),
        "d": rng.uniform(-np.pi, np.pi, WAVES),
        "B0": np.diag(rng.uniform(0.7, 1.6, n)) + 0.2 * normal((n, n)) / np.sqrt(n),
        "B1": 0.3 * normal((n, n, WAVES)) / n,
        "a1": 0.4 * normal((n, WAVES)),
        "c": normal(WAVES),
        "k": rng.uniform(0.0, 2.0, n),
        "centre": 4 * normal(n),
        "mu0": normal((m, n)),
        "mu1": 0.5 * normal((m, n, WAVES)),
        "b0": 0.4 * normal(m),
        "b1": 0.3 * normal((m, WAVES)),
        "kappa": 0.4 * normal(m),
        "F": normal((n, WAVES)),
        "D": 0.3 * normal((n, n)),
    }
    if shape.angle:
        p["W"][:, 0] = rng.integers(-2, 3, WAVES)
        p["k"][0] = 0.0
    if shape.form != "plain":
        p["mu0"][:, r:], p["mu1"][:, r:] = np.eye(m), 0.0
    if shape.form in ("chaplygin", "hamiltonizable"):
        p["W"][:, r:], p["k"][r:] = 0.0, 0.0
    if shape.form == "hamiltonizable":
        p["W"][:, 1:], p["a1"][:] = 0.0, 0.0
        p["B0"], p["B1"] = np.diag(np.diag(p["B0"])), p["B1"] * np.eye(n)[:, :, None]
        if r == 2:
            p["mu0"][:, 0], p["mu1"][:, 0] = 0.0, 0.0
    return p


@functools.cache
def _functions(shape: Shape) -> dict[str, Any]:
    """The functions that noslip is given; the same ones for equal shapes."""

    def waves(q, p):
        return jnp.sin(p["W"] @ q + p["d"])

    def lagrangian(q, v, p):
        s = waves(q, p)
        u = (p["B0"] + p["B1"] @ s) @ v
        potential = jnp.dot(p["c"], s) + jnp.dot(p["k"], (q - p["centre"]) ** 2) / 2
        return jnp.dot(u, u) / 2 + jnp.dot(p["a1"] @ s, v) - potential

    def one_forms(q, p):
        return p["mu0"] + p["mu1"] @ waves(q, p)

    def drift(q, p):
        return p["b0"] + p["b1"] @ waves(q, p)

    def constraint(q, v, p):
        return one_forms(q, p) @ v + drift(q, p) + p["kappa"] * jnp.sqrt(1 + jnp.dot(v, v))

    def force(q, v, t, p):
        return jnp.cos(t) * (p["F"] @ waves(q, p)) - p["D"] @ v

    def frame(q, p):
        return jnp.vstack([jnp.eye(shape.base), -one_forms(q, p)[:, : shape.base]])

    given: dict[str, Any] = (
        {"constraint": constraint} if shape.kind == "nonlinear" else {"one_forms": one_forms}
    )
    given = given if shape.m else {}
    given |= {"drift": drift} if shape.kind == "affine" else {}
    given |= {"force": force} if shape.forced else {}
    given |= {"frame": frame} if shape.form == "framed" else {}
    return {"lagrangian": lagrangian} | given


def as_system(shape: Shape, coefficients: Coefficients) -> System:
    """What noslip runs."""
    names = tuple(f"q{i}" for i in range(shape.n))
    angles = names[:1] if shape.angle else ()
    return System(**_functions(shape), coordinates=names, angles=angles, parameters=coefficients)


class Motion:
    """The motion in NumPy."""

    def __init__(self, shape: Shape, coefficients: Coefficients):
        self.shape, self.p = shape, coefficients

    def _waves(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """s and ds/dq."""
        angle = self.p["W"] @ q + self.p["d"]
        return np.sin(angle), np.cos(angle)[:, None] * self.p["W"]

    def energy(self, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
        """T + V, and the sum of the sizes of their terms."""
        p, (s, _) = self.p, self._waves(q)
        u = (p["B0"] + p["B1"] @ s) @ v
        parts = [u @ u / 2, p["c"] @ s, p["k"] @ (q - p["centre"]) ** 2 / 2]
        return sum(parts), sum(abs(x) for x in parts)

    def constraint(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi, and the sums of the sizes of its terms."""
        p, (s, _) = self.p, self._waves(q)
        terms = [*((p["mu0"] + p["mu1"] @ s) * v).T]
        if self.shape.kind != "linear":
            terms.append(p["b0"] + p["b1"] @ s)
        if self.shape.kind == "nonlinear":
            terms.append(p["kappa"] * np.sqrt(1 + v @ v))
        return np.sum(terms, axis=0), np.sum(np.abs(terms), axis=0)

    def slopes(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """mu = dphi/dv and (dphi/dq) v."""
        p, (s, ds) = self.p, self._waves(q)
        mu, along = p["mu0"] + p["mu1"] @ s, p["mu1"] @ (ds @ v) @ v
        if self.shape.kind != "linear":
            along = along + p["b1"] @ (ds @ v)
        if self.shape.kind == "nonlinear":
            mu = mu + np.outer(p["kappa"], v) / np.sqrt(1 + v @ v)
        return mu, along

    def solved(self, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
        """dv/dt and the multipliers."""
        p, (s, ds), n = self.p, self._waves(q), self.shape.n
        B, dB = p["B0"] + p["B1"] @ s, p["B1"] @ ds  # dB[i, j, l] = dB_ij / dq_l
        u, turn = B @ v, dB @ v
        dT = np.outer(u, v).ravel() @ dB.reshape(n * n, n)
        dV = ds.T @ p["c"] + p["k"] * (q - p["centre"])
        gyroscopic = p["a1"] @ ds  # da_i / dq_l
        f = dT + gyroscopic.T @ v - dV - (turn.T @ u + B.T @ (turn @ v) + gyroscopic @ v)
        if self.shape.forced:
            f = f + np.cos(t) * (p["F"] @ s) - p["D"] @ v
        mu, along = self.slopes(q, v)
        K = np.zeros((n + len(mu), n + len(mu)))
        K[:n, :n], K[:n, n:], K[n:, :n] = B.T @ B, -mu.T, mu
        x = np.linalg.solve(K, np.concatenate([f, -along]))
        return x[:n], x[n:]

    def admissible(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """A velocity on the constraint near v."""
        for _ in range(20):
            v = v - np.linalg.pinv(self.slopes(q, v)[0]) @ self.constraint(q, v)[0]
        on = np.max(np.abs(self.constraint(q, v)[0]), initial=0.0) < 1e-12
        return v if on else np.full_like(v, np.inf)

    def tame(self, z: np.ndarray) -> bool:
        """Whether the motion is moderate and the constraints are well independent."""
        q, v = np.split(z, 2)
        if not np.max(np.abs(v)) < 8:
            return False
        mu = self.slopes(q, v)[0]
        return bool(mu.size == 0 or np.linalg.cond(mu) < 25)

    def flow(self, q: np.ndarray, v: np.ndarray, t_end: float) -> Any:
        """The motion from t = 0, of which the last state is SciPy's own and those between are interpolated,
        to some 1e-10; None where it does not stay tame."""
        n = self.shape.n

        def field(t: float, z: np.ndarray) -> np.ndarray:
            return np.concatenate([z[n:], self.solved(z[:n], z[n:], t)[0]])

        def wild(t: float, z: np.ndarray) -> float:
            return 1.0 if self.tame(z) else -1.0

        wild.terminal = True  # type: ignore[attr-defined]
        start = np.concatenate([q, v])
        if not self.tame(start):
            return None
        options: dict[str, Any] = {"rtol": 1e-12, "atol": 1e-12, "dense_output": True}
        found = solve_ivp(field, (0.0, t_end), start, method="DOP853", events=wild, **options)
        return found if found.status == 0 else None


def random_start(rng: np.random.Generator, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """A state on the constraint, well outside [-1, 1]."""
    q, v = 5 * rng.standard_normal(motion.shape.n), 1.2 * rng.standard_normal(motion.shape.n)
    return q, motion.admissible(q, v)
