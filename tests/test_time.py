"""Time in the Lagrangian and the constraints: the motion, every method, the balance of energy, SymPy.

The truth is that of `moving.py`, which uses nothing of this package."""

import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

import moving
from noslip import System, analysis, ensemble, integrators, simulate, symbolic
from noslip.geometry.finite_difference_map import RhoFunctions
from noslip.integrators import (
    Composition,
    DiscreteGradient,
    DiscreteLagrangeDAlembert,
    EnergyCollocation,
    FullSpaceDiscreteGradient,
    GeometricNonholonomic,
    LobattoSpark,
    Projected,
    ReducedDLA,
    ReferenceFlow,
    RungeKutta4,
    SemiImplicitDLA,
    VelocityNonholonomic,
)
from noslip.testing import check_system

KINDS = list(moving.SYSTEMS)
END = 1.0  # time after moving.T0
QUICK = [
    (SemiImplicitDLA(), "affine"),
    (VelocityNonholonomic(), "nonlinear"),
    (DiscreteLagrangeDAlembert(), "affine"),
    (GeometricNonholonomic(), "linear"),
    (LobattoSpark(3), "affine"),
]
FOLLOW = [
    v
    for cls in integrators.discover().values()
    for v in cls.variants()
    if v.applies_to(moving.LINEAR) is None and not v.exact
]
ALL = [*FOLLOW, Composition(SemiImplicitDLA(), "kahan_li6"), LobattoSpark(4)]
REFUSE = (DiscreteGradient(), EnergyCollocation(), FullSpaceDiscreteGradient(), Projected(), ReducedDLA())


def run(method, kind, h, steps, **more):
    q, v = moving.start(kind)
    given = {"t0": moving.T0, "parameters": moving.PARAMETERS} | more
    return simulate(moving.SYSTEMS[kind], method, q, v, step_size=h, steps=steps, **given)


def truth(kind, times):
    return moving.truth(kind, np.asarray(times), *moving.start(kind))


@pytest.mark.parametrize("kind", ["affine", "nonlinear", pytest.param("linear", marks=pytest.mark.slow)])
def test_the_motion_is_that_of_an_independent_flow(kind):
    found = run(ReferenceFlow(), kind, 0.1, 10)
    q, v, lam = truth(kind, found.t)
    np.testing.assert_allclose(found.q, q, atol=1e-12)
    np.testing.assert_allclose(found.v, v, atol=1e-12)
    np.testing.assert_allclose(found.multipliers, lam, atol=1e-11)
    assert np.max(np.abs(found.constraint_residual)) < 1e-14


def check_order_and_promises(method, kind):
    """Order of q and v, and of the multipliers at their dates; the constraint at the right time; the way
    back."""
    steps = np.array([16, 24, 36]) * (2 if method.order < 4 else 1)
    states, multipliers = [], []
    for count in steps.tolist():
        found = run(method, kind, END / count, count)
        q, v, _ = truth(kind, [moving.T0, found.t[-1]])  # some methods make their own time
        states.append(max(np.max(np.abs(found.q[-1] - q[-1])), np.max(np.abs(found.v[-1] - v[-1]))))
        dates = np.asarray(found.multiplier_t)
        rows = slice(count // 4, None)  # after the start, which some methods take from the motion
        lam = truth(kind, [moving.T0, *dates[rows]])[2][1:]
        multipliers.append(np.max(np.abs(found.multipliers[rows] - lam)))
        if "constraint" in method.preserves:
            assert np.max(np.abs(found.constraint_residual)) < 1e-13
        if "deformed_constraint" in method.preserves:
            assert analysis.deformed_constraint_error(moving.SYSTEMS[kind], method, found) < 1e-13
    assert -np.polyfit(np.log(steps), np.log(states), 1)[0] > method.order - 0.15
    if method.multiplier_order:
        assert -np.polyfit(np.log(steps), np.log(multipliers), 1)[0] > method.multiplier_order - 0.15
    if "reversible" in method.preserves:
        system = moving.SYSTEMS[kind].with_parameters(moving.PARAMETERS)
        start = moving.start(kind)
        defect = analysis.reversibility_defect(system, method, *start, step_size=0.05, steps=20, t0=moving.T0)
        assert defect < 1e-12


@pytest.mark.parametrize(("method", "kind"), QUICK, ids=str)
def test_methods_keep_order_and_promises_where_all_things_move(method, kind):
    check_order_and_promises(method, kind)


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ALL, ids=str)
def test_every_method_keeps_order_and_promises_where_all_things_move(method, kind):
    if reason := method.applies_to(moving.SYSTEMS[kind]):
        pytest.skip(reason)
    check_order_and_promises(method, kind)


def test_a_map_of_ones_own_follows_time_too():
    rho = RhoFunctions(lambda q, r: (q + r) / 2, lambda q, r, h: (r - q) / h, (0.0,) * 4)
    own, plain = VelocityNonholonomic(rho=rho), VelocityNonholonomic()
    np.testing.assert_allclose(run(own, "affine", 0.05, 10).q, run(plain, "affine", 0.05, 10).q, atol=1e-12)


@pytest.mark.parametrize("method", REFUSE, ids=lambda m: type(m).__name__)
def test_methods_that_cannot_follow_say_so(method):
    with pytest.raises(ValueError, match="stay the same during a step, but these contain t"):
        run(method, "linear", 0.1, 1)


@pytest.mark.parametrize("kind", ["affine", *(pytest.param(x, marks=pytest.mark.slow) for x in KINDS)])
def test_the_energy_changes_by_the_work_of_reaction_and_of_what_moves_the_lagrangian(kind):
    system = moving.SYSTEMS[kind]
    found = run(ReferenceFlow(), kind, 0.005, 400)
    assert np.ptp(found.energy) > 0.05
    assert np.max(np.abs(analysis.energy_balance(system, found))) < 1e-8
    bound, q, v, t = system.with_parameters(moving.PARAMETERS), found.q[7], found.v[7], found.t[7]
    reaction = np.asarray(bound.mu(q, v, t)) @ v @ np.asarray(bound.multipliers(q, v, t))
    by_time = jax.jit(jax.grad(moving.lagrangian, 2))(q, v, t, moving.PARAMETERS)
    assert abs(by_time) > 1e-3
    np.testing.assert_allclose(bound.power(q, v, t), reaction - by_time, rtol=1e-12)


def test_derived_quantities_are_those_of_the_given_time():
    system = moving.AFFINE.with_parameters(moving.PARAMETERS)
    q, v = moving.start("affine")
    mu = np.array(moving.rows(q, 0.9, moving.PARAMETERS, np))
    b = np.array(moving.drift_values(q, 0.9, moving.PARAMETERS, np))
    np.testing.assert_allclose(system.mu(q, v, 0.9), mu, rtol=1e-15)
    np.testing.assert_allclose(system.phi(q, v, 0.9), mu @ v + b, rtol=1e-14)
    p = jax.jit(jax.grad(moving.lagrangian, 1))(q, v, 0.9, moving.PARAMETERS)
    np.testing.assert_allclose(system.momentum(q, v, 0.9), p, rtol=1e-14)
    np.testing.assert_allclose(system.velocity(q, p, 0.9), v, rtol=1e-13)
    np.testing.assert_allclose(system.at(0.9).mass_matrix(q), system.mass_matrix(q, 0.9), rtol=0)
    assert float(system.energy(q, v, 0.9)) != float(system.energy(q, v))
    assert system.is_admissible(q, v, moving.T0)
    assert not system.is_admissible(q, v)
    np.testing.assert_allclose(system.phi(q, system.project_velocity(q, v, 0.9), 0.9), 0, atol=1e-15)
    with pytest.raises(ValueError, match=r"`t` must have shape \(\), but \(2,\) was provided"):
        system.phi(q, v, [0.0, 1.0])


def test_time_is_no_parameter_to_the_user():
    found = run(SemiImplicitDLA(), "linear", 0.1, 1)
    assert dict(found.info.parameters) == moving.PARAMETERS
    with pytest.raises(ValueError, match=r"'kk'.*k"):
        moving.LINEAR.with_parameters({"kk": 1.0})
    with pytest.raises(ValueError, match=r"those given are: k$"):
        dataclasses.replace(moving.LINEAR, force=lambda q, v, t, p: p["none"] * q)


def test_a_velocity_must_be_admissible_when_the_run_starts():
    with pytest.raises(ValueError, match="`v0` must satisfy the constraint"):
        run(SemiImplicitDLA(), "affine", 0.1, 1, t0=0.0)


SKATE = System(
    lambda q, v, t, p: 0.5 * (p["m"] + t) * jnp.dot(v, v) - q[0] * t,
    one_forms=lambda q, t, p: jnp.array([[-(t + q[0]), 1.0]]),
    coordinates=("x", "y"),
    parameters={"m": 1.0},
)


def test_native_code_and_xla_agree_and_members_equal_their_runs():
    q, t0 = np.array([0.3, 0.1]), 0.4
    v = np.array([1.0, t0 + q[0]])
    options = {"step_size": 0.05, "steps": 20, "t0": t0}
    native, xla = (simulate(SKATE, SemiImplicitDLA(), q, v, backend=b, **options) for b in ("native", "xla"))
    np.testing.assert_allclose(native.q, xla.q, atol=1e-13)
    np.testing.assert_allclose(native.energy, xla.energy, atol=1e-12)
    masses = {"m": np.array([2.0, 1.0, 3.0])}
    many = ensemble(SKATE, SemiImplicitDLA(), q, v, parameters=masses, save_every=1, **options)
    np.testing.assert_array_equal(many.q[1], native.q)
    np.testing.assert_array_equal(many.energy[1], native.energy)


def test_gradients_go_through_time():
    def end(t0):
        v = jnp.array([1.0, t0 + 0.3])
        return simulate(SKATE, RungeKutta4(), [0.3, 0.1], v, step_size=0.05, steps=5, t0=t0).q[-1, 0]

    slope, d = jax.jit(jax.grad(end))(0.3), 1e-5
    np.testing.assert_allclose(slope, (end(0.3 + d) - end(0.3 - d)) / (2 * d), rtol=1e-7)


def test_systems_that_take_time_can_be_pickled_and_checked():
    again = pickle.loads(pickle.dumps(moving.LINEAR))
    assert jax.tree.structure(again) == jax.tree.structure(moving.LINEAR)
    check_system(SKATE, [0.3, 0.1], [1.0, 0.3])


def test_first_integrals_may_contain_time():
    # free fall: v + g t and q - v t - g t^2 / 2 stay what they were
    fall = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - p["g"] * q[1],
        coordinates=("x", "y"),
        parameters={"g": 2.0},
        first_integrals={"start": lambda q, v, t, p: q[1] - v[1] * t - p["g"] * t**2 / 2},
    )
    found = simulate(fall, SemiImplicitDLA(), [0.0, 1.0], [1.0, 3.0], step_size=0.1, steps=20)
    np.testing.assert_allclose(found.first_integrals["start"], 1.0, atol=1e-13)
    with pytest.raises(ValueError, match="a first integral contains t"):
        simulate(fall, Projected(), [0.0, 1.0], [1.0, 3.0], step_size=0.1, steps=1)


def test_sympy_systems_may_contain_time():
    t = dynamicsymbols._t
    q = dynamicsymbols("x y z w")
    v = [x.diff(t) for x in q]
    k = sp.Symbol("k")
    made = symbolic.system(
        moving.lagrangian(q, v, t, {"k": k}, sp),
        q,
        sp.Matrix(moving.rows(q, t, {"k": k}, sp)) * sp.Matrix(v)
        + sp.Matrix(moving.drift_values(q, t, {"k": k}, sp)),
        {k: moving.K},
    )
    assert made.moving
    assert made.kind == "affine"
    x, u = moving.start("affine")
    options = {"step_size": 0.05, "steps": 10, "t0": moving.T0}
    here = simulate(made, SemiImplicitDLA(), x, u, **options)
    np.testing.assert_allclose(here.q, run(SemiImplicitDLA(), "affine", 0.05, 10).q, atol=1e-13)
    with pytest.raises(ValueError, match="without t, but these contain it"):
        made.chaplygin()


def test_the_closed_form_of_a_symbolic_system_has_the_terms_of_time():
    t = dynamicsymbols._t
    x, y = dynamicsymbols("x y")
    made = symbolic.system(
        (2 + sp.sin(t)) * x.diff(t) ** 2 / 2 + y.diff(t) ** 2 / 2 + t * x.diff(t), (x, y),
        [y.diff(t) - t * x.diff(t) - 2 * x], {},
    )  # fmt: skip
    at, u, s = np.array([0.3, 0.1]), np.array([0.7, 0.88]), 0.4
    values = {x.diff(t): u[0], y.diff(t): u[1], x: at[0], y: at[1], t: s}
    found = np.array(made.acceleration_expr.subs(values).evalf(), float)[:, 0]
    np.testing.assert_allclose(found, made.acceleration(at, u, s), rtol=1e-13)
    assert "t" in made.equations_latex()
    assert symbolic.formulas(made).lagrangian.has(sp.Symbol("t"))


def test_a_bad_number_of_arguments_is_still_an_error():
    with pytest.raises(ValueError, match="takes 1 positional argument"):
        System(lambda q: jnp.sum(q), coordinates=("x",))
