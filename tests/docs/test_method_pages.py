"""What the page of a method says is asked of the method: parameters have meanings, methods advice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from noslip import integrators

pytest.importorskip("sphinx")
sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_site"))
methods = pytest.importorskip("methods")

METHODS = integrators.discover()


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_has_a_meaning_and_says_what_it_may_be(name: str) -> None:
    """The meaning is a comment `#:` behind the field."""
    for parameter in methods.parameters(METHODS[name]):
        assert parameter.meaning, parameter.name
        assert parameter.allowed, parameter.name


@pytest.mark.parametrize("name", METHODS)
def test_the_page_on_choosing_says_when_to_take_every_method(name: str) -> None:
    assert methods.advice(name)


def test_allowed_values_are_those_that_the_method_accepts() -> None:
    found = {p.name: p.allowed for p in methods.parameters(METHODS["DiscreteGradient"])}
    assert found["frame_derivative"] == 'one of `"exact"`, `"finite_difference"`'
    assert found["nodes"] == r"in \[1, 12\]"
    assert methods.allowed(METHODS["GeneratingFunction"], "projected") == "`True`, `False`"


def test_every_method_is_in_one_family() -> None:
    families = methods.families()
    assert sorted(name for names in families.values() for name in names) == sorted(METHODS)
    assert families["CFHM"] == ["DiscreteGradient", "FullSpaceDiscreteGradient"]
