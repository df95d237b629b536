"""Finite-difference maps rho(q, qbar) = (g(q, qbar), f(q, qbar, h)): two nodes make a state.

JS definition 5.5 and (62): rho is a local diffeomorphism near the diagonal with g(q, q) = q and f(q, q) = 0;
that the method converges needs f(q, q + h v) -> v as well. Then, JS proposition 5.2,

    L_d(q, qbar) = h L(rho(q, qbar)),       phi_d(q, qbar) = phi(rho(q, qbar)),       D_d = {phi_d = 0}

where phi_d has m components (the 2n - m of the printed proposition is a slip). JS (64) is

    rho^beta(q, qbar) = ((1 - beta) q + beta qbar, (qbar - q) / h)

The adjoint of a map exchanges its nodes, rho*(q, qbar; h) = rho(qbar, q; -h), so that of beta is 1 - beta;
the methods of the two are adjoint to each other, and a symmetric map, rho* = rho, gives order 2.

Maps are used through increments: a pair is (q, w) with qbar = q + h w, a node is q + shift. So the only
absolute position is q, in which declared angles can be wrapped.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from numpy.typing import ArrayLike

from noslip.engine.kept import jitted
from noslip.numerics.linear import solve
from noslip.numerics.pytrees import PyTree
from noslip.numerics.tracing import Values

if TYPE_CHECKING:
    from noslip.system import System

NEWTON_STEPS = 12
SAMPLES = 5
ROUND_OFF = 1e-10
Pair = tuple[Array, Array]


class FiniteDifferenceMap:
    """What all maps share; one of them gives `at`, `fraction`, `symmetric` and `adjoint`."""

    @property
    def symmetric(self) -> bool:
        """Whether the map is its own adjoint."""
        raise NotImplementedError(f"{type(self).__name__} must define symmetric")

    def at(self, q: Array, w: Array, h: Array) -> Pair:
        """g(q, q + h w) - q and f(q, q + h w, h)."""
        raise NotImplementedError(f"{type(self).__name__} must define at")

    def fraction(self, q: Array) -> Any:
        """How far into the step the node lies; beta for rho^beta."""
        raise NotImplementedError(f"{type(self).__name__} must define fraction")

    def adjoint(self) -> FiniteDifferenceMap:
        """rho*(q, qbar; h) = rho(qbar, q; -h)."""
        return Adjoint(self)

    def refusal(self, system: System) -> str | None:
        """None, or one sentence that says why the map cannot be used with this system."""
        return None

    def __call__(self, q: ArrayLike, qbar: ArrayLike, h: Any) -> Pair:
        """(g, f) of two nodes, JS (62)."""
        q, qbar = jnp.asarray(q, dtype=float), jnp.asarray(qbar, dtype=float)
        return self.node(q, (qbar - q) / h, h)

    def node(self, q: Array, w: Array, h: Array) -> Pair:
        """Position and velocity that belong to the pair (q, q + h w)."""
        shift, v = self.at(q, w, h)
        return q + shift, v

    def inverse(self, node: Array, v: Array, h: Array) -> Pair:
        """(qbar - node, w) of the pair that gives (node, v); NaN where none is found."""
        n = node.size

        def defect(x: Array) -> Array:  # x = (node - q, w)
            shift, velocity = self.at(node - x[:n], x[n:], h)
            return jnp.concatenate([shift - x[:n], velocity - v])

        def newton(_: Array, x: Array) -> Array:
            return x - solve(jax.jacfwd(defect)(x), defect(x))

        start = jnp.concatenate([self.fraction(node) * h * v, v])
        x = lax.fori_loop(0, NEWTON_STEPS, newton, start)
        solved = jnp.max(jnp.abs(defect(x))) <= ROUND_OFF * (1 + jnp.max(jnp.abs(start)))
        x = jnp.where(solved, x, jnp.nan)
        return h * x[n:] - x[:n], x[n:]

    def momenta(self, system: System, q: Array, w: Array, h: Array, t: Array) -> Pair:
        """-D1 L_d and D2 L_d of the pair (q, q + h w), each with its share of the force; the node is at t."""
        (shift, v), pull = jax.vjp(lambda q, w: self.at(q, w, h), q, w)
        node = q + shift
        f = system.dL_dq(node, v, t) + system.applied_force(node, v, t)
        by_q, by_w = pull((f, system.momentum(node, v, t)))
        return by_w - h * (f + by_q), by_w

    def discrete_lagrangian(self, system: System, q: ArrayLike, qbar: ArrayLike, h: Any) -> Array:
        """L_d = h L o rho."""
        return h * system.lagrangian(*self(q, qbar, h), system.parameters)

    def discrete_constraint(self, system: System, q: ArrayLike, qbar: ArrayLike, h: Any) -> Array:
        """phi_d = phi o rho, whose zeros are D_d."""
        return system.phi(*self(q, qbar, h))


@dataclass(frozen=True)
class RhoBeta(FiniteDifferenceMap):
    """rho^beta, JS (64), with all its formulas written out."""

    beta: float

    def __post_init__(self) -> None:
        if not 0 <= self.beta <= 1:
            raise ValueError(f"`beta` must be in [0, 1], but {self.beta!r} was provided")

    @property
    def symmetric(self) -> bool:
        return self.beta == 0.5

    def at(self, q: Array, w: Array, h: Array) -> Pair:
        return self.beta * h * w, w

    def fraction(self, q: Array) -> float:
        return self.beta

    def adjoint(self) -> RhoBeta:
        return RhoBeta(1 - self.beta)

    def inverse(self, node: Array, v: Array, h: Array) -> Pair:
        return (1 - self.beta) * h * v, v

    def momenta(self, system: System, q: Array, w: Array, h: Array, t: Array) -> Pair:
        node = q + self.beta * h * w
        f = system.dL_dq(node, w, t) + system.applied_force(node, w, t)
        p = system.momentum(node, w, t)
        return p - h * (1 - self.beta) * f, p + h * self.beta * f


@dataclass(frozen=True)
class Adjoint(FiniteDifferenceMap):
    """The adjoint of a map."""

    base: FiniteDifferenceMap

    @property
    def symmetric(self) -> bool:
        return self.base.symmetric

    def at(self, q: Array, w: Array, h: Array) -> Pair:
        shift, v = self.base.at(q + h * w, w, -h)
        return h * w + shift, v

    def fraction(self, q: Array) -> Any:
        return 1 - self.base.fraction(q)

    def adjoint(self) -> FiniteDifferenceMap:
        return self.base

    def refusal(self, system: System) -> str | None:
        return self.base.refusal(system)


@dataclass(frozen=True, repr=False)
class RhoFunctions(FiniteDifferenceMap):
    """A map of your own: g(q, qbar) and f(q, qbar, h), smooth functions for JAX.

    The conditions of JS definition 5.5 are checked here, numerically, around the point `near`, whose length
    is the number of coordinates; without it the functions must do for any number. Maps of the same functions
    are equal, so define them once.
    """

    g: Callable[[Array, Array], Array]
    f: Callable[[Array, Array, Any], Array]
    near: tuple[float, ...] | None = None
    _symmetric: bool = field(init=False, compare=False, default=False)

    def __post_init__(self) -> None:
        near = None if self.near is None else tuple(float(x) for x in self.near)
        object.__setattr__(self, "near", near)
        object.__setattr__(self, "_symmetric", _check_conditions(self))

    def __repr__(self) -> str:
        names = [getattr(x, "__qualname__", type(x).__name__) for x in (self.g, self.f)]
        return f"RhoFunctions({', '.join(names)})"

    @property
    def symmetric(self) -> bool:
        return self._symmetric

    def at(self, q: Array, w: Array, h: Array) -> Pair:
        d = h * w
        qbar = q + d
        lost = lax.stop_gradient(d - (qbar - q))  # what rounding q + h w cut off
        values, corrections = jax.jvp(lambda x: (self.g(q, x), self.f(q, x, h)), (qbar,), (lost,))
        return values[0] - q + corrections[0], values[1] + corrections[1]

    def fraction(self, q: Array) -> Array:
        return jnp.trace(jax.jacfwd(self.g, 1)(q, q)) / q.size

    def refusal(self, system: System) -> str | None:
        n = system.n
        if self.near is not None and len(self.near) != n:
            return f"its map rho is for {len(self.near)} coordinates, and the system has {n}"
        q, qbar, h = _samples(np.zeros(n) if self.near is None else np.array(self.near))
        for name in system.angles:
            turn = 2 * np.pi * (np.arange(n) == system.index(name))
            (g0, f0), (g1, f1) = (
                jax.tree.map(np.asarray, _nodes(q=q + s, qbar=qbar + s, h=h, rho=self)) for s in (0, turn)
            )
            if not max(_size(g1 - g0 - turn), _size(f1 - f0)) <= ROUND_OFF * (1 + _size(f0)):
                return f"its map rho changes when both nodes turn by 2 pi in the angle '{name}'"
        return None


@functools.partial(jitted, static=("rho",))
def _nodes(rho: RhoFunctions, q: Array, qbar: Array, h: Array) -> Pair:
    return rho(q, qbar, h)


def _samples(near: np.ndarray, spread: float = 0.05) -> tuple[np.ndarray, np.ndarray, float]:
    """A pair of nodes near the diagonal, and a step size."""
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, near.size))
    return near + spread * x, near + spread * (x + y), spread


def _check_conditions(rho: RhoFunctions) -> bool:
    """Refuse what is not a finite-difference map, naming the condition; return whether it is symmetric."""
    near = np.zeros(3) if rho.near is None else np.array(rho.near)
    _check_shapes(rho, *_samples(near))

    @jax.jit
    def found(q: Array, qbar: Array, h: Array) -> tuple[PyTree, ...]:
        v, small = (qbar - q) / h, 1e-6
        slope = h * jax.jacfwd(rho.f, 1)(q, q, h)
        there, back = rho(q, qbar, h), rho(qbar, q, -h)
        return rho.g(q, q), rho.f(q, q, h), slope, v, rho.f(q, q + small * v, small), there, back

    symmetric = True
    for k in range(SAMPLES):
        q, qbar, h = _samples(near, 0.05 * 2.0**-k)
        g, f, slope, v, quotient, there, back = jax.tree.map(np.asarray, found(q, qbar, h))
        _require(g, q, "g(q, q) = q", q)
        _require(f, np.zeros_like(q), "f(q, q, h) = 0", q)
        values = np.linalg.svd(np.nan_to_num(slope), compute_uv=False)
        if not (np.all(np.isfinite(slope)) and values[-1] > 1e-8 * max(values[0], 1.0)):
            raise ValueError(
                "a finite-difference map must be a local diffeomorphism near the diagonal "
                f"(JS definition 5.5), but at q = {q} h df/dqbar has singular values {values}"
            )
        _require(quotient, v, "f(q, q + h v, h) -> v as h -> 0", q, 1e-4)
        symmetric &= all(_size(a - b) <= ROUND_OFF for a, b in zip(there, back, strict=True))
    return symmetric


def _check_shapes(rho: RhoFunctions, q: Values, qbar: Values, h: float) -> None:
    for label, function, given in (("g(q, qbar)", rho.g, (q, qbar)), ("f(q, qbar, h)", rho.f, (q, qbar, h))):
        shape = jax.eval_shape(lambda *x, function=function: jnp.asarray(function(*x)), *given).shape
        if shape != q.shape:
            raise ValueError(f"`{label}` must have shape {q.shape}, but {shape} was returned")


def _require(
    value: np.ndarray, expected: np.ndarray, condition: str, q: np.ndarray, tolerance: float = ROUND_OFF
) -> None:
    if not _size(value - expected) <= tolerance * (1 + _size(expected)):
        raise ValueError(
            f"a finite-difference map must satisfy {condition} (JS definition 5.5), but at "
            f"q = {q} it gives {value} instead of {expected}"
        )


def _size(x: ArrayLike) -> float:
    return float(np.max(np.abs(np.asarray(x))))
