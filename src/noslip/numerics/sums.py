"""Sums that keep a long run exact, and averages."""

from __future__ import annotations

from typing import Self

import jax.numpy as jnp
from jax import Array

from noslip.numerics.pytrees import pytree


@pytree
class Sum:
    """A running sum that remembers what rounding cut off (Moeller 1965; Kahan 1965)."""

    value: Array
    low: Array

    @classmethod
    def start(cls, value: Array) -> Self:
        return cls(value, jnp.zeros_like(value))

    def plus(self, increment: Array | float) -> Sum:
        y = increment + self.low
        s = self.value + y
        back = s - self.value
        return Sum(s, (self.value - (s - back)) + (y - back))


def average(values: list[Array]) -> Array:
    """Of the nodes or maps that a method averages over."""
    return sum(values[1:], values[0]) / len(values)
