"""The symplectic form along nonholonomic methods changes by the reaction, and by nothing else (FBO 2.2)."""

import functools

import jax
import numpy as np
import pytest

from noslip.analysis import reduced_symplectic_evolution, symplectic_evolution
from noslip.integrators.discrete_lagrange_dalembert import DiscreteLagrangeDAlembert
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.testing.symmetric import symmetric_cases

CASE = symmetric_cases()[1]  # m = 2, the mass matrix varies


@functools.cache
def curve(members=32, size=0.15):
    """A closed curve of admissible states, not in any plane."""
    s = 2 * np.pi * np.arange(members) / members
    q = np.asarray(CASE.q0) + size * np.stack([np.cos(s), np.sin(s), np.sin(2 * s), np.cos(s + 1)], axis=1)
    v = np.asarray(CASE.v0) + size * np.stack([np.sin(s), np.cos(s + 0.4), 0 * s, 0 * s], axis=1)
    return q, np.asarray(jax.jit(jax.vmap(CASE.system.project_velocity))(q, v))


@pytest.mark.parametrize(
    "method",
    [
        DiscreteLagrangeDAlembert(),
        pytest.param(DiscreteLagrangeDAlembert(0.2, symmetrized=True), marks=pytest.mark.slow),
        pytest.param(DiscreteLagrangeDAlembert(1.0), marks=pytest.mark.slow),
        ReducedDLA(epsilon=0.3),
        pytest.param(ReducedDLA(), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_the_form_changes_by_the_reaction_alone(method):
    measure = symplectic_evolution if method.symmetry is None else reduced_symplectic_evolution
    found = measure(CASE.system, method, *curve(), step_size=0.1, steps=8)
    assert np.max(np.abs(found.defect)) < 1e-13
    assert np.ptp(found.action) > 1e-4 * abs(found.action[0])  # it is not kept
    assert len(found.action) == len(found.reaction) + 1


def test_where_it_does_not_hold_it_is_seen():
    """The semi-implicit method has another L_d than the midpoint's, and its reaction acts elsewhere."""
    found = symplectic_evolution(CASE.system, SemiImplicitDLA(), *curve(), step_size=0.1, steps=8)
    assert np.max(np.abs(found.defect)) > 1e-6


def test_a_method_of_the_other_kind_is_refused():
    with pytest.raises(ValueError, match="a method on Q is needed, but HamiltonizedDEL"):
        symplectic_evolution(CASE.system, HamiltonizedDEL(), *curve(), step_size=0.1, steps=2)
    method = ReducedDLA(forces="group")
    with pytest.raises(ValueError, match="forces='curvature' and start='legendre' are needed, but it is"):
        reduced_symplectic_evolution(CASE.system, method, *curve(), step_size=0.1, steps=2)
