"""What every mechanical system must satisfy, as one function: for the catalogue and for your own systems.

The reference motion is integrated by SciPy's DOP853 on the system's vector field, with the work of all
reactions and forces as one more unknown, so that none of the package's own integrators is involved.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from noslip.errors import shown
from noslip.numerics.tracing import Either
from noslip.system import System
from noslip.system.conditions import broken_near
from noslip.system.derived import Parameters
from noslip.system.time import visible
from noslip.testing.evaluated import along, at_state, field, forms_and_slopes, measure_defect
from noslip.testing.verdict import CheckFailed, require

FACTORS = (1.1, 1.2, 1.3)  # parameters are perturbed by these in turn, so that none hides behind a 1


class SystemModule(Protocol):
    """A catalogue file; `exact`, `EXACT_PARAMETERS` and `HOLONOMIC` are optional."""

    system: Callable[..., System]
    typical_state: Callable[[], tuple[ArrayLike, ArrayLike]]


@dataclass(frozen=True)
class Reference:
    """A system, admissible initial data, and its motion from there, time first."""

    system: System
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    work: np.ndarray
    tolerance: float


def check_system(
    subject: System | SystemModule,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    exact: Callable[..., Any] | None = None,
    holonomic: bool | None = None,
    t_end: float = 20.0,
    tolerance: float = 1e-9,
) -> None:
    """Raise a CheckFailed that says in one sentence what is wrong with the system, if anything is.

    `subject` is a catalogue module, which brings its own `typical_state`, `exact` and `HOLONOMIC`, or a
    `System` together with an admissible state (q0, v0). Everything is checked at the given parameters and
    again with each of them changed by 10 to 30 percent; the velocity is then projected onto the constraints.
    The motion must stay regular until `t_end`. `exact` is called with the parameters that its signature
    names; those in the module's EXACT_PARAMETERS are set to the values given there.
    """
    make: Callable[[Mapping[str, Any]], System]
    fixed: Mapping[str, Any] = getattr(subject, "EXACT_PARAMETERS", {})
    if isinstance(subject, System):
        if q0 is None or v0 is None:
            raise TypeError("check_system(system) needs a state: check_system(system, q0, v0)")
        system, make = subject, subject.with_parameters
    else:
        _require_functions(subject, ("system", "typical_state") if q0 is None else ("system",))
        system, make = subject.system(), functools.partial(_from_module, subject)
        q0, v0 = subject.typical_state() if q0 is None else (q0, v0)
        exact = exact or getattr(subject, "exact", None)
        holonomic = getattr(subject, "HOLONOMIC", False) if holonomic is None else holonomic
    q, v = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    check_admissible(system, q, v)
    for parameters in (dict(system.parameters), perturbed(system.parameters)):
        try:
            run = _check_at(make(parameters), q, v, bool(holonomic), t_end, tolerance)
            if exact is not None and fixed:
                there = make(parameters | dict(fixed))
                x = np.asarray(there.project_position(q)) if there.k else q
                run = reference(there, x, there.project_velocity(x, v), t_end, tolerance)
            if exact is not None:
                check_exact(run, exact)
        except CheckFailed as failure:
            raise CheckFailed(f"{failure} (parameters: {parameters})") from None


def _require_functions(subject: object, names: tuple[str, ...]) -> None:
    if not all(callable(getattr(subject, name, None)) for name in names):
        raise TypeError(
            "check_system needs a System with a state, or a module that has the functions `system` and "
            f"`typical_state`, but {shown(subject)} was provided"
        )


def _from_module(module: SystemModule, parameters: Parameters) -> System:
    given = visible(parameters)
    system = module.system(**given)
    require(
        visible(system.parameters) == given,
        f"`system(**parameters)` must pass all parameters on, but made {system.parameters}",
    )
    return system


def _check_at(
    system: System, q: ArrayLike, v: ArrayLike, holonomic: bool, t_end: float, tolerance: float
) -> Reference:
    q = np.asarray(system.project_position(q)) if system.k else q
    check_full_rank(system, q, v)
    v = system.project_velocity(q, v)
    reason = broken_near(system, np.asarray(q), np.asarray(v), 0.0)
    require(reason is None, reason or "")
    check_fibre(system, q, v)
    check_frame(system, q, v)
    check_integrability(system, q, holonomic)
    check_multiplier(system, q, v, tolerance)
    run = reference(system, q, v, t_end, tolerance)
    check_equations(run)
    check_constraint(run)
    check_energy(run)
    check_first_integrals(run)
    return run


def perturbed(parameters: Parameters) -> dict[str, Either]:
    """Each parameter times a factor of its own."""
    return {name: FACTORS[i % len(FACTORS)] * value for i, (name, value) in enumerate(parameters.items())}


# ---- at one state -----------------------------------------------------------------------------------
def check_admissible(system: System, q: ArrayLike, v: ArrayLike) -> None:
    """The given velocity satisfies the constraints to round-off."""
    shape = (system.n,)
    require(
        np.shape(q) == shape and np.shape(v) == shape,
        f"the state must be two arrays of shape {shape}, but {np.shape(q)} and {np.shape(v)} came",
    )
    residual = _size(at_state(system, q, v)["phi"])
    bound = 1e-14 * (1 + _size(v))
    require(residual <= bound, f"the state misses the constraints by {residual:.1e} (allowed: {bound:.1e})")
    require(
        system.is_admissible(q, v), f"the state misses the constraints by {residual:.1e}, over 1e-9 of terms"
    )


def check_full_rank(system: System, q: ArrayLike, v: ArrayLike) -> None:
    """The mass matrix is positive definite and the one-forms are independent."""
    found = at_state(system, q, v)
    smallest = float(np.linalg.eigvalsh(found["mass matrix"])[0])
    require(smallest > 0, f"the mass matrix must be positive definite, but has the eigenvalue {smallest:.1e}")
    values = np.linalg.svd(found["mu"], compute_uv=False)
    require(
        not values.size or values[-1] > 1e-8 * values[0],
        f"the one-forms must be independent, but their singular values are {values}",
    )


def check_fibre(system: System, q: ArrayLike, v: ArrayLike) -> None:
    """The constraints determine the velocities of the fibre from the others."""
    if not system.fibre:
        return
    block = at_state(system, q, v)["mu"][:, [system.index(name) for name in system.fibre]]
    values = np.linalg.svd(block, compute_uv=False)
    require(
        values[-1] > 1e-8 * values[0],
        f"the constraints must determine the velocities of the fibre {system.fibre}, but do not",
    )


def check_frame(system: System, q: ArrayLike, v: ArrayLike) -> None:
    """mu X = 0, and the columns of X are independent."""
    if system.frame is None:
        return
    found = at_state(system, q, v)
    X, mu = found["frame"], found["mu"]
    defect = _size(mu @ X) / (_size(mu) * _size(X)) if system.rows else 0.0
    require(defect < 1e-13, f"the frame must satisfy mu X = 0, but mu X is {defect:.1e} of its factors")
    values = np.linalg.svd(X, compute_uv=False)
    require(
        values[-1] > 1e-8 * values[0],
        f"the columns of the frame must be independent, but its singular values are {values}",
    )


def check_integrability(system: System, q: ArrayLike, holonomic: bool) -> None:
    """d mu restricted to ker mu is not zero, or is zero if the system is said to be holonomic (Frobenius).

    Affine constraints, and those that contain t, are tested on space and time, as the one-forms mu dq + b dt.
    """
    if system.one_forms is None or not system.m:
        return

    with_time = system.moving or system.drift is not None
    x = np.append(q, 0.0) if with_time else np.asarray(q)
    mu, slope = forms_and_slopes(system, x, with_time)
    X = np.linalg.svd(mu)[2][system.rows :].T
    curvature = _size(np.einsum("akl,ki,lj->aij", slope - slope.transpose(0, 2, 1), X, X))
    flat = curvature < 1e-9 * (1 + _size(slope))
    if holonomic:
        require(flat, f"the constraints are flagged holonomic, but d mu on ker mu is {curvature:.1e}")
    else:
        require(
            not flat,
            "the constraints are integrable at this state; if they are so everywhere, flag HOLONOMIC = True",
        )


def check_multiplier(system: System, q: ArrayLike, v: ArrayLike, tolerance: float) -> None:
    """Chaplygin's f makes f^(d-1) det(G) dr dv an invariant measure on a base of d coordinates."""
    if system.multiplier is None:
        return
    defect = measure_defect(system, system.multiplier, q, v)
    require(
        abs(defect) <= tolerance,
        f"`multiplier` must give an invariant measure f^(d-1) dr dp, but its divergence is {defect:.1e}",
    )


# ---- along the motion -------------------------------------------------------------------------------
def reference(system: System, q: ArrayLike, v: ArrayLike, t_end: float, tolerance: float = 1e-9) -> Reference:
    """The motion from (q, v), at 101 times from 0 to t_end, with the work done on it."""
    n = system.n
    t = np.linspace(0.0, t_end, 101)
    start = np.concatenate([q, v, [0.0]])
    run = solve_ivp(
        field(system),
        (0.0, t_end),
        start,
        method="DOP853",
        t_eval=t,
        rtol=1e-12,
        atol=1e-13,
    )
    complete = run.success and bool(np.all(np.isfinite(run.y)))
    require(complete, f"the motion from the given state must stay regular until t = {t_end:g}, but does not")
    y = run.y.T
    return Reference(system, t, y[:, :n], y[:, n : 2 * n], y[:, 2 * n], tolerance)


def check_equations(run: Reference) -> None:
    """d/dt dL/dv - dL/dq - force = mu^T lam and dphi/dt = 0, with the derivatives taken along the motion."""
    found = along(run.system, run.t, run.q, run.v)
    for defect, sentence in (
        ("motion", "the reaction must equal mu^T lam"),
        ("constraint", "the acceleration must be tangent to the constraints"),
        ("power", "dE/dt must equal lam^T mu v + force . v - dL/dt"),
    ):
        worst = _size(found[defect])
        require(worst <= run.tolerance, f"{sentence}, but they differ by {worst:.1e}, relative to their size")


def check_constraint(run: Reference) -> None:
    """The flow stays on the constraint."""
    residual = _size(along(run.system, run.t, run.q, run.v)["phi"])
    require(
        residual <= run.tolerance * (1 + _size(run.v)),
        f"the flow leaves the constraint, by {residual:.1e} at worst",
    )


def check_energy(run: Reference) -> None:
    """The energy changes by the work done, which is none for linear constraints without a force."""
    system = run.system
    found = along(system, run.t, run.q, run.v)
    energy, scale = found["energy"], 1 + _size(found["energy scale"])
    defect = _size(energy - energy[0] - run.work)
    require(
        defect <= run.tolerance * scale,
        f"the energy must change by the work done, but differs by {defect:.1e}",
    )
    if system.kind == "linear" and system.force is None and not system.moving:
        change = _size(energy - energy[0])
        require(
            change <= run.tolerance * scale,
            f"linear constraints do no work, but the energy changes by {change:.1e}",
        )


def check_first_integrals(run: Reference) -> None:
    """Every declared first integral is constant along the motion, and not a mere constant."""
    found = along(run.system, run.t, run.q, run.v)
    for name in run.system.first_integrals:
        values = found["first integrals"][name]
        change = _size(values - values[0])
        require(
            change <= run.tolerance * (1 + _size(values)),
            f"first integral '{name}' must be constant along the motion, but changes by {change:.1e}",
        )
        slopes = [x[0] for x in found["slopes"][name]]  # at the first state
        require(
            _size(np.concatenate(slopes)) > 1e-12, f"first integral '{name}' does not depend on the state"
        )


def check_exact(run: Reference, exact: Callable[..., Any]) -> None:
    """The closed form, with its multipliers where it has them, agrees with the flow."""
    system = run.system
    accepted = [
        name
        for name in inspect.signature(exact).parameters
        if name not in ("t", "q0", "v0") and name in system.parameters
    ]
    result = exact(
        *map(np.asarray, (run.t, run.q[0], run.v[0])), **{name: system.parameters[name] for name in accepted}
    )
    own = system.m + system.k  # a quaternion's row has a multiplier that nobody sees
    expected = (run.q, run.v, along(system, run.t, run.q, run.v)["multipliers"][:, :own])
    require(
        isinstance(result, tuple) and len(result) in (2, 3),
        "`exact` must return (q, v) or (q, v, multipliers)",
    )
    for label, ours, theirs in zip(("q", "v", "multipliers"), result, expected, strict=False):
        require(
            np.shape(ours) == theirs.shape,
            f"`exact` must return {label} of shape {theirs.shape}, but {np.shape(ours)} came",
        )
    result = (*system.alike(result[0], result[1], run.q), *result[2:])
    for label, ours, theirs in zip(("q", "v", "multipliers"), result, expected, strict=False):
        error = _size(ours - theirs)
        require(
            error <= run.tolerance * (1 + _size(theirs)),
            f"`exact` must agree with the flow, but its {label} differ by {error:.1e}",
        )


def _size(values: ArrayLike) -> float:
    """Largest absolute value; NaN counts as infinite."""
    worst = float(np.max(np.abs(np.asarray(values)), initial=0.0))
    return np.inf if np.isnan(worst) else worst
