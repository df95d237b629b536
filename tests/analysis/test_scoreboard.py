"""The scoreboard tells apart what a method keeps and what it does not."""

from noslip.analysis.scoreboard import SYSTEMS, as_markdown, score, scoreboard, short_name
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA


def test_two_methods_on_the_gearbox():
    methods = (DiscreteGradient(), SemiImplicitDLA(), RungeKutta4())
    exact, variational, plain = scoreboard(methods, ["gearbox"], steps=500, order=False)
    assert exact.energy < 1e-15 < 1e-4 < variational.energy
    assert max(exact.constraint, variational.constraint) < 1e-15 < 1e-6 < plain.constraint
    assert exact.first_integrals > 1e-3
    assert max(exact.reversible, variational.reversible) < 1e-14 < plain.reversible
    assert 4 < exact.evaluations < 12
    assert plain.evaluations is None
    table = as_markdown([exact, variational, plain])
    assert "## gearbox" in table
    assert "| `SemiImplicitDLA()` |" in table


def test_the_default_systems_are_of_every_kind():
    kinds = " ".join(SYSTEMS.values()).lower()
    for word in ("reversible", "not reversible", "integrable", "chaotic"):
        assert word in kinds


def test_a_method_that_does_not_apply_says_so():
    found = score(DiscreteGradient(), "turntable_ball")
    assert "linear constraints" in found.note
    assert found.note in as_markdown([found])


def test_short_names():
    assert short_name(DiscreteGradient()) == "DiscreteGradient()"
    nested = Composition(DiscreteGradient("mean_value"), "kahan_li6")
    assert (
        short_name(nested) == "Composition(base=DiscreteGradient(gradient='mean_value'), scheme='kahan_li6')"
    )
