"""A saved run loads back equal, bit for bit, with everything needed to run it again."""

import importlib.util

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import noslip
from noslip import System, simulate
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import chaplygin_sleigh


def test_save_and_load_are_inverse(tmp_path, particle, particle_state):
    run = simulate(particle, VelocityNonholonomic(0.3), *particle_state, step_size=0.1, steps=30, t0=0.1)
    run.save(tmp_path / "run.nc")
    again = noslip.load(tmp_path / "run.nc")
    assert again == run
    assert again.info == run.info
    assert_array_equal(again.first_integrals["energy_y"], run.first_integrals["energy_y"])
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


def test_runs_that_differ_are_not_equal(particle, particle_state):
    one, other = (
        simulate(particle, VelocityNonholonomic(b), *particle_state, step_size=0.1, steps=3)
        for b in (0.5, 0.4)
    )
    assert one != other
    assert one == one


@pytest.mark.native
def test_a_file_names_system_method_and_versions():
    run = simulate(chaplygin_sleigh.system(), VelocityNonholonomic(), *chaplygin_sleigh.typical_state(),
                   step_size=0.1, steps=3)  # fmt: skip
    info = run.info
    assert (info.source, info.integrator, info.options) == (
        "chaplygin_sleigh",
        "VelocityNonholonomic",
        {"beta": 0.5},
    )
    assert info.parameters == {"m": 1.0, "J": 8.0, "a": 1.0}
    assert {"noslip", "jax", "numpy", "python"} <= set(info.versions)
    assert run.backend == "native"
    assert info.multiplier_source == "method"


def test_the_dataset_has_named_dimensions(particle, particle_state):
    data = simulate(particle, VelocityNonholonomic(), *particle_state, step_size=0.1, steps=5).to_xarray()
    assert dict(data.sizes) == {"time": 6, "coordinate": 3, "constraint": 1}
    assert np.isclose(data.q.sel(coordinate="y", time=0.0), 0.5)


def test_saving_without_the_engine_says_what_is_missing(monkeypatch, tmp_path, particle, particle_state):
    run = simulate(particle, VelocityNonholonomic(), *particle_state, step_size=0.1, steps=1)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="needs the package h5netcdf"):
        run.save(tmp_path / "run.nc")


def test_a_system_that_borrows_from_the_catalogue_is_not_filed_under_it():
    borrowed = System(
        chaplygin_sleigh.lagrangian,
        one_forms=lambda q, p: jnp.array([[0.0, 1.0, -q[0]]]),
        coordinates=("x", "y", "theta"),
        parameters={"m": 1.0, "J": 8.0, "a": 1.0},
    )
    run = simulate(borrowed, VelocityNonholonomic(), [1.0, 0, 0], [0.3, 0.2, 0.2], step_size=0.1, steps=1)
    assert run.info.source == ""
