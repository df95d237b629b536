"""Arrays come and go by DLPack: starts from any library that has it, large results to JAX without a copy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip import ensemble, simulate
from noslip.engine.backends import cuda
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.sampling import Box, on_constraint
from noslip.systems import gearbox

Q, V = (np.asarray(x) for x in gearbox.typical_state())
CPU, GPU = 1, 2


class Foreign:
    """An array of another library: DLPack is all that it speaks. One on a GPU gives itself to the host only
    when asked for a copy there, as CuPy's do, or not at all."""

    def __init__(self, values, device=CPU, copies=True):
        self.values, self.device, self.copies = values, device, copies

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if self.device == GPU and (dl_device != (CPU, 0) or not self.copies):
            raise BufferError("these numbers are on a GPU")
        return self.values.__dlpack__(max_version=max_version)


@pytest.mark.parametrize("of", [Foreign, jnp.asarray, lambda x: Foreign(x, GPU)], ids=["host", "jax", "gpu"])
def test_a_start_is_taken_from_any_library(of):
    how = {"step_size": 0.1, "steps": 3}
    one = simulate(gearbox.system(), RungeKutta4(), of(Q), of(V), **how)
    np.testing.assert_array_equal(one.q, simulate(gearbox.system(), RungeKutta4(), Q, V, **how).q)
    qs, epsilons = np.stack([Q, Q + 0.5 * np.eye(3)[2]]), np.array([0.1, 0.3])
    vs = np.stack([np.asarray(gearbox.system().project_velocity(q, V)) for q in qs])
    many, again = (
        ensemble(gearbox.system(), RungeKutta4(), to(qs), to(vs), parameters={"epsilon": to(epsilons)}, **how)
        for to in (of, np.asarray)
    )
    np.testing.assert_array_equal(many.q, again.q)
    box, plain = Box(of(Q), of(Q + 0.5)), Box(Q, Q + 0.5)
    drawn = (on_constraint(gearbox.system(), 2, region=region, seed=1) for region in (box, plain))
    np.testing.assert_array_equal(*(q for q, _ in drawn))


def test_numbers_that_cannot_come_to_the_host_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match=r"`q0` must be real numbers on the host.*device \(2, 0\)"):
        simulate(gearbox.system(), RungeKutta4(), Foreign(Q, GPU, copies=False), V, step_size=0.1, steps=3)
    with pytest.raises(ValueError, match="`q0` must be float64, but float32"):
        simulate(gearbox.system(), RungeKutta4(), Foreign(Q.astype(np.float32)), V, step_size=0.1, steps=3)


@pytest.mark.native
def test_large_results_are_jaxs_without_a_copy():
    system, rows = gearbox.system(), 20_000
    run = simulate(system, RungeKutta4(), Q, V, step_size=1e-3, steps=rows)
    many = ensemble(system, RungeKutta4(), np.tile(Q, (600, 1)), V, step_size=0.1, steps=40, save_every=1)
    for result in (run, many):
        for name in ("q", "v", "multipliers", "energy", "constraint_residual"):
            array = getattr(result, name)
            assert array.nbytes > 1e5
            given = jnp.from_dlpack(array)
            assert given.unsafe_buffer_pointer() == array.ctypes.data, name
            np.testing.assert_array_equal(np.asarray(given)[5], array[5])


@pytest.mark.skipif(not cuda.count(), reason="there is no GPU here")
def test_starts_that_are_on_a_gpu():
    how = {"step_size": 0.1, "steps": 20, "backend": "gpu"}
    qs, method = np.tile(Q, (64, 1)), DiscreteGradient()
    expected = ensemble(gearbox.system(), method, qs, V, **how)
    for x in (jax.device_put(qs, jax.devices()[0]), pytest.importorskip("cupy").asarray(qs)):
        np.testing.assert_array_equal(ensemble(gearbox.system(), method, x, V, **how).q, expected.q)
