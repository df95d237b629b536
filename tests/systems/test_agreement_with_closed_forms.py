"""Methods against closed forms at the claimed order: q, v at the nodes, multipliers at their own dates."""

import inspect

import numpy as np
import pytest

from noslip import simulate, systems
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic

METHODS = [VelocityNonholonomic(), SemiImplicitDLA(), VelocityNonholonomic(0.0)]
SOLVED = [
    name
    for name, module in systems.discover().items()
    if hasattr(module, "exact") and not module.system().k  # whose multipliers no closed form here has
]


def errors(module, method, steps):
    """Largest errors of q, v and multipliers up to t = 2."""
    system = module.system(**getattr(module, "EXACT_PARAMETERS", {}))
    q0, v0 = module.typical_state()
    run = simulate(system, method, q0, v0, step_size=2.0 / steps, steps=steps)
    known = inspect.signature(module.exact).parameters
    keywords = {name: value for name, value in system.parameters.items() if name in known}
    q, v, _ = module.exact(run.t, q0, v0, **keywords)
    lam = module.exact(run.multiplier_t, q0, v0, **keywords)[2]
    pairs = ((run.q, q), (run.v, v), (run.multipliers, lam))
    return [np.max(np.abs(a - b)) for a, b in pairs]


def test_the_papers_have_closed_forms_for_these():
    assert {
        "nonholonomic_particle",
        "fbo_particle",
        "sinusoidal_particle",
        "knife_edge",
        "rolling_disk",
    } <= set(SOLVED)


@pytest.mark.parametrize(
    "method", [VelocityNonholonomic(), SemiImplicitDLA(), VelocityNonholonomic(0.0)], ids=str
)
@pytest.mark.parametrize("name", SOLVED)
def test_closed_forms_are_approached_at_the_claimed_order(name, method):
    table = np.array([errors(systems.find(name), method, steps) for steps in (80, 160, 320)])
    for quantity, column in zip(("q", "v", "multipliers"), table.T, strict=True):
        if np.max(column) < 1e-12:
            continue  # some motions are met exactly, for instance straight ones
        slope = np.log2(column[0] / column[-1]) / 2
        assert slope > method.order - 0.15, f"{quantity}: {slope:.2f} from {column}"
        assert column[0] < (0.2 if method.order == 1 else 0.01)
