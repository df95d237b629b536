"""Systems from SymPy's methods, with holonomic constraints and quaternions too, beside its own equations."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp
from numpy.testing import assert_allclose
from sympy.physics.mechanics import (
    KanesMethod,
    LagrangesMethod,
    Particle,
    Point,
    ReferenceFrame,
    RigidBody,
    dynamicsymbols,
    inertia,
)

from noslip import rotations, simulate, symbolic
from noslip.integrators import DiscreteGradient

t = dynamicsymbols._t
m, g, r, k = sp.symbols("m g r k", positive=True)
ACCURATE = {"rtol": 1e-10, "atol": 1e-10}


def of_kane(method, constants, q, v):
    """d2q/dt2 of the method itself at (q, dq/dt), by its mass matrix and kinematics in numbers."""
    rates = method.kindiffdict()
    qd = [x.diff(t) for x in method.q]
    right = sp.Matrix([rates[x] for x in qd])
    at = dict(zip(method.q, q, strict=True)) | constants
    K = np.array(right.jacobian(sp.Matrix(method.u)).subs(at), float)
    b = np.array(right.subs(dict.fromkeys(method.u, 0)).subs(at), float).ravel()
    u = np.linalg.lstsq(K, np.asarray(v, float) - b, rcond=None)[0]
    at |= dict(zip(method.u, u, strict=True))
    M = np.array(method.mass_matrix.subs(rates).subs(at), float)
    du = np.linalg.solve(M, np.array(method.forcing.subs(rates).subs(at), float).ravel())
    along = right.diff(t).subs(dict(zip([x.diff(t) for x in method.u], du, strict=True)))
    return np.array(along.subs(rates).subs(at), float).ravel()


def disc_frames():
    """As in SymPy's manual: yaw, lean and spin, and speeds along the axes of the leaning frame."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    N = ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    L = Y.orientnew("L", "Axis", [q[1], Y.x])
    R = L.orientnew("R", "Axis", [q[2], L.y])
    kd = [R.ang_vel_in(N).dot(axis) - x for axis, x in zip(L, u, strict=True)]
    R.set_ang_vel(N, u[0] * L.x + u[1] * L.y + u[2] * L.z)
    return list(q), list(u), N, Y, L, R, kd


def disc_body(centre, L, R):
    return RigidBody("disc", centre, R, m, (inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2), centre))


@functools.cache
def minimal_disc():
    """With rolling built into the velocity of the centre: three coordinates and no constraint."""
    q, u, N, Y, L, R, kd = disc_frames()
    centre = Point("D")
    centre.set_vel(N, u[1] * r * L.x - u[0] * r * L.y)
    method = KanesMethod(N, q_ind=q, u_ind=u, kd_eqs=kd)
    method.kanes_equations([disc_body(centre, L, R)], [(centre, -m * g * Y.z)])
    return method


@functools.cache
def rolling_disc():
    """With the point (x, y) of contact, and rolling as two velocity constraints."""
    q, u, N, Y, L, R, kd = disc_frames()
    x, y, u4, u5 = dynamicsymbols("x y u4 u5")
    origin = Point("O")
    origin.set_vel(N, 0)
    centre = origin.locatenew("D", x * N.x + y * N.y + r * L.z)
    kd = [*kd, x.diff(t) - u4, y.diff(t) - u5]
    centre.set_vel(N, u4 * N.x + u5 * N.y + r * (Y.ang_vel_in(N) + q[1].diff(t) * Y.x).cross(L.z))
    touching = centre.vel(N) + R.ang_vel_in(N).cross(-r * L.z)
    rates = sp.solve(kd, [z.diff(t) for z in (*q, x, y)])
    rows = [touching.dot(axis).subs(rates) for axis in (N.x, N.y)]
    method = KanesMethod(
        N, q_ind=[*q, x, y], u_ind=u, kd_eqs=kd, u_dependent=[u4, u5], velocity_constraints=rows
    )
    method.kanes_equations([disc_body(centre, L, R)], [(centre, -m * g * Y.z)])
    return method


def test_sympys_rolling_disc_by_kane_has_its_accelerations_and_a_potential():
    method, values = rolling_disc(), {m: 1.3, g: 9.1, r: 0.4}
    system = symbolic.from_kane(method, values, potential=m * g * r * sp.cos(method.q[1]))
    assert system.force is None
    assert (system.m, system.k) == (2, 0)
    q = np.array([0.3, 0.5, -0.2, 0.1, 0.7])
    v = system.consistent_velocity(q, {"q1": 0.7, "q2": -0.4, "q3": 3.1})
    found = system.acceleration(q, v)
    assert_allclose(found[:3], of_kane(minimal_disc(), values, q[:3], v[:3]), **ACCURATE)
    assert_allclose(found, of_kane(method, values, q, v), **ACCURATE)
    pushed = symbolic.from_kane(method, values)
    assert pushed.force is not None
    assert_allclose(pushed.acceleration(q, v), found, **ACCURATE)
    run = simulate(system, DiscreteGradient(), q, v, step_size=0.01, steps=50)
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-13


def test_rolling_that_is_built_into_velocities_is_refused():
    with pytest.raises(ValueError, match="body 'disc' must be derivatives of its position"):
        symbolic.from_kane(minimal_disc(), {m: 1.3, g: 9.1, r: 0.4})


def double_pendulum():
    """Relative angles, speeds of the rods, a damped joint."""
    q1, q2, u1, u2 = dynamicsymbols("q1 q2 u1 u2")
    N = ReferenceFrame("N")
    A = N.orientnew("A", "Axis", [q1, N.z])
    B = A.orientnew("B", "Axis", [q2, A.z])
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(A, u2 * A.z)
    O = Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", r * A.x)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", 2 * r * B.x)
    Q.v2pt_theory(P, N, B)
    bodies = [Particle("P", P, m), Particle("Q", Q, 2 * m)]
    loads = [(P, m * g * N.x), (Q, 2 * m * g * N.x), (B, -k * u2 * N.z), (A, k * u2 * N.z)]
    method = KanesMethod(N, q_ind=[q1, q2], u_ind=[u1, u2], kd_eqs=[q1.diff(t) - u1, q2.diff(t) - u2])
    method.kanes_equations(bodies, loads)
    return method


def test_a_double_pendulum_by_kane_has_its_accelerations():
    method, values = double_pendulum(), {m: 1.3, g: 9.1, r: 0.4, k: 0.2}
    system = symbolic.from_kane(method, values, first_integrals={"rate": method.u[0]})
    q, v = [0.3, 0.5], [0.7, -0.4]
    assert_allclose(
        system.acceleration(jnp.array(q), jnp.array(v)), of_kane(method, values, q, v), **ACCURATE
    )
    assert float(system.first_integrals["rate"](q, v, system.parameters)) == pytest.approx(0.7)


def four_bar():
    """Three rods of a loop, closed by two configuration constraints."""
    q1, q2, q3, u1, u2, u3 = dynamicsymbols("q1:4 u1:4")
    N = ReferenceFrame("N")
    place, points, at = Point("O"), [], sp.zeros(2, 1)
    place.set_vel(N, 0)
    for q, u, length in ((q1, u1, r), (q2, u2, 2 * r), (q3, u3, sp.Rational(3, 2) * r)):
        rod = N.orientnew(f"rod{len(points)}", "Axis", [q, N.z])
        rod.set_ang_vel(N, u * N.z)
        end = place.locatenew(f"P{len(points)}", length * rod.x)
        end.v2pt_theory(place, N, rod)
        points, place = [*points, end], end
        at += length * sp.Matrix([sp.cos(q), sp.sin(q)])
    closed = [at[0] - 2 * r, at[1]]
    kd = [x.diff(t) - u for x, u in ((q1, u1), (q2, u2), (q3, u3))]
    rates = [x.diff(t).subs({q1.diff(t): u1, q2.diff(t): u2, q3.diff(t): u3}) for x in closed]
    method = KanesMethod(
        N, q_ind=[q1], u_ind=[u1], kd_eqs=kd, q_dependent=[q2, q3], u_dependent=[u2, u3],
        configuration_constraints=closed, velocity_constraints=rates,
    )  # fmt: skip
    bodies = [Particle(f"B{k}", point, m * (k + 1)) for k, point in enumerate(points[:2])]
    method.kanes_equations(bodies, [(body.point, -g * body.mass * N.y) for body in bodies])
    return method, points


@pytest.mark.slow
def test_a_four_bar_linkage_by_kane_has_its_accelerations_and_stays_closed():
    (method, ends), values = four_bar(), {m: 1.3, g: 9.1, r: 0.4}
    q1, q2, _ = method.q
    height = g * m * r * sp.sin(q1) + 2 * m * g * r * (sp.sin(q1) + 2 * sp.sin(q2))
    with pytest.raises(ValueError, match="rank"):  # the end of the last rod, which rests, has no mass
        symbolic.from_kane(method, values, potential=height)
    method.kanes_equations([*method.bodies, Particle("B2", ends[-1], m)], method.loads)
    system = symbolic.from_kane(method, values, potential=height)
    assert (system.m, system.k, system.force) == (0, 2, None)
    q = system.project_position([1.2, 0.3, -1.1], fixed=("q1",))
    v = system.consistent_velocity(q, {"q1": 0.7})
    assert_allclose(system.acceleration(q, v), of_kane(method, values, q, v), **ACCURATE)
    run = simulate(system, DiscreteGradient(), q, v, step_size=0.01, steps=50)
    assert np.max(np.abs(run.holonomic_residual)) < 1e-14
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-13
    at = dict(zip(method.q, q, strict=True)) | values
    assert_allclose(np.array(system.holonomic_expr.subs(at), float).ravel(), 0, atol=1e-14)


@pytest.mark.slow
def test_a_body_in_quaternions_by_kane_has_its_accelerations():
    """Four coordinates and three speeds; the mass centre off the fixed point, and a torque."""
    e, w = sp.Matrix(dynamicsymbols("e0:4")), sp.Matrix(dynamicsymbols("w1:4"))
    N = ReferenceFrame("N")
    B = N.orientnew("B", "Quaternion", list(e))
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    fixed = Point("O")
    fixed.set_vel(N, 0)
    centre = fixed.locatenew("P", r * B.x)
    centre.v2pt_theory(fixed, N, B)
    body = RigidBody("body", centre, B, m, (inertia(B, 2, 3, 4), centre))
    columns = sp.Matrix(
        [[-e[1], -e[2], -e[3]], [e[0], -e[3], e[2]], [e[3], e[0], -e[1]], [-e[2], e[1], e[0]]]
    )
    method = KanesMethod(N, q_ind=list(e), u_ind=list(w), kd_eqs=list(e.diff(t) - columns * w / 2))
    method.kanes_equations([body], [(centre, -m * g * N.z), (B, k * N.x)])
    values = {m: 1.3, g: 0.9, r: 0.4, k: 0.2}
    height = r * 2 * (e[1] * e[3] - e[0] * e[2])
    system = symbolic.from_kane(method, values, potential=m * g * height, rotations=("e",))
    u = np.array([0.5, 0.1, -0.7, 0.3]) / np.sqrt(0.84)
    du = np.asarray(rotations.from_rates(u, [0.7, -0.4, 1.1]))
    assert_allclose(system.acceleration(u, du), of_kane(method, values, u, du), **ACCURATE)


def test_lagranges_method_gives_its_constraints_and_loads():
    x, y, z = dynamicsymbols("x y z")
    N, O, P = ReferenceFrame("N"), Point("O"), Point("P")
    O.set_vel(N, 0)
    P.set_vel(N, x.diff(t) * N.x + y.diff(t) * N.y + z.diff(t) * N.z)
    L = m * (x.diff(t) ** 2 + y.diff(t) ** 2 + z.diff(t) ** 2) / 2 - m * g * z
    method = LagrangesMethod(
        L, [x, y, z], hol_coneqs=[x**2 + z**2 - r**2], nonhol_coneqs=[y.diff(t) - x * z.diff(t)],
        forcelist=[(P, -k * P.vel(N))], frame=N,
    )  # fmt: skip
    method.form_lagranges_equations()
    values = {m: 1.3, g: 0.9, r: 0.5, k: 0.2}
    system = symbolic.from_lagrange(method, values)
    assert (system.m, system.k) == (1, 1)
    q = np.array([0.3, 0.1, -0.4])
    v = np.asarray(system.project_velocity(q, [0.4, 0.2, 0.1]))
    at = dict(zip([x.diff(t), y.diff(t), z.diff(t)], v, strict=True))
    place = dict(zip([x, y, z], q, strict=True)) | values
    M = np.array(method.mass_matrix_full.subs(at).subs(place), float)
    f = np.array(method.forcing_full.subs(at).subs(place), float).ravel()
    assert_allclose(system.acceleration(q, v), np.linalg.solve(M, f)[3:6], **ACCURATE)
    expression = system.acceleration_expr.subs(at).subs(place)
    assert_allclose(np.array(expression, float).ravel(), system.acceleration(q, v), **ACCURATE)
    assert_allclose(
        np.array(system.multipliers_expr.subs(at).subs(place), float).ravel(),
        system.multipliers(q, v),
        **ACCURATE,
    )
    assert r"- r^{2} + x^{2} + z^{2}" in system.equations_latex()


def test_what_is_no_system_is_said():
    x, y = dynamicsymbols("x y")
    L = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2
    with pytest.raises(TypeError, match="`method` must be a KanesMethod, but str was provided"):
        symbolic.from_kane("disc", {})
    with pytest.raises(TypeError, match="`method` must be a LagrangesMethod, but KanesMethod"):
        symbolic.from_lagrange(minimal_disc(), {})
    empty = KanesMethod(ReferenceFrame("N"), q_ind=[x], u_ind=[y], kd_eqs=[x.diff(t) - y])
    with pytest.raises(ValueError, match="must have `bodies`"):
        symbolic.from_kane(empty, {})
    with pytest.raises(ValueError, match="`holonomic_constraints` must depend on coordinates"):
        symbolic.system(L, [x, y], [], {m: 1.0}, holonomic_constraints=[x.diff(t)])
    with pytest.raises(ValueError, match="must contain coordinates"):
        symbolic.system(L, [x, y], [], {m: 1.0}, holonomic_constraints=[m - 1])
    with pytest.raises(ValueError, match="holds always or never"):
        symbolic.system(L, [x, y], [], {m: 1.0}, holonomic_constraints=[sp.Eq(m, m)])
    with pytest.raises(ValueError, match="fewer than coordinates, but 2"):
        symbolic.system(L, [x, y], [], {m: 1.0}, holonomic_constraints=[x, y])
    with pytest.raises(ValueError, match="coordinate of a rotation 'u0'"):
        symbolic.system(L, [x, y], [], {m: 1.0}, rotations=("u",))
    placed = symbolic.system(L, [x, y], [], {m: 1.0}, holonomic_constraints=[x**2 + y**2 - 1])
    with pytest.raises(ValueError, match="is about constraints, but this system has none"):
        placed.chaplygin()
    assert placed.k == 1
