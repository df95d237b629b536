"""How often a run goes from one module to another: a run of what is known should find its way at once."""

import sys
from collections import Counter

import pytest

from noslip import simulate
from noslip.integrators import DiscreteGradient
from noslip.systems import gearbox

MODULES = 26  # pairs (caller, called) of a second run
ROOMS = 10  # of rooms
VERBS = {"trajectory", "results", "simulate"}  # one room of CONTRIBUTING's drawing


def crossings(call):
    """How often a function of one module of noslip calls one of another, by their names."""
    seen = Counter()

    def look(frame, event, _):
        called = frame.f_globals.get("__name__", "")
        if event != "call" or not called.startswith("noslip"):
            return
        above = frame.f_back
        while above is not None and not above.f_globals.get("__name__", "").startswith("noslip"):
            above = above.f_back
        if above is not None and (caller := above.f_globals["__name__"]) != called:
            seen[caller, called] += 1

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


def room(module):
    name = module.split(".")[1]
    return "verbs" if name in VERBS else name


@pytest.mark.native
def test_a_second_run_crosses_few_modules_and_rooms():
    system, method, state = gearbox.system(), DiscreteGradient(), gearbox.typical_state()

    def run():
        simulate(system, method, *state, step_size=0.1, steps=100)

    run()
    run()
    seen = crossings(run)
    rooms = {(room(a), room(b)) for a, b in seen} - {(room(a), room(a)) for a, _ in seen}
    assert len(seen) <= MODULES, sorted(seen)
    assert len(rooms) <= ROOMS, sorted(rooms)
    assert crossings(run) == seen
