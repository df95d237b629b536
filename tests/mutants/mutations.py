"""Wrong formulas, each one change of a right one: a sign, a weight, an index, a place or a time.

Every file of a method, every file of the geometry and the embedding has at least one. They are changes of the
papers' equations, not of plumbing, and of such kind that a run still looks like a motion.
"""

from __future__ import annotations

from dataclasses import dataclass

INTEGRATORS, FAMILIES, GEOMETRY = (
    "src/noslip/integrators",
    "src/noslip/integrators/families",
    "src/noslip/geometry",
)


@dataclass(frozen=True)
class Mutation:
    """`old`, which is once in `file`, becomes `new`; `tests` are what to tell pytest, quick ones first."""

    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.file.removeprefix("src/noslip/").removesuffix(".py")

    def applied(self, source: str) -> str:
        """The file with the wrong formula."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.file} must have `{self.old}` once, but has it {source.count(self.old)} times"
            )
        return source.replace(self.old, self.new)


def claims(words: str) -> str:
    """The claims tests whose method and system have these words."""
    return f"integrators/test_claims.py -k '{words} and order_and_promises'"


def _of(folder: str, file: str, old: str, new: str, *tests: str) -> Mutation:
    return Mutation(f"{folder}/{file}.py", old, new, tuple(f"tests/{test}" for test in tests))


EQUATIONS, DATES = "integrators/test_discrete_equations.py", "integrators/test_dates.py"

OF_METHODS = [
    _of(
        INTEGRATORS,
        "variable_step",
        "base=base, rho=rho + h / 2 * slope",
        "base=base, rho=rho + h * slope",
        "integrators/test_variable_step.py",
        claims("VariableStep"),
    ),
    _of(
        INTEGRATORS,
        "composition",
        "advance(system, state, gamma * h)",
        "advance(system, state, h)",
        claims("Composition and sleigh"),
    ),
    _of(
        INTEGRATORS,
        "discrete_gradient",
        "middle.force(state.t.value + h / 2)",
        "middle.force(state.t.value + h)",
        DATES,
    ),
    _of(
        INTEGRATORS,
        "discrete_lagrange_dalembert",
        "q, v1, h, t + rho.fraction(q) * h",
        "q, v1, h, t + h - rho.fraction(q) * h",
        DATES,
    ),
    _of(
        INTEGRATORS,
        "discrete_lagrange_dalembert",
        "system.mu(q, (state.v + v1) / 2, ",
        "system.mu(q + h / 2 * v1, (state.v + v1) / 2, ",
        EQUATIONS,
    ),
    _of(
        INTEGRATORS,
        "energy_collocation",
        "applied(bracket.at(u), G, state.t.value + c * h, rows)",
        "applied(bracket.at(u), G, state.t.value + h / 2, rows)",
        DATES,
    ),
    _of(
        INTEGRATORS,
        "full_space_discrete_gradient",
        "with_multipliers(system, super().update(system, state, x, h), lam, state.t.value + h / 2)",
        "with_multipliers(system, super().update(system, state, x, h), lam, state.t.value)",
        DATES,
    ),
    _of(
        INTEGRATORS,
        "generating_function",
        "system.multipliers(state.q.value + a * h * w, w, t + a * h)",
        "system.multipliers(state.q.value - a * h * w, w, t + a * h)",
        DATES,
    ),
    _of(
        INTEGRATORS,
        "geometric_nonholonomic",
        "(1 - SHARE[self.reading]) * h * state.lam",
        "SHARE[self.reading] * h * state.lam",
        claims("projection"),
        "integrators/test_geometric_nonholonomic.py",
    ),
    _of(INTEGRATORS, "hamiltonized_del", "rates = rates + 4 /", "rates = rates + 3 /", claims("simpson")),
    _of(
        INTEGRATORS,
        "hamiltonized_del",
        "state.v[base] / f - moved.v[base] / f1",
        "state.v[base] / f + moved.v[base] / f1",
        claims("simpson"),
    ),
    _of(
        INTEGRATORS,
        "lagrange_dalembert_chaplygin",
        'now.mu(q, v) if self.slope == "previous"',
        'now.mu(q1, v) if self.slope == "previous"',
        "integrators/test_lagrange_dalembert_chaplygin.py",
        claims("LagrangeDAlembertChaplygin"),
    ),
    _of(INTEGRATORS, "lobatto_spark", "x.lam[-1]", "x.lam[0]", DATES),
    _of(
        INTEGRATORS,
        "lobatto_spark",
        "system.applied_force(Q, V, tc)",
        "system.applied_force(Q, V, tc + h / 2)",
        DATES,
    ),
    _of(
        INTEGRATORS,
        "poincare_hamiltonized_del",
        "+ state.energy)",
        "- state.energy)",
        claims("PoincareHamiltonizedDEL and sinusoidal"),
    ),
    _of(
        INTEGRATORS,
        "projected",
        "+ x.mu @ vectors(B)",
        "- x.mu @ vectors(B)",
        claims("Projected and sleigh"),
    ),
    _of(INTEGRATORS, "reduced_dla", "connection(r + d).T", "connection(r).T", claims("ReducedDLA and group")),
    _of(
        INTEGRATORS,
        "reduced_dla",
        "minus - half, plus + half",
        "minus - 2 * half, plus",
        claims("ReducedDLA and sinusoidal"),
    ),
    _of(
        INTEGRATORS,
        "reference_flow",
        "state.v.value, None",
        "-state.v.value, None",
        "integrators/test_hooks.py",
    ),
    _of(
        INTEGRATORS,
        "runge_kutta4",
        "system.acceleration(q + h / 2 * v2, v3, t + h / 2)",
        "system.acceleration(q + h / 2 * v, v3, t + h / 2)",
        claims("RungeKutta4 and sleigh"),
    ),
    _of(INTEGRATORS, "semi_implicit_dla", "qm - h * v", "qm - h * v1", EQUATIONS),
    _of(
        INTEGRATORS,
        "variable_step",
        "rho=rho + h / 2 * slope",
        "rho=rho + h / 2 * state.slope",
        "integrators/test_variable_step.py",
    ),
    _of(
        INTEGRATORS,
        "velocity_nonholonomic",
        "(1 - beta) * f1 + beta * f0",
        "beta * f1 + (1 - beta) * f0",
        DATES,
    ),
    _of(
        FAMILIES,
        "finite_difference_maps",
        "rho.momenta(system, qk, w1, h, state.t.value + h)",
        "rho.momenta(system, qk, w1, h, state.t.value)",
        DATES,
    ),
    _of(
        FAMILIES,
        "generating_functions",
        "p1.append(p + alpha * h * f)",
        "p1.append(p + (1 - alpha) * h * f)",
        claims("GeneratingFunction and sleigh"),
    ),
    _of(
        FAMILIES,
        "chaplygin",
        "minus + p - h * (1 - e) * slope, plus + p + h * e * slope",
        "minus + p - h * e * slope, plus + p + h * (1 - e) * slope",
        claims("ReducedDLA"),
        claims("HamiltonizedDEL"),
    ),
]

OF_THE_GEOMETRY = [
    _of(
        GEOMETRY,
        "bracket",
        "turn - self.X.T @ (g[:n] + pull)",
        "turn - self.X.T @ (g[:n] - pull)",
        "geometry/test_bracket.py",
    ),
    _of(GEOMETRY, "chaplygin", "1, 2) + bracket", "1, 2) - bracket", "geometry/test_chaplygin.py"),
    _of(
        GEOMETRY,
        "connection",
        "-solve(mu, system.phi(q, v))",
        "solve(mu, system.phi(q, v))",
        "geometry/test_connection.py",
    ),
    _of(
        GEOMETRY,
        "discrete_chaplygin",
        "(self.slope(before, x, after) - c).T @ earlier",
        "(self.slope(before, x, after) + c).T @ earlier",
        "geometry/test_discrete_chaplygin.py",
    ),
    _of(
        GEOMETRY,
        "exact_generating_function",
        "p0 = system.momentum(node, w) - (1 - alpha) * h_ * f",
        "p0 = system.momentum(node, w) - alpha * h_ * f",
        "geometry/test_exact_generating_function.py",
    ),
    _of(
        GEOMETRY,
        "finite_difference_map",
        "by_w - h * (f + by_q), by_w",
        "by_w - h * (f - by_q), by_w",
        "geometry/test_finite_difference_map.py",
    ),
    _of(
        GEOMETRY,
        "discrete_lagrangian",
        "p1 - self.alpha1(q0, q1)",
        "p1 + self.alpha1(q0, q1)",
        "geometry/test_discrete_lagrangian.py",
    ),
    _of(
        GEOMETRY,
        "flow_forms",
        "return slopes.T - slopes",
        "return slopes.T + slopes",
        "geometry/test_flow_forms.py",
    ),
    _of(
        GEOMETRY, "holonomic", "- g0 - Gbar @ dq", "- g0 + Gbar @ dq", "integrators/test_claims_holonomic.py"
    ),
    _of(GEOMETRY, "holonomic", "rate + soft(", "rate - soft(", "integrators/test_claims_holonomic.py"),
    _of(GEOMETRY, "frame_free", "u = g[n:] - e", "u = g[n:] + e", "geometry/test_free_bracket.py"),
    _of(
        GEOMETRY,
        "intrinsic_bracket",
        "jnp.dot(F_q, G_p) - jnp.dot(F_p, G_q)",
        "jnp.dot(F_q, G_p) + jnp.dot(F_p, G_q)",
        "geometry/test_intrinsic_bracket.py",
    ),
    _of(
        GEOMETRY,
        "levi_civita",
        "- slopes.transpose(2, 0, 1)",
        "+ slopes.transpose(2, 0, 1)",
        "geometry/test_levi_civita.py",
    ),
    _of(
        GEOMETRY,
        "poincare",
        "return rate, force - excess * slope",
        "return rate, force + excess * slope",
        "geometry/test_poincare.py",
    ),
    _of(
        GEOMETRY,
        "polar",
        "jnp.dot(self.coordinates, self.coordinates) / 2 +",
        "jnp.dot(self.coordinates, self.coordinates) / 2 -",
        "geometry/test_free_bracket.py",
    ),
    _of(
        GEOMETRY,
        "positivity",
        "self.stiffness / 2 * jnp.dot(phi, phi)",
        "self.stiffness * jnp.sum(phi)",
        "geometry/test_positivity.py",
    ),
    _of(
        GEOMETRY,
        "regularity",
        "[[D, mu.T], [slope,",
        "[[D, mu.T], [-2 * slope,",
        "geometry/test_regularity.py",
    ),
    _of(GEOMETRY, "frames", "x - c * u, y - c * w", "x + c * u, y - c * w", "geometry/test_frames.py"),
    _of(
        GEOMETRY,
        "groups",
        "self.body_fields(-f / 2) @ f",
        "self.body_fields(-f) @ f",
        "geometry/test_chaplygin.py",
        "integrators/test_chaplygin_methods.py",
    ),
    _of(
        GEOMETRY,
        "hamiltonian",
        "made.X_H_Psi + made.dPsi_dp",
        "made.X_H_Psi - made.dPsi_dp",
        "geometry/test_hamiltonian.py",
    ),
    _of(
        GEOMETRY,
        "hamiltonization",
        "reduced.curvature(r)) / (d - 1)",
        "reduced.curvature(r)) / d",
        "geometry/test_hamiltonization.py",
    ),
    _of(
        GEOMETRY,
        "hamiltonization",
        "(len(self.reduced.base) - 1)",
        "len(self.reduced.base)",
        "geometry/test_hamiltonization.py",
    ),
    _of(GEOMETRY, "interpolation", "2 * jnp.cos(angle)", "jnp.cos(angle)", "geometry/test_interpolation.py"),
    _of(GEOMETRY, "lie_algebra", "v - ad @ total / k", "v + ad @ total / k", "geometry/test_lie_algebra.py"),
    _of(
        GEOMETRY, "splitting", "S.T @ (f - M @ along)", "S.T @ (f + M @ along)", "geometry/test_splitting.py"
    ),
    _of(
        "src/noslip/analysis",
        "embedding",
        "mixed - slope * (F1 - F0)",
        "mixed + slope * (F1 - F0)",
        "analysis/test_embedding.py",
    ),
    _of(
        "src/noslip/analysis",
        "embedding",
        "(r_q,))[1] + mu @ r_v",
        "(r_q,))[1] - mu @ r_v",
        "analysis/test_embedding.py",
        "errata/test_js.py",
    ),
    _of(
        "src/noslip/analysis",
        "embedding",
        "eps * tau - eps, Phi)",
        "eps * tau, Phi)",
        "analysis/test_embedding.py",
    ),
]

ALL = OF_METHODS + OF_THE_GEOMETRY
