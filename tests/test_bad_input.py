"""Every mistake gets one clear sentence that names what was expected and what came."""

import jax.numpy as jnp
import numpy as np
import pytest

import noslip
from noslip import System, simulate
from noslip.integrators import find as find_integrator
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.run import sure
from noslip.systems import find as find_system
from noslip.systems import quartic

XYZ = ("x", "y", "z")


def free(q, v, p):
    return 0.5 * jnp.dot(v, v)


def flat(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])


def run(particle, **changes):
    arguments = {"q0": [0.2, 0.5, -0.1], "v0": [0.8, 0.6, 0.4], "step_size": 0.1, "steps": 3} | changes
    integrator = arguments.pop("integrator", VelocityNonholonomic())
    return simulate(particle, integrator, **arguments)


DEFINITIONS = {
    "`one_forms(q, p)` must have shape (m, 3), but (3,) was returned": {"one_forms": lambda q, p: q},
    "`lagrangian(q, v, p)` must have shape (), but (3,) was returned": {"lagrangian": lambda q, v, p: v},
    "at most one of `one_forms` and `constraint` must be given, but both were": {
        "constraint": lambda q, v, p: v[:1]
    },
    "the number of constraints must be from 0 to 2, but 3 were given": {"one_forms": lambda q, p: jnp.eye(3)},
    "`drift(q, p)` must have shape (1,), but (3,) was returned": {"drift": lambda q, p: q},
    "`force(q, v, t, p)` must have shape (3,), but () was returned": {"force": lambda q, v, t, p: t},
    "`frame(q, p)` must have shape (3, 2), but (3, 3) was returned": {"frame": lambda q, p: jnp.eye(3)},
    "must be a tuple of names, but the string 'xyz'": {"coordinates": "xyz"},
    "`coordinates` must not repeat a name": {"coordinates": ("x", "y", "x")},
    "unknown coordinate in `angles` 'yy'; did you mean 'y'?": {"angles": ("yy",)},
    "`fibre` must name 1 coordinates, one per constraint": {"fibre": ("x", "y")},
    "`lagrangian(q, v, p)` uses a parameter 'k', but those given are: mass": {
        "lagrangian": lambda q, v, p: p["k"] * jnp.dot(v, v),
        "parameters": {"mass": 1.0},
    },
    "parameter 'k' must be finite": {"parameters": {"k": float("nan")}},
    "parameter 'k' must be a number, but 'one' was provided": {"parameters": {"k": "one"}},
    "must compute in float64, but float32 was found": {
        "lagrangian": lambda q, v, p: 0.5 * jnp.sum(jnp.ones(3, jnp.float32) * v**2)
    },
    "`force(q, v, t, p)` must be a function": {"force": 3.0},
    "parameter 'k' must be float64, but float32 was provided": {"parameters": {"k": np.float32(0.1)}},
    "`lagrangian(q, v, p)` uses a coordinate that does not exist: index 3 is out of bounds": {
        "lagrangian": lambda q, v, p: 0.5 * jnp.dot(v, v) - q[3] ** 2
    },
    "a first integral must have a name without '/', but 'E/m' was provided": {
        "first_integrals": {"E/m": lambda q, v, p: q[0]}
    },
}


@pytest.mark.parametrize("sentence", DEFINITIONS)
def test_a_wrong_definition_is_refused(sentence):
    arguments = {"lagrangian": free, "one_forms": flat, "coordinates": XYZ} | DEFINITIONS[sentence]
    with pytest.raises((ValueError, TypeError)) as caught:
        System(arguments.pop("lagrangian"), **arguments)
    assert sentence in str(caught.value)


RUNS = {
    "`q0` must have shape (3,), but (2,) was provided": {"q0": [0.2, 0.5]},
    "`v0` must have shape (3,), but (4,) was provided": {"v0": [0.2, 0.5, 1.0, 2.0]},
    "`q0` must be finite": {"q0": [0.2, np.nan, 0.0]},
    "`v0` must be finite": {"v0": [0.2, np.inf, 0.0]},
    "`step_size` must be positive, but 0.0 was provided": {"step_size": 0.0},
    "`step_size` must be positive, but -0.1 was provided": {"step_size": -0.1, "steps": None, "t_end": 1.0},
    "`step_size` must be positive, but nan was provided": {"step_size": np.nan},
    "`step_size` must have shape (), but (2,) was provided": {"step_size": [0.1, 0.2]},
    "exactly one of `steps` and `t_end` must be given, but both were": {"t_end": 1.0},
    "exactly one of `steps` and `t_end` must be given, but neither was": {"steps": None},
    "the nearest reachable times are 1 and 1.1": {"steps": None, "t_end": 1.05},
    "`t_end` must be a time after t0 = 0": {"steps": None, "t_end": -1.0},
    "`steps` must be a whole number >= 0, but 2.5 was provided": {"steps": 2.5},
    "`save_every` must be a whole number >= 1, but 0 was provided": {"save_every": 0},
    "unknown parameter 'kk'; did you mean 'k'?": {"parameters": {"kk": 2.0}},
    "parameter 'k' must be finite": {"parameters": {"k": np.inf}},
    "unknown backend 'xl'; did you mean 'xla'?": {"backend": "xl"},
    "backend 'gpu' is for ensembles": {"backend": "gpu"},
    "`integrator` must be an integrator such as VelocityNonholonomic()": {"integrator": VelocityNonholonomic},
    "system.project_velocity(q0, v0) gives the nearest": {"v0": [0.8, 0.6, 0.5]},
    "`q0` must be float64, but float32 was provided": {"q0": np.zeros(3, np.float32)},
    "`q0` must be real numbers, but [1j, 0, 0] was provided": {"q0": [1j, 0, 0]},
    "`q0` must be real numbers, but [[1, 2], [3]] was provided": {"q0": [[1, 2], [3]]},
    "`v0` must be real numbers, but '1 2 3' was provided": {"v0": "1 2 3"},
    "`steps` must be a whole number >= 0, but nan was provided": {"steps": np.nan},
    "`steps` must be a whole number >= 0, but 'abc' was provided": {"steps": "abc"},
    "`steps` must be a whole number >= 0, but 100000000000000000000 was": {"steps": 10**20},
    "`save_every` must be a whole number >= 1, but None was provided": {"save_every": None},
    "parameter 'k' must have shape (), but (2,) was provided": {"parameters": {"k": [1.0, 2.0]}},
}


@pytest.mark.parametrize("sentence", RUNS)
def test_a_wrong_run_is_refused(particle, sentence):
    with pytest.raises((ValueError, TypeError)) as caught:
        run(particle, **RUNS[sentence])
    assert sentence in str(caught.value)


def test_an_inadmissible_velocity_is_told_its_residual(particle):
    with pytest.raises(ValueError, match=r"phi\(q0, v0\) = \[0\.1\]"):
        run(particle, v0=[0.8, 0.6, 0.5])


def test_rank_deficient_one_forms_are_refused_with_their_singular_values():
    forms = lambda q, p: jnp.array([[q[0], 0.0, 0.0]])  # noqa: E731
    system = System(free, one_forms=forms, coordinates=XYZ)
    with pytest.raises(ValueError, match=r"full rank 1, but at q = .* values are \[0\.\]"):
        simulate(system, RungeKutta4(), [0.0, 0.5, 1.0], [0.0, 1.0, 1.0], step_size=0.1, steps=1)


def test_multipliers_at_a_singular_state_name_it():
    system = System(free, one_forms=lambda q, p: jnp.array([[q[0], 0.0, 0.0]]), coordinates=XYZ)
    for method in (system.multipliers, system.acceleration, system.project_velocity):
        with pytest.raises(
            ValueError, match=r"one-forms must have full rank, but at q = .* values are \[0\.\]"
        ):
            method([0.0, 0.5, 1.0], [1.0, 1.0, 1.0])


def test_nearly_dependent_one_forms_are_found_too():
    def forms(q, p):
        mu = jnp.array([jnp.sin(q[0]), 0.3, q[1], 0.1])
        return jnp.stack([mu, mu / 3])

    system = System(free, one_forms=forms, coordinates=("x", "y", "z", "w"))
    with pytest.raises(ValueError, match="one-forms must have full rank"):
        system.multipliers([0.4, 0.5, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0])


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_the_quick_look_at_a_matrix_never_takes_a_singular_one(n):
    rng, taken = np.random.default_rng(n), 0
    for exponent in np.linspace(0, 20, 400):
        Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
        values = 10.0 ** rng.uniform(-3, 3) * np.array([1.0] * (n - 1) + [10.0**-exponent])
        matrix = (Q * rng.choice([1.0, -1.0], n, p=[0.9, 0.1]) * values) @ Q.T
        if sure._surely_regular(matrix.ravel().tolist(), n):
            taken += 1
            eigenvalues = np.linalg.eigvalsh(matrix)
            assert eigenvalues[0] > 1e-11 * eigenvalues[-1]
    assert taken > 50
    assert not sure._surely_regular([np.nan] * n**2, n)


def test_a_constraint_that_is_nan_in_its_second_component_is_refused():
    def drift(q, p):
        return jnp.array([0.0, jnp.sqrt(q[2]) - 1.0])

    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        coordinates=("x", "y", "z"),
        one_forms=lambda q, p: jnp.eye(2, 3),
        drift=drift,
    )
    with pytest.raises(ValueError, match="the constraint must be finite, but at q = "):
        simulate(system, RungeKutta4(), [0.0, 0.0, -1.0], [0.0, 0.0, 1.0], step_size=0.1, steps=2)


def test_what_is_not_a_system_is_refused():
    with pytest.raises(TypeError, match="`system` must be a System, but 'particle' was provided"):
        simulate("particle", RungeKutta4(), [0.0], [0.0], step_size=0.1, steps=1)


@pytest.mark.parametrize("sign", [0.0, -1.0])
def test_a_singular_or_indefinite_mass_matrix_is_refused(sign):
    system = System(
        lambda q, v, p: 0.5 * (v[0] ** 2 + v[1] ** 2 + p["c"] * v[2] ** 2),
        one_forms=flat,
        coordinates=XYZ,
        parameters={"c": sign},
    )
    with pytest.raises(ValueError, match="mass matrix must be positive definite, but at q0"):
        simulate(system, VelocityNonholonomic(), [0.2, 0.5, 0.0], [0.8, 0.6, 0.4], step_size=0.1, steps=1)


def test_a_singular_regularity_matrix_is_refused():
    # the constraint at the end of the step, (q1 - c) . v1 = 0, loses its grip where q1 = qm + h v1 and
    # the reaction at qm is parallel to the constraint: choose mu(qm) = 0 along the free direction
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.array([[jnp.cos(q[1]), 0.0, jnp.sin(q[1])]]),
        coordinates=XYZ,
    )
    h = 1.0
    v0 = [0.0, np.pi / 2, 0.0]  # a quarter turn per step: mu(q1) is orthogonal to mu(qm)
    with pytest.raises(ValueError, match=r"regularity matrix, JS \(61\), has singular values"):
        simulate(system, VelocityNonholonomic(1.0), [0.0, 0.0, 0.0], v0, step_size=h, steps=1)


@pytest.mark.parametrize("cls", [VelocityNonholonomic, DiscreteLagrangeDAlembert])
def test_beta_out_of_range_is_refused(cls):
    with pytest.raises(ValueError, match=r"`beta` must be in \[0, 1\], but 1\.5 was provided"):
        cls(beta=1.5)


def test_unknown_names_come_with_the_nearest_match():
    with pytest.raises(ValueError, match="unknown integrator 'VelocityNonholonomc'; did you mean 'Veloc"):
        find_integrator("VelocityNonholonomc")
    with pytest.raises(ValueError, match="unknown system 'chaplygin_slegh'; did you mean 'chaplygin_sleigh'"):
        find_system("chaplygin_slegh")


def test_a_failed_solve_keeps_the_part_before_it():
    def run(**arguments):
        return simulate(quartic.system(), VelocityNonholonomic(), *quartic.typical_state(), **arguments)

    hard = {"step_size": 2.0, "steps": 1000}
    with pytest.raises(noslip.SolveFailed, match=r"step \d+ of 1000 .* try a smaller step_size") as caught:
        run(**hard)
    kept = caught.value.trajectory
    silent = run(**hard, throw=False)
    assert silent == kept
    assert not silent.success
    failed = int(silent.report.failed_step.max())
    assert len(silent.t) == failed
    assert np.all(np.isfinite(silent.q))


def test_reaching_a_singular_point_is_told_as_such():
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v) - jnp.sqrt(1.0 - q[0]),
        one_forms=flat,
        coordinates=XYZ,
    )
    start = ([0.9, 0.5, 0.0], [1.0, 0.0, 0.5])
    with pytest.raises(noslip.SolveFailed, match="NaN or infinity; the motion may have reached a singular"):
        simulate(system, RungeKutta4(), *start, step_size=0.1, steps=1000)


def test_bad_files_are_refused(tmp_path, particle):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        noslip.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not a run")
    with pytest.raises(ValueError, match="is not a NetCDF file"):
        noslip.load(tmp_path / "text.nc")
    for folder in (tmp_path, ""):
        with pytest.raises(IsADirectoryError, match="it is a folder, not a file"):
            run(particle).save(folder)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        run(particle).save(tmp_path / "nowhere" / "run.nc")
