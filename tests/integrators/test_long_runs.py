"""Over 1e5 steps the constraint stays at round-off, on every catalogue system with linear constraints."""

import numpy as np
import pytest

from noslip import simulate, systems
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic

LINEAR = [name for name, module in systems.discover().items() if module.system().kind == "linear"]


@pytest.mark.parametrize("method", [VelocityNonholonomic(), SemiImplicitDLA()], ids=str)
@pytest.mark.parametrize("name", LINEAR)
def test_constraint_at_round_off_over_1e5_steps(name, method):
    module = systems.find(name)
    run = simulate(
        module.system(), method, *module.typical_state(), step_size=0.01, steps=100_000, save_every=10
    )
    assert np.max(np.abs(run.constraint_residual)) <= 1e-13
    assert run.report.steps.sum() == 100_000
    assert run.report.increment.max() < 1e-14
