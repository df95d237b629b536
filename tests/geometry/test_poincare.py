"""FBO (41)-(45), (49): the Poincare transformation, with m = 2 and a mass matrix that varies."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.chaplygin import make_group
from noslip.geometry.hamiltonization import Hamiltonization, Reduction
from noslip.geometry.poincare import PoincareSystem
from noslip.testing.symmetric import symmetric_cases

START = np.array([0.5, 0.2])  # f = 1 here, not at the state that is looked at


def all_of(group, system, q, v, energy):
    made = Hamiltonization(Reduction(system, group))
    reduced, base = made.reduced, made.reduced.base_index
    start, r, w = jnp.asarray(START), q[base], v[base]
    made_for = PoincareSystem(made, start, energy)
    P = made.momentum(start, r, w)
    by_hand = jax.grad(made_for.hamiltonian, (0, 1))(r, P)
    # along the motion of (5): d/dt of P = f dl_c/drdot
    moved = jax.jvp(lambda r, w: made.momentum(start, r, w), (r, w), (w, reduced.acceleration(r, w)))[1]
    lagrangian, slope = made_for.lagrangian(r, w), jax.grad(made_for.lagrangian, 1)(r, w)
    f = made.multiplier(start, r)
    return {
        "field": made_for.field(r, P),
        "restricted": made_for.restricted_field(r, P),
        "canonical": (by_hand[1], -by_hand[0]),
        "motion": (w, moved),
        "legendre": jnp.dot(slope, w) - lagrangian,
        "hamiltonian": made_for.hamiltonian(r, P),
        "excess": f * (system.energy(q, v) - energy),
        "momenta": (slope, P),
        "push": f * made.omega(r) * (system.energy(q, v) - energy),
    }


def found(shift):
    case = symmetric_cases()[1]
    group, system = make_group(case.system), case.system
    energy = np.array([float(system.energy(case.q0, case.v0)) + shift])
    q, v = np.array([case.q0]), np.array([case.v0])
    out = evaluate_anyhow(all_of, group, system, q, v, energy)
    return jax.tree.map(lambda x: x[0], out)


def test_41_and_42_are_the_canonical_equations_of_f_times_h_minus_e():
    """At every energy, by automatic differentiation of the Hamiltonian."""
    x = found(shift=0.37)
    assert_allclose(np.array(x["field"]), np.array(x["canonical"]), atol=1e-13)
    assert_allclose(x["hamiltonian"], x["excess"], rtol=1e-13)


def test_on_the_level_of_e_they_are_43_and_the_reduced_motion():
    """(43) against (5) with its reaction; off the level (42) misses it by (Hc - E) df."""
    x = found(shift=0.0)
    assert_allclose(np.array(x["field"]), np.array(x["motion"]), atol=1e-13)
    assert abs(x["hamiltonian"]) < 1e-15
    x = found(shift=0.37)
    assert_allclose(np.array(x["restricted"]), np.array(x["motion"]), atol=1e-13)
    assert_allclose(x["field"][1], x["motion"][1] - x["push"], atol=1e-13)
    assert np.max(np.abs(x["push"])) > 0.01


def test_the_hamiltonian_is_the_legendre_transform_of_44():
    """Proposition 2 and (49), the momenta being the same P = f dl_c/drdot."""
    x = found(shift=0.37)
    assert_allclose(*x["momenta"], rtol=1e-13)
    assert_allclose(x["legendre"], x["hamiltonian"], rtol=1e-13)
