"""What a refusal says of arguments as the user gave them."""

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System


def plain(q, v, p):
    return jnp.dot(v, v) / 2


def test_a_function_that_takes_t_is_named_with_it():
    with pytest.raises(ValueError, match=r"`one_forms\(q, t, p\)` failed with IndexError"):
        System(plain, one_forms=lambda q, v, p: jnp.array([[v[0], 1.0]]), coordinates=("x", "y"))


def test_a_number_of_numpy_in_single_precision_has_nothing_to_do_with_jax():
    with pytest.raises(ValueError, match=r"parameter 'm' must be float64, but float32 was provided$"):
        System(plain, coordinates=("x",), parameters={"m": np.float32(1)})
    with pytest.raises(ValueError, match="float32 was provided; import noslip before making JAX arrays"):
        System(plain, coordinates=("x",), parameters={"m": jnp.float32(1)})
