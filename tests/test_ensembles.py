"""Ensembles: a member equals its single run, whatever varies; observables, failures, bad input."""

import jax
import numpy as np
import pytest

from noslip import Observable, SolveFailed, System, ensemble, simulate
from noslip.engine import kept
from noslip.engine.backends import cuda
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status
from noslip.run import arguments, many_native
from noslip.systems import gearbox, quartic

pytestmark = pytest.mark.native

MEMBERS = 13  # not a multiple of any number of lanes
SYSTEM = gearbox.system()
Q0, V0 = np.array([0.5, -0.3, 0.2]), np.array([-0.4 * np.sin(0.2), 0.4, 2.0])
RNG = np.random.default_rng(5)
Q0S = Q0 + 0.1 * RNG.normal(size=(MEMBERS, 3))
MU = np.stack([np.ones(MEMBERS), np.sin(Q0S[:, 2]), np.zeros(MEMBERS)], axis=1)
V0S = V0 - MU * (MU @ V0 / np.sum(MU**2, axis=1))[:, None]  # with unit masses this is the projection
EPSILON = RNG.uniform(0.0, 0.3, MEMBERS)


def run(**how):
    given = {"step_size": 0.1, "steps": 40, "parameters": {"epsilon": EPSILON}} | how
    return ensemble(SYSTEM, SemiImplicitDLA(), Q0S, V0S, **given)


def test_a_member_equals_its_single_run_bit_for_bit():
    result = run(save_every=10)
    assert result.backend == "native"
    for i in (0, 7, MEMBERS - 1):
        single = simulate(
            SYSTEM, SemiImplicitDLA(), Q0S[i], V0S[i], step_size=0.1, steps=40, save_every=10,
            parameters={"epsilon": EPSILON[i]},
        )  # fmt: skip
        for field in ("q", "v", "multipliers"):
            np.testing.assert_array_equal(getattr(result, field)[i], getattr(single, field))
        np.testing.assert_array_equal(result.t, single.t)
        np.testing.assert_allclose(result.energy[i], single.energy, rtol=1e-14)


def test_threads_and_company_change_no_bit():
    alone, crowd = run(threads=1), run(threads=3)
    np.testing.assert_array_equal(alone.q, crowd.q)
    part = ensemble(
        SYSTEM,
        SemiImplicitDLA(),
        Q0S[3:5],
        V0S[3:5],
        step_size=0.1,
        steps=40,
        parameters={"epsilon": EPSILON[3:5]},
    )
    np.testing.assert_array_equal(part.q, alone.q[3:5])


def test_xla_agrees_and_so_do_the_observables():
    watch = {
        "drift": Observable("energy_error", ("max", "last")),
        "own": lambda q, v, p: q[0] * v[1] + p["epsilon"],
        "second": SYSTEM.coordinates[1],
    }
    a, b = (run(backend=backend, observables=watch, save_every=20) for backend in ("native", "xla"))
    assert b.backend == "xla"
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-12)
    for name, kinds in a.statistics.items():
        for kind, values in kinds.items():
            np.testing.assert_allclose(
                values, b.statistics[name][kind], rtol=1e-9, atol=1e-13, err_msg=f"{name} {kind}"
            )
    single = simulate(
        SYSTEM, SemiImplicitDLA(), Q0S[2], V0S[2], step_size=0.1, steps=40, parameters={"epsilon": EPSILON[2]}
    )
    error = np.abs(single.energy - single.energy[0])
    assert a.statistics["second"]["max"][2] == np.max(single.q[:, 1])
    own = single.q[:, 0] * single.v[:, 1] + EPSILON[2]
    assert a.statistics["drift"]["max"][2] == pytest.approx(error.max(), rel=1e-12)
    assert a.statistics["drift"]["last"][2] == pytest.approx(error[-1], abs=1e-15)
    assert a.statistics["own"]["mean"][2] == pytest.approx(own.mean(), rel=1e-12)
    assert a.statistics["own"]["variance"][2] == pytest.approx(own.var(), rel=1e-12)
    np.testing.assert_allclose(a.observed["own"][2], own[::20], rtol=1e-12)


def test_parameters_alone_may_vary_and_states_may_be_shared():
    result = ensemble(
        SYSTEM, SemiImplicitDLA(), Q0, V0, step_size=0.1, steps=5, parameters={"epsilon": EPSILON}
    )
    assert result.q.shape == (MEMBERS, 2, 3)
    one = ensemble(SYSTEM, SemiImplicitDLA(), Q0, V0, step_size=0.1, steps=5, parameters={"epsilon": 0.1})
    assert one.q.shape == (1, 2, 3)


def test_as_xarray():
    data = run(observables=("energy_error",)).to_xarray()
    assert data.q.dims == ("member", "time", "coordinate")
    assert data.sizes == {"member": MEMBERS, "time": 2, "coordinate": 3, "constraint": 1}
    np.testing.assert_array_equal(data.parameter_epsilon, EPSILON)
    assert "energy_error_max" in data
    assert "SemiImplicitDLA" in data.attrs["noslip"]


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_failed_member_stops_and_the_others_do_not(backend):
    system, w, wdot, zdot = quartic.system(n=2), [0.5, -0.4], [0.9, -1.0], [-0.4, -0.7]
    q0, v0 = np.array([0.4, *w, 0.1, -0.6]), np.array([-np.dot(w, zdot), *wdot, *zdot])
    q0s, v0s = np.stack([q0, 0 * q0]), np.stack([v0, 0 * v0])  # the second is at rest
    arguments = {"step_size": 3.0, "steps": 30, "save_every": 10, "backend": backend}
    result = ensemble(system, SemiImplicitDLA(), q0s, v0s, throw=False, **arguments)
    assert list(result.status) == [Status.NOT_FINITE, Status.SOLVED]
    assert 1 <= result.failed_step[0] <= 30
    assert np.isnan(result.q[0, -1]).all()
    np.testing.assert_array_equal(result.q[1], 0.0)
    with pytest.raises(SolveFailed, match="1 of 2 members failed, first member 0 in step") as caught:
        ensemble(system, SemiImplicitDLA(), q0s, v0s, **arguments)
    assert caught.value.trajectory.status[0] == result.status[0]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"backend": "cuda"}, "unknown backend 'cuda'"),
        ({"backend": "gpu"}, "needs a GPU with NVIDIA's driver"),
        ({"parameters": {"epsilon": EPSILON[:4]}}, "q0s has 13, v0s has 13, parameters['epsilon'] has 4"),
        ({"parameters": {"epsilom": 0.1}}, "unknown parameter 'epsilom'; did you mean 'epsilon'"),
        ({"parameters": {"epsilon": np.ones((2, 2))}}, "must have shape () or (members,)"),
        ({"parameters": {"epsilon": EPSILON * np.nan}}, "parameter 'epsilon' must be finite"),
        ({"observables": ("enrgy",)}, "unknown observable 'enrgy'; did you mean 'energy'"),
        ({"save_every": 0}, "`save_every` must be a whole number"),
        ({"threads": 0}, "`threads` must be a whole number >= 1"),
        ({"step_size": "a"}, "`step_size` must be real numbers"),
        ({"t0": [0.0, 1.0]}, "`t0` must have shape ()"),
        ({"observables": {"a": lambda q, v, p: q}}, "observable 'a' must be a real number, but float64 (3,)"),
        ({"observables": {"a": lambda q, v, p: q[7]}}, "`observables['a']` uses a coordinate"),
        ({"t_end": 1.0}, "exactly one of `steps` and `t_end`"),
        ({"step_size": -1.0}, "`step_size` must be positive"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_sentence(how, sentence):
    if how.get("backend") == "gpu" and cuda.count():
        pytest.skip("there is a GPU")
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        run(**how)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_states_off_the_constraint_and_wrong_shapes_are_named():
    off = V0S.copy()
    off[[4, 9]] += 1.0
    with pytest.raises(ValueError, match="2 of 13 members do not, first member 4"):
        ensemble(SYSTEM, SemiImplicitDLA(), Q0S, off, step_size=0.1, steps=1)
    with pytest.raises(ValueError, match=r"`q0s` must have shape \(members, 3\) or \(3,\)"):
        ensemble(SYSTEM, SemiImplicitDLA(), Q0S[:, :2], V0S, step_size=0.1, steps=1)
    bad = Q0S.copy()
    bad[2, 0] = np.inf
    with pytest.raises(ValueError, match="`q0s` must be finite, but 1 members are not, the first is 2"):
        ensemble(SYSTEM, SemiImplicitDLA(), bad, V0S, step_size=0.1, steps=1)
    with pytest.raises(ValueError, match="unknown statistic 'median'"):
        Observable("energy", ("median",))
    with pytest.raises(TypeError, match="an observable must have a name"):
        run(observables=[Observable("energy", ["max"])])
    with pytest.raises(TypeError, match="`observables` must be a list or a mapping"):
        run(observables=Observable("energy"))
    with pytest.raises(TypeError, match="`parameters` must be a mapping"):
        run(parameters=[1])
    with pytest.raises(ValueError, match="ensemble cannot run traced arguments"):
        jax.jit(lambda q: ensemble(SYSTEM, SemiImplicitDLA(), q, V0S, step_size=0.1, steps=1).q)(Q0S)
    with pytest.raises(ValueError, match="runs one trajectory at a time"):
        ensemble(SYSTEM, ReferenceFlow(), Q0S, V0S, step_size=0.1, steps=1)


@pytest.mark.parametrize("mass", [-1.0, 0.0])
def test_every_member_must_have_a_mass(mass, monkeypatch):
    """Also one that is not the first, nor among the first that are looked at."""
    monkeypatch.setattr(arguments, "AT_A_TIME", 4)
    system = System(
        lambda q, v, p: 0.5 * (v[0] ** 2 + p["m"] * v[1] ** 2) + q[0],
        coordinates=("x", "y"),
        parameters={"m": 1.0},
    )
    masses = np.ones(MEMBERS)
    masses[9] = mass
    with pytest.raises(
        ValueError, match=r"^member 9: the mass matrix must be positive definite, but at q0 = "
    ):
        ensemble(
            system,
            SemiImplicitDLA(),
            [0.1, 0.2],
            [1.0, 0.5],
            step_size=0.1,
            steps=2,
            parameters={"m": masses},
        )


def test_no_steps_is_the_initial_state():
    result = run(steps=0)
    np.testing.assert_array_equal(result.q[:, 0], Q0S)
    assert result.q.shape[1] == 1


@pytest.mark.native
def test_members_with_a_long_step_are_left_to_xla(monkeypatch):
    monkeypatch.setattr(many_native, "MOST", 100)
    kept.forget()
    assert run(steps=2).backend == "xla"
    with pytest.raises(ValueError, match="scalar operations, over 100 for many members"):
        run(steps=2, backend="native")
