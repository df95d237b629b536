"""The kernels on a real GPU, skipped where there is none; test_kernels.py runs them on the host."""

import itertools

import jax
import numpy as np
import pytest

from catalogue_by_size import sampled
from noslip import Event, Observable, ensemble, integrators, systems
from noslip.engine.backends import cuda
from noslip.integrators.discrete_gradient import DiscreteGradient

pytestmark = pytest.mark.skipif(not cuda.count(), reason="there is no GPU here")

TELLING = {
    ("DiscreteGradient", "gearbox"),
    ("DiscreteGradient", "chaplygin_sleigh"),
    ("DiscreteLagrangeDAlembert", "nonholonomic_particle"),
    ("EnergyCollocation", "gearbox"),
    ("GeneratingFunction", "gearbox"),
    ("LagrangeDAlembertChaplygin", "appell_hamel_spring"),
    ("RungeKutta4", "turntable_ball"),
    ("SemiImplicitDLA", "rolling_disk_on_incline"),
    ("VelocityNonholonomic", "chaplygin_sleigh"),
}
METHODS = [name for name, kind in integrators.discover().items() if not kind.host_driven]
CASES = [
    pytest.param(*pair, marks=() if pair in TELLING else pytest.mark.all_pairs, id="-".join(pair))
    for pair in itertools.product(METHODS, sampled(systems.discover()))
]


@pytest.mark.parametrize(("method", "name"), CASES)
def test_members_on_a_gpu_have_the_bits_of_native_code(method, name):
    module, integrator = systems.find(name), integrators.find(method)()
    system = module.system()
    if reason := integrator.refusal(system):
        pytest.skip(reason)
    q0, v0 = (np.asarray(x) for x in module.typical_state()[:2])
    stretch = np.linspace(0.9, 1.1, 50)[:, None]  # velocities scaled: linear constraints stay satisfied
    v0s = v0 * (stretch if system.kind == "linear" else np.ones_like(stretch))
    watch = {"drift": Observable("energy_error", ("max", "variance"))}
    gpu, native = (
        ensemble(system, integrator, q0, v0s, step_size=0.01, steps=20, backend=b, observables=watch)
        for b in ("gpu", "native")
    )
    assert [gpu.backend, native.backend] == ["gpu", "native"]
    for field in ("t", "q", "v", "energy", "multipliers"):
        np.testing.assert_array_equal(getattr(gpu, field), getattr(native, field), err_msg=field)
    for x, y in zip(jax.tree.leaves(gpu.statistics), jax.tree.leaves(native.statistics), strict=True):
        np.testing.assert_array_equal(x, y)


def test_events_on_a_gpu_have_the_bits_of_native_code():
    module = systems.find("rolling_disk")
    q0, v0 = (np.asarray(x) for x in module.typical_state()[:2])
    walls = {
        "bounce": Event(lambda q, v, p: q[1] + 0.3, reset=lambda q, v, p: (q, -0.9 * v)),
        "end": Event(lambda q, v, p: q[0] + 0.2, terminal=True),
    }
    speeds = v0 * np.linspace(0.2, 3.0, 5000)[:, None]
    gpu, native = (
        ensemble(
            module.system(),
            DiscreteGradient(),
            q0,
            speeds,
            step_size=0.02,
            steps=100,
            backend=b,
            events=walls,
        )
        for b in ("gpu", "native")
    )
    assert [gpu.backend, native.backend] == ["gpu", "native"]
    assert 0 < np.sum(gpu.stopped_by == "end") < 5000
    np.testing.assert_array_equal(gpu.stopped_by, native.stopped_by)
    for name in walls:
        for field in ("count", "t", "q", "v"):
            np.testing.assert_array_equal(
                getattr(gpu.events[name], field), getattr(native.events[name], field)
            )
    for field in ("t", "q", "v", "energy", "multipliers"):
        np.testing.assert_array_equal(getattr(gpu, field), getattr(native, field), err_msg=field)


def test_the_peak_is_that_of_the_data_sheet():
    device = cuda.device(0)
    if device.capability != 90:
        pytest.skip("only that of compute capability 9.0 is written down here")
    assert 1.2e13 < device.peak() < 1.7e13
