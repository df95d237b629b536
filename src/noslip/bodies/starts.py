"""Where a run of a model may start: positions at which it is closed, velocities at which nothing slips."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip import rotations
from noslip.bodies.mechanism import Mechanism
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import shown, unknown_name
from noslip.system import System
from noslip.system.derived import Parameters

CLOSED = 1e-9  # of the sizes of positions and rates
DEPENDENT = 1e-13
REFINED = 4  # solves, so that also what is small has its digits
ZERO = 1e-18  # of the fastest


def found_start(
    system: System,
    mechanism: Mechanism,
    positions: Mapping[str, ArrayLike],
    rates: Mapping[str, ArrayLike],
    near: Mapping[str, ArrayLike],
    t: float,
) -> tuple[np.ndarray, np.ndarray]:
    """See `Model.start`."""
    q, fixed = np.zeros(system.n), list[str]()
    for name in system.rotations:
        q[system.index(f"{name}0")] = 1.0
    for given in (near, positions):
        for name, value in _by_name(system, given, 4).items():
            places = rotations.names(name) if name in system.rotations else (name,)
            if len(places) == 4 and not np.linalg.norm(value) > 0:
                raise ValueError(
                    f"'{name}' must be given by a quaternion, but {shown(value.tolist())} was given"
                )
            q[[system.index(x) for x in places]] = (
                value / np.linalg.norm(value) if len(places) == 4 else value
            )
            fixed += places if given is positions else ()
    if system.k:
        q = _closed(system, mechanism, q, fixed, t)
        q, _ = (np.array(x) for x in system.shown(q, np.zeros(system.n)))
    _refuse_open(system, mechanism, q, t)
    v = _least_velocity(system.at(t), q, _by_name(system, rates, 3))
    return q, np.array(system.shown(q, v)[1])


def _least_velocity(system: System, q: np.ndarray, rates: Mapping[str, np.ndarray]) -> np.ndarray:
    """The admissible velocity of least kinetic energy with some rates. All conditions are linear in v, so
    that one linear solve finds it: M v = J^T nu, J v = b."""
    mu, still, M = (x[0] for x in evaluate_anyhow(_velocities, None, system, q[None]))
    rows, values = [mu], [-still]
    for name, value in rates.items():
        rows.append(
            _turning(system, q, name) if name in system.rotations else np.eye(system.n)[[system.index(name)]]
        )
        values.append(np.atleast_1d(value))
    J, b = np.concatenate(rows), np.concatenate(values)
    matrix = np.block([[M, -J.T], [J, np.zeros((len(b), len(b)))]])
    right, solved = np.concatenate([np.zeros(system.n), b]), np.zeros(len(matrix))
    for _ in range(REFINED):
        solved = solved + np.linalg.lstsq(matrix, right - matrix @ solved, rcond=DEPENDENT)[0]
    v = np.where(np.abs(solved) > ZERO * np.max(np.abs(solved[: system.n])), solved, 0.0)[: system.n]
    if not np.all(np.abs(J @ v - b) <= CLOSED * (1 + np.max(np.abs(b), initial=0.0))):
        chosen = f" with the rates of {', '.join(rates)}" if rates else ", whatever moves"
        raise ValueError(f"nothing must slip or part at the start, but something does{chosen}")
    return v


def _velocities(_: None, system: System, q: Array) -> tuple[Array, Array, Array]:
    rest = jnp.zeros_like(q)
    return system.mu(q, rest), system.phi(q, rest), system.mass_matrix(q)


def _by_name(system: System, given: Mapping[str, ArrayLike], size: int) -> dict[str, np.ndarray]:
    if not isinstance(given, Mapping):
        raise TypeError(f"a start must be given by a mapping of names, but {shown(given)} was given")
    known = [*system.coordinates, *system.rotations]
    for name, value in given.items():
        if name not in known:
            raise ValueError(unknown_name("coordinate", name, known))
        shape = (size,) if name in system.rotations else ()
        right = np.shape(value) == shape and np.asarray(value).dtype.kind in "fiu"
        if not right or not np.all(np.isfinite(value)):
            count = f"{size} finite numbers" if shape else "a finite number"
            raise ValueError(f"'{name}' must be given by {count}, but {shown(value)} was given")
    return {name: np.asarray(value, float) for name, value in given.items()}


def _turning(system: System, q: np.ndarray, name: str) -> np.ndarray:
    """The angular velocity of a body as rows of v."""
    place = [system.index(x) for x in rotations.names(name)]
    rows = np.zeros((3, system.n))
    rows[:, place] = 4 * np.asarray(rotations.frame("body")(q[place])).T  # for u of length 1
    return rows


def _closed(system: System, mechanism: Mechanism, q: np.ndarray, fixed: list[str], t: float) -> np.ndarray:
    try:
        return system.project_position(q, fixed, t if system.clocked else None)
    except ValueError:
        worst = _worst(system, mechanism, q, t)
        held = f" with {', '.join(fixed)} kept" if fixed else ""
        raise ValueError(
            f"the model must be closed at its start, but no position{held} was found; at the first guess "
            f"{worst}"
        ) from None


def _refuse_open(system: System, mechanism: Mechanism, q: np.ndarray, t: float) -> None:
    """Also what was left out as holding by itself."""
    if mechanism.position_rows:
        gaps = np.abs(_gaps(system, mechanism, q, t))
        if not np.all(gaps <= CLOSED * (1 + np.max(np.abs(q)))):
            raise ValueError(f"the model must be closed at its start, but {_worst(system, mechanism, q, t)}")


def _worst(system: System, mechanism: Mechanism, q: np.ndarray, t: float) -> str:
    gaps = _gaps(system, mechanism, q, t)
    row = int(np.argmax(np.abs(np.nan_to_num(gaps, nan=np.inf))))
    name, direction = mechanism.position_rows[row]
    return f"the gap of '{name}' ({direction}) is {gaps[row]:.3g}"


def _gaps(system: System, mechanism: Mechanism, q: np.ndarray, t: float) -> np.ndarray:
    found = evaluate_anyhow(gaps_at, mechanism, dict(system.parameters), q[None], np.array([t]))
    return np.asarray(found[0])


def gaps_at(mechanism: Mechanism, p: Parameters, q: Array, t: Array) -> Array:
    """As a function of rows."""
    return mechanism.gaps(q, t, p)
