"""What has too many operations for the engine is left to XLA, and the answers are the same."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, simulate
from noslip.engine import kept, shelf
from noslip.engine.backends import often
from noslip.engine.program import TooLarge
from noslip.engine.translate import sweeps
from noslip.integrators import RungeKutta4

A = np.random.default_rng(0).normal(size=(5, 5)) / 5
Q, V = np.linspace(-0.3, 0.4, 5), np.linspace(0.2, -0.1, 5)


def full():
    """A new one each time: nothing is known of it."""
    return System(
        lambda q, v, p: (
            v @ (np.eye(5) + A @ A.T) @ v * (1 + 0.1 * jnp.sin(A[0] @ q)) / 2 - jnp.sum(jnp.cos(A @ q))
        ),
        coordinates=tuple("abcde"),
    )


@pytest.mark.parametrize(("module", "name", "most"), [(sweeps, "VISITS", 20), (often, "INSTEAD_OF_XLA", 10)])
def test_quantities_are_those_of_xla(module, name, most, monkeypatch):
    with shelf.unused():
        kept.forget()
        monkeypatch.setattr(module, name, most)
        system = full()
        ours, jaxs = (np.asarray(f(Q, V)) for f in (system.acceleration, jax.jit(system.acceleration)))
        np.testing.assert_allclose(ours, jaxs, rtol=1e-12)
        kept.forget()


def test_derivatives_that_visit_too_much_are_given_up(monkeypatch):
    monkeypatch.setattr(sweeps, "VISITS", 20)
    source = sweeps.Straight([(5,)], lambda b, x: np.array(functools.reduce(b.mul, x[0].tolist())))
    source.block((0,), ())  # one sweep back
    with pytest.raises(TooLarge, match="visit more than 20 scalar operations"):
        source.block((0, 0), ())  # five forward


def test_checks_that_are_too_long_for_machine_code_stay_with_numpy(monkeypatch):
    with shelf.unused():
        kept.forget()
        monkeypatch.setattr(often, "INSTEAD_OF_NUMPY", 10)
        system = full()
        runs = [
            simulate(system, RungeKutta4(), Q, V, step_size=0.01, steps=5) for _ in range(often.OFTEN + 3)
        ]
        assert all(run == runs[0] for run in runs)
        kept.forget()
