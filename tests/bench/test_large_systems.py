"""A chain of 24 coordinates and 8 one-forms, solved with known places, keeps what small systems keep."""

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.large_systems import chain
from noslip import System, simulate
from noslip.engine.program import Block, Dense, Loop, TooLarge, count
from noslip.engine.translate.placement import LIMIT
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run.pairing import pairing_of
from noslip.run.programs import require_native

LINKS, TIME = 8, 0.4
METHODS = (SemiImplicitDLA(), DiscreteGradient())


@pytest.fixture(scope="module")
def start():
    return chain(LINKS)


def at_the_end(start, method, steps, **options):
    system, q, v = start
    h = TIME / steps
    return simulate(system, method, q, v, step_size=h, steps=steps, save_every=steps, **options)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_the_order_on_a_chain_is_two_and_its_constraints_hold(start, method):
    runs = [at_the_end(start, method, steps) for steps in (10, 20, 40, 640)]
    errors = [abs(np.r_[run.q[-1] - runs[-1].q[-1], run.v[-1] - runs[-1].v[-1]]).max() for run in runs[:3]]
    assert np.log2(np.array(errors[:-1]) / errors[1:]) == pytest.approx(2.0, abs=0.15)
    for run in runs:
        assert abs(run.constraint_residual).max() < 1e-13
        assert np.asarray(run.report.iterations).max() <= 8
        if "energy" in method.preserves:
            np.testing.assert_allclose(run.energy, run.energy[0], rtol=0, atol=1e-14)


def test_the_two_methods_find_the_same_motion(start):
    one, other = (at_the_end(start, method, 640) for method in METHODS)
    np.testing.assert_allclose(one.q[-1], other.q[-1], atol=1e-6)


def dense(block: Block) -> bool:
    """Whether a dense routine runs in an ordinary step."""
    for item in block.items:
        if isinstance(item, Dense):
            return True
        if isinstance(item, Loop) and not item.rare and (dense(item.before) or dense(item.body)):
            return True
    return False


def test_a_step_of_a_chain_has_no_dense_solve(start):
    assert not dense(pairing_of(start[0], SemiImplicitDLA()).programs.step.main)


def rare_size(block: Block) -> int:
    """Operations written down of what an ordinary step leaves out."""
    return sum(
        count(Block([item]), rolled=1) if item.rare else rare_size(item.before) + rare_size(item.body)
        for item in block.items
        if isinstance(item, Loop)
    )


def test_newtons_method_that_stands_by_has_two_matrices_and_else_grows_as_the_chain():
    """The matrix and its table of columns; a third would leave the longest chains to XLA."""
    links = 24
    step = pairing_of(chain(links)[0], SemiImplicitDLA()).programs.step
    assert 0 < rare_size(step.main) - 2 * (4 * links) ** 2 < 350 * links


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_a_step_of_201_coordinates_is_native(method):
    assert pairing_of(chain(67)[0], method).programs.step.size() < LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_native_code_with_known_places_and_xla_with_lapack_agree(start, method):
    native, xla = (at_the_end(start, method, 50, backend=backend) for backend in ("native", "xla"))
    np.testing.assert_allclose(native.q, xla.q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(native.v, xla.v, rtol=0, atol=1e-11)


def test_a_chain_of_many_coordinates_has_native_code_and_a_full_system_is_left_to_xla():
    require_native(chain(22)[0])
    names = [f"q{k}" for k in range(66)]
    full = System(lambda q, v, p: (v @ v + jnp.sum(v) ** 2) / 2 - q @ q, coordinates=names)
    with pytest.raises(TooLarge, match="66 coordinates, over 64, and M and mu have few zeros"):
        require_native(full)
