"""Every saved row is looked at, whoever made it: what is not finite, or has left its scale, is a failure."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noslip
from noslip import System, ensemble, simulate
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.lobatto_spark import LobattoSpark
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.solve import Status
from noslip.numerics.pytrees import replaced
from noslip.systems import gearbox

XYZ = ("x", "y", "z")
STATE = ([0.5, 0.5, -0.1], [-0.8, 0.6, -0.4])


def flat(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])


def free(q, v, p):
    return 0.5 * jnp.dot(v, v)


def late(q, v, t, p):
    return jnp.where(t > 0.35, jnp.nan, 1.0) * jnp.array([0.0, 1.0, 0.0])


def integral(q, v, p):
    return jnp.log(q[0])


def silent(q, v, p):  # its derivatives are those of -x, its value is finite for x > 0 only
    return free(q, v, p) - jax.lax.stop_gradient(jnp.log(q[0])) - q[0]


HIDDEN = {
    "force": (System(free, one_forms=flat, coordinates=XYZ, force=late), GeneratingFunction(alpha=1.0)),
    "energy": (System(silent, one_forms=flat, coordinates=XYZ), SemiImplicitDLA()),
    "integral": (
        System(free, one_forms=flat, coordinates=XYZ, first_integrals={"I": integral}),
        RungeKutta4(),
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_row_that_is_not_finite_is_a_failure_of_its_step(hidden, backend):
    system, method = HIDDEN[hidden]
    run = simulate(system, method, *STATE, step_size=0.1, steps=30, backend=backend, throw=False)
    assert run.report.worst == Status.NOT_FINITE
    assert not run.success
    arrays = (
        run.q,
        run.v,
        run.multipliers,
        run.energy,
        run.constraint_residual,
        *run.first_integrals.values(),
    )
    assert all(np.all(np.isfinite(x)) for x in arrays)
    assert len(run.t) == run.report.failed_step.max() < 10
    with pytest.raises(noslip.SolveFailed, match="the step produced NaN or infinity"):
        simulate(system, method, *STATE, step_size=0.1, steps=30, backend=backend)


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_member_whose_row_is_not_finite_has_failed(backend):
    system, method = HIDDEN["energy"][0], RungeKutta4()
    v = np.array([STATE[1], [0.8, 0.6, 0.4]])
    q = np.array([STATE[0], [0.5, 0.5, -0.1]])
    many = ensemble(system, method, q, v, step_size=0.1, steps=12, save_every=3, backend=backend, throw=False)
    assert many.status.tolist() == [Status.NOT_FINITE, Status.SOLVED]
    assert np.isnan(many.q[0, -1]).all()
    assert np.isfinite(many.energy[1]).all()
    assert many.failed_step[0] % 3 == 0


def test_a_traced_run_says_in_its_report_that_a_row_is_not_finite():
    system, method = HIDDEN["energy"][0], RungeKutta4()
    status = jax.jit(lambda q: simulate(system, method, q, STATE[1], step_size=0.1, steps=12).report.status)
    assert np.asarray(status(np.array(STATE[0])))[-1] == Status.NOT_FINITE


def stiff(q, v, p):
    return free(q, v, p) - 0.5 * p["k"] * (q[0] ** 2 + q[1] ** 2) - q[0] ** 4


STIFF = System(stiff, one_forms=flat, coordinates=XYZ, parameters={"k": 1e8})


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["native", "xla"])
@pytest.mark.parametrize("method", [SemiImplicitDLA(), LobattoSpark(), RungeKutta4()], ids=repr)
def test_a_run_that_blows_up_ends_when_its_energy_has_left_its_scale(method, backend):
    run = simulate(STIFF, method, *STATE, step_size=0.1, steps=400, backend=backend, throw=False)
    assert not run.success
    assert np.max(np.abs(run.energy)) < 1e10 * run.energy_scale[0]
    assert run.report.worst in (Status.BLOWN_UP, Status.NOT_CONVERGED, Status.NOT_FINITE)
    with pytest.raises(noslip.SolveFailed, match="try a smaller step_size"):
        simulate(STIFF, method, *STATE, step_size=0.1, steps=400, backend=backend)


def test_a_member_that_blows_up_is_told_as_such():
    many = ensemble(
        STIFF, SemiImplicitDLA(), *STATE, step_size=0.1, steps=5, parameters={"k": [1.0, 1e8]}, throw=False
    )
    assert many.status.tolist() == [Status.SOLVED, Status.BLOWN_UP]


def falling(q, v, p):
    return free(q, v, p) + 9.81 * q[0]


def test_growth_of_terms_that_cancel_is_no_blow_up_nor_is_work_of_a_force():
    system = System(falling, one_forms=flat, coordinates=XYZ)
    rest = ([0.0, 0.5, 0.0], [1e-6, 0.0, 5e-7])
    run = simulate(system, SemiImplicitDLA(), *rest, step_size=1.0, steps=2000)
    assert run.success
    assert run.energy_scale[-1] > 1e9 * run.energy_scale[0]
    pushed = System(free, one_forms=flat, coordinates=XYZ, force=lambda q, v, t, p: 10 * v)
    run = simulate(pushed, RungeKutta4(), *STATE, step_size=0.01, steps=300)
    assert run.success
    assert run.energy[-1] > 1e9 * run.energy[0]


@pytest.mark.slow
def test_the_growth_of_cfhm_figure_4_runs_to_its_end():
    q0, v0 = [0.5, -0.3, 0.2], [-0.4 * np.sin(0.2), 0.4, 2.0]
    run = simulate(
        gearbox.system(epsilon=0.2), SemiImplicitDLA(), q0, v0, step_size=0.1, t_end=1e5, save_every=1000
    )
    assert run.success
    assert run.energy[-1] > 1e5 * run.energy[0]


@dataclass(frozen=True)
class Careless(RungeKutta4):
    """Says of every step that it was solved, as a method of a user may."""

    def advance(self, system, state, h):
        state, record = super().advance(system, state, h)
        return state, replaced(record, status=jnp.zeros_like(record.status))


@pytest.mark.parametrize("backend", ["native", "xla"])
def test_a_step_that_leaves_the_finite_numbers_is_told_though_no_row_is_saved_there(backend):
    """In one coordinate alone, whose force is lost at t = 0.25, within the third step."""
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        force=lambda q, v, t, p: jnp.array([0.0, jnp.where(t > 0.25, jnp.nan, 1.0)]),
        coordinates=("x", "y"),
    )
    run = simulate(
        system, Careless(), [0.0, 0.0], [1.0, 0.0], step_size=0.1, steps=30, save_every=10,
        backend=backend, throw=False,
    )  # fmt: skip
    assert not run.success
    assert int(np.max(run.report.failed_step)) == 3
    assert np.isfinite(run.q).all()
