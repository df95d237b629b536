"""The contract of an integrator is declared: what others ask of a method is a hook, and is not guessed."""

import ast
import inspect
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import noslip
from noslip import integrators, simulate
from noslip.analysis.phase_space import PhaseSpace, WithReaction, phase_space
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.integrators import base
from noslip.integrators.base import Integrator, Observation, pytree
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.families.states import VelocityState
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.projected import Projected
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import knife_edge, sinusoidal_particle
from noslip.testing import integrators as claims

SOURCE = Path(noslip.__file__).parent
CLASSES = integrators.discover()
VARIANTS = [v for cls in CLASSES.values() for v in cls.variants()]
HOOKS = {name for name in vars(Integrator) if not name.startswith("_")}


def test_every_hook_says_what_it_is():
    assert {"init", "residual", "step", "history", "symmetry", "canonical", "in_mid_run"} <= HOOKS
    for name in HOOKS - {"reference", "exact", "host_driven"}:
        assert inspect.getdoc(getattr(Integrator, name)), name
    text = inspect.getsource(Integrator)
    for name in ("reference", "exact", "host_driven"):
        assert '"""' in text.partition(f"    {name}: ClassVar")[2].splitlines()[1], name


def test_the_module_says_what_it_offers():
    for name in base.__all__:
        assert getattr(base, name) is not None
    assert {"Integrator", "Sum", "Observation", "pytree", "VOCABULARY"} <= set(base.__all__)


def guesses(file: Path) -> list[str]:
    """getattr or hasattr with a method or its state, and isinstance of a kind of method: that is for its own
    room, which refuses bad arguments, and for benchmarks, which choose rivals."""
    found, kinds = [], set(CLASSES) | {"OnDStar", "OnBase", "OnHamiltonizedBase", "Generating", "BuiltOn"}
    for node in ast.walk(ast.parse(file.read_text())):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
            continue
        subject = ast.unparse(node.args[0]).rpartition(".")[2]
        asked = node.func.id in ("getattr", "hasattr") and isinstance(node.args[1], ast.Constant)
        if asked and subject in ("integrator", "method", "base", "state", "variant"):
            found.append(f"{file}: {ast.unparse(node)}")
        if node.func.id == "isinstance" and not {"integrators", "bench"} & set(file.parts):
            named = {x.id for x in ast.walk(node.args[1]) if isinstance(x, ast.Name)}
            found += [f"{file}: {ast.unparse(node)}"] if named & kinds else []
    return found


def test_nothing_is_asked_of_a_method_by_guessing():
    assert [guess for file in SOURCE.rglob("*.py") for guess in guesses(file)] == []


def test_discovery_lists_methods_and_not_their_families():
    assert {cls.__module__.count(".") for cls in CLASSES.values()} == {2}
    assert not any("families" in cls.__module__ for cls in CLASSES.values())


@pytest.mark.parametrize("cls", [SemiImplicitDLA, RungeKutta4])
def test_the_models_can_be_read_alone(cls):
    assert cls.__mro__ == (cls, Integrator, object)
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text()
    assert f"`src/noslip/integrators/{cls.__module__.rpartition('.')[2]}.py`" in text


def seen_in_mid_run(variant, system, q, v):
    return variant.observe(variant.in_mid_run(system, q, v, jnp.zeros(()), jnp.array(0.1)))[:3]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_state_in_mid_run_shows_what_it_was_made_from(variant):
    system, start = sinusoidal_particle.system(), sinusoidal_particle.typical_state()
    if reason := variant.applies_to(system):
        pytest.skip(reason)
    q, v = (np.asarray(x)[None] for x in start)
    seen_t, seen_q, seen_v = evaluate_anyhow(seen_in_mid_run, variant, system, q, v)
    assert np.max(np.abs(seen_q - q)) + np.max(np.abs(seen_v - v)) < 1e-14
    assert np.abs(seen_t) < 1e-15


# ---- compositions ---------------------------------------------------------------------------------
@pytree
class Diary(VelocityState):
    """The state of `SemiImplicitDLA` with a field that a composition once took for a history."""

    past: object


@dataclass(frozen=True)
class Diarist(SemiImplicitDLA):
    def init(self, system, q, v, t, h):
        return Diary(**vars(super().init(system, q, v, t, h)), past=q)

    def update(self, system, state, x, h):
        return Diary(**vars(super().update(system, state, x, h)), past=state.q.value)


def test_a_field_called_past_is_the_methods_own_affair():
    start = knife_edge.typical_state()
    runs = [
        simulate(knife_edge.system(), Composition(method), *start, step_size=0.1, steps=20)
        for method in (SemiImplicitDLA(), Diarist())
    ]
    assert_array_equal(runs[0].q, runs[1].q)


@pytest.mark.parametrize("method", [DiscreteGradient(), Projected()], ids=lambda m: type(m).__name__)
def test_a_composition_keeps_a_history_for_each_of_its_steps(method):
    system, (q, v) = knife_edge.system(), knife_edge.typical_state()
    composed = Composition(method)
    state, other = (jax.eval_shape(partial(x.init, system), q, v, 0.0, 0.1) for x in (composed, method))
    alone = method.history(other)
    assert composed.history(state).shape == (len(composed.gammas), *alone.shape)
    assert method.history(method.with_history(state, alone)) is alone


def test_a_state_without_memory_begins_anew_for_a_step_of_another_length():
    system, (q, v) = knife_edge.system(), knife_edge.typical_state()
    zero, h = jnp.zeros(()), jnp.array(0.1)
    state = SemiImplicitDLA().init(system, q, v, zero, h)
    assert SemiImplicitDLA().for_step(system, state, h) is not state
    for method in (DiscreteGradient(), ReducedDLA()):
        state = jax.eval_shape(partial(method.init, system), q, v, zero, h)
        assert method.for_step(system, state, h) is state


# ---- judges ---------------------------------------------------------------------------------------
def test_what_is_built_on_a_method_answers_for_it():
    for method in (ReducedDLA(), HamiltonizedDEL(group="planar"), DiscreteGradient()):
        built = Composition(method)
        assert built.symmetry == method.symmetry
        assert (built.canonical is None) == (method.canonical is None)
        assert built.own_time == method.own_time
        assert claims.telling(built) == claims.telling(method)
    assert claims.telling(ReducedDLA()) == claims.CHAPLYGIN != claims.telling(DiscreteGradient())


def test_the_chart_reads_and_moves_the_canonical_point():
    system, (q, v) = sinusoidal_particle.system(), sinusoidal_particle.typical_state()
    method = HamiltonizedDEL()
    state = jax.jit(partial(method.init, system))(q, v, 0.0, 0.1)
    r, P = map(np.asarray, method.canonical.point(system, state))
    moved = method.canonical.moved(system, state, r + 0.1, 2 * P)
    assert_array_equal(method.canonical.point(system, moved), (r + 0.1, 2 * P))
    there = np.array(q)
    there[method.reduced(system).base_index] += 0.1
    assert_array_equal(moved.q.value, there)


def test_the_reaction_is_remembered_by_the_reflection_only():
    remembering = [v for v in VARIANTS if v.remembers_reaction]
    assert remembering == [GeometricNonholonomic()]
    assert phase_space(GeometricNonholonomic()) is WithReaction
    assert phase_space(GeometricNonholonomic("projection")) is PhaseSpace


def test_the_host_drives_the_motion_itself_and_nothing_else():
    assert [name for name, cls in CLASSES.items() if cls.host_driven] == ["ReferenceFlow"]
    assert all(cls.exact for cls in CLASSES.values() if cls.host_driven)


def test_a_method_defines_what_it_writes_down():
    assert SemiImplicitDLA().defines("residual")
    assert not SemiImplicitDLA().defines("step")
    assert RungeKutta4().defines("step")
    assert DiscreteGradient().defines("fixed_point")
    assert not DiscreteGradient().defines("simplified_newton")
    assert [f.name for f in fields(Diary)][-1] == "past"
    assert Observation._fields == ("t", "q", "v", "multipliers", "multiplier_t")
