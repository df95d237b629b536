"""Chaplygin's multiplier: when the reduced motion is Hamiltonian in a time dtau = f(r) dt (FBO section 3).

For d = 2 this is the theorem of Chaplygin 1911. The Euler-Lagrange equations of Lc(r, r') = l_c(r, f r') in
tau are the reduced equations (5) just if

    F_a = (omega_a p_b - omega_b p_a) rdot^b,      omega = d ln f,   p = dl_c/drdot = G rdot + a

With F = -(J_c rdot^c + J_0) B_ab rdot^b, J = d(dl/dxi)/drdot (group indices not written), the trace of the
quadratic terms by G^bc gives the only candidate, in any dimension d of M,

    omega_a = -G^bc J_c B_ab / (d - 1)

(for d = 2 these are d_1 ln f = K_c G^c2, d_2 ln f = -K_c G^c1). What must hold besides: the equation above
itself, for the quadratic terms (automatic for d = 2) and for the linear ones, where it reads
-J_0 B_ab = omega_a a_b - omega_b a_a; d omega = 0; and for a multiplier on all of M that the integrals of
omega over the declared angles vanish. Where they do not, f exists on the covering space: it gains a factor
with every turn, and a method that carries ln f along the path may use it all the same. The reduced flow has
the invariant measure f^(d-1) dr dp, p = dl_c/drdot. A term of L that is a total derivative changes l_c and so
the conditions, though not the motion.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.engine.kept import jitted
from noslip.errors import NotHamiltonizable
from noslip.geometry.chaplygin import Reduction, reduction, rounded, unseen
from noslip.geometry.groups import Group
from noslip.numerics.discrete_gradients import gauss
from noslip.numerics.linear import spd_solve
from noslip.numerics.pytrees import PyTree
from noslip.numerics.tracing import is_traced
from noslip.system import System
from noslip.system.conditions import around

SAMPLES = 8
TOLERANCE = 1e-8
PATH_NODES = 6  # of Gauss's rule in each part of a path, of which there are as many as the integral asks for
MOST_PARTS, AGREED = 64, 1e-12  # the change from half as many parts, at which the better one is at round-off
LOOKS, HALVINGS = 8, 8  # parts of a path in which a zero of f is looked for, and how closely
POLE = 0.25  # of omega at a zero of f: its order is at least twice this


@dataclass(frozen=True)
class Hamiltonization:
    """What Chaplygin's theorem makes of a reduced system. Made by `hamiltonize`, which checks it.

    The multiplier is normalised to 1 at a point `start`, since it is determined up to a factor only.
    """

    reduced: Reduction

    # ---- the multiplier ---------------------------------------------------------------------------
    def omega(self, r: Array) -> Array:
        """d ln f, from metric and curvature alone."""
        return _omega(self.reduced.group, self.reduced.system, r)

    def log_ratio(self, start: Array, r: Array) -> Array:
        """ln f(r) - ln f(start), along the straight path; to round-off for points that are near."""
        return _log_ratio(self.reduced.group, self.reduced.system, start, r)

    def vanishes_on_the_way(self, r: Array, d: Array) -> Array:
        """Whether f has a zero between r and r + d: there d ln f goes to minus infinity and comes back from
        plus infinity, while at a minimum of f it passes through zero. A sign that changes from - to + is
        bracketed ever more closely; near a pole the width times d ln f does not become small."""

        def slope(s: Array) -> Array:
            return jnp.dot(self.omega(r + s * d), d)

        s = jnp.linspace(0.0, 1.0, LOOKS + 1)
        g = lax.map(slope, s)
        rises = jnp.where((g[:-1] < 0) & (g[1:] > 0), jnp.minimum(-g[:-1], g[1:]), 0.0)
        k = jnp.argmax(rises)

        def halve(_: Array, ends: tuple[Array, ...]) -> tuple[Array, ...]:
            low, high, g_low, g_high = ends
            middle = (low + high) / 2
            g = slope(middle)
            return tuple(
                jnp.where(g < 0, x, y)
                for x, y in zip((middle, high, g, g_high), (low, middle, g_low, g), strict=True)
            )

        low, high, g_low, g_high = lax.fori_loop(0, HALVINGS, halve, (s[k], s[k + 1], g[k], g[k + 1]))
        pole = (high - low) * jnp.minimum(-g_low, g_high) > POLE
        return (rises[k] > 0) & pole | ~jnp.all(jnp.isfinite(g))

    def multiplier(self, start: Array, r: Array) -> Array:
        """f(r) with f(start) = 1; the system's own `multiplier` where it has one."""
        given, reduced = self.reduced.system.multiplier, self.reduced
        if given is None:
            return jnp.exp(self.log_ratio(start, r))
        p = reduced.system.parameters
        return given(reduced.at(r), p) / given(reduced.at(start), p)

    def measure(self, start: Array, r: Array) -> Array:
        """Density f^(d-1) of the invariant measure with respect to dr dp, p = G rdot."""
        return self.multiplier(start, r) ** (len(self.reduced.base) - 1)

    # ---- what it makes of the system --------------------------------------------------------------
    def lagrangian(self, start: Array, r: Array, slope: Array) -> Array:
        """Lc(r, r') = l_c(r, f r')."""
        return self.reduced.constrained_lagrangian(r, self.multiplier(start, r) * slope)

    def momentum(self, start: Array, r: Array, w: Array) -> Array:
        """P = dLc/dr' = f dl_c/drdot."""
        return self.multiplier(start, r) * self.reduced.momentum(r, w)

    def hamiltonian(self, start: Array, r: Array, P: Array) -> Array:
        """Hc(r, P) = P G^-1 P / (2 f^2) + V, the energy."""
        w = self.reduced.velocity(r, P / self.multiplier(start, r))
        q = self.reduced.at(r)
        return self.reduced.system.energy(q, self.reduced.lift(q, w))

    def poincare_lagrangian(self, start: Array, r: Array, w: Array, energy: Array | float) -> Array:
        """f (l_c + E), (44)."""
        return self.multiplier(start, r) * (self.reduced.constrained_lagrangian(r, w) + energy)

    # ---- its conditions ---------------------------------------------------------------------------
    def algebraic_defect(self, r: Array) -> Array:
        """What the equation for omega leaves over, relative to the terms of the reaction."""
        reduced, omega, G = self.reduced, self.omega(r), self.reduced.metric(r)
        J, B = reduced.group_inertia(r), reduced.curvature(r)
        reaction, terms = (jnp.einsum("ak,aij->ijk", f(J), f(B)) for f in (jnp.asarray, jnp.abs))
        left = reaction + jnp.einsum("i,jk->ijk", omega, G) - jnp.einsum("j,ik->ijk", omega, G)
        return jnp.max(jnp.abs(left + jnp.swapaxes(left, 1, 2))) / (jnp.max(terms) + 1e-300)

    def integrability_defect(self, r: Array) -> Array:
        """The largest component of d omega."""
        slopes = jax.jacfwd(self.omega)(r)
        return jnp.max(jnp.abs(slopes - slopes.T))

    def turn_factors(self, r: Array, panels: int = 64) -> Mapping[str, float]:
        """By how much f is multiplied after a whole turn of each declared base angle, from the point r;
        1 where f is single valued, NaN where f has zeros or poles on the way."""
        factors = {}
        for i in self.reduced.base_angles:
            factors[self.reduced.base[i]] = self._turn_factor(r, i, panels)
        return factors

    def _turn_factor(self, r: Array, i: int, panels: int) -> float:
        integrals = []
        for count in (panels, 3 * panels):
            path = np.tile(np.asarray(r, dtype=float), (count, 1))
            path[:, i] += 2 * np.pi * np.arange(count) / count
            omega = evaluate_anyhow(_omega, self.reduced.group, self.reduced.system, path)
            integrals.append(2 * np.pi * float(np.mean(omega[:, i])))
        coarse, fine = integrals
        return float(np.exp(fine)) if abs(fine - coarse) < 1e-6 * (1 + abs(fine)) else float("nan")


@functools.partial(jitted, static=("group",))
def _omega(group: Group, system: System, r: Array) -> Array:
    reduced = Reduction(system, group)
    d = len(reduced.base)
    if d == 1:
        return jnp.zeros(1)
    raised = spd_solve(reduced.metric(r), reduced.group_inertia(r).T)
    return -jnp.einsum("ba,aib->i", raised, reduced.curvature(r)) / (d - 1)


def _part(group: Group, system: System, start: Array, r: Array, low: Array, width: Array) -> Array:
    """The integral of omega over a part of the straight path from start to r."""
    offsets, weights = gauss(PATH_NODES)
    d, middle = r - start, low + width / 2
    slopes = lax.map(lambda c: jnp.dot(_omega(group, system, start + (middle + c * width) * d), d), offsets)
    return width * jnp.dot(jnp.asarray(weights), slopes)


@functools.partial(jitted, static=("group",))
def _path_integral(group: Group, system: System, start: Array, r: Array) -> Array:
    def integral(parts: Array) -> Array:
        def add(k: Array, total: Array) -> Array:
            return total + _part(group, system, start, r, k / parts, 1 / parts)

        return lax.fori_loop(0, parts.astype(int), add, jnp.zeros(()))

    def unsettled(x: tuple[Array, Array, Array]) -> Array:
        parts, before, now = x
        return (parts < MOST_PARTS) & ~(jnp.abs(now - before) <= AGREED * (1 + jnp.abs(now)))

    def refine(x: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        parts, _, now = x
        return 2 * parts, now, integral(2 * parts)

    nothing = jnp.array(jnp.nan)
    return lax.while_loop(unsettled, refine, (jnp.array(0.5), nothing, nothing))[2]


def _parameter_slope(group: Group, system: System, direction: System, start: Array, r: Array) -> Array:
    """How the integral changes with the parameters, by the most parts: a sum that can be transposed."""

    def part(low: Array) -> Array:
        def value(s: System) -> Array:
            return _part(group, s, start, r, low, jnp.array(1 / MOST_PARTS))

        return jax.jvp(value, (system,), (direction,))[1]

    return jnp.sum(lax.map(part, jnp.arange(MOST_PARTS) / MOST_PARTS))


_log_ratio = jax.custom_jvp(_path_integral, nondiff_argnums=(0,))


@functools.partial(_log_ratio.defjvp, symbolic_zeros=True)
def _log_ratio_jvp(
    group: Group, primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]
) -> tuple[Array, Array]:
    """omega is closed, so that the ends alone matter; parameters change it along the whole path."""
    (system, start, r), (parameters, *ends) = primals, tangents
    out, change = _log_ratio(group, system, start, r), jnp.zeros(())
    for point, tangent, sign in zip((start, r), ends, (-1, 1), strict=True):
        if not isinstance(tangent, SymbolicZero):
            change = change + sign * jnp.dot(_omega(group, system, point), tangent)
    leaves, moved = (
        jax.tree.leaves(system),
        jax.tree.leaves(parameters, is_leaf=lambda x: isinstance(x, SymbolicZero)),
    )
    if any(not isinstance(x, SymbolicZero) for x in moved):
        full = [
            jnp.zeros_like(x) if isinstance(dx, SymbolicZero) else dx
            for x, dx in zip(leaves, moved, strict=True)
        ]
        direction = jax.tree.unflatten(jax.tree.structure(system), full)
        change = change + _parameter_slope(group, system, direction, start, r)
    return out, change


def hamiltonize(
    system: System, group: Group | str = "translations", *, at: Sequence[float] | np.ndarray | None = None
) -> Hamiltonization:
    """The Hamiltonization of a Chaplygin system, or `NotHamiltonizable` with the defect, at or around the
    point `at` of Q, or without one at a few points of [-1, 1]^n."""
    reduced = reduction(system, group, at=at)
    if reason := refusal(reduced, at):
        raise NotHamiltonizable(f"not Hamiltonizable: {reason}")
    return Hamiltonization(reduced)


def refusal(
    reduced: Reduction, at: Sequence[float] | np.ndarray | None = None, *, must_be_seen: bool = True
) -> str | None:
    """None, or one sentence: which condition for a multiplier fails, where and by how much; `at` is a point
    of Q, and the rest is as for `chaplygin.refusal`."""
    system = reduced.system
    if system.force is not None:
        return "an applied force has no Hamiltonian, but this system has a `force`"
    if is_traced(system):
        return None
    r = np.random.default_rng(1).uniform(-1.0, 1.0, (SAMPLES, len(reduced.base)))
    r = r if at is None else around(np.asarray(at, float)[reduced.base_index], SAMPLES)
    found = evaluate_anyhow(_conditions, reduced.group, system, r)
    seen = np.all([np.isfinite(x) for pair in found.values() for x in pair], axis=0)
    if not (seen.any() if at is None else seen[0]):
        return unseen("the conditions for a multiplier f(r) are", at) if must_be_seen else None
    texts = {
        "gyroscopic": "the terms of the Lagrangian linear in the velocities leave the defect {size:.1e}",
        "algebraic": "the reaction must come from one f(r), but misses that by {size:.1e} of its terms",
        "integrability": "the integrability defect |d(d ln f)| is {size:.3g}",
        "multiplier": "the system's `multiplier` must have d ln f = omega, but misses that by {size:.1e}",
        "periodicity": "the system's `multiplier` must be 2 pi-periodic in the declared angles, but changes "
        "by {size:.1e}; leave it out, and f is found and carried along the path",
    }
    for name, text in texts.items():
        # judged relative to the sizes of the terms, told as they are
        sizes, scales = (np.where(seen, x, 0.0) for x in found[name])
        worst = int(np.argmax(sizes - TOLERANCE * scales))
        if sizes[worst] > TOLERANCE * scales[worst]:
            where = ", ".join(f"{n} = {x}" for n, x in zip(reduced.base, rounded(r[worst]), strict=True))
            return f"{text.format(size=sizes[worst])} at {where}"
    return None


def _conditions(group: Group, system: System, r: Array) -> dict[str, tuple[Array, Array]]:
    """Each defect with the size against which it is judged."""
    made = Hamiltonization(Reduction(system, group))
    reduced, one, zero = made.reduced, jnp.ones(()), jnp.zeros(())
    # of omega before its terms cancel, which they may do exactly
    raised = jnp.abs(spd_solve(reduced.metric(r), reduced.group_inertia(r).T))
    size = jnp.max(jnp.einsum("ba,aib->i", raised, jnp.abs(reduced.curvature(r))))
    omega, a, J0 = (
        made.omega(r),
        *(f(r, jnp.zeros_like(r)) for f in (reduced.momentum, reduced.group_momentum)),
    )
    push = [jnp.einsum("a,aij->ij", f(J0), f(reduced.curvature(r))) for f in (jnp.asarray, jnp.abs)]
    linear = push[0] + jnp.outer(omega, a) - jnp.outer(a, omega)
    found = {
        "gyroscopic": (jnp.max(jnp.abs(linear)), jnp.max(push[1]) + size * jnp.max(jnp.abs(a))),
        "algebraic": (made.algebraic_defect(r), one),
        "integrability": (
            made.integrability_defect(r),
            size**2 + jnp.max(jnp.abs(jax.jacfwd(made.omega)(r))),
        ),
        "multiplier": (zero, one),
        "periodicity": (zero, one),
    }
    if system.multiplier is not None:
        slope = jax.grad(lambda x: jnp.log(jnp.abs(made.multiplier(r, x))))(r)
        found["multiplier"] = jnp.max(jnp.abs(slope - made.omega(r))), size + jnp.max(jnp.abs(slope))
        turns = [made.multiplier(r, r.at[i].add(2 * jnp.pi)) for i in reduced.base_angles]
        found["periodicity"] = jnp.max(jnp.abs(jnp.array([1.0, *turns]) - 1)), one
    return found
