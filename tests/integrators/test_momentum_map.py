"""The discrete momentum map FBO (12): kept by the variational methods, on three systems where it can fail."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import integrators, simulate
from noslip.analysis import momentum_map
from noslip.geometry.hamiltonization import hamiltonize
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.poincare_hamiltonized_del import PoincareHamiltonizedDEL
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.systems import fbo_particle, knife_edge
from noslip.testing import integrators as claims
from noslip.testing.symmetric import symmetric_cases

VARIANTS = [v for cls in integrators.discover().values() for v in cls.variants()]
QUICK = [HamiltonizedDEL(), PoincareHamiltonizedDEL(epsilon=0.2), ReducedDLA()]


@functools.cache
def cases():
    return {case.name: case for case in symmetric_cases()}


def measured(method, case, steps=200):
    run = simulate(case.system, method, case.q0, case.v0, step_size=claims.STEP, steps=steps)
    return run, momentum_map(case.system, method, run)


@pytest.mark.parametrize("method", QUICK, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(
    "name", ["two_rails", "turning", pytest.param("bare_particle", marks=pytest.mark.slow)]
)
def test_the_variational_methods_keep_it_and_rdla_does_not(name, method):
    """Half of what "variational" means, FBO table 2; the other half is `symplectic_reduced`."""
    _, found = measured(method, cases()[name])
    assert found.values.shape == (200, 1)
    size = np.max(np.abs(found.defect))
    assert size < 1e-13 if "momentum_map" in method.preserves else size > 1e-6


@pytest.mark.all_pairs
@pytest.mark.parametrize("variant", [v for v in VARIANTS if not v.exact], ids=repr)
def test_only_the_methods_that_say_so_keep_it(variant):
    """On all three; a method of another kind may keep it on one of them, not on all."""
    h = claims.STEP if variant.order <= 2 else 4 * claims.STEP  # errors of high order are small
    sizes = []
    for case in cases().values():
        if variant.applies_to(case.system) is None:
            run = simulate(case.system, variant, case.q0, case.v0, step_size=h, steps=200, throw=False)
            sizes.append(claims.defect("momentum_map", variant, case, run))
    if not sizes:
        pytest.skip("the method applies to none of them")
    assert None not in sizes
    promised = "momentum_map" in variant.preserves
    assert max(sizes) <= claims.HELD if promised else max(sizes) >= claims.BROKEN


@pytest.mark.slow
def test_it_is_12_and_the_integral_of_the_motion():
    """D2 L_d . xi from the discrete Lagrangian (32) itself, and f (1 + x^2) ydot, FBO section 5.1."""
    case, method, h = cases()["two_rails"], HamiltonizedDEL(epsilon=0.2), claims.STEP
    run, found = measured(method, case, steps=6)  # f by one path from the start
    made = hamiltonize(case.system)

    @jax.jit
    def arriving(r, r1):
        def L_d(r, r1):
            nodes = [r + e * (r1 - r) for e in (0.2, 0.8)]
            return h / 2 * sum(made.lagrangian(run.q[0, :2], x, (r1 - r) / h) for x in nodes)

        return jax.grad(L_d, 1)(r, r1)

    P = np.array(
        [arriving(jnp.asarray(a[:2]), jnp.asarray(b[:2])) for a, b in zip(run.q, run.q[1:], strict=False)]
    )
    assert_allclose(P @ found.constant[0], found.values[:, 0], rtol=1e-12)
    assert np.max(np.abs(found.linear)) < 1e-12

    q, v = fbo_particle.typical_state()
    run = simulate(fbo_particle.system(), ReducedDLA(), q, v, step_size=0.1, steps=40)
    found = momentum_map(fbo_particle.system(), ReducedDLA(), run)
    integral = np.sqrt(1 + run.q[0, 0] ** 2) * run.first_integrals["y_momentum"][1:]
    assert_allclose(found.values[:, 0], found.constant[0, 1] * integral, rtol=1e-12)


def test_a_symmetry_about_a_point_is_found_with_its_centre():
    _, found = measured(HamiltonizedDEL(), cases()["turning"], steps=50)
    S = found.linear[0]
    assert_allclose(S, S[1, 0] * np.array([[0, -1], [1, 0]]), atol=1e-10)
    assert_allclose(found.constant[0], S @ found.centre, atol=1e-10)  # about (0, 0)


def test_where_nothing_is_left_to_keep():
    q, v = knife_edge.typical_state()
    run = simulate(knife_edge.system(), ReducedDLA(), q, v, step_size=0.05, steps=5)
    assert momentum_map(knife_edge.system(), ReducedDLA(), run) is None
