"""How the quantities derived from a system are called and compiled; and the motion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.often import evaluate_by_code
from noslip.engine.kept import jitted, kept
from noslip.numerics import blocks
from noslip.numerics.linear import nearly_parallel, orthogonal_rows, spd_solve
from noslip.numerics.pytrees import PyTree
from noslip.numerics.tracing import Either, Values, is_traced
from noslip.system.captured import Captured
from noslip.system.positions import dependent_rows

if TYPE_CHECKING:
    from noslip.system import System

P = ParamSpec("P")
R = TypeVar("R")
Parameters = Mapping[str, Either]
Vector = Either  # whatever jnp.asarray turns into an array of floats
NEED_A_CLOCK = {"applied_force", "multipliers", "acceleration", "power"}  # a force has its own t
NEED_INDEPENDENT_CONSTRAINTS = {"multipliers", "acceleration", "power", "project_velocity", "projectors"}


def derived(method: Callable[P, R]) -> Callable[P, R]:
    """Compile `method` once per structure of the system, by the engine, or by XLA where values are traced or
    there is no scalar program; check shapes; let `parameters=` override, and t: the method sees the system at
    that time, or at its own where none is given."""
    signature = inspect.signature(method)
    names = [name for name in signature.parameters if name not in ("self", "t", "parameters")]
    clock = method.__name__ in NEED_A_CLOCK
    compiled = jitted(lambda system, *args: method(system, *args))  # type: ignore[call-arg]

    @functools.wraps(method)
    def call(self: System, *args: Any, parameters: Parameters | None = None, **named: Any) -> Any:
        system = self if parameters is None else self.with_parameters(parameters)
        bound = signature.bind(self, *args, **named)
        bound.apply_defaults()
        given, t = [bound.arguments[name] for name in names], bound.arguments.get("t")
        traced = is_traced(system, given, t)
        as_array: Callable[..., Either] = functools.partial(
            jnp.asarray if traced else np.asarray, dtype=float
        )
        arrays = [as_array(x) for x in given]
        for name, array in zip(names, arrays, strict=True):
            if array.shape != (self.n,):
                raise ValueError(f"`{name}` must have shape {(self.n,)}, but {array.shape} was provided")
        if t is not None:
            t = as_array(t)
            if t.shape != ():
                raise ValueError(f"`t` must have shape (), but {t.shape} was provided")
            system = system.at(t)
        if clock:
            arrays.append(as_array(system.time) if t is None else t)
        if traced:
            return compiled(system, *arrays)
        self.refuse_changed()
        if method.__name__ in NEED_INDEPENDENT_CONSTRAINTS and _refuse_singular(system, *arrays[:2]):
            system = system.with_orthogonal_forms()
        rows = evaluate_by_code(_asked, method.__name__, system, *(x[None] for x in arrays))
        if rows is None:
            return compiled(system, *arrays)
        return jax.tree.map(lambda x: jax.device_put(x[0]), rows)  # jnp.asarray asks XLA at each new shape

    return call  # type: ignore[return-value]


def _asked(name: str, system: System, *arrays: Array) -> PyTree:
    """The quantity of that name, as its method has it."""
    return getattr(type(system), name).__wrapped__(system, *arrays)


def value(system: System, name: str, *state: Array) -> Array:
    """A function of the system at a state. JAX traces it once, however often it is differentiated."""
    return jnp.asarray(_traced(getattr(system, name), system.captured)(*state, system.parameters))


@kept
def _traced(function: Callable[..., ArrayLike], captured: Captured) -> Callable[..., Array]:
    """Another one for other values that the function reads, since they are in what was traced."""
    return jax.jit(lambda *arguments: function(*arguments), inline=True)


@dataclass(frozen=True)
class _Part:
    """The Lagrangian or the constraints of systems of one structure, as a function of the leaves, q and v;
    the holonomic ones of the leaves and q."""

    structure: jax.tree_util.PyTreeDef
    name: str
    shape: tuple[int, ...]

    def __call__(self, *arguments: Array) -> Array:
        if self.name == "holonomic":
            *leaves, q = arguments
            system: System = jax.tree.unflatten(self.structure, leaves)
            return jnp.asarray(value(system, "holonomic", q), float)
        *leaves, q, v = arguments
        system = jax.tree.unflatten(self.structure, leaves)
        if self.name == "lagrangian":
            return jnp.asarray(value(system, "lagrangian", q, v), float)
        if system.constraint is not None:
            return jnp.asarray(value(system, "constraint", q, v), float)
        phi = jnp.asarray(value(system, "one_forms", q), float) @ v
        return phi if system.drift is None else phi + value(system, "drift", q)


def lagrangian_by(system: System, by: str, q: Array, v: Array) -> Array:
    """The derivative of L by the arguments in `by`, such as "vv"; L itself for ""."""
    if blocks.is_for_scalar_programs():
        return _block(system, "lagrangian", (), by, q, v)

    def L(q: Array, v: Array) -> Array:
        return value(system, "lagrangian", q, v)

    # forward over reverse: the identity matrix of directions is a constant that folds away
    for k, x in enumerate(by):
        L = (jax.jacfwd if k else jax.grad)(L, "qv".index(x))
    return L(q, v)


def momentum_along(system: System, q: Array, v: Array, e: Array) -> Array:
    """e . dL/dv."""
    if blocks.is_for_scalar_programs():
        leaves, structure = jax.tree.flatten(system)
        return blocks.block(_Part(structure, "lagrangian", ()), (), *leaves, q, v, along={len(leaves) + 1: e})
    return jnp.dot(e, lagrangian_by(system, "v", q, v))


def _block(system: System, name: str, shape: tuple[int, ...], by: str, *state: Array) -> Array:
    leaves, structure = jax.tree.flatten(system)
    orders = tuple(len(leaves) + "qv".index(x) for x in by)
    return blocks.block(_Part(structure, name, shape), orders, *leaves, *state)


def constraints_by(system: System, by: str, q: Array, v: Array) -> Array:
    """phi, or mu = dphi/dv for "v"."""
    if blocks.is_for_scalar_programs() and system.m:
        return _block(system, "constraints", (system.m,), by, q, v)
    if system.constraint is not None:
        phi = functools.partial(value, system, "constraint", q)
        return jax.jacfwd(phi)(v) if by else phi(v)
    mu = jnp.zeros((0, system.n)) if system.one_forms is None else value(system, "one_forms", q)
    if by:
        return mu
    return mu @ v if system.drift is None else mu @ v + value(system, "drift", q)


def holonomic_by(system: System, by: str, q: Array) -> Array:
    """g, or G = dg/dq for "q"; of systems that have one."""
    if blocks.is_for_scalar_programs():
        return _block(system, "holonomic", (system.k,), by, q)

    g = functools.partial(value, system, "holonomic")
    return jax.jacfwd(g)(q) if by else g(q)


def motion(system: System, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    """Multipliers and acceleration; both need the same solves."""
    mu = system.mu(q, v)
    dp, dphi = (_rate(system, name, q, v, t) for name in ("momentum", "phi"))
    f = system.dL_dq(q, v) - dp + system.applied_force(q, v, t)
    if system.orthogonal:
        mu, T = orthogonal_rows(mu)
        dphi = T @ dphi
    solved = spd_solve(system.mass_matrix(q), jnp.column_stack([f, mu.T]))
    lam = -spd_solve(mu @ solved[:, 1:], dphi + mu @ solved[:, 0])
    return T.T @ lam if system.orthogonal else lam, solved[:, 0] + solved[:, 1:] @ lam


def _rate(system: System, name: str, q: Array, v: Array, t: Array) -> Array:
    """d/dt of a quantity of (q, v) along q' = v at fixed v."""
    if not system.moving:
        return jax.jvp(lambda x: getattr(system, name)(x, v), (q,), (v,))[1]
    return jax.jvp(lambda x, s: getattr(system, name)(x, v, s), (q, t), (v, jnp.ones_like(t)))[1]


def _refuse_singular(system: System, q: np.ndarray, v: np.ndarray | None = None) -> bool:
    """Name the state and the singular values where M or mu has lost rank; whether mu is near that."""
    v = np.zeros(system.n) if v is None else v
    rows = evaluate_by_code(_matrices, None, system, q[None], v[None])
    M, mu = (x[0] for x in rows) if rows is not None else map(np.asarray, _matrices(None, system, q, v))
    for name, matrix in (("mass matrix", M), ("constraint one-forms", mu)):
        if not np.all(np.isfinite(matrix)):
            raise ValueError(f"the {name} must be finite, but at q = {q} it is not")
        values = np.linalg.svd(matrix, compute_uv=False)
        if values.size and not values[-1] > 1e-13 * values[0]:
            raise ValueError(
                f"the {name} must have full rank, but at q = {q} the singular values are {values}"
                + (dependent_rows(system, matrix) if name != "mass matrix" else "")
            )
    return nearly_parallel(mu)


def _matrices(_: None, system: System, q: Values, v: Values) -> tuple[Array, Array]:
    return system.mass_matrix(q), system.mu(q, v)
