"""The kernel on a real GPU against XLA, skipped where JAX sees none; test_ensembles.py has it interpreted."""

import jax
import numpy as np
import pytest

from noslip import Observable, ensemble, integrators, systems

pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX sees no GPU here")

TELLING = {
    ("DiscreteGradient", "gearbox"),
    ("DiscreteGradient", "chaplygin_sleigh"),
    ("DiscreteLagrangeDAlembert", "nonholonomic_particle"),
    ("GeneratingFunction", "gearbox"),
    ("LagrangeDAlembertChaplygin", "appell_hamel_spring"),
    ("RungeKutta4", "turntable_ball"),
    ("SemiImplicitDLA", "rolling_disk_on_incline"),
    ("VelocityNonholonomic", "chaplygin_sleigh"),
}
CASES = [
    pytest.param(*pair, marks=() if pair in TELLING else pytest.mark.all_pairs, id="-".join(pair))
    for pair in ((i, s) for i in integrators.discover() for s in systems.discover())
    if not integrators.find(pair[0]).host_driven
]


@pytest.mark.parametrize(("method", "name"), CASES)
def test_the_kernel_agrees_with_xla_to_round_off(method, name):
    module, integrator = systems.find(name), integrators.find(method)()
    system = module.system()
    if reason := integrator.applies_to(system):
        pytest.skip(reason)
    q0, v0 = (np.asarray(x) for x in module.typical_state()[:2])
    stretch = np.linspace(0.9, 1.1, 50)[:, None]  # velocities scaled: linear constraints stay satisfied
    v0s = v0 * (stretch if system.kind == "linear" else np.ones_like(stretch))
    watch = {"drift": Observable("energy_error", ("max",))}
    runs = [
        ensemble(system, integrator, q0, v0s, step_size=0.01, steps=5, backend=b, observables=watch)
        for b in ("gpu", "xla")
    ]
    assert [run.backend for run in runs] == ["gpu", "xla"]
    for field in ("q", "v", "energy"):
        a, b = (getattr(run, field) for run in runs)
        assert np.max(np.abs(a - b)) <= 1e-12 * (1 + np.max(np.abs(b))), field
    drift = [run.statistics["drift"]["max"] for run in runs]
    np.testing.assert_allclose(*drift, rtol=1e-3, atol=1e-13)
