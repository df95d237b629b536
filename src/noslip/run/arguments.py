"""Checks of a run's arguments: one clear sentence before anything is computed."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.backends.often import evaluate_often
from noslip.engine.program import CannotTranslate
from noslip.errors import shown, unknown_name
from noslip.files import as_path
from noslip.geometry.regularity import small_singular_values, step_matrix
from noslip.integrators.base import Integrator
from noslip.numerics.tracing import Either, Real, Values, has_tracers
from noslip.run.choose import BACKENDS
from noslip.run.events import Events
from noslip.run.member import MemberGroup
from noslip.run.pairing import Pairing, pairing_of
from noslip.run.sure import SMALL, numbers_of_start, surely_admissible
from noslip.system import System
from noslip.system.conditions import ADMISSIBLE, admissibility, broken_near
from noslip.system.positions import dependent_rows, placement
from noslip.system.time import visible

SINGULAR_MASS = 1e-13  # ratio of eigenvalues from which down a mass matrix is not positive definite
AT_A_TIME = 1 << 16  # members whose mass matrices are in memory


def as_floats(name: str, value: object, shape: tuple[int, ...], traced: bool) -> Any:
    """An array of float64 of that shape; other kinds of data are refused instead of converted."""
    array = jnp.asarray(value, dtype=float) if traced else concrete_floats(name, value)
    if array.shape != shape:
        raise ValueError(f"`{name}` must have shape {shape}, but {array.shape} was provided")
    return array


def concrete_floats(name: str, value: object) -> np.ndarray:
    """The same for an array of any shape."""
    try:
        array = np.asarray(value)
    except Exception:  # ragged lists, objects of the user
        array = np.asarray(None)
    if array.dtype.kind == "O" and hasattr(value, "__dlpack__"):
        array = _by_dlpack(name, value)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"`{name}` must be real numbers, but {shown(value)} was provided")
    if np.ma.is_masked(value):
        raise ValueError(f"`{name}` must have a value everywhere, but {shown(value)} was provided")
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        raise ValueError(
            f"`{name}` must be float64, but {array.dtype} was provided; "
            "import noslip before making JAX arrays, which are 32-bit until then"
        )
    return array.astype(float)


def _by_dlpack(name: str, value: Any) -> np.ndarray:
    """The array of another library: its own memory, or a copy on the host made by it or by JAX."""
    for way in (np.from_dlpack, lambda x: np.from_dlpack(x, device="cpu"), jnp.from_dlpack):
        with contextlib.suppress(Exception):  # each library has its own for what it cannot do
            return np.asarray(way(value))
    device = tuple(map(int, value.__dlpack_device__()))
    raise ValueError(
        f"`{name}` must be real numbers on the host, or what can be copied there, but an array of "
        f"{type(value).__module__} on DLPack's device {device} was provided"
    )


def whole(name: str, value: Any, low: int) -> int:
    """A whole number from `low` to 2^62."""
    number = low - 1
    with contextlib.suppress(TypeError):
        number = operator.index(int(value) if isinstance(value, float) and value.is_integer() else value)
    if isinstance(value, bool) or not low <= number <= 2**62:
        raise ValueError(f"`{name}` must be a whole number >= {low}, but {shown(value)} was provided")
    return number


def whole_steps(steps: int | None, t_end: float | None, t0: Real, h: Real) -> int:
    """The number of steps from `steps` or `t_end`; t0 and h as the caller gave them, since inside jax.jit
    every array made of them is traced."""
    if (steps is None) == (t_end is None):
        given = "both were" if steps is not None else "neither was"
        raise ValueError(f"exactly one of `steps` and `t_end` must be given, but {given}")
    if steps is None:
        if has_tracers(t0, h, t_end):
            raise ValueError(
                "`steps` must be given instead of `t_end` when t0, t_end or step_size is traced, since the "
                "number of steps must be known when the run is compiled"
            )
        t_end = float(as_floats("t_end", t_end, (), False))
        if not (np.isfinite(float(h)) and float(h) > 0):
            raise ValueError(f"`step_size` must be positive, but {float(h)!r} was provided")
        span = (float(t_end) - float(t0)) / float(h)
        if not np.isfinite(span) or span < 0 or span > 2**62:
            raise ValueError(
                f"`t_end` must be a time after t0 = {float(t0):g}, but {shown(t_end)} was provided"
            )
        steps = round(span)
        if abs(span - steps) > min(1e-9 * max(1.0, span), 1e-3):
            low, high = float(t0) + np.floor(span) * float(h), float(t0) + np.ceil(span) * float(h)
            raise ValueError(
                f"`t_end` must be t0 + a whole number of steps, but {t_end!r} is {span:.6g} steps after t0; "
                f"the nearest reachable times are {low:.12g} and {high:.12g}"
            )
    return whole("steps", steps, 0)


def times_within(times: ArrayLike, t: Values) -> Either:
    """Times of the user between the first and the last of t; values are looked at where they are concrete."""
    if has_tracers(times, t):
        return jnp.atleast_1d(jnp.asarray(times, dtype=float))
    array = np.atleast_1d(concrete_floats("times", times))
    if array.ndim != 1:
        raise ValueError(f"`times` must be a list of times, but an array of shape {array.shape} was provided")
    slack = 1e-12 * max(abs(float(t[0])), abs(float(t[-1])))
    if array.size and not (t[0] - slack <= array.min() and array.max() <= t[-1] + slack):
        raise ValueError(
            f"`times` must be within the run, t = {t[0]:.12g} .. {t[-1]:.12g}, but "
            f"{array.min():.12g} .. {array.max():.12g} was provided"
        )
    return array


def check_manner(progress: object, throw: object, store: object) -> None:
    """Refuse what does not say how to run: before anything is made."""
    if not (progress is None or callable(progress) or isinstance(progress, bool | np.bool_)):
        raise TypeError(f"`progress` must be True, False or a function, but {shown(progress)} was provided")
    if not isinstance(throw, bool | np.bool_):
        raise TypeError(f"`throw` must be True or False, but {shown(throw)} was provided")
    if store is not None:
        as_path("store", store)


def check_run(
    system: System,
    integrator: Integrator,
    q: np.ndarray,
    v: np.ndarray,
    t: float | np.ndarray,
    h: float | np.ndarray,
    backend: str,
    traced: bool = False,
    members: int = 1,
    regular: bool = True,
    events: Events = (),
) -> Pairing:
    """Refuse what cannot be run; values are looked at only where they are concrete. What can is a pairing
    that looks out for the events. Whether the first step is `regular` may also be asked after it has failed:
    `refuse_irregular`."""
    if not isinstance(integrator, Integrator):
        raise TypeError(
            f"`integrator` must be an integrator such as VelocityNonholonomic(), "
            f"but {shown(integrator)} was provided"
        )
    if not isinstance(backend, str) or backend not in BACKENDS:
        raise ValueError(unknown_name("backend", backend, BACKENDS))
    if backend == "gpu" and members == 1:
        raise ValueError("backend 'gpu' is for ensembles; one trajectory is a CPU's work, use 'auto'")
    if backend == "native" and traced:
        raise ValueError(
            "backend 'native' cannot run traced arguments (grad, jit, vmap); use 'auto' or 'xla'"
        )
    system.refuse_changed()
    pairing = pairing_of(system, integrator)
    if not traced:
        _refuse_bad_numbers(q, v, t, h)
    if reason := pairing.refusal if traced else pairing.refusal_near(q, v):
        raise ValueError(f"{type(integrator).__name__} cannot run on this system: {reason}")
    if not traced:
        _check_values(pairing, q, v, t)
        if regular:
            refuse_irregular(pairing, q, v, t, h)
    return pairing.watching(events)


def _refuse_bad_numbers(q: np.ndarray, v: np.ndarray, t: float | np.ndarray, h: float | np.ndarray) -> None:
    for name, array in (("q0", q), ("v0", v), ("t0", t)):
        if not all(map(math.isfinite, np.ravel(array).tolist())):
            raise ValueError(f"`{name}` must be finite, but {np.asarray(array)} was provided")
    if not 0 < float(h) < math.inf:
        raise ValueError(f"`step_size` must be positive, but {float(h)!r} was provided")
    if float(t) + float(h) == float(t):
        raise ValueError(f"`step_size` must change the time, but at t0 = {float(t):g} {float(h):g} does not")


def refuse_irregular(
    pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float | np.ndarray, h: float | np.ndarray
) -> None:
    """Refuse a state from which the equations of an implicit method determine no step."""
    if not pairing.is_implicit:
        return
    method, system = pairing.integrator, pairing.system
    rows = [np.asarray(x)[None] for x in (q, v, t, h)]
    with contextlib.suppress(CannotTranslate):
        if not len(small_singular_values(evaluate_often(_step_matrix, method, system, *rows)[0])):
            return
    (matrix,) = evaluate_anyhow(_step_matrix, method, system, *rows)
    if len(values := small_singular_values(matrix)):
        raise ValueError(
            f"{type(pairing.integrator).__name__} has no unique step from this state: its regularity matrix, "
            f"JS (61), has singular values {values}; try another step_size or other parameters of the method"
        )


def _step_matrix(method: Integrator, system: System, q: Array, v: Array, t: Array, h: Array) -> Array:
    return step_matrix(system, method, q, v, t, h)


def _check_values(pairing: Pairing, q: np.ndarray, v: np.ndarray, t: float | np.ndarray) -> None:
    system = pairing.system.at(t) if pairing.clocked else pairing.system
    sure = False
    if not pairing.clocked:
        numbers = pairing.at_state(numbers_of_start, q, v) if system.n <= SMALL else None
        sure = surely_admissible(system, numbers, q, v)
    if reason := broken_near(pairing.system, q, v, float(t), again=not sure):
        M = np.asarray(system.mass_matrix(q))
        if M.any() and np.isfinite(M).all():
            _refuse_mass(M, q)
        raise ValueError(reason)
    if sure:
        return
    M, mu = (
        x[0]
        for x in evaluate_anyhow(_matrices, None, pairing.system, *(np.asarray(x)[None] for x in (q, v, t)))
    )
    _refuse_mass(M, q)
    if not np.isfinite(mu).all():
        raise ValueError(f"the constraint must be finite, but at q0 = {np.asarray(q)} it is not")
    if len(values := small_singular_values(mu)):
        raise ValueError(
            f"the constraint one-forms must have full rank {system.rows}, but at q0 = {np.asarray(q)} "
            f"their singular values are {values}{dependent_rows(system, mu)}"
        )
    refuse_off(system, q, v)


def refuse_off(system: System, q: np.ndarray, v: np.ndarray) -> None:
    """Refuse a state that is not on the constraints."""
    _refuse_misplaced(system, q)
    _refuse_inadmissible(system, q, v)


def _refuse_mass(M: np.ndarray, q: np.ndarray) -> None:
    if not np.isfinite(M).all():
        raise ValueError(f"the mass matrix must be finite, but at q0 = {np.asarray(q)} it is not")
    eigenvalues = np.linalg.eigvalsh(M)
    if eigenvalues[0] <= SINGULAR_MASS * abs(eigenvalues[-1]):
        raise ValueError(
            f"the mass matrix must be positive definite, but at q0 = {np.asarray(q)} "
            f"its eigenvalues are {eigenvalues}"
        )


def _refuse_misplaced(system: System, q: np.ndarray) -> None:
    if not system.k:
        return
    g, allowed = (x[0] for x in evaluate_anyhow(placement, None, system, np.asarray(q)[None]))
    if not np.all(np.abs(g) <= allowed):
        raise ValueError(
            f"`q0` must satisfy the holonomic constraints, but g(q0) = {g} (at most {allowed} is allowed, "
            f"{ADMISSIBLE:.0e} of its terms); system.project_position(q0) gives a position nearby that does"
        )


def _refuse_inadmissible(system: System, q: np.ndarray, v: np.ndarray) -> None:
    phi, allowed = (
        x[0] for x in evaluate_anyhow(admissibility, None, system, np.asarray(q)[None], np.asarray(v)[None])
    )
    if not np.all(np.abs(phi) <= allowed):
        near = "" if system.kind == "nonlinear" else f", {np.asarray(system.project_velocity(q, v)).tolist()}"
        raise ValueError(
            f"`v0` must satisfy the constraint, but phi(q0, v0) = {phi} (at most {allowed} is allowed, "
            f"{ADMISSIBLE:.0e} of its terms); system.project_velocity(q0, v0) gives the nearest velocity "
            f"that does{near}"
        )


def _matrices(_: None, system: System, q: Array, v: Array, t: Array) -> tuple[Array, Array]:
    return system.mass_matrix(q, t), system.mu(q, v, t)


# ---- ensembles ----------------------------------------------------------------------------------------
def check_members(
    system: System,
    q0s: ArrayLike,
    v0s: ArrayLike,
    parameters: Mapping[str, ArrayLike],
    inputs: Mapping[str, Any],
) -> tuple[MemberGroup, dict[str, ArrayLike]]:
    """The members, and the parameters that all of them share."""
    n, states = system.n, []
    sizes = {f"inputs['{name}']": len(x) for name, x in inputs.items() if not callable(x) and np.ndim(x) == 2}
    for name, value in (("q0s", q0s), ("v0s", v0s)):
        array = concrete_floats(name, value)
        if array.ndim not in (1, 2) or array.shape[-1] != n or (array.ndim == 2 and len(array) == 0):
            raise ValueError(
                f"`{name}` must have shape (members, {n}) or ({n},), but {array.shape} was provided"
            )
        states.append(array)
        if array.ndim == 2:
            sizes[name] = len(array)
    shared, varying = {}, {}
    for name, value in parameters.items():
        if name not in system.parameters:
            raise ValueError(unknown_name("parameter", name, visible(system.parameters)))
        array, shape = concrete_floats(f"parameters['{name}']", value), np.shape(system.parameters[name])
        if array.shape == shape:
            shared[name] = value
        elif array.shape[1:] == shape and array.ndim == len(shape) + 1 and len(array):
            if not np.all(np.isfinite(array)):
                raise ValueError(f"parameter '{name}' must be finite, but some members have another value")
            varying[name], sizes[f"parameters['{name}']"] = array, len(array)
        else:
            wanted = ("members", *shape) if shape else ("members",)
            raise ValueError(
                f"parameter '{name}' must have shape {shape} or ({', '.join(map(str, wanted))},), "
                f"but {array.shape} was provided"
            )
    if len(set(sizes.values())) > 1:
        counts = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"all arguments that vary must have one number of members, but {counts}")
    return MemberGroup(states[0], states[1], varying, next(iter(sizes.values()), 1)), shared


def refuse_inadmissible(system: System, group: MemberGroup) -> None:
    """Every member must have a mass matrix of its own, and a state on its constraints."""
    rows, varying, members = group.states(system.n), group.varying, group.count
    for name, array in zip(("q0s", "v0s"), rows, strict=True):
        if bad := np.flatnonzero(~np.isfinite(array).all(axis=1)).tolist():
            raise ValueError(
                f"`{name}` must be finite, but {len(bad)} members are not, the first is {bad[0]}"
            )
    names = tuple(varying)
    values = [varying[name].reshape(members, -1) for name in names]
    found = []
    for first in range(0, members, AT_A_TIME):
        part = [x[first : first + AT_A_TIME] for x in (*rows, *values)]
        M, *rest = evaluate_anyhow(_admissibility_of_member, names, system, *part)
        _refuse_masses(M, part[0], first)
        found.append(rest)
    phi, allowed, g, near = map(np.concatenate, zip(*found, strict=True))
    if len(off := np.flatnonzero(~np.all(np.abs(g) <= near, axis=1))):
        raise ValueError(
            f"`q0s` must satisfy the holonomic constraints, but {len(off)} of {members} members do not, "
            f"first member {off[0]} with g = {g[off[0]]}; system.project_position(q0) gives one that does"
        )
    if len(off := np.flatnonzero(~np.all(np.abs(phi) <= allowed, axis=1))):
        raise ValueError(
            f"`v0s` must satisfy the constraint, but {len(off)} of {members} members do not, first member "
            f"{off[0]} with phi = {phi[off[0]]}; system.project_velocity(q0, v0) gives the nearest that does"
        )


def _refuse_masses(M: np.ndarray, q: np.ndarray, first: int) -> None:
    """Those of members from number `first` on; a factorization tells most that are good from the others."""
    least = SINGULAR_MASS * np.trace(M, axis1=1, axis2=2)
    try:
        np.linalg.cholesky(M - least[:, None, None] * np.eye(M.shape[1]))
    except np.linalg.LinAlgError:
        for number, (matrix, place) in enumerate(zip(M, q, strict=True), first):
            try:
                _refuse_mass(matrix, place)
            except ValueError as error:
                raise ValueError(f"member {number}: {error}") from None


def _admissibility_of_member(
    names: tuple[str, ...], system: System, q: Array, v: Array, *values: Array
) -> tuple[Array, ...]:
    own = {name: x.reshape(np.shape(system.parameters[name])) for name, x in zip(names, values, strict=True)}
    _, static = system.tree_flatten()
    member = system.tree_unflatten(static, (dict(system.parameters) | own,))
    placed = placement(None, member, q) if system.k else (jnp.zeros(0), jnp.zeros(0))
    return member.mass_matrix(q), *admissibility(None, member, q, v), *placed
