"""Chaplygin reduction and Hamiltonization in closed form: FBO's formulas, and the motion itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import dynamicsymbols

from noslip import symbolic
from noslip.symbolic._exact import is_zero
from noslip.symbolic._hamiltonization import Hamiltonized, find_multiplier
from noslip.systems import veselova as catalogue_veselova
from noslip.testing.systems import check_multiplier

t = dynamicsymbols._t
x, y, z, w, phi, theta, psi = dynamicsymbols("x y z w phi theta psi")
m, J, I, g, alpha, k, c, a, b, R = sp.symbols("m J I g alpha k c a b R", positive=True)
I1, I2, I3 = sp.symbols("I1:4", positive=True)
KNIFE = {m: 1.2, J: 0.7, g: 2.0, alpha: 0.3}
ROBOT = {m: 1.0, J: 0.6, a: 0.3, b: 0.5, R: 0.4, I: 0.1}


def d(f: sp.Expr) -> sp.Expr:
    return f.diff(t)


def squares(*coordinates: sp.Expr) -> sp.Expr:
    return sum(d(f) ** 2 for f in coordinates) / 2


# ---- the systems --------------------------------------------------------------------------------------
def fbo_particle() -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z), [x, y, z], [d(z) + x * d(y)], {})


def sinusoidal_particle() -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z), [x, y, z], [d(z) + sp.sin(x) * d(y)], {}, angles=[x])


def knife_edge() -> symbolic.SymbolicSystem:
    """FBO (64) with all constants, and the tangent as printed there."""
    lagrangian = (m * (d(x) ** 2 + d(y) ** 2) + J * d(phi) ** 2) / 2 + m * g * sp.sin(alpha) * x
    constraint = d(y) - d(x) * sp.tan(phi)
    return symbolic.system(lagrangian, [x, y, phi], [constraint], KNIFE, fibre=[y], angles=[phi])


def rolling_disk() -> symbolic.SymbolicSystem:
    lagrangian = (m * (d(x) ** 2 + d(y) ** 2) + J * d(theta) ** 2 + I * d(psi) ** 2) / 2
    rolling = [d(x) - R * d(psi) * sp.cos(theta), d(y) - R * d(psi) * sp.sin(theta)]
    values = {m: 1.1, J: 0.3, I: 0.6, R: 0.8}
    return symbolic.system(lagrangian, [x, y, theta, psi], rolling, values, fibre=[x, y], angles=[theta, psi])


def planimeter() -> symbolic.SymbolicSystem:
    r, s = sp.Matrix([x, y, z]), sp.Matrix(dynamicsymbols("s_1:4"))
    lagrangian = squares(*r, *s) - k * (x**2 + 2 * y**2 + 3 * z**2) / 2
    return symbolic.system(lagrangian, [*r, *s], list(d(s) - c * r.cross(d(r))), {k: 0.7, c: 1.3})


def veselova() -> symbolic.SymbolicSystem:
    """With a potential of its own; the multiplier does not depend on it."""
    aside = d(phi) * sp.sin(theta)
    rates = (
        aside * sp.sin(psi) + d(theta) * sp.cos(psi),
        aside * sp.cos(psi) - d(theta) * sp.sin(psi),
        d(phi) * sp.cos(theta) + d(psi),
    )
    kinetic = sum(moment * rate**2 for moment, rate in zip((I1, I2, I3), rates, strict=True)) / 2
    return symbolic.system(
        kinetic - k * sp.cos(theta),
        [phi, theta, psi],
        [d(phi) + sp.cos(theta) * d(psi)],
        {I1: 1.3, I2: 0.8, I3: 1.7, k: 0.6},
        fibre=[phi],
        angles=[phi, psi],
    )


def two_wheeled_robot(angles: Any = (theta, "psi_left", "psi_right")) -> symbolic.SymbolicSystem:
    left, right = dynamicsymbols("psi_left psi_right")
    ahead = d(x) * sp.cos(theta) + d(y) * sp.sin(theta)
    sideways = d(y) * sp.cos(theta) - d(x) * sp.sin(theta)
    sliding = m * (d(x) ** 2 + d(y) ** 2 + 2 * a * d(theta) * sideways)
    lagrangian = (sliding + (J + m * a**2) * d(theta) ** 2 + I * (d(left) ** 2 + d(right) ** 2)) / 2
    constraints = [sideways, ahead - b * d(theta) - R * d(left), ahead + b * d(theta) - R * d(right)]
    with warnings.catch_warnings(action="ignore"):  # the difference of the wheels is holonomic
        return symbolic.system(
            lagrangian,
            [x, y, theta, left, right],
            constraints,
            ROBOT,
            fibre=[x, y, theta],
            angles=angles,
        )


def not_hamiltonizable() -> symbolic.SymbolicSystem:
    return symbolic.system(squares(x, y, z), [x, y, z], [d(z) + (x + y) * d(y)], {})


def free_companion() -> symbolic.SymbolicSystem:
    """FBO's particle with one more coordinate, on which nothing acts."""
    return symbolic.system(squares(w, x, y, z), [w, x, y, z], [d(z) + x * d(y)], {})


def damped_particle() -> symbolic.SymbolicSystem:
    """With an invariant force on the fibre and a gyroscopic term."""
    lagrangian = squares(x, y, z) + c * x * d(z) - k * y**2 / 2
    return symbolic.system(
        lagrangian, [x, y, z], [d(z) + x * d(y)], {c: 0.4, k: 1.5}, force=[0, -d(y), -x * d(z) + sp.cos(t)]
    )


HAMILTONIZABLE: dict[str, Callable[[], symbolic.SymbolicSystem]] = {
    f.__name__: f
    for f in (
        fbo_particle,
        sinusoidal_particle,
        knife_edge,
        rolling_disk,
        planimeter,
        two_wheeled_robot,
        veselova,
    )
}
OTHERS = {f.__name__: f for f in (not_hamiltonizable, free_companion, damped_particle)}
HEAVY = ("two_wheeled_robot", "veselova")


@cache
def reduction(name: str) -> symbolic.SymbolicReduction:
    group = "planar" if name == "two_wheeled_robot" else "translations"
    return (HAMILTONIZABLE | OTHERS)[name]().chaplygin(group)


@cache
def hamiltonization(name: str) -> symbolic.SymbolicHamiltonization:
    return reduction(name).hamiltonization()


def over(names: Any, heavy: tuple[str, ...] = HEAVY) -> Any:
    """All of them; the heavy ones are slow."""
    marks = {True: [pytest.mark.slow], False: []}
    return pytest.mark.parametrize("name", [pytest.param(n, marks=marks[n in heavy]) for n in names])


def same(found: sp.Expr, expected: sp.Expr) -> bool:
    return sp.simplify(found - expected) == 0


# ---- FBO's formulas -----------------------------------------------------------------------------------
def test_the_nonholonomic_particle_of_fbo() -> None:
    """(26)-(27) and (30)-(31), (51) with the corrections of errata 24 and 25."""
    reduced, found = reduction("fbo_particle"), hamiltonization("fbo_particle")
    vx, vy = d(x), d(y)
    assert reduced.connection == sp.ImmutableMatrix([[0, x]])
    assert reduced.curvature == (sp.ImmutableMatrix([[0, -1], [1, 0]]),)  # B_xy = -1
    assert reduced.constrained_lagrangian == vx**2 / 2 + (1 + x**2) * vy**2 / 2
    assert reduced.reaction == sp.ImmutableMatrix([-x * vy**2, x * vx * vy])
    assert reduced.reconstruction == sp.ImmutableMatrix([-x * vy])
    assert reduced.group_momentum == sp.ImmutableMatrix([-x * vy])
    assert found.multiplier == 1 / sp.sqrt(1 + x**2)
    assert found.measure == found.multiplier
    (dx, dy), (Px, Py) = found.slopes, found.momenta
    assert same(found.lagrangian, (dx**2 / (1 + x**2) + dy**2) / 2)
    assert found.momentum == sp.ImmutableMatrix([dx / (1 + x**2), dy])
    assert same(found.hamiltonian, ((1 + x**2) * Px**2 + Py**2) / 2)
    root = sp.sqrt(1 + x**2)
    assert same(found.poincare_lagrangian, (vx**2 / root + root * vy**2) / 2 + found.energy / root)
    assert str(found) == "Hamiltonizable with f = 1/sqrt(x(t)**2 + 1) up to a constant factor"


def test_the_sinusoidal_particle_of_fbo() -> None:
    found = hamiltonization("sinusoidal_particle")
    assert found.multiplier == 1 / sp.sqrt(1 + sp.sin(x) ** 2)
    assert found.turn_factors == {"x": 1}
    assert found.zeros == {}
    assert found.proved
    (dx, dy), (Px, Py) = found.slopes, found.momenta
    assert same(found.lagrangian, (dx**2 / (1 + sp.sin(x) ** 2) + dy**2) / 2)
    assert same(found.hamiltonian, ((1 + sp.sin(x) ** 2) * Px**2 + Py**2) / 2)


def test_the_knife_edge_of_fbo() -> None:
    """(68), with m, J and g kept; f vanishes where the blade points across the slope."""
    found = hamiltonization("knife_edge")
    dx, dphi = found.slopes
    slope = m * g * sp.sin(alpha) * x
    assert found.multiplier == sp.cos(phi)
    assert found.turn_factors == {"phi": 1}
    assert found.zeros == {"phi": sp.FiniteSet(sp.pi / 2, 3 * sp.pi / 2)}
    assert same(found.lagrangian, (m * dx**2 + J * sp.cos(phi) ** 2 * dphi**2) / 2 + slope)
    kinetic = (m * d(x) ** 2 / sp.cos(phi) + J * sp.cos(phi) * d(phi) ** 2) / 2
    assert same(found.poincare_lagrangian, kinetic + sp.cos(phi) * (slope + found.energy))
    assert "f vanishes where phi is in {pi/2, 3*pi/2}" in str(found)


def test_the_multiplier_of_the_rolling_disk_is_one() -> None:
    found = hamiltonization("rolling_disk")
    assert found.multiplier == 1
    assert found.turn_factors == {"theta": 1, "psi": 1}
    assert all(B[0, 1] != 0 for B in found.reduction.curvature)  # although the curvature is not zero


def test_the_planimeter_has_a_base_of_three_dimensions() -> None:
    found = hamiltonization("planimeter")
    reduced, r = found.reduction, sp.Matrix([x, y, z])
    square, v = r.dot(r), d(r)
    assert found.multiplier == 1 / (1 + c**2 * square)
    assert found.measure == found.multiplier**2
    assert sp.simplify(reduced.metric - (1 + c**2 * square) * sp.eye(3) + c**2 * r * r.T) == sp.zeros(3, 3)
    reaction = -2 * c**2 * (r * v.dot(v) - v * r.dot(v))
    assert sp.simplify(reduced.reaction - reaction) == sp.zeros(3, 1)


@pytest.mark.slow
def test_the_multiplier_of_veselova() -> None:
    """f = (gamma, I^-1 gamma)^(-1/2) up to a factor; Hc = (n, I n)/2 + V, n the momentum as a vector."""
    found = hamiltonization("veselova")
    moments = sp.diag(I1, I2, I3)
    gamma = sp.Matrix([sp.sin(theta) * sp.sin(psi), sp.sin(theta) * sp.cos(psi), sp.cos(theta)])
    expected = moments.det() * (gamma.T * moments.inv() * gamma)[0]
    assert same(found.multiplier**-2, expected)
    assert found.proved
    assert found.turn_factors == {"psi": 1}
    P_theta, P_psi = found.momenta
    n = P_theta * gamma.diff(theta) + P_psi * gamma.diff(psi) / sp.sin(theta) ** 2
    assert same(found.hamiltonian, (n.T * moments * n)[0] / 2 + k * sp.cos(theta))
    p = dict(zip((I1, I2, I3), (1.3, 0.8, 1.7), strict=True))
    ratios = []
    for point in ([0.2, 1.1, 0.7], [0.2, 0.6, -2.1]):
        own = found.multiplier.subs(p | {theta: point[1], psi: point[2]})
        theirs = catalogue_veselova.multiplier(np.array(point), {"I1": 1.3, "I2": 0.8, "I3": 1.7})
        ratios.append(float(own) / float(theirs))
    np.testing.assert_allclose(ratios[1], ratios[0], rtol=1e-14)


def test_the_robot_gains_a_factor_with_every_turn_of_a_wheel() -> None:
    """f = exp(m a R^3 (psi_left + psi_right) / (2 B R^2)), B R^2 = (J + m a^2) R^2 + 2 I b^2."""
    found = hamiltonization("two_wheeled_robot")
    rate = m * a * R**3 / (2 * ((J + m * a**2) * R**2 + 2 * I * b**2))
    left, right = dynamicsymbols("psi_left psi_right")
    assert same(sp.log(found.multiplier).expand(force=True), rate * (left + right))
    assert list(found.turn_factors) == ["psi_left", "psi_right"]
    for factor in found.turn_factors.values():
        assert same(factor, sp.exp(2 * sp.pi * rate))
    assert "a turn of psi_left multiplies f by exp(" in str(found)
    with pytest.raises(ValueError, match="single valued on the declared angles, but it is multiplied by exp"):
        found.system_with_multiplier()


@pytest.mark.slow
def test_a_multiplier_of_many_values_is_one_of_coordinates_that_are_no_angles() -> None:
    found = two_wheeled_robot(angles=()).chaplygin("planar").hamiltonization()
    assert found.turn_factors == {}
    made = found.system_with_multiplier()
    q, v = np.array([0.3, -0.2, 0.5, 0.1, -0.4]), np.array([0.4, 0.1, -0.3, 0.8, 0.2])
    check_multiplier(made, q, np.asarray(made.project_velocity(q, v)), 1e-12)


def test_the_structure_constants_of_the_planar_group() -> None:
    """[e3, e1] = e2, [e3, e2] = -e1; and the velocity is that of the body."""
    plain = reduction("two_wheeled_robot").plain
    C = [sp.zeros(3, 3) for _ in range(3)]
    C[1][2, 0], C[1][0, 2], C[0][2, 1], C[0][1, 2] = 1, -1, -1, 1
    assert [sp.Matrix(found) for found in plain.structure_constants] == C
    forward, sideways, turn = plain.body_fields.T * sp.Matrix(plain.sdot)
    (vx, vy, rate), heading = plain.sdot, plain.s[2]
    assert forward == vx * sp.cos(heading) + vy * sp.sin(heading)
    assert sideways == -vx * sp.sin(heading) + vy * sp.cos(heading)
    assert turn == rate


# ---- the motion ---------------------------------------------------------------------------------------
@cache
def sleigh() -> symbolic.SymbolicSystem:
    sideways = d(y) * sp.cos(theta) - d(x) * sp.sin(theta)
    kinetic = m * (d(x) ** 2 + d(y) ** 2) + J * d(theta) ** 2
    return symbolic.system(kinetic / 2, [x, y, theta], [sideways], {m: 1.0, J: 2.0})


def on_the_constraint(reduced: Any) -> dict[sp.Symbol, sp.Expr]:
    return dict(zip(reduced.sdot, reduced.reconstruction, strict=True))


@over(HAMILTONIZABLE | OTHERS)
def test_the_reduced_acceleration_is_that_of_the_system(name: str) -> None:
    reduced = reduction(name).plain
    full = [reduced.model.acceleration[i].xreplace(on_the_constraint(reduced)) for i in reduced.base]
    assert all(is_zero(ours - theirs) for ours, theirs in zip(reduced.acceleration, full, strict=True))


@over(HAMILTONIZABLE | OTHERS, heavy=("veselova",))
def test_the_reduced_equations_are_those_of_dalembert(name: str) -> None:
    """The Euler-Lagrange equations on Q along the horizontal lifts of the base directions."""
    reduced = reduction(name).plain
    symbols, model = reduced.model.symbols, reduced.model
    rddot = [symbols.a[i] for i in reduced.base]
    sddot = reduced.reconstruction.jacobian(symbols.q) * sp.Matrix(symbols.v)
    sddot += reduced.reconstruction.jacobian(reduced.rdot) * sp.Matrix(rddot)
    along = dict(zip([symbols.a[i] for i in reduced.fibre], sddot, strict=True))
    motion = (model.euler_lagrange - model.applied_force).xreplace(along).xreplace(on_the_constraint(reduced))
    lift = reduced.reconstruction.jacobian(reduced.rdot)
    full = motion.extract(list(reduced.base), [0]) + lift.T * motion.extract(list(reduced.fibre), [0])
    own = reduced.euler_lagrange - reduced.reaction - reduced.force
    assert all(is_zero(ours - theirs) for ours, theirs in zip(own, full, strict=True))
    power = reduced.reaction.dot(sp.Matrix(reduced.rdot))
    assert is_zero(power)  # the reaction does no work


@over(HAMILTONIZABLE)
def test_the_hamiltonian_moves_the_system(name: str) -> None:
    """dr/dt = f dHc/dP and dP/dt = -f dHc/dr, FBO (43), along the reduced motion."""
    found, reduced = _plain(name)
    f, slopes = (
        found.multiplier,
        dict(zip(found.slopes, sp.Matrix(reduced.rdot) / found.multiplier, strict=True)),
    )
    P = found.momentum.xreplace(slopes)
    at_P = dict(zip(found.momenta, P, strict=True))
    assert all(
        is_zero(f * found.hamiltonian.diff(p).xreplace(at_P) - v)
        for p, v in zip(found.momenta, reduced.rdot, strict=True)
    )
    change = along_the_motion(P, reduced)
    assert all(
        is_zero(dP + f * found.hamiltonian.diff(r).xreplace(at_P))
        for r, dP in zip(reduced.r, change, strict=True)
    )


@over(HAMILTONIZABLE)
def test_the_poincare_lagrangian_moves_the_system_at_its_energy(name: str) -> None:
    found, reduced = _plain(name)
    poincare = found.poincare_lagrangian
    momentum = sp.Matrix([poincare.diff(v) for v in reduced.rdot])
    defects = along_the_motion(momentum, reduced) - sp.Matrix([poincare.diff(r) for r in reduced.r])
    l_c, v = reduced.constrained_lagrangian, sp.Matrix(reduced.rdot)
    energy = reduced.momentum.dot(v) - l_c
    assert all(is_zero(e.subs(reduced.model.symbols.energy, energy)) for e in defects)


@over(HAMILTONIZABLE)
def test_the_measure_is_invariant(name: str) -> None:
    """The divergence of the motion in (r, rdot) against f^(d-1) det(G) is zero."""
    found, reduced = _plain(name)
    density = found.measure * reduced.metric.det()
    flow = [*zip(reduced.r, reduced.rdot, strict=True), *zip(reduced.rdot, reduced.acceleration, strict=True)]
    assert is_zero(sum((density * rate).diff(at) for at, rate in flow))


def _plain(name: str) -> tuple[Hamiltonized, Any]:
    found = hamiltonization(name).plain
    return found, found.reduced


def along_the_motion(momentum: sp.Matrix, reduced: Any) -> sp.Matrix:
    """d/dt of functions of (r, rdot)."""
    moved = momentum.jacobian(reduced.r) * sp.Matrix(reduced.rdot)
    return moved + momentum.jacobian(reduced.rdot) * reduced.acceleration


def test_the_system_can_be_given_its_multiplier() -> None:
    """The numerical check of invariant measures accepts it, at the system's own constants."""
    made = hamiltonization("knife_edge").system_with_multiplier()
    assert made.parameters == reduction("knife_edge").system.parameters
    q = np.array([0.4, -0.3, 0.5])
    v = np.asarray(made.project_velocity(q, np.array([0.7, -0.2, 0.9])))
    check_multiplier(made, q, v, 1e-12)


# ---- what is refused ----------------------------------------------------------------------------------
def test_the_defect_of_a_system_that_is_not_hamiltonizable() -> None:
    u = x + y
    with pytest.raises(ValueError, match=r"^not Hamiltonizable: the integrability defect is ") as caught:
        reduction("not_hamiltonizable").hamiltonization()
    text = str(caught.value).removeprefix("not Hamiltonizable: the integrability defect is ")
    names = {"x": sp.Function("x"), "y": sp.Function("y"), "t": t}
    defect = sp.sympify(text.partition(" (d_x omega_y - d_y omega_x")[0], names)
    assert same(defect, (1 - u**2) / (1 + u**2) ** 2)
    first, second = reduction("not_hamiltonizable").omega  # given all the same
    assert same(first, -u / (1 + u**2))
    assert second == 0


def test_a_free_companion_fails_the_algebraic_condition() -> None:
    """The only candidate is -x dx / (2 (1 + x^2)), closed; but no f(r) gives a reaction with w left alone."""
    reduced = reduction("free_companion")
    assert same(reduced.omega[1], -x / (2 * (1 + x**2)))
    with pytest.raises(
        ValueError, match=r"not Hamiltonizable: the algebraic defect is .* in the equation of w"
    ):
        reduced.hamiltonization()


FREE, SLIDING = squares(x, y, z), d(z) + x * d(y)


def build(lagrangian: sp.Expr = FREE, constraint: Any = SLIDING, **options: Any) -> Any:
    return symbolic.system(lagrangian, [x, y, z], [constraint], {k: 1.0, c: 0.5}, **options)


NO_CHAPLYGIN: list[tuple[Callable[[], Any], str, str]] = [
    (sleigh, "planar", "but SE(2) has 3 directions and the system 1 constraint"),
    (sleigh, "translations", "under translations of (theta): T_qQ must be the sum of the fibre directions"),
    (sleigh, "SO(3)", "unknown group 'SO(3)'; known: planar, translations."),
    (
        lambda: build(FREE - k * (x**2 + z**2) / 2),
        "translations",
        "under translations of (z): the Lagrangian must be invariant, but its term -k*z(t)**2/2 depends on z",
    ),
    (
        lambda: build(FREE + z**2 * d(x) ** 2 / 2 + d(x) ** 2 * sp.sin(z) ** 2),
        "translations",
        "but its term (z(t)**2/2 + sin(z(t))**2)*Derivative(x(t), t)**2 depends on z",
    ),
    (
        lambda: build(constraint=d(z) + x * d(y) + z * d(x)),
        "translations",
        "the constraints must be invariant, but solved for the fibre velocities their term "
        "-z(t)*Derivative(x(t), t) depends on z",
    ),
    (
        lambda: build(fibre=[x]),
        "translations",
        "but the constraints do not determine the velocities of (x): "
        "the determinant of their coefficients is 0",
    ),
    (
        lambda: build(constraint=d(z) + x * d(y) - c),
        "translations",
        "the constraints must be linear in the velocities, but they are affine",
    ),
    (
        lambda: build(constraint=d(z) ** 2 - d(y) ** 2 - d(x) ** 2),
        "translations",
        "the constraints must be linear in the velocities, but they are nonlinear",
    ),
    (
        lambda: build(force=[0, 0, -k * z + sp.cos(t)]),
        "translations",
        "the force must be invariant, but its part -k*z(t) depends on z",
    ),
]


@pytest.mark.parametrize(("make", "group", "sentence"), NO_CHAPLYGIN, ids=[case[2] for case in NO_CHAPLYGIN])
def test_no_chaplygin_system(make: Callable[[], Any], group: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^(this is no Chaplygin system under|unknown group)") as caught:
        make().chaplygin(group)
    assert sentence in str(caught.value)


@pytest.mark.slow
def test_a_robot_on_a_slope_is_not_invariant_under_planar_motions() -> None:
    flat = two_wheeled_robot()
    left, right = dynamicsymbols("psi_left psi_right")
    with warnings.catch_warnings(action="ignore"):
        tilted = symbolic.system(
            flat.lagrangian_expr - g * x,
            [x, y, theta, left, right],
            list(flat.constraints_expr),
            ROBOT | {g: 1.0},
            fibre=[x, y, theta],
        )
    with pytest.raises(ValueError, match=r"invariant, but its term -g\*x\(t\) depends on x"):
        tilted.chaplygin("planar")


def test_invariance_is_seen_through_identities() -> None:
    """z appears, but only in sin^2 + cos^2, and as a factor of the whole constraint."""
    hidden = squares(x, y) + d(z) ** 2 * (sp.sin(z) ** 2 + sp.cos(z) ** 2) / 2
    found = build(hidden, constraint=z * d(z) + z * x * d(y)).chaplygin()
    assert found.connection == sp.ImmutableMatrix([[0, x]])
    assert found.constrained_lagrangian == d(x) ** 2 / 2 + (1 + x**2) * d(y) ** 2 / 2
    assert found.determinant == z
    assert found.hamiltonization().multiplier == 1 / sp.sqrt(1 + x**2)


@pytest.mark.parametrize(
    ("term", "sentence"),
    [
        (c * x * d(y), "the terms of the Lagrangian linear in the velocities leave the defect c*x(t)**2"),
        (c * x * d(z), "the terms of the Lagrangian linear in the velocities leave the defect c*x(t)*"),
        (0, "an applied force has no Hamiltonian, but this system has a `force`"),
    ],
)
def test_what_has_no_hamiltonian_of_this_form(term: Any, sentence: str) -> None:
    options = {} if term != 0 else {"force": [0, -d(y), 0]}
    with pytest.raises(ValueError, match=r"^not Hamiltonizable: ") as caught:
        build(FREE + term, **options).chaplygin().hamiltonization()
    assert sentence in str(caught.value)


def test_a_gyroscopic_term_that_fits_is_taken_along() -> None:
    """F_i = (omega_i p_j - omega_j p_i) rdot^j holds for a = c x dx, since omega is along dx too."""
    found = build(FREE + c * x * d(x)).chaplygin().hamiltonization()
    dx, dy = found.slopes
    Px, Py = found.momenta
    root = sp.sqrt(1 + x**2)
    assert same(found.lagrangian, (dx**2 / root**2 + dy**2) / 2 + c * x * dx / root)
    assert same(found.hamiltonian, ((Px * root - c * x) ** 2 + Py**2) / 2)


# ---- the search for f ---------------------------------------------------------------------------------
q0, q1 = sp.symbols("q_0 q_1", real=True)
ROOT = sp.sqrt(1 + q0**2)


@pytest.mark.parametrize(
    "f",
    [
        sp.Integer(1),
        (1 + q0**2) ** (-k / 2),  # the exponent is a constant of the system
        sp.exp(-(q0**2) / 2 + q0 * q1),  # no product of powers
        sp.exp(k * q0) / (c + q1**2),
        sp.cos(q0) ** 2 * sp.sin(q1) / (1 + sp.sin(q0)),
        (2 - sp.cos(q0) ** 2) ** 3 * (1 + q1 * sp.cos(q0)),
        1 / (q0 + ROOT),
        sp.cosh(q0) ** sp.Rational(-1, 2) * sp.tan(q1),
        (c * sp.sin(2 * q0) + 3) / q1,
    ],
)
def test_a_multiplier_is_found_from_its_logarithmic_differential(f: sp.Expr) -> None:
    r = (q0, q1)
    omega = [sp.simplify(f.diff(x) / f) for x in r]
    factors = find_multiplier(omega, r)
    assert factors is not None
    found = sp.Mul(*(base**exponent for base, exponent in factors.items()))
    assert all(is_zero((sp.log(found) - sp.log(f)).diff(x)) for x in r)


def test_a_multiplier_that_sympy_cannot_find_is_told_with_its_differential() -> None:
    weight = sp.exp(x**2)
    reduced = build(squares(x, y) + weight * d(z) ** 2 / 2).chaplygin()
    with pytest.raises(
        ValueError, match=r"is Hamiltonizable, but SymPy found no closed form of f from d ln f = "
    ):
        reduced.hamiltonization()
    assert same(reduced.omega[0], -x * weight / (1 + x**2 * weight))


def test_one_base_coordinate_needs_no_multiplier() -> None:
    with warnings.catch_warnings(action="ignore"):  # two constraints on three coordinates are holonomic
        system = symbolic.system(FREE, [x, y, z], [d(y) - x * d(x), d(z) - x**2 * d(x)], {})
    found = system.chaplygin().hamiltonization()
    assert found.multiplier == found.measure == 1
    assert found.reduction.base == ("x",)


# ---- for people ---------------------------------------------------------------------------------------
def test_the_reduction_in_latex() -> None:
    text = reduction("fbo_particle").latex()
    assert text.splitlines() == [
        r"\begin{aligned}",
        r"l_c &= \frac{\dot{x}^{2}}{2} + \frac{\dot{y}^{2} \left(x^{2} + 1\right)}{2} \\",
        r"\mathcal{A} &= x \, dy \\",
        r"\mathcal{B} &= -dx \wedge dy \\",
        r"- x \dot{y}^{2} + \ddot{x} &= - x \dot{y}^{2} \\",
        r"2 x \dot{x} \dot{y} + \ddot{y} \left(x^{2} + 1\right) &= x \dot{x} \dot{y} \\",
        r"\dot{z} &= - x \dot{y}",
        r"\end{aligned}",
    ]
    assert reduction("fbo_particle")._repr_latex_() == f"$\\displaystyle {text}$"
    two = reduction("rolling_disk").latex()
    assert r"\mathcal{A}^{2} &= - R \sin{\left(\theta \right)} \, d\psi" in two
    assert r"\mathcal{B}^{1} &= " in two


def test_the_hamiltonization_in_latex() -> None:
    text = hamiltonization("knife_edge").latex()
    assert r"f &= \cos{\left(\phi \right)}" in text
    assert r"f^{d-1} &= " in text
    assert r"P_{\phi} &= J \phi' \cos^{2}{\left(\phi \right)}" in text
    assert r"\frac{P_{\phi}^{2}}{2 J \cos^{2}{\left(\phi \right)}}" in text
    assert r"\left(m g x \sin{\left(\alpha \right)} + E\right) \cos{\left(\phi \right)}" in text
    assert hamiltonization("knife_edge")._repr_latex_() == f"$\\displaystyle {text}$"
    assert r"\xi" not in text


def test_names_that_the_user_has_taken_are_left_alone() -> None:
    E, Px = sp.symbols("E P_x")
    lagrangian = FREE - E * x**2 - Px * y**2
    found = symbolic.system(lagrangian, [x, y, z], [d(z) + x * d(y)], {E: 1.0, Px: 2.0})
    found = found.chaplygin().hamiltonization()
    assert found.energy == sp.Symbol("E_")
    assert found.momenta[0] == sp.Symbol("P_x_")
    assert found.poincare_lagrangian.has(E, Px, found.energy)


def test_equations_and_names_of_a_reduction() -> None:
    reduced = reduction("damped_particle")
    assert reduced.base == ("x", "y")
    assert reduced.fibre == ("z",)
    assert repr(reduced) == "SymbolicReduction(base=('x', 'y'), fibre=('z',), group='translations')"
    assert reduced.potential == k * y**2 / 2
    assert reduced.lagrangian == reduced.system.lagrangian_expr
    assert reduced.group_velocity == sp.ImmutableMatrix([d(z)])
    along = -d(y) - x * (-x * -x * d(y) + sp.cos(t))  # force_y - A_y force_z with zdot = -x ydot
    assert same(reduced.force[1], along)
    first = reduced.equations[0]
    assert isinstance(first, sp.Eq)
    assert first.has(x.diff(t, 2))
    assert repr(hamiltonization("fbo_particle")) == "SymbolicHamiltonization(multiplier=1/sqrt(x(t)**2 + 1))"
