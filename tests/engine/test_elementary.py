"""Elementary functions of native code: within a few units in the last place, scalars and lanes alike."""

import math

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.special
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
spread = np.concatenate([rng.uniform(-3, 3, 300), rng.choice([-1, 1], 300) * 2.0 ** rng.uniform(-40, 8, 300)])
inside = np.concatenate(
    [rng.uniform(-1, 1, 300), 1 - 2.0 ** rng.uniform(-40, -1, 100), 2.0 ** rng.uniform(-40, -1, 100)]
)
wide = rng.choice([-1, 1], 300) * 2.0 ** rng.uniform(-1000, 1000, 300)
RANGES |= {
    "exp2": [spread, rng.uniform(-1021, 1024, 300)],
    "expm1": [spread, rng.uniform(-50, 709, 300), 2.0 ** rng.uniform(-60, -1, 100)],
    "log1p": [np.abs(spread), -(2.0 ** rng.uniform(-50, -0.001, 200)), 2.0 ** rng.uniform(-60, 1000, 200)],
    "sinh": [spread, rng.uniform(-710, 710, 200)],
    "cosh": [spread, rng.uniform(-710, 710, 200)],
    "tanh": [spread, rng.uniform(-30, 30, 200)],
    "arctan": [spread, wide],
    "arcsin": [inside, -inside],
    "arccos": [inside, -inside],
    "arcsinh": [spread, wide],
    "arccosh": [1 + np.abs(spread), 1 + 2.0 ** rng.uniform(-50, 0, 100), np.abs(wide) + 1],
    "arctanh": [inside, -inside],
    "cbrt": [spread, wide, np.array([5e-324, 1e-310, 1.7e308])],
    "erf": [spread, wide, rng.uniform(-6.5, 6.5, 400)],
    "erfc": [spread, rng.uniform(-6.5, 26.5, 800), rng.uniform(26.5, 27.3, 50)],
}
LIMIT = dict.fromkeys(RANGES, 3.0) | {"sin": 1.0, "cos": 1.0, "tan": 2.0, "exp": 1.5, "log": 1.0}


MPMATH = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "arctan": mpmath.atan,
    "arcsin": mpmath.asin,
    "arccos": mpmath.acos,
    "arcsinh": mpmath.asinh,
    "arccosh": mpmath.acosh,
    "arctanh": mpmath.atanh,
}


def function(name):
    return getattr(jnp, name, None) or getattr(jax.scipy.special, name)


@pytest.mark.parametrize("name", RANGES)
def test_errors_are_small_and_lanes_agree_to_the_bit(name):
    x = np.concatenate(RANGES[name])[:, None]
    scalar = compiled(function(name), x, 1).ravel()
    lanes = compiled(function(name), x, native.lanes()).ravel()
    np.testing.assert_array_equal(scalar, lanes)
    with mpmath.workprec(300):
        exact = [MPMATH.get(name, getattr(mpmath, name, None))(mpmath.mpf(float(a))) for a in x.ravel()]
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


PAIRS = {
    "arctan2": rng.choice([-1, 1], (400, 2)) * 2.0 ** rng.uniform(-500, 500, (400, 2)),
    "power": np.stack([2.0 ** rng.uniform(-60, 60, 400), rng.uniform(-16, 16, 400)], axis=1),
    "fmod": rng.choice([-1, 1], (200, 2)) * 2.0 ** rng.uniform(-300, 300, (200, 2)),
}
OF_PAIRS = {"arctan2": mpmath.atan2, "power": mpmath.power}


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two_numbers(name):
    x = np.concatenate(
        [PAIRS[name], rng.uniform(0.5, 2, (100, 2)), np.array([[1.0000001, 3e9], [0.3, 500.1]])]
    )
    scalar, lanes = (
        compiled(lambda a: getattr(jnp, name)(a[0], a[1]), x, w).ravel() for w in (1, native.lanes())
    )
    np.testing.assert_array_equal(scalar, lanes)
    if name == "fmod":
        np.testing.assert_array_equal(scalar, np.fmod(x[:, 0], x[:, 1]))
        return
    with mpmath.workprec(300):
        exact = [OF_PAIRS[name](*map(mpmath.mpf, map(float, pair))) for pair in x]
        errors = [
            float(abs(mpmath.mpf(float(y)) - e) / mpmath.mpf(math.ulp(float(y))))
            for y, e in zip(scalar, exact, strict=True)
        ]
    assert max(errors) <= 3, (max(errors), x[int(np.argmax(errors))])


@pytest.mark.parametrize("name", ["arctan2", "power", "fmod"])
def test_special_pairs(name):
    """As in NumPy, whose rules are those of IEEE 754, signs of zeros included."""
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 1e308, 5e-324]
    x = np.array([(a, b) for a in values for b in values])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x[:, 0], x[:, 1])
    found = compiled(lambda a: getattr(jnp, name)(a[0], a[1]), x, 1).ravel()
    unknown = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), unknown)
    x, found, expected = x[~unknown], found[~unknown], expected[~unknown]
    close = np.isclose(found, expected, rtol=1e-15, atol=0) & (np.signbit(found) == np.signbit(expected))
    wrong = ~close
    assert not wrong.any(), [(x[i].tolist(), found[i], expected[i]) for i in np.flatnonzero(wrong)]


@pytest.mark.parametrize("name", [name for name in RANGES if name not in ("sin", "cos", "tan", "exp", "log")])
def test_special_values_of_the_library(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e308, -1e308, 5e-324, -5e-324, 2.0, -2.0])
    with np.errstate(all="ignore"):
        expected = (getattr(np, name, None) or getattr(scipy.special, name))(x)
    found = compiled(function(name), x[:, None], 1).ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-15, err_msg=name)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
