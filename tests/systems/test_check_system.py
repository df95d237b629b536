"""check_system finds what is wrong, and says it."""

import dataclasses
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jax import Array

from noslip import System
from noslip.system import Parameters
from noslip.systems import fbo_particle, nonholonomic_particle, rolling_disk
from noslip.testing.systems import check_integrability, check_system

Q, V = nonholonomic_particle.typical_state()


def changed(**fields: Any) -> System:
    """The nonholonomic particle with something replaced."""
    system = nonholonomic_particle.system()
    names = [f.name for f in dataclasses.fields(System) if f.init]
    return System(**({name: getattr(system, name) for name in names} | fields))


def x_velocity(q: Array, v: Array, p: Parameters) -> Array:
    return v[0]


def one(q: Array, v: Array, p: Parameters) -> Array:
    return jnp.ones(())


def y_energy_for_k_1(q: Array, v: Array, p: Parameters) -> Array:
    return 0.5 * v[1] ** 2 + q[1] ** 2


def wrong_multiplier(q: Array, p: Parameters) -> Array:
    return 1 + q[1] ** 2


def exact_of_wrong_shape(t: Any, q0: Any, v0: Any) -> Any:
    return np.zeros(3), np.zeros(3)


def rejects(sentence: str, system: System, q: Any = Q, v: Any = V, **options: Any) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_system(system, q, v, t_end=2.0, **options)


def test_a_good_system_passes() -> None:
    check_system(nonholonomic_particle.system(), Q, V, t_end=2.0)


def test_a_system_without_a_state_is_refused() -> None:
    with pytest.raises(TypeError, match="needs a state"):
        check_system(nonholonomic_particle.system())


def test_a_module_without_a_system_is_refused() -> None:
    subject: Any
    for subject in (np, "gearbox"):
        with pytest.raises(TypeError, match="a module that has the functions `system` and `typical_state`"):
            check_system(subject)


def test_an_inadmissible_state_is_found() -> None:
    rejects("misses the constraints", nonholonomic_particle.system(), Q, V + 1e-12)


def test_a_state_of_the_wrong_shape_is_found() -> None:
    rejects(r"arrays of shape \(3,\)", nonholonomic_particle.system(), Q[:2], V)


def test_a_first_integral_that_is_none_is_found() -> None:
    rejects("'x_velocity' must be constant", changed(first_integrals={"x_velocity": x_velocity}))


def test_a_first_integral_without_content_is_found() -> None:
    rejects("'one' does not depend on the state", changed(first_integrals={"one": one}))


def test_a_first_integral_right_only_at_default_parameters_is_found() -> None:
    rejects(r"'lazy' must be constant.*1\.1", changed(first_integrals={"lazy": y_energy_for_k_1}))


def test_a_wrong_multiplier_is_found() -> None:
    rejects("invariant measure", changed(multiplier=wrong_multiplier))


def test_a_rank_deficient_frame_is_found() -> None:
    def frame(q: Array, p: Parameters) -> Array:
        return jnp.array([[1.0, 2.0], [0.0, 0.0], [q[1], 2 * q[1]]])

    rejects("the frame must have full rank 2", changed(frame=frame, multiplier=None))


def test_a_fibre_that_the_constraints_do_not_determine_is_found() -> None:
    rejects("must determine the velocities of the fibre", changed(fibre=("y",), multiplier=None))


def test_dependent_one_forms_are_found() -> None:
    def one_forms(q: Array, p: Parameters) -> Array:
        return jnp.array([[-q[1], 0.0, 1.0], [-2 * q[1], 0.0, 2.0]])

    system = changed(one_forms=one_forms, frame=None, fibre=None, multiplier=None)
    rejects("must be independent", system)


def holonomic_forms(q: Array, p: Parameters) -> Array:
    return jnp.array([[-q[1], -q[0], 1.0]])


def holonomic_system() -> System:
    """A particle kept on the surfaces z - x y = constant, written as a velocity constraint."""
    return System(
        nonholonomic_particle.lagrangian,
        one_forms=holonomic_forms,
        coordinates=("x", "y", "z"),
        parameters={"k": 1.0},
    )


def test_an_integrable_constraint_must_be_flagged() -> None:
    v = jnp.array([0.8, 0.6, 0.5 * 0.8 + 0.2 * 0.6])
    rejects("HOLONOMIC = True", holonomic_system(), Q, v)
    check_system(holonomic_system(), Q, v, t_end=2.0, holonomic=True)


def test_a_false_flag_is_found() -> None:
    rejects("flagged holonomic", nonholonomic_particle.system(), holonomic=True)


def test_a_motion_that_ends_is_found() -> None:
    def lagrangian(q: Array, v: Array, p: Parameters) -> Array:
        return 0.5 * jnp.dot(v, v) + q[1] ** 4  # y reaches infinity in finite time

    system = System(lagrangian, one_forms=nonholonomic_particle.one_forms, coordinates=("x", "y", "z"))
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match="must stay regular until t = 20"):
        check_system(system, Q, V, t_end=20.0)


def module_with(exact: Any) -> Any:
    return SimpleNamespace(system=fbo_particle.system, typical_state=fbo_particle.typical_state, exact=exact)


def test_a_wrong_exact_solution_is_found() -> None:
    def velocities_off(t: Any, q0: Any, v0: Any) -> Any:
        q, v, lam = fbo_particle.exact(t, q0, v0)
        return q, v + 1e-6, lam

    def multipliers_off(t: Any, q0: Any, v0: Any) -> Any:
        q, v, lam = fbo_particle.exact(t, q0, v0)
        return q, v, -lam

    with pytest.raises(AssertionError, match=r"its v differ by 1\.0e-06"):
        check_system(module_with(velocities_off), t_end=2.0)
    with pytest.raises(AssertionError, match="its multipliers differ"):
        check_system(module_with(multipliers_off), t_end=2.0)
    with pytest.raises(AssertionError, match="q of shape"):
        check_system(module_with(exact_of_wrong_shape), t_end=2.0)


def test_a_parameter_that_does_not_arrive_is_found() -> None:
    def system(m: float = 1.0, r: float = 1.0, I: float = 0.5, J: float = 0.25) -> System:
        return rolling_disk.system(m=m, r=r, I=J, J=J) if I != 0.5 else rolling_disk.system()

    module = SimpleNamespace(system=system, typical_state=rolling_disk.typical_state)
    with pytest.raises(AssertionError, match="must pass all parameters on"):
        check_system(module, t_end=2.0)  # type: ignore[arg-type]


def test_forces_enter_the_energy_balance() -> None:
    def force(q: Array, v: Array, t: Array, p: Parameters) -> Array:
        return jnp.array([jnp.sin(t), -0.3 * v[1], 0.1])

    check_system(changed(force=force, first_integrals={}, multiplier=None), Q, V, t_end=2.0)


def test_affine_constraints_are_tested_on_space_and_time() -> None:
    """zdot + x = 0 has flat one-forms dz, but dz + x dt is not integrable."""
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[0.0, 0.0, 1.0]]),
        drift=lambda q, p: jnp.array([q[0]]),
        coordinates=("x", "y", "z"),
    )
    check_integrability(system, [0.3, 0.2, 0.1], holonomic=False)
