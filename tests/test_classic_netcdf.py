"""Runs in NetCDF's classic form, as pages save them: what is whole is read, what is not is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, load, simulate
from noslip.errors import Damaged
from noslip.integrators import RungeKutta4


@pytest.fixture
def run():
    system = System(lambda q, v, p: jnp.dot(v, v) / 2 - q[0] ** 4, coordinates=("x",))
    return simulate(system, RungeKutta4(), [0.3], [1.0], step_size=0.1, steps=4)


def classic(run, path):
    """Without tables that have no columns: a length of 0 means something else there."""
    data = run.to_xarray().drop_dims("constraint")
    short = {name: x.astype("int32") for name, x in data.items() if x.dtype.kind == "i"}
    data.assign(short).to_netcdf(path, engine="scipy", format="NETCDF3_64BIT")


def test_a_run_without_constraints_is_read_whole(run, tmp_path):
    classic(run, tmp_path / "run.nc")
    assert load(tmp_path / "run.nc") == run


def test_a_cut_file_and_one_of_others_are_refused(run, tmp_path):
    path = tmp_path / "run.nc"
    classic(run, path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(Damaged, match="damaged"):
        load(path)
    path.write_bytes(data.replace(b"energy_scale", b"energy_scold"))
    with pytest.raises(ValueError, match="lacks energy_scale"):
        load(path)
    assert np.frombuffer(data[:4], np.uint8).tolist() == [67, 68, 70, 2]
