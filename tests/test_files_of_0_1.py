"""Files that version 0.1 wrote, kept in tests/data, are read as they were."""

import zipfile
from pathlib import Path

import numpy as np

from noslip import Ensemble, load, simulate
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.systems import gearbox, rolling_disk

DATA = Path(__file__).parent / "data"
Q_END = [0.29355236005648183, 0.5972253090732249, 5.153956286180713]


def test_a_run():
    run = load(DATA / "run_0_1.nc")
    assert run.info.integrator == "DiscreteGradient"
    assert run.info.options["gradient"] == "gonzalez"
    assert (run.info.source, run.info.steps, run.info.save_every) == ("gearbox", 20, 5)
    assert run.info.versions["noslip"] == "0.1.0"
    assert run.q[-1].tolist() == Q_END
    assert run.success
    state = gearbox.typical_state()
    again = simulate(gearbox.system(), DiscreteGradient(), *state, step_size=0.1, steps=20, save_every=5)
    for name in ("t", "q", "v", "multipliers", "energy"):
        np.testing.assert_allclose(getattr(again, name), getattr(run, name), rtol=0, atol=1e-13)
    assert again.info.options.keys() >= run.info.options.keys()


def test_a_run_of_a_composition():
    run = load(DATA / "composed_0_1.nc")
    method, state = Composition(VelocityNonholonomic(), "suzuki4"), rolling_disk.typical_state()
    again = simulate(rolling_disk.system(), method, *state, step_size=0.1, steps=4)
    np.testing.assert_allclose(again.q, run.q, rtol=0, atol=1e-13)


def test_an_ensemble_on_disk(tmp_path):
    with zipfile.ZipFile(DATA / "ensemble_0_1_zarr.zip") as archive:
        archive.extractall(tmp_path / "ensemble.zarr")
    stored = Ensemble.open(tmp_path / "ensemble.zarr")
    assert stored.success
    assert stored.parameters["epsilon"].tolist() == [0.1, 0.2, 0.3]
    assert stored.q[1, -1].tolist() == Q_END
    assert stored.statistics["drift"]["max"].tolist()[0] == 2.220446049250313e-15
    assert stored.to_xarray().sizes == {"member": 3, "time": 5, "coordinate": 3, "constraint": 1}
