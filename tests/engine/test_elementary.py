"""Elementary functions of native code: within 2 units in the last place, the same in scalars and in lanes."""

import math

import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from native_rows import compiled

from noslip.engine.backends import native

rng = np.random.default_rng(0)
RANGES = {
    "sin": [rng.uniform(-10, 10, 800), rng.uniform(-1e9, 1e9, 200), math.pi / 2 * np.arange(1, 400)],
    "cos": [rng.uniform(-10, 10, 800), rng.uniform(-1e17, 1e17, 100), math.pi / 2 * np.arange(1, 400)],
    "tan": [rng.uniform(-10, 10, 400)],
    "exp": [rng.uniform(-708, 709.7, 400), rng.uniform(-1, 1, 400), rng.uniform(-745, -708, 50)],
    "log": [np.exp(rng.uniform(-740, 709, 400)), rng.uniform(0.5, 2, 400), np.array([5e-324, 1e-310])],
}
LIMIT = {"sin": 1.0, "cos": 1.0, "tan": 2.0, "exp": 1.5, "log": 1.0}


@pytest.mark.parametrize("name", RANGES)
def test_errors_are_below_two_ulp_and_lanes_agree_to_the_bit(name):
    x = np.concatenate(RANGES[name])[:, None]
    scalar = compiled(getattr(jnp, name), x, 1).ravel()
    lanes = compiled(getattr(jnp, name), x, native.lanes()).ravel()
    np.testing.assert_array_equal(scalar, lanes)
    with mpmath.workprec(300):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(a))) for a in x.ravel()]
        errors = [
            float(abs(mpmath.mpf(float(y)) - e) / mpmath.mpf(math.ulp(float(y))))
            for y, e in zip(scalar, exact, strict=True)
        ]
    assert max(errors) <= LIMIT[name], (max(errors), x.ravel()[int(np.argmax(errors))])


def test_special_values():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e308, -1e308])[:, None]
    for name in ("sin", "cos", "exp", "log", "sqrt"):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(x)
        found = compiled(getattr(jnp, name), x, native.lanes())
        np.testing.assert_allclose(found, expected, rtol=1e-15, err_msg=name)
