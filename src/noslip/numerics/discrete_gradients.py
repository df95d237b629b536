"""Discrete gradients, CFHM (11)-(13), anchored so that their errors do not add up.

Between x and x' = x + d a discrete gradient of H satisfies gbar . d = H(x') - H(x) (10a) and tends to the
gradient (10b). Here H(x) is replaced by an anchor E that a caller carries along: for any approximation g

    gbar = g + (H(x') - E - g . d) / (d . d*) d*

so that gbar . d = H(x') - E whatever rounding or quadrature did to g. d* is a covector that depends on d
linearly, in CFHM d itself. The quotient loses its digits where d is small; what it then consists of, noise
of size eps S, is cut off by a soft threshold (`noise`).

- gonzalez (12), Gonzalez 1996: g = gradient at the middle. Its numerator is of third order in d; by
  Simpson's rule
      H(x') - H(x) - g . d = (g0 + g1 - 2 g) . d / 6 + rest
  of which the first part has all its digits and only the rest, of fifth order, goes through the threshold.
- mean_value (11), Harten et al. 1983: Gauss's rule for the mean of the gradient; the quadrature defect goes
  into the quotient. Methods from it are those of McLachlan et al. 1999.
- coordinate_increment (13), Itoh, Abe 1988: component i is the difference of H while x_i alone moves, over
  d_i. It is written as the mean of dH/dx_i by Gauss's rule, which is all there is where x_i' = x_i, and the
  quotient of what that rule leaves over, where it is more than noise. So it is the printed formula however
  steep H is, and no digits are lost where x_i nearly rests.
- symmetrized_coordinate_increment: the mean of (13) and of (13) with x and x' exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

EPS = float(np.finfo(float).eps)
NOISE = 4 * EPS  # of the difference of two energies, relative to their size
SMALL = 1e-4  # the noise of energies is felt in the quotient where the motion exchanges less than this part
TINY = 1e-290  # squares below this, of bodies that friction has stopped, have lost their digits
GRADIENTS = ("gonzalez", "mean_value", "coordinate_increment", "symmetrized_coordinate_increment")


@dataclass(frozen=True)
class Step:
    """From x by d: the anchor E, what `Energy.bend` needs to know at x (the gradient, if nothing else is
    said there), and the threshold below which energies are noise."""

    x: Array
    d: Array
    E: Array
    g0: Array
    noise: Array


class Energy(Protocol):
    """A function with what discrete gradients need: derivatives, the covector d* of an increment, and for
    Gonzalez, from the gradient g in the middle, g . d, H(x') and the third-order part of
    H(x') - H(x) - g . d."""

    def energy(self, z: Array) -> Array: ...
    def gradient(self, z: Array) -> Array: ...
    def energy_and_slope(self, z: Array, d: Array) -> tuple[Array, Array]: ...
    def dual(self, d: Array) -> Array: ...
    def bend(self, step: Step, middle: Array) -> tuple[Array, Array, Array]: ...


@dataclass(frozen=True)
class Function:
    """Any differentiable function as an `Energy`."""

    energy: Callable[[Array], Array]

    def gradient(self, z: Array) -> Array:
        return jax.grad(self.energy)(z)

    def energy_and_slope(self, z: Array, d: Array) -> tuple[Array, Array]:
        return jax.jvp(self.energy, (z,), (d,))

    def dual(self, d: Array) -> Array:
        return d

    def bend(self, step: Step, middle: Array) -> tuple[Array, Array, Array]:
        return simpson(self, step, middle)


def simpson(H: Energy, step: Step, middle: Array) -> tuple[Array, Array, Array]:
    """g . d, H(x'), and by Simpson's rule the third-order part of H(x') - H(x) - g . d."""
    slope = jnp.dot(middle, step.d)
    H1, end_slope = H.energy_and_slope(step.x + step.d, step.d)
    return slope, H1, sixth(jnp.dot(step.g0, step.d) + end_slope - 2 * slope)


def sixth(x: Array) -> Array:
    """x / 6, but for the last bit: a product has its result in a third of the time."""
    return x * (1 / 6)


def noise(S: Array, K: Array) -> Array:
    """The threshold: 4 eps S near rest, S the size of the energies; nothing where K, the size of those that
    the motion exchanges, is not small: there noise does no harm, and the energy is exact without it."""
    square = S**2  # 0 also for energies of 1e-170, of bodies that friction has stopped
    return NOISE * S * square / jnp.where(square > 0, square + (K / SMALL) ** 2, 1.0)


def soft(x: Array, threshold: Array) -> Array:
    """x moved towards 0 by the threshold; its derivative is 1 also inside, where x is noise."""
    return x - lax.stop_gradient(jnp.clip(x, -threshold, threshold))


def reciprocal(square: Array) -> Array:
    """1 / square of an increment, 0 where that has no digits. What is divided does not wait for it."""
    large = square > TINY
    return jnp.where(large, 1 / jnp.where(large, square, 1.0), 0.0)


def along(H: Energy, d: Array, numerator: Array) -> Array:
    """numerator / (d . d*) d*, zero at d = 0."""
    dual = H.dual(d)
    return numerator * reciprocal(jnp.dot(d, dual)) * dual


def gonzalez(H: Energy, step: Step, middle: Array) -> Array:
    """CFHM (12); `middle` is the gradient at x + d / 2."""
    g_d, H1, bend = H.bend(step, middle)
    return middle + along(H, step.d, bend + soft(H1 - step.E - (g_d + bend), step.noise))


def mean_value(H: Energy, step: Step, nodes: int) -> Array:
    """CFHM (11) by Gauss's rule."""
    c, b = gauss(nodes)
    middle = step.x + step.d / 2
    return anchored(H, step, mean(b, jax.vmap(lambda c: H.gradient(middle + c * step.d))(c)))


def coordinate_increment(H: Energy, step: Step, nodes: int, symmetrized: bool = False) -> Array:
    """CFHM (13); symmetrized, the mean of it and of it with x and x' exchanged."""
    size = step.x.size
    moved = np.tril(np.ones((size + 1, size)), -1)  # row i: the first i coordinates have moved
    g = quotients(H, step, nodes, moved)
    if symmetrized:
        g = (g + quotients(H, step, nodes, 1 - moved)) / 2  # from x' back to x
    return anchored(H, step, g)


def quotients(H: Energy, step: Step, nodes: int, moved: np.ndarray) -> Array:
    """The differences of H along a path on which one coordinate after the other moves, over their d_i.
    H is known up to eps (|E| + sum |x_i dH/dx_i|), whatever the units."""
    c, b = gauss(nodes)
    ends = jax.vmap(lambda s: H.energy(step.x + s * step.d))(jnp.asarray(moved))
    before, after = moved[:-1, None, :], moved[1:, None, :]
    inner = (before + after) / 2 + c[:, None] * (after - before)
    axes = np.broadcast_to(np.eye(step.x.size)[:, None, :], inner.shape)
    partial = jax.vmap(jax.vmap(lambda s, e: H.energy_and_slope(step.x + s * step.d, e)[1]))
    slopes = mean(b, partial(jnp.asarray(inner), jnp.asarray(axes)).T)
    signs = np.sum(moved[1:] - moved[:-1], axis=1)
    level = NOISE * lax.stop_gradient(jnp.abs(step.E) + jnp.sum(jnp.abs(step.x * step.g0)))
    rest = soft(signs * jnp.diff(ends) - slopes * step.d, level)
    return slopes + rest / jnp.where(step.d != 0, step.d, 1.0)


def mean(weights: np.ndarray, values: Array) -> Array:
    """The weighted mean of rows, as differences to one of them: weights whose sum is not 1 to the last bit
    would otherwise shift energy from one part of a system to another, always in the same direction."""
    middle = values[len(weights) // 2]
    return middle + weights @ (values - middle)


def anchored(H: Energy, step: Step, g: Array) -> Array:
    """g with g . d = H(x + d) - E."""
    defect = H.energy(step.x + step.d) - step.E - jnp.dot(g, step.d)
    return g + along(H, step.d, soft(defect, step.noise))


def discrete_gradient(name: str, H: Energy, step: Step, middle: Array | None = None, nodes: int = 5) -> Array:
    """The discrete gradient of that name; `middle`, if known, saves Gonzalez a gradient."""
    if name == "gonzalez":
        return gonzalez(H, step, H.gradient(step.x + step.d / 2) if middle is None else middle)
    if name == "mean_value":
        return mean_value(H, step, nodes)
    return coordinate_increment(H, step, nodes, symmetrized=name.startswith("symmetrized"))


def gauss(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes, as distances from the middle, and weights of Gauss's rule on [0, 1]; symmetric to the bit."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return x / 2, w / 2
