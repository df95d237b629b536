"""Chaplygin reduction and Hamiltonization in closed form: FBO's formulas, and the motion itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from chaplygin_systems import (
    HAMILTONIZABLE,
    I1,
    I2,
    I3,
    OTHERS,
    I,
    J,
    R,
    a,
    alpha,
    b,
    c,
    d,
    g,
    hamiltonization,
    k,
    m,
    over,
    phi,
    psi,
    reduction,
    same,
    theta,
    two_wheeled_robot,
    x,
    y,
    z,
)
from sympy.physics.mechanics import dynamicsymbols

from noslip.symbolic._exact import is_zero
from noslip.symbolic._hamiltonization import Hamiltonized
from noslip.systems import veselova as catalogue_veselova
from noslip.testing.systems import check_multiplier


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
