"""The claims test as functions: order measured, each promise held, each promise not made seen broken."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip import analysis as diagnostics
from noslip import systems
from noslip.analysis.conservation import wrapped
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.chaplygin import Reduction, make_group
from noslip.integrators.base import VOCABULARY, Integrator
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.run.pairing import pairing_of
from noslip.simulate import simulate
from noslip.system import System
from noslip.testing import frameless
from noslip.testing.systems import perturbed
from noslip.testing.verdict import CheckFailed, require
from noslip.trajectory import Trajectory

TELLING = ("chaplygin_sleigh", "rolling_disk_on_incline", "gearbox")
"""Non-constant mass matrix; two constraints and a potential; neither reversible nor Hamiltonian."""

CAN_FAIL: Mapping[str, tuple[str, ...]] = {
    "constraint": TELLING,
    "deformed_constraint": TELLING,
    "holonomic": (),  # `noslip.testing.holonomic` has systems of its own; others are refused there
    "energy": TELLING,
    "first_integrals": TELLING,
    "reversible": TELLING,
    "momentum_equation": ("chaplygin_sleigh", "rolling_disk", "two_wheeled_robot", "sinusoidal_particle"),
    "symplectic_reduced": ("sinusoidal_particle", "knife_edge", "fbo_particle"),
    "momentum_map": (),  # `symmetric_cases` are systems of its own
}
"""Systems on which a method without the promise is seen to break it: at least three for each word."""

HELD = 1e-12  # a promise is kept up to this, relative to the sizes of the run
BROKEN = 1e-8  # a promise not made must fail by more than this on some system
STEP, STEPS = 0.05, 1000
CHAPLYGIN = ("sinusoidal_particle", "knife_edge", "two_wheeled_robot")
"""The same for the methods on M = Q/G: translations and planar motions; f found and given, with a zero."""
EXACT = 1e-11  # multipliers that miss those of the motion by less say nothing about their order


@dataclass(frozen=True)
class Case:
    """A system at non-default parameters with an admissible state."""

    name: str
    system: System
    q0: Array
    v0: Array


def telling(integrator: Integrator) -> tuple[str, ...]:
    """The systems on which the claims of a method are checked by default."""
    return CHAPLYGIN if integrator.symmetry else TELLING


@functools.cache
def perturbed_case(module: ModuleType) -> Case:
    """A catalogue system with every parameter moved by 10 to 30 per cent, velocity projected."""
    default = module.system()
    system = default.with_parameters(perturbed(default.parameters))
    q0, v0 = module.typical_state()
    q0 = jnp.asarray(system.project_position(q0)) if system.k else q0
    return Case(module.__name__.rpartition(".")[2], system, q0, system.project_velocity(q0, v0))


def telling_cases(integrator: Integrator) -> list[Case]:
    """The cases on which every claim of a method is checked by default."""
    made = [perturbed_case(systems.find(name)) for name in telling(integrator)]
    return made + [Case(name, *start) for name, start in frameless.telling(integrator).items()]


def further_cases(integrator: Integrator) -> list[Case]:
    """Beyond the telling ones, those on which a promise of the method can fail."""
    names = {name for word in integrator.preserves for name in CAN_FAIL[word]} - set(telling(integrator))
    cases = [perturbed_case(systems.find(name)) for name in sorted(names)]
    return [case for case in cases if integrator.refusal(case.system) is None]


def check_integrator(integrator: Integrator | type[Integrator], cases: Iterable[Case] | None = None) -> None:
    """Hold a method to its claims; a class is checked in all its variants.

    Raises CheckFailed with one sentence: which claim, on which system, by how much.
    """
    for variant in [integrator] if isinstance(integrator, Integrator) else integrator.variants():
        check_contract(variant)
        given = list(telling_cases(variant) if cases is None else cases)
        applicable = [case for case in given if variant.refusal(case.system) is None]
        require(applicable, f"{variant} applies to none of {[case.name for case in given]}")
        for case in applicable:
            check_order(variant, case)
            check_promises(variant, case)
        for case in further_cases(variant) if cases is None else []:
            check_promises(variant, case)
        check_absent_promises(variant, applicable)


def check_contract(integrator: Integrator) -> None:
    """Frozen, hashable by value, with words of the closed vocabulary."""
    name = type(integrator).__name__
    require(dataclasses.is_dataclass(integrator), f"{name} must be a frozen dataclass")
    copy = type(integrator)(**integrator.options())
    require(copy == integrator, f"{name}: equal fields must give equal integrators")
    require(hash(copy) == hash(integrator), f"{name} must be hashable by value")
    unknown = integrator.preserves - set(VOCABULARY)
    require(not unknown, f"{name}.preserves must use words of the vocabulary, but has {sorted(unknown)}")
    require(integrator.reference, f"{name} must name its reference")


def check_order(integrator: Integrator, case: Case, t_end: float = 2.0) -> None:
    """The slope of the global error in (q, v) is the claimed order within 0.15, or 5 per cent of it.

    A motion that the method meets exactly (a straight one, say) says nothing about its order.
    """
    if integrator.exact:
        return
    p, t_end = integrator.order, min(t_end, _horizon(integrator, case, t_end))
    steps: tuple[int, ...] = (80, 160, 320) if p == 1 else (40, 80, 160)
    while True:  # high orders reach the floor soon, so they are measured with longer steps
        measured = diagnostics.measured_order(
            case.system, integrator, case.q0, case.v0, t_end=t_end, steps=steps
        )
        errors = np.max(measured.global_errors[:, :2], axis=1)
        if np.max(errors) < 1e-13:
            return
        if p < 4 or np.min(errors) > 1e-12 or steps[0] <= 5:
            break
        steps = tuple(n // 2 for n in steps)
    found = float(np.polyfit(np.log(measured.step_sizes), np.log(errors), 1)[0])
    at_floor = f"{integrator} on {case.name}: errors {errors} are at the round-off floor"
    require(np.min(errors) > 1e-12, at_floor)
    require(
        abs(found - p) <= max(0.15, 0.05 * p),
        f"{integrator} claims order {p}, but {found:.2f} was measured on {case.name} (errors {errors})",
    )
    _check_multiplier_order(integrator, case, measured)


def _check_multiplier_order(integrator: Integrator, case: Case, measured: diagnostics.MeasuredOrder) -> None:
    """The slope of the largest error of the method's own multipliers, at the times they are dated by."""
    p, errors = integrator.multiplier_order, measured.multiplier_errors
    own = pairing_of(case.system, integrator).facts[0] == "method"
    require(
        (p is not None) == own,
        f"{integrator} must claim a `multiplier_order` just if it has multipliers of its own, but it is {p}",
    )
    if p is None or np.max(errors) < EXACT:
        return
    found = float(np.polyfit(np.log(measured.step_sizes), np.log(errors), 1)[0])
    require(
        abs(found - p) <= 0.15,
        f"{integrator} claims multipliers of order {p}, but {found:.2f} was measured on {case.name} "
        f"(errors {errors})",
    )


def check_promises(integrator: Integrator, case: Case, steps: int = STEPS) -> None:
    """Every word in `preserves` holds to round-off over a long run."""
    run = _run(integrator, case, steps)
    for word in sorted(integrator.preserves):
        size = defect(word, integrator, case, run)
        require(
            size is None or size <= HELD,
            f"{integrator} promises '{word}', but on {case.name} it fails by {size or 0.0:.1e}",
        )


def check_absent_promises(integrator: Integrator, cases: Iterable[Case]) -> None:
    """Every word that is not in `preserves` is visibly broken on at least one of the systems."""
    cases = [case for case in cases if integrator.refusal(case.system) is None]
    run_of = functools.cache(lambda k: _run(integrator, cases[k], STEPS))  # few are needed for most words
    # a Jacobian of every step: asked of the methods on M, of the others where there is time for it; and
    # the catalogue has no system on which a momentum map could tell, `symmetric_cases` has
    unasked = (
        {"momentum_map", "holonomic"}
        if integrator.symmetry
        else {"momentum_map", "holonomic", "symplectic_reduced"}
    )
    if not integrator.defines("discrete_lagrangian"):  # nothing that the equation could be about
        unasked |= {"momentum_equation"}
    for word in sorted(set(VOCABULARY) - unasked - integrator.preserves):
        sizes = {}
        for k, case in enumerate(cases):
            sizes[case.name] = found = defect(word, integrator, case, run_of(k))
            if found is not None and found >= BROKEN:
                break
        else:
            raise CheckFailed(
                f"{integrator} does not promise '{word}', but keeps it on all of {list(sizes)} (defects "
                f"{list(sizes.values())}): promise it, or test it elsewhere"
            )


def defect(word: str, integrator: Integrator, case: Case, run: Trajectory) -> float | None:
    """By how much a run breaks a promise, relative to natural sizes; None where it has no meaning."""
    if word == "constraint":
        return diagnostics.constraint_error(run) / _constraint_scale(case.system, run)
    if word == "holonomic":
        return (
            diagnostics.holonomic_error(run) / _holonomic_scale(case.system, run) if case.system.k else None
        )
    if word == "deformed_constraint":
        error = diagnostics.deformed_constraint_error(case.system, integrator, run)
        return error / _constraint_scale(case.system, run)
    if word == "energy":
        conserved = case.system.kind == "linear" and case.system.force is None
        return float(np.max(np.abs(diagnostics.energy_error(run)))) if conserved else None
    if word == "first_integrals":
        errors = diagnostics.first_integral_errors(run)
        return max(float(np.max(np.abs(e))) for e in errors.values()) if errors else None
    if word == "momentum_equation":
        if case.system.force is not None:  # which enters the equation, and is no part of L_d
            return None
        found = diagnostics.nonholonomic_momentum(case.system, integrator, run)
        return None if found is None else float(np.max(np.abs(found.defect)))
    if word == "momentum_map":
        kept = diagnostics.momentum_map(case.system, integrator, run)
        return None if kept is None else float(np.max(np.abs(kept.defect)))
    start = case.q0, case.v0
    if word == "symplectic_reduced":
        return diagnostics.symplecticity_defect(case.system, integrator, *start, step_size=STEP)
    if word != "reversible":
        raise ValueError(f"there is no measure for '{word}'")
    steps = min(100, len(run.t) - 1)
    return diagnostics.reversibility_defect(case.system, integrator, *start, step_size=STEP, steps=steps)


def _run(integrator: Integrator, case: Case, steps: int) -> Trajectory:
    steps = min(steps, int(_horizon(integrator, case, steps * STEP) / STEP))
    return simulate(case.system, integrator, case.q0, case.v0, step_size=STEP, steps=steps)


def _horizon(integrator: Integrator, case: Case, t_end: float) -> float:
    """How long a method can be judged: those on M only while the constraints determine the group velocity."""
    if integrator.symmetry is None:
        return t_end
    reduced = Reduction(case.system, make_group(case.system, integrator.symmetry))
    motion = simulate(case.system, ReferenceFlow(), case.q0, case.v0, step_size=t_end / 1000, steps=1000)
    mu = _one_forms(case.system, wrapped(motion), np.zeros_like(motion.v))
    sizes = np.abs(np.linalg.det(mu[:, :, reduced.fibre_index]))
    gone = np.flatnonzero(sizes < 0.6 * sizes[0])
    return float(motion.t[gone[0]]) if len(gone) else t_end


def _holonomic_scale(system: System, run: Trajectory) -> float:
    """The largest sum of |G_i q_i|, as far as slopes tell the size of the terms whose sum must vanish."""
    bound = system.with_parameters(run.info.parameters)
    G: Any = jax.vmap(bound.G)(wrapped(run))
    return float(np.max(np.sum(np.abs(G) * np.abs(run.q)[:, None, :], axis=2)))


def _constraint_scale(system: System, run: Trajectory) -> float:
    """The largest sum of |mu_i v_i|: the size of the terms whose sum must vanish."""
    bound = system.with_parameters(run.info.parameters)
    mu = np.abs(_one_forms(bound, wrapped(run), run.v))
    return float(np.max(np.sum(mu * np.abs(run.v)[:, None, :], axis=2)))


def _one_forms(system: System, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """mu at each of these states."""
    return np.asarray(evaluate_anyhow(_mu, None, system, q, v))


def _mu(_: None, system: System, q: Array, v: Array) -> Array:
    return system.mu(q, v)
