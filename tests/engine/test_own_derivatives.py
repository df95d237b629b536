"""Functions with a derivative of their own, kinks, numbers of two types: the engine moves what JAX moves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.scipy.special import xlogy

from noslip import System, simulate
from noslip.integrators import DiscreteGradient, RungeKutta4, SemiImplicitDLA

W, Q, V = np.array([1, 2, 3]), np.array([0.3, 0.5, -0.2]), np.array([0.03, 0.05, -0.02])


@jax.custom_jvp
def own_slope(x):
    return x**2


own_slope.defjvp(lambda x, dx: (own_slope(x[0]), 3.0 * x[0] * dx[0]))

POTENTIALS = {
    "a rule for derivatives": lambda q: own_slope(q[0]),
    "stop_gradient": lambda q: lax.stop_gradient(q[0]) * q[1] ** 2,
    "relu at 0": lambda q: jax.nn.relu(q[0] - 0.3) * (1 + q[1]),
    "xlogy at 0": lambda q: xlogy(q[0] - 0.3, 1.3 + q[1] ** 2),
    "abs at 0": lambda q: jnp.abs(q[0] - 0.3) * q[1],
    "sinc at 0": lambda q: jnp.sinc(q[0] - 0.3) * q[1],
    "whole times real": lambda q: W @ q,
    "whole matrix": lambda q: q @ np.arange(9).reshape(3, 3) @ q / 9,
    "tensordot of two types": lambda q: jnp.tensordot(W, q**2, 1),
    "truth times real": lambda q: (q > 0) @ q,
    "whole powers": lambda q: jnp.sum(q ** jnp.arange(3)) + q[0] ** jnp.int64(3),
}


def system(name):
    potential = POTENTIALS[name]
    return System(
        lambda q, v, p: v @ v * (1 + 0.1 * jnp.cos(q[1])) / 2 - potential(q),
        one_forms=lambda q, p: jnp.array([[jnp.sin(q[2]), -jnp.cos(q[2]), 0.1]]),
        coordinates=("x", "y", "z"),
    )


@pytest.mark.parametrize("name", POTENTIALS)
def test_accelerations_are_those_of_jax(name):
    made = system(name)
    ours, jaxs = (np.asarray(f(Q, V)) for f in (made.acceleration, jax.jit(made.acceleration)))
    np.testing.assert_allclose(ours, jaxs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("method", [RungeKutta4(), SemiImplicitDLA()], ids=repr)
@pytest.mark.parametrize("name", ["stop_gradient", "relu at 0", "whole times real", "whole powers"])
def test_native_runs_are_those_of_xla(name, method):
    made = system(name)
    v = np.asarray(made.project_velocity(Q, V))
    runs = [
        simulate(made, method, Q, v, step_size=0.01, steps=20, backend=backend)
        for backend in ("native", "xla")
    ]
    np.testing.assert_allclose(runs[0].q, runs[1].q, rtol=0, atol=1e-13)
    assert np.max(np.abs(runs[0].q[-1] - Q)) > 1e-3


def test_energy_is_kept_with_a_potential_of_two_types():
    made = system("whole times real")
    v = np.asarray(made.project_velocity(Q, V))
    run = simulate(made, DiscreteGradient(), Q, v, step_size=0.05, steps=2000, save_every=50)
    assert run.backend == "native"
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-14 * np.max(run.energy_scale)
