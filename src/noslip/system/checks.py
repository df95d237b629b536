"""Checks of a system's definition that need no values: names, shapes, precision, when the system is made."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.engine.kept import kept
from noslip.engine.translate import depends_on
from noslip.engine.translate.jaxprs import float_types
from noslip.errors import first_line, shown, unknown_name, users_line
from noslip.numerics.pytrees import PyTree
from noslip.system.derived import Parameters
from noslip.system.time import Timed, visible
from noslip.system.turning import blocks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from noslip.system import System
    from noslip.system.definition import Static


def checked_structure(system: System) -> tuple[int, int]:
    """m and k, the numbers of velocity and holonomic constraints. What has passed the checks is not checked
    again for other values of its parameters."""
    said = system.definition()
    given = tuple(
        (name, None if isinstance(x, float) else (x.shape, x.dtype)) for name, x in system.parameters.items()
    )
    try:
        hash(said)
    except TypeError:
        return check_structure(system)
    return _passed(type(system), said, given)


@kept
def _passed(kind: type[System], said: Static, given: Static) -> tuple[int, int]:
    parameters = {name: 1.0 if form is None else np.ones(*form) for name, form in given}
    return check_structure(kind.tree_unflatten(said, (parameters,)))


def check_structure(system: System) -> tuple[int, int]:
    """Check names, shapes and precision; return m and k."""
    n = len(system.coordinates)
    if n == 0:
        raise ValueError("`coordinates` must name at least one coordinate, but () was provided")
    for name in ("coordinates", "angles", "fibre"):
        _check_names(name, getattr(system, name) or (), system.coordinates)
    if system.one_forms is not None and system.constraint is not None:
        raise ValueError("at most one of `one_forms` and `constraint` must be given, but both were")
    if system.drift is not None and system.one_forms is None:
        given = "neither they nor `constraint` were" if system.constraint is None else "only `constraint` was"
        raise ValueError(f"`drift` must come with `one_forms`, but {given} given")
    q = jax.ShapeDtypeStruct((n,), float)
    t = jax.ShapeDtypeStruct((), float)
    p = system.parameters
    _shape("lagrangian(q, v, p)", system.lagrangian, (q, q, p), "()", lambda s: s == ())
    if system.one_forms is not None:
        shape = _shape(
            "one_forms(q, p)", system.one_forms, (q, p), f"(m, {n})", lambda s: len(s) == 2 and s[1] == n
        )
        if system.drift is not None:
            m = shape[0]
            _shape("drift(q, p)", system.drift, (q, p), f"({m},)", lambda s: s == (m,))
    elif system.constraint is None:
        shape = (0, n)
    else:
        shape = _shape("constraint(q, v, p)", system.constraint, (q, q, p), "(m,)", lambda s: len(s) == 1)
    m = shape[0]
    k = _holonomic(system, q, p)
    _check_names("rotations", system.rotations, system.rotations)
    rows = m + k + len(blocks_of(system))
    if not 0 <= rows < n:
        raise ValueError(f"the number of constraints must be from 0 to {n - 1}, but {rows} were given")
    if system.force is not None:
        _shape("force(q, v, t, p)", system.force, (q, q, t, p), f"({n},)", lambda s: s == (n,))
    if system.frame is not None:
        free = n - rows
        _shape("frame(q, p)", system.frame, (q, p), f"({n}, {free})", lambda s: s == (n, free))
    if system.multiplier is not None:
        _shape("multiplier(q, p)", system.multiplier, (q, p), "()", lambda s: s == ())
    for name, integral in system.first_integrals.items():
        if not name or "/" in name:
            raise ValueError(f"a first integral must have a name without '/', but '{name}' was provided")
        _shape(f"first_integrals['{name}'](q, v, p)", integral, (q, q, p), "()", lambda s: s == ())
    if system.scene is not None and not callable(system.scene):
        raise TypeError(f"`scene` must be a function of q and p, but {shown(system.scene)} was provided")
    if system.fibre is not None and len(system.fibre) != m:
        raise ValueError(
            f"`fibre` must name {m} coordinates, one per constraint, but {system.fibre} was provided"
        )
    return m, k


def _holonomic(system: System, q: jax.ShapeDtypeStruct, p: Parameters) -> int:
    """The number of holonomic constraints."""
    if system.holonomic is None:
        return 0
    k: int = _shape("holonomic(q, p)", system.holonomic, (q, p), "(k,)", lambda s: len(s) == 1)[0]
    for name in ("frame", "fibre", "multiplier"):
        if getattr(system, name) is not None:
            raise ValueError(f"`{name}` must be left out where `holonomic` is given, but both were")
    own = {name: jax.ShapeDtypeStruct((), float) for name in system.inputs}
    given = {name: jax.ShapeDtypeStruct(np.shape(x), float) for name, x in p.items()}
    if own and depends_on(lambda u, q, p: system.holonomic(q, p | u), 0, own, q, given):  # type: ignore[misc]
        raise ValueError(
            "`holonomic` must not contain `inputs`, since positions cannot jump with them, but it does; "
            "let it take t"
        )
    return k


def _check_names(kind: str, names: tuple[str, ...], coordinates: tuple[str, ...]) -> None:
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"`{kind}` must be a tuple of names, but {shown(names)} was provided")
    if len(set(names)) != len(names):
        raise ValueError(f"`{kind}` must not repeat a name, but {names} was provided")
    for name in names:
        if name not in coordinates:
            raise ValueError(unknown_name(f"coordinate in `{kind}`", name, coordinates))


@contextmanager
def in_one_sentence(what: str, parameters: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Say what is wrong with a function of the user that is traced here; a KeyError is about `parameters`."""
    try:
        yield
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise ValueError(
            f"{what} must be made of jax.numpy's functions, but here a traced value met NumPy, `math`, "
            f"float(), or Python's `if`; use jax.numpy, and jnp.where for cases{users_line(error)}"
        ) from None
    except Exception as error:
        if isinstance(error, KeyError) and parameters is not None:
            given = ", ".join(visible(parameters)) or "none"
            raise ValueError(f"{what} uses a parameter {error}, but those given are: {given}") from None
        raise ValueError(
            f"{what} failed with {type(error).__name__}: {first_line(error)}{users_line(error)}"
        ) from error


def _shape(
    label: str,
    function: Callable[..., Any],
    arguments: tuple[PyTree, ...],
    expected: str,
    fits: Callable[[tuple[int, ...]], bool],
) -> tuple[int, ...]:
    if not callable(function):
        raise TypeError(f"`{label}` must be a function, but {shown(function)} was provided")
    if isinstance(function, Timed):
        label = label.replace("p)", "t, p)")
    with in_one_sentence(f"`{label}`", arguments[-1]):
        traced = jax.make_jaxpr(lambda *args: jnp.asarray(function(*args)))(*arguments)
    refuse_bad_indices(label, function, arguments)
    shape = traced.out_avals[0].shape
    if not fits(shape):
        raise ValueError(f"`{label}` must have shape {expected}, but {shape} was returned")
    if single := [str(dtype) for dtype in float_types(traced) if dtype in (np.float32, np.float16)]:
        raise ValueError(
            f"`{label}` must compute in float64, but {single[0]} was found in it; "
            "import noslip before making JAX arrays, which are 32-bit until then"
        )
    return shape


def refuse_bad_indices(label: str, function: Callable[..., Any], arguments: tuple[PyTree, ...]) -> None:
    """JAX clamps an index that is out of range; NumPy tells. Traced, so that nothing is computed."""
    plain = [np.ones(a.shape) if isinstance(a, jax.ShapeDtypeStruct) else a for a in arguments]
    try:
        with np.errstate(all="ignore"):
            jax.eval_shape(lambda: jnp.asarray(function(*plain)))
    except IndexError as error:
        raise ValueError(f"`{label}` uses a coordinate that does not exist: {error}") from None
    except Exception:
        return
