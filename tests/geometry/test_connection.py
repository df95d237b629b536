"""D-adapted coordinates: psi, its left inverse, its derivative, and the reduced equations."""

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from noslip import System
from noslip.geometry.connection import adapted_coordinates
from noslip.systems import chaplygin_sleigh

XYZ = ("x", "y", "z")


def kinetic(q, v, p):
    return 0.5 * ((2 + jnp.sin(q[1])) * v[0] ** 2 + v[1] ** 2 + v[2] ** 2) - jnp.cos(q[0])


KINDS = {
    "linear": {"one_forms": lambda q, p: jnp.array([[-q[1], 0.3, 2.0 + q[0] ** 2]])},
    "affine": {
        "one_forms": lambda q, p: jnp.array([[-q[1], 0.3, 2.0 + q[0] ** 2]]),
        "drift": lambda q, p: jnp.array([0.4 * q[2] + 0.1]),
    },
    "nonlinear": {
        "constraint": lambda q, v, p: jnp.array([v[2] ** 2 - (1 + q[0] ** 2) * (v[0] ** 2 + v[1] ** 2)])
    },
}


@pytest.fixture(scope="module", params=KINDS)
def case(request):
    system = System(kinetic, coordinates=XYZ, **KINDS[request.param])
    q = np.array([0.4, 0.7, -0.2])
    v = np.asarray(system.project_velocity(q, [0.5, -0.3, 0.6]))
    return system, q, v, adapted_coordinates(system, q, v)


def test_psi_and_its_left_inverse(case):
    system, q, v, adapted = case
    base = adapted.base_velocity(v)
    assert_allclose(adapted.psi(q, base, near=v), v, rtol=0, atol=1e-14)
    other = np.asarray(base) + np.array([0.1, -0.05])
    lifted = adapted.psi(q, other, near=v)
    assert_allclose(system.phi(q, lifted), 0, rtol=0, atol=1e-14)
    assert_allclose(adapted.base_velocity(lifted), other, rtol=0, atol=1e-15)


def test_the_derivative_of_psi_has_the_form_of_js_28(case):
    system, q, v, adapted = case
    D = np.asarray(adapted.psi_derivative(q, adapted.base_velocity(v), near=v))
    n, m = system.n, system.m
    assert D.shape == (2 * n, 2 * n - m)
    assert_allclose(D[:n], np.hstack([np.eye(n), np.zeros((n, n - m))]), rtol=0, atol=1e-15)
    assert_allclose(D[n + adapted.base_index][:, n:], np.eye(n - m), rtol=0, atol=1e-15)
    fibre = D[n + adapted.fibre_index][:, n:]
    assert_allclose(fibre, -np.asarray(adapted.connection(q, v)), rtol=0, atol=1e-13)
    left = np.zeros((2 * n - m, 2 * n))  # JS (29)
    left[:n, :n] = np.eye(n)
    left[n + np.arange(n - m), n + adapted.base_index] = 1
    assert_allclose(left @ D, np.eye(2 * n - m), rtol=0, atol=1e-14)


def test_the_reduced_equations_push_forward_to_the_vector_field_on_d(case):
    system, q, v, adapted = case
    base = adapted.base_velocity(v)
    dq, dbase = adapted.vector_field(q, base, near=v)
    pushed = np.asarray(adapted.psi_derivative(q, base, near=v)) @ np.concatenate([dq, dbase])
    assert_allclose(pushed, np.concatenate([v, system.acceleration(q, v)]), rtol=0, atol=1e-12)


def test_pivoting_avoids_fibres_that_the_constraints_do_not_determine():
    system = System(kinetic, one_forms=lambda q, p: jnp.array([[1.0, 0.0, q[1]]]), coordinates=XYZ)
    assert adapted_coordinates(system, [0.0, 0.1, 0.0]).fibre == ("x",)
    assert adapted_coordinates(system, [0.0, 9.0, 0.0]).fibre == ("z",)
    with pytest.raises(ValueError, match=r"must determine the velocities of the fibre \('y',\)"):
        adapted_coordinates(system, [0.0, 0.1, 0.0], fibre=("y",))
    with pytest.raises(ValueError, match="`fibre` must name 1 coordinates"):
        adapted_coordinates(system, [0.0, 0.1, 0.0], fibre=("x", "y"))


def test_the_fibre_of_the_system_is_used_when_declared():
    q0, v0 = chaplygin_sleigh.typical_state()
    adapted = adapted_coordinates(chaplygin_sleigh.system(), q0)
    assert adapted.fibre == ("y",)
    assert_allclose(adapted.connection(q0), [[-np.tan(q0[2]), 0.0]], rtol=1e-14)
    assert_allclose(adapted.psi(q0, adapted.base_velocity(v0)), v0, rtol=0, atol=1e-15)
