"""Every claim of every integrator, found by discovery: order, promises kept, promises not made seen broken.

By default each variant runs on three telling systems; `make test-all` runs all variants on all systems.
"""

import pytest

from noslip import integrators, systems
from noslip.testing import integrators as claims

VARIANTS = [v for cls in integrators.discover().values() for v in cls.variants()]
PAIRS = [(v, name) for v in VARIANTS for name in systems.discover() if name not in claims.TELLING]


def grouped(pairs):
    """All tests of one variant share a worker, and so its compiled code."""
    return [
        pytest.param(*pair, marks=pytest.mark.xdist_group(str(pair[0])), id="-".join(map(str, pair)))
        for pair in pairs
    ]


def case(variant, name):
    made = claims.perturbed_case(systems.find(name))
    if reason := variant.applies_to(made.system):
        pytest.skip(reason)
    return made


@pytest.mark.parametrize("variant", grouped([(v,) for v in VARIANTS]))
def test_the_contract_holds(variant):
    claims.check_contract(variant)


@pytest.mark.parametrize(("variant", "name"), grouped([(v, n) for v in VARIANTS for n in claims.TELLING]))
def test_order_and_promises(variant, name):
    claims.check_order(variant, case(variant, name))
    claims.check_promises(variant, case(variant, name))


@pytest.mark.parametrize("variant", grouped([(v,) for v in VARIANTS]))
def test_promises_not_made_are_seen_broken(variant):
    claims.check_absent_promises(variant, claims.telling_cases())


@pytest.mark.all_pairs
@pytest.mark.parametrize(("variant", "name"), grouped(PAIRS))
def test_order_and_promises_on_all_other_systems(variant, name):
    claims.check_order(variant, case(variant, name))
    claims.check_promises(variant, case(variant, name))
