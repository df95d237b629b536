"""The symmetry groups of Chaplygin systems, acting on the fibre coordinates by left multiplication.

A group is its product, in coordinates s in which the identity is 0. With g the group element and
xi = g^-1 gdot its velocity in the body, the coordinates of g move by

    sdot = E(s) xi                      left-invariant fields, the columns of E, E(identity) = 1
    [e_b, e_c] = C_bc^a e_a             structure constants at [a, b, c]
    f = exp(h xi) approximately         a retraction with retract(-xi) = retract(xi)^-1

- `Translations`: R^i x T^(k-i), s' = s + a, on any coordinates.
- `Planar`: SE(2) on (x, y, angle). The retraction moves along the mean heading: by R(angle / 2) (u, w).
- `Rotations`: SO(3) on s = 4 tan(angle / 4) axis, a chart that ends after a whole turn; all is rational.
- `Product`: several of them side by side.
- one's own: a frozen dataclass derived from `Group` with `fibre`, `multiply` and `inverse`. All else follows
  from these, and may be given in closed form; `broken_axiom` says what is not as it must be.

A text names a group: `planar`, on the fibre of the system; `translations(y, phi)`, on those coordinates; and
`planar(x, y, theta) * translations(z)`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry.lie_algebra import SE2, SO3
from noslip.numerics.linear import solve

NEWTON_STEPS = 6
TOLERANCE = 1e-10


class Group:
    """A Lie group in coordinates about its identity, which is 0. Subclasses are hashable by value."""

    fibre: tuple[str, ...]
    """The names of the coordinates that the group acts on."""
    name: ClassVar[str] = ""
    size: ClassVar[int | None] = None
    """How many coordinates it has, where that is the same for all of its kind."""

    def multiply(self, g: Array, f: Array) -> Array:
        """The coordinates of g f."""
        raise NotImplementedError(f"{type(self).__name__} must define multiply")

    def inverse(self, g: Array) -> Array:
        """The coordinates of g^-1."""
        raise NotImplementedError(f"{type(self).__name__} must define inverse")

    # ---- what follows from these ------------------------------------------------------------------
    @property
    def dimension(self) -> int:
        return len(self.fibre) if self.size is None else self.size

    @property
    def action(self) -> str:
        """What the group does, in words."""
        return f"{self.name or type(self).__name__} of {self.fibre}"

    @property
    def structure_constants(self) -> np.ndarray:
        """C_bc^a at [a, b, c]."""
        return _skew_part(self)

    def displacement(self, s: Array, f: Array) -> Array:
        """s(g f) - s(g)."""
        return self.multiply(s, f) - s

    def relative(self, s: Array, s1: Array) -> Array:
        """f = g^-1 g1."""
        return self.multiply(self.inverse(s), s1)

    def body_fields(self, s: Array) -> Array:
        """E(s), whose columns are the left-invariant fields."""
        return jax.jacfwd(self.multiply, 1)(s, jnp.zeros(self.dimension))

    def space_fields(self, s: Array) -> Array:
        """The right-invariant fields, which generate the action, as columns."""
        return jax.jacfwd(self.multiply, 0)(jnp.zeros(self.dimension), s)

    def body_velocity(self, s: Array, sdot: Array) -> Array:
        """xi = g^-1 gdot, for those who write a Lagrangian."""
        return solve(self.body_fields(s), sdot)

    def retract(self, xi: Array) -> Array:
        """The group element reached with about the constant velocity xi in unit time."""
        return self.multiply(xi / 2, self.inverse(-xi / 2))

    def unretract(self, f: Array) -> Array:
        """The inverse of `retract`; here by Newton's method, good for steps well inside the chart."""
        xi = f
        for _ in range(NEWTON_STEPS):
            xi = xi - solve(jax.jacfwd(self.retract)(xi), self.retract(xi) - f)
        return xi


@dataclass(frozen=True)
class Translations(Group):
    """The abelian group of the coordinates `fibre`."""

    fibre: tuple[str, ...]

    name = "translations"

    def multiply(self, g: Array, f: Array) -> Array:
        return g + f

    def inverse(self, g: Array) -> Array:
        return -g

    @property
    def structure_constants(self) -> np.ndarray:
        return np.zeros(3 * (self.dimension,))

    def body_fields(self, s: Array) -> Array:
        return jnp.eye(self.dimension)

    def space_fields(self, s: Array) -> Array:
        return jnp.eye(self.dimension)

    def retract(self, xi: Array) -> Array:
        return xi

    def unretract(self, f: Array) -> Array:
        return f

    def displacement(self, s: Array, f: Array) -> Array:
        return f

    def relative(self, s: Array, s1: Array) -> Array:
        return s1 - s


@dataclass(frozen=True)
class Planar(Group):
    """SE(2): rigid motions of the plane; `fibre` names x, y and the heading."""

    fibre: tuple[str, ...]

    name = "planar"
    size = 3

    @property
    def structure_constants(self) -> np.ndarray:
        return SE2.transpose(2, 0, 1)

    @property
    def action(self) -> str:
        return f"planar motions of {self.fibre}"

    def multiply(self, g: Array, f: Array) -> Array:
        return g + self.displacement(g, f)

    def inverse(self, g: Array) -> Array:
        return -self.body_fields(-g) @ g

    def body_fields(self, s: Array) -> Array:
        c, n = jnp.cos(s[2]), jnp.sin(s[2])
        return jnp.array([[c, -n, 0.0], [n, c, 0.0], [0.0, 0.0, 1.0]])

    def space_fields(self, s: Array) -> Array:
        return jnp.array([[1.0, 0.0, -s[1]], [0.0, 1.0, s[0]], [0.0, 0.0, 1.0]])

    def retract(self, xi: Array) -> Array:
        return self.body_fields(xi / 2) @ xi

    def unretract(self, f: Array) -> Array:
        return self.body_fields(-f / 2) @ f

    def displacement(self, s: Array, f: Array) -> Array:
        return self.body_fields(s) @ f

    def relative(self, s: Array, s1: Array) -> Array:
        return self.body_fields(-s) @ (s1 - s)


@dataclass(frozen=True)
class Rotations(Group):
    """SO(3); `fibre` names the three coordinates s = 4 tan(angle / 4) axis."""

    fibre: tuple[str, ...]

    name = "rotations"
    size = 3

    @property
    def structure_constants(self) -> np.ndarray:
        return SO3.transpose(2, 0, 1)

    def multiply(self, g: Array, f: Array) -> Array:
        return g + self.displacement(g, f)

    def inverse(self, g: Array) -> Array:
        return -g

    def displacement(self, s: Array, f: Array) -> Array:
        a, b = s / 4, f / 4  # written as a difference, so that a short step keeps its digits
        aa, bb, ab = jnp.dot(a, a), jnp.dot(b, b), jnp.dot(a, b)
        moved = (1 - aa) * b + 2 * jnp.cross(a, b) + (2 * ab - bb * (1 + aa)) * a
        return 4 * moved / (1 + aa * bb - 2 * ab)

    def body_fields(self, s: Array) -> Array:
        square, turn = jnp.dot(s, s), jnp.einsum("ijk,j->ki", SO3, s)  # turn @ x = x cross s
        return (1 - square / 16) * jnp.eye(3) - turn / 2 + jnp.outer(s, s) / 8

    def space_fields(self, s: Array) -> Array:
        return self.body_fields(s).T

    def retract(self, xi: Array) -> Array:
        return xi

    def unretract(self, f: Array) -> Array:
        return f


@dataclass(frozen=True, init=False)
class Product(Group):
    """The product of groups, each on coordinates of its own."""

    parts: tuple[Group, ...]

    name = "product"

    def __init__(self, *parts: Group) -> None:
        object.__setattr__(self, "parts", parts)

    @property
    def fibre(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for part in self.parts for name in part.fibre)

    @property
    def dimension(self) -> int:
        return sum(part.dimension for part in self.parts)

    @property
    def action(self) -> str:
        return " and ".join(part.action for part in self.parts)

    @property
    def structure_constants(self) -> np.ndarray:
        whole, first = np.zeros(3 * (self.dimension,)), 0
        for part in self.parts:
            own = slice(first, first + part.dimension)
            whole[own, own, own] = part.structure_constants
            first += part.dimension
        return whole

    def _each(self, method: str, *vectors: Array) -> list[Array]:
        ends = np.cumsum([part.dimension for part in self.parts])[:-1]
        pieces = zip(*(jnp.split(jnp.asarray(x), ends) for x in vectors), strict=True)
        return [getattr(part, method)(*own) for part, own in zip(self.parts, pieces, strict=True)]

    def multiply(self, g: Array, f: Array) -> Array:
        return jnp.concatenate(self._each("multiply", g, f))

    def inverse(self, g: Array) -> Array:
        return jnp.concatenate(self._each("inverse", g))

    def displacement(self, s: Array, f: Array) -> Array:
        return jnp.concatenate(self._each("displacement", s, f))

    def relative(self, s: Array, s1: Array) -> Array:
        return jnp.concatenate(self._each("relative", s, s1))

    def retract(self, xi: Array) -> Array:
        return jnp.concatenate(self._each("retract", xi))

    def unretract(self, f: Array) -> Array:
        return jnp.concatenate(self._each("unretract", f))

    def body_fields(self, s: Array) -> Array:
        return jax.scipy.linalg.block_diag(*self._each("body_fields", s))

    def space_fields(self, s: Array) -> Array:
        return jax.scipy.linalg.block_diag(*self._each("space_fields", s))


GROUPS = {cls.name: cls for cls in (Translations, Planar, Rotations)}


# ---- groups from texts and back -----------------------------------------------------------------------
def parse(text: str, fibre: tuple[str, ...] | None = None) -> Group:
    """The group that a text names, on the coordinates in it or, for a single name, on `fibre`."""
    parts = []
    for term in (terms := text.split("*")):
        found = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", term)
        if found is None or found[1] not in GROUPS or (found[2] is None and len(terms) > 1):
            raise ValueError(
                f"`group` must be one of {', '.join(GROUPS)}, or like translations(y, phi), or a product "
                f"like planar(x, y, theta) * translations(z), but '{text}' was provided"
            )
        names = fibre if found[2] is None else tuple(name.strip() for name in found[2].split(","))
        parts.append(GROUPS[found[1]](names or ()))
    return parts[0] if len(parts) == 1 else Product(*parts)


def spelled(group: Group | str) -> Group | str:
    """The text of a group of this file, the same for equal groups; a group of one's own as it is."""
    if isinstance(group, str):
        made = parse(group)
        return spelled(made) if made.fibre else made.name
    parts = group.parts if isinstance(group, Product) else (group,)
    text = " * ".join(f"{part.name}({', '.join(part.fibre)})" for part in parts)
    try:
        return text if parse(text) == group else group
    except ValueError:
        return group


# ---- what makes it a group ----------------------------------------------------------------------------
@functools.lru_cache(maxsize=64)
def _skew_part(group: Group) -> np.ndarray:
    """The structure constants: what is skew in the second derivative of the product."""
    with jax.ensure_compile_time_eval():
        zero = np.zeros(group.dimension)
        second = np.asarray(jax.jit(jax.jacfwd(jax.jacfwd(group.multiply, 0), 1))(zero, zero))
    return second - second.transpose(0, 2, 1)


@functools.lru_cache(maxsize=64)
def broken_axiom(group: Group) -> str | None:
    """None, or one sentence: what fails, and by how much, at random elements near the identity. The products
    of this file are tested; what a user wrote is looked at here."""
    if len(set(group.fibre)) != group.dimension or len(group.fibre) != group.dimension:
        what = type(group).__name__ if group.name in ("", "product") else f"the {group.name} group"
        return f"{what} needs {group.dimension} different coordinates, but {group.fibre} was provided"
    parts = group.parts if isinstance(group, Product) else (group,)
    for part in parts:
        if part.name not in GROUPS or type(part) is not GROUPS[part.name]:
            for name, size in axiom_defects(part).items():
                if not size <= TOLERANCE:
                    return f"{type(part).__name__} must be a group, but {name} fails by {size:.1e}"
    return None


def axiom_defects(group: Group) -> dict[str, float]:
    """By how much each condition on a group fails, at random elements near the identity."""
    near = np.random.default_rng(2).uniform(-0.3, 0.3, (3, 1, group.dimension))
    found = evaluate_anyhow(_axioms, group, (), *near)
    return {name: float(np.max(np.abs(x))) for name, x in found.items()}


def _axioms(group: Group, _: tuple[()], a: Array, b: Array, c: Array) -> dict[str, Array]:
    times, zero = group.multiply, jnp.zeros_like(a)
    first = jax.jacfwd(group.retract)(zero)
    return {
        "0 f = f": times(zero, a) - a,
        "g 0 = g": times(a, zero) - a,
        "g g^-1 = 0": times(a, group.inverse(a)),
        "(a b) c = a (b c)": times(times(a, b), c) - times(a, times(b, c)),
        "displacement": group.displacement(a, b) - times(a, b) + a,
        "relative": times(a, group.relative(a, b)) - b,
        "body_fields": group.body_fields(a) - jax.jacfwd(times, 1)(a, zero),
        "space_fields": group.space_fields(a) - jax.jacfwd(times, 0)(zero, a),
        "structure_constants": group.structure_constants - _skew_part(group),
        "retract(-xi) = retract(xi)^-1": times(group.retract(a), group.retract(-a)),
        "retract(xi) = xi + ...": first - jnp.eye(len(a)),
        "unretract": group.retract(group.unretract(a)) - a,
    }


def make(group: Group | str, fibre: tuple[str, ...]) -> Group:
    """A group from what a user may give: itself, or a text, on `fibre` where that names no coordinates."""
    if isinstance(group, Group):
        return group
    if not isinstance(group, str):
        raise ValueError(f"`group` must be a text or derived from Group, but {group!r} was provided")
    return parse(group, fibre)
