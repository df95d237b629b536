"""The claims test as functions: order measured, each promise held, each promise not made seen broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax import Array

from noslip import diagnostics, systems
from noslip.diagnostics.conservation import wrapped
from noslip.integrators._base import VOCABULARY, Integrator
from noslip.simulate import simulate
from noslip.system import System
from noslip.testing.systems import perturbed
from noslip.trajectory import Trajectory

TELLING = ("chaplygin_sleigh", "rolling_disk_on_incline", "gearbox")
"""Non-constant mass matrix; two constraints and a potential; neither reversible nor Hamiltonian."""

HELD = 1e-12  # a promise is kept up to this, relative to the sizes of the run
BROKEN = 1e-8  # a promise not made must fail by more than this on some system
STEP, STEPS = 0.05, 1000
NOT_MEASURED_HERE = {"symplectic_reduced", "momentum_equation"}  # need a Chaplygin system


@dataclass(frozen=True)
class Case:
    """A system at non-default parameters with an admissible state."""

    name: str
    system: System
    q0: Array
    v0: Array


def perturbed_case(module: ModuleType) -> Case:
    """A catalogue system with every parameter moved by 10 to 30 per cent, velocity projected."""
    default = module.system()
    system = default.with_parameters(perturbed(default.parameters))
    q0, v0 = module.typical_state()
    return Case(module.__name__.rpartition(".")[2], system, q0, system.project_velocity(q0, v0))


def telling_cases() -> list[Case]:
    """The cases on which every claim is checked by default."""
    return [perturbed_case(systems.find(name)) for name in TELLING]


def check_integrator(integrator: Integrator | type[Integrator], cases: Iterable[Case] | None = None) -> None:
    """Hold a method to its claims; a class is checked in all its variants.

    Raises AssertionError with one sentence: which claim, on which system, by how much.
    """
    cases = list(telling_cases() if cases is None else cases)
    for variant in [integrator] if isinstance(integrator, Integrator) else integrator.variants():
        check_contract(variant)
        applicable = [case for case in cases if variant.applies_to(case.system) is None]
        assert applicable, f"{variant} applies to none of {[case.name for case in cases]}"
        for case in applicable:
            check_order(variant, case)
            check_promises(variant, case)
        check_absent_promises(variant, applicable)


def check_contract(integrator: Integrator) -> None:
    """Frozen, hashable by value, with words of the closed vocabulary."""
    name = type(integrator).__name__
    assert dataclasses.is_dataclass(integrator), f"{name} must be a frozen dataclass"
    copy = type(integrator)(**integrator.options())
    assert copy == integrator, f"{name}: equal fields must give equal integrators"
    assert hash(copy) == hash(integrator), f"{name} must be hashable by value"
    unknown = integrator.preserves - set(VOCABULARY)
    assert not unknown, f"{name}.preserves must use words of the vocabulary, but has {sorted(unknown)}"
    assert integrator.reference, f"{name} must name its reference"


def check_order(integrator: Integrator, case: Case, t_end: float = 2.0) -> None:
    """The slope of the global error in (q, v) is the claimed order within 0.15, or 5 per cent of it.

    A motion that the method meets exactly (a straight one, say) says nothing about its order.
    """
    if integrator.exact:
        return
    p = integrator.order
    steps: tuple[int, ...] = (80, 160, 320) if p == 1 else (40, 80, 160)
    for _ in range(3):  # high orders reach the floor soon, so they are measured with longer steps
        measured = diagnostics.measured_order(
            case.system, integrator, case.q0, case.v0, t_end=t_end, steps=steps
        )
        errors = np.max(measured.global_errors[:, :2], axis=1)
        if np.max(errors) < 1e-13:
            return
        if p < 4 or np.min(errors) > 1e-12:
            break
        steps = tuple(n // 2 for n in steps)
    found = float(np.polyfit(np.log(measured.step_sizes), np.log(errors), 1)[0])
    assert np.min(errors) > 1e-12, f"{integrator} on {case.name}: errors {errors} are at the round-off floor"
    assert abs(found - p) <= max(0.15, 0.05 * p), (
        f"{integrator} claims order {p}, but {found:.2f} was measured on {case.name} (errors {errors})"
    )


def check_promises(integrator: Integrator, case: Case, steps: int = STEPS) -> None:
    """Every word in `preserves` holds to round-off over a long run."""
    unmeasured = integrator.preserves & NOT_MEASURED_HERE
    assert not unmeasured, f"{integrator} promises {sorted(unmeasured)}, which nothing measures yet"
    run = _run(integrator, case, steps)
    for word in sorted(integrator.preserves):
        size = defect(word, integrator, case, run)
        assert size is None or size <= HELD, (
            f"{integrator} promises '{word}', but on {case.name} it fails by {size:.1e}"
        )


def check_absent_promises(integrator: Integrator, cases: Iterable[Case]) -> None:
    """Every word that is not in `preserves` is visibly broken on at least one of the systems."""
    cases = list(cases)
    runs = [_run(integrator, case, STEPS) for case in cases]
    for word in sorted(set(VOCABULARY) - NOT_MEASURED_HERE - integrator.preserves):
        sizes = [defect(word, integrator, case, run) for case, run in zip(cases, runs, strict=True)]
        assert any(size is not None and size >= BROKEN for size in sizes), (
            f"{integrator} does not promise '{word}', but keeps it on all of "
            f"{[case.name for case in cases]} (defects {sizes}): promise it, or test it elsewhere"
        )


def defect(word: str, integrator: Integrator, case: Case, run: Trajectory) -> float | None:
    """By how much a run breaks a promise, relative to natural sizes; None where it has no meaning."""
    if word == "constraint":
        return diagnostics.constraint_error(run) / _constraint_scale(case.system, run)
    if word == "deformed_constraint":
        error = diagnostics.deformed_constraint_error(case.system, integrator, run)
        return error / _constraint_scale(case.system, run)
    if word == "energy":
        conserved = case.system.kind == "linear" and case.system.force is None
        return float(np.max(np.abs(diagnostics.energy_error(run)))) if conserved else None
    if word == "first_integrals":
        errors = diagnostics.first_integral_errors(run)
        return max(float(np.max(np.abs(e))) for e in errors.values()) if errors else None
    assert word == "reversible", f"there is no measure for '{word}'"
    return diagnostics.reversibility_defect(
        case.system, integrator, case.q0, case.v0, step_size=STEP, steps=100
    )


def _run(integrator: Integrator, case: Case, steps: int) -> Trajectory:
    return simulate(case.system, integrator, case.q0, case.v0, step_size=STEP, steps=steps)


def _constraint_scale(system: System, run: Trajectory) -> float:
    """The largest sum of |mu_i v_i|: the size of the terms whose sum must vanish."""
    bound = system.with_parameters(run.info.parameters)
    mu: Any = jax.vmap(bound.mu)(wrapped(run), run.v)
    return float(np.max(np.sum(np.abs(mu) * np.abs(run.v)[:, None, :], axis=2)))
