"""One check for each entry of docs/errata/lms.md: the printed form fails, the corrected one holds."""

import jax
import jax.numpy as jnp
import numpy as np
from numpy.testing import assert_allclose

from noslip import simulate
from noslip.analysis import energy_error, measured_order
from noslip.geometry import exact_generating_function as exact
from noslip.geometry import hamiltonian
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.systems import chaplygin_sleigh, nonholonomic_particle, rolling_disk_on_incline
from noslip.testing.integrators import perturbed_case

H = 0.1


def size(x):
    return float(np.max(np.abs(x)))


def exponent(hs, errors):
    return np.polyfit(np.log(hs), np.log(errors), 1)[0]


def test_sign_of_the_multipliers_before_9():
    """In the form (5), dp/dt = -dH/dq - lam_a mu^a, only lam = +C^-1 X_H(Psi) stays on the constraint."""
    for module in (nonholonomic_particle, chaplygin_sleigh):
        case = perturbed_case(module)
        system, q = case.system, case.q0
        p = system.momentum(q, case.v0)
        dq, dp = hamiltonian.hamiltonian_field(system, q, p)
        mu = hamiltonian.reaction_directions(system, q, p)
        C = hamiltonian.compatibility_matrix(system, q, p)
        lam = np.linalg.solve(C, hamiltonian.derivative_along_hamiltonian_field(system, q, p))

        @jax.jit
        def leaves(lam, system=system, q=q, p=p, dq=dq, dp=dp, mu=mu):
            field = (dq, dp - mu.T @ lam)
            return jax.jvp(lambda q, p: hamiltonian.constraint(system, q, p), (q, p), field)[1]

        assert size(leaves(lam)) < 1e-14  # corrected
        assert size(leaves(-lam)) > 1e-2  # printed
    # example 4.2 of the paper has the corrected sign
    case = perturbed_case(nonholonomic_particle)
    (x, y, _), (vx, vy, _), k = *np.asarray([case.q0, case.v0]), case.system.parameters["k"]
    assert_allclose(case.system.multipliers(case.q0, case.v0), -(2 * k * x * y - vx * vy) / (1 + y**2))


def test_sign_of_27():
    """The reaction C^-1 (mu (-Gamma v v - grad V) + v v dmu) Z must have a minus in front."""
    case = perturbed_case(chaplygin_sleigh)
    system = case.system

    @jax.jit
    def at(q, v):
        dp, turn = jax.jvp(lambda x: (system.momentum(x, v), system.mu(x, v) @ v), (q,), (v,))[1]
        return system.mu(q, v), system.mass_matrix(q), system.dL_dq(q, v) - dp, turn  # the last: v v dmu

    mu, M, push, turn = (np.asarray(x) for x in at(case.q0, case.v0))
    free = np.linalg.solve(M, push)  # -Gamma v v - grad V
    Z = np.linalg.solve(M, mu.T)
    printed = Z @ np.linalg.solve(mu @ Z, mu @ free + turn)
    assert size(mu @ (free - printed) + turn) < 1e-15
    assert size(mu @ (free + printed) + turn) > 1e-2


def test_8_and_9():
    """(8) agrees with (7) for the inverse of the Hessian of L, not for the Hessian; (9) is of first order."""
    case = perturbed_case(chaplygin_sleigh)
    system, q, v = case.system, case.q0, case.v0
    p = system.momentum(q, v)
    C = hamiltonian.compatibility_matrix(system, q, p)
    mu, M = np.asarray(system.mu(q, v)), np.asarray(system.mass_matrix(q))
    assert_allclose(mu @ np.linalg.solve(M, mu.T), C, rtol=0, atol=1e-14)
    assert size(mu @ M @ mu.T - C) > 1e-2
    dH_dp = hamiltonian.hamiltonian_field(system, q, p)[0]
    assert_allclose(dH_dp, v, rtol=0, atol=1e-14)  # dq/dt, and not d2q/dt2
    assert size(dH_dp - system.acceleration(q, v)) > 1e-2


def test_the_potential_of_example_4_2_lacks_h(particle, particle_state):
    """With h the derivatives of S give the printed difference equations; as printed they do not."""

    def S(q0, q1, h):
        return H / 2 * jnp.sum(((q1 - q0) / H) ** 2) - h * jnp.sum(((q0 + q1)[:2] / 2) ** 2)

    run = simulate(particle, GeneratingFunction(), *particle_state, step_size=H, steps=2)
    y0, y1, y2 = run.q[:, 1]
    assert abs((y1 - y0) / H - H * (y1 + y0) / 2 - (y2 - y1) / H - H * (y2 + y1) / 2) < 1e-14  # printed
    D1, D2 = jax.grad(S, 0), jax.grad(S, 1)
    both = jax.jit(lambda h: D2(run.q[0], run.q[1], h) + D1(run.q[1], run.q[2], h))
    assert abs(float(np.asarray(both(H))[1])) < 1e-14
    assert abs(float(np.asarray(both(1.0))[1])) > 0.1


def test_the_fraction_in_example_5_1(particle, particle_state):
    """1 / (1 + y1^2) multiplies the whole fraction, not the first term of its numerator."""
    run = simulate(particle, GeneratingFunction(projected=True), *particle_state, step_size=H, steps=2)
    (x0, y0, z0), (x1, y1, z1), (x2, y2, _) = run.q
    C = 1 + y1**2

    def parts(xa, ya, xb, yb):
        return (
            (xb + xa) * (yb + ya) / 2,
            (xb - xa) * (yb - ya) / H**2,
            1 + ((yb + ya) / 2) ** 2,
            (yb + ya) / 2,
        )

    a0, b0, c0, m0 = parts(x0, y0, x1, y1)
    a1, b1, c1, m1 = parts(x1, y1, x2, y2)
    left = (
        ((x1 - x0) / H - H * (x1 + x0) / 2) / C - (x2 - x1) / H - H * (x2 + x1) / 2 + y1 / C * (z1 - z0) / H
    )
    rest = (a1 - b1) / c1 * m1 - y1 / C * (a0 - b0) / c0
    assert abs(left + H / 2 * ((a0 - b0) / c0 / C * m0 + rest)) < 1e-14
    assert abs(left + H / 2 * ((a0 / C - b0) / c0 * m0 + rest)) > 1e-4


def test_3_2_the_discrete_flow_leaves_the_constraint():
    """G_h maps M to M only up to O(h^(r+1)); with the projection (33) it does map M to M."""
    case = perturbed_case(rolling_disk_on_incline)
    hs = np.array([0.1, 0.05, 0.025])
    errors = []
    for h in hs:
        run = simulate(case.system, GeneratingFunction(), case.q0, case.v0, step_size=h, steps=1)
        errors.append(size(run.constraint_residual[1]))
    assert min(errors) > 1e-8
    assert abs(exponent(hs, errors) - 3) < 0.1
    run = simulate(case.system, GeneratingFunction(projected=True), case.q0, case.v0, step_size=H, steps=1)
    assert size(run.constraint_residual[1]) < 1e-15


def test_the_geometric_integrator_is_underdetermined():
    """Both readings satisfy P (D2 S + D1 S) = 0, with different q_2 from the same q_0, q_1; and these n
    equations have rank n - m in q_2."""
    case = perturbed_case(rolling_disk_on_incline)
    system = case.system

    def S(q0, q1):
        return H * system.lagrangian((q0 + q1) / 2, (q1 - q0) / H, system.parameters)

    run = simulate(system, GeometricNonholonomic(), case.q0, case.v0, step_size=H, steps=2)
    q0, q1, q2 = run.q
    P, Q = (np.asarray(x).T for x in system.projectors(q1))
    arriving = np.asarray(jax.jit(jax.grad(S, 1))(q0, q1))  # D2 S
    leave = jax.grad(S, 0)
    leaving_and_slopes = jax.jit(lambda x: (leave(q1, x), jax.jacfwd(leave, 1)(q1, x)))  # D1 S

    leaving, slopes = (np.asarray(x) for x in leaving_and_slopes(q2))
    assert size(P @ (arriving + leaving)) < 1e-14
    assert np.linalg.matrix_rank(P @ slopes, tol=1e-10) == system.n - system.m
    other = q2 + np.linalg.solve(-slopes, Q @ arriving)
    leaving = np.asarray(leaving_and_slopes(other)[0])
    assert (
        size(P @ (arriving + leaving)) < 1e-13
    )  # S is quadratic: one Newton step lands on the other reading
    assert_allclose(-leaving, P @ arriving, rtol=0, atol=1e-13)
    assert size(other - q2) > 1e-3


def test_example_4_2_cannot_tell_section_4_from_section_5():
    """phi is bilinear in (q, p) for the particle and kept by section 4 already; on the disk it is not."""
    for alpha in (0.0, 0.5):
        defects = []
        for module in (nonholonomic_particle, rolling_disk_on_incline):
            case = perturbed_case(module)
            run = simulate(case.system, GeneratingFunction(alpha), case.q0, case.v0, step_size=H, steps=200)
            defects.append(size(run.constraint_residual))
        assert defects[0] < 1e-14
        assert defects[1] > 1e-4


def test_the_comparison_with_runge_kutta_depends_on_step_and_time(particle, particle_state):
    def error(method, h, t_end):
        run = simulate(particle, method, *particle_state, step_size=h, t_end=t_end, save_every=10)
        return size(energy_error(run))

    ratios = [
        error(RungeKutta4(), *x) / error(GeneratingFunction(), *x) for x in ((0.1, 100.0), (0.1, 1000.0))
    ]
    assert 0.1 < ratios[0] < 0.3  # Runge-Kutta is still better,
    assert 1.5 < ratios[1] < 2.5  # then its drift has caught up
    assert error(RungeKutta4(), 0.01, 100.0) < 1e-3 * error(GeneratingFunction(), 0.01, 100.0)


def test_13_needs_s_off_the_constraint():
    """Two extensions of S^h that agree on the pairs of motions on D have different partial derivatives."""
    case = perturbed_case(rolling_disk_on_incline)
    system, h = case.system, 0.1
    pair = jax.tree.map(np.asarray, exact.terms(system, case.q0, case.v0, h))
    assert_allclose(-pair.D1 - pair.force0, pair.p0, rtol=0, atol=1e-14)

    def vanishing(q0, q1):  # zero on those pairs: phi of the initial velocity
        return float(np.asarray(system.phi(q0, exact.initial_velocity(system, q0, q1, h)))[0])

    assert abs(vanishing(case.q0, pair.q1)) < 1e-13
    e = 1e-4 * np.eye(4)
    slope = [(vanishing(case.q0, pair.q1 + d) - vanishing(case.q0, pair.q1 - d)) / 2e-4 for d in e]
    assert size(slope) > 1  # S + vanishing would violate (13) by this


def test_the_constraint_error_of_3_1_is_one_power_of_h_larger():
    """On exact pairs phi~ = O(h^r), and the force (1 - alpha) h F misses its integral by O(h^r):
    derivatives by q0 and q1 cost a power of h, since C and D of (22)-(23) depend on (q1 - q0) / h."""
    case = perturbed_case(rolling_disk_on_incline)
    system, q0, hs = case.system, np.asarray(case.q0), np.array([0.1, 0.05, 0.025])
    pairs = [exact.terms(system, q0, case.v0, h) for h in hs]

    @jax.jit
    def approximate(q1, h, alpha):
        """S, phi~ and the force."""
        node, w = (1 - alpha) * q0 + alpha * q1, (q1 - q0) / h
        S = h * system.lagrangian(node, w, system.parameters)
        force = (1 - alpha) * h * system.mu(node, w).T @ system.multipliers(node, w)
        return S, exact.approximate_constraint(system, q0, q1, h, alpha), force

    for alpha, r in ((0.5, 2), (0.0, 1)):
        in_S, in_phi, in_force = [], [], []
        for h, pair in zip(hs, pairs, strict=True):
            S, phi, force = (np.asarray(x) for x in approximate(pair.q1, h, alpha))
            in_S.append(size(S - np.asarray(pair.S)))
            in_phi.append(size(phi))
            in_force.append(size(force - np.asarray(pair.force0)))
        assert abs(exponent(hs, in_S) - (r + 1)) < 0.1  # (22) holds with this r
        assert abs(exponent(hs, in_phi) - r) < 0.1  # printed: r + 1
        assert abs(exponent(hs, in_force) - r) < 0.1


def test_remark_4_1_needs_the_force_averaged_too():
    """S_sym with the force of alpha alone is of first order."""

    class OnlyS(GeneratingFunction):
        def force(self, system, node, w, t):
            return jnp.zeros(system.n)

        def momenta(self, system, q, w, t, h):
            p0, p1 = super().momenta(system, q, w, t, h)
            a = self.alpha
            F = GeneratingFunction.force(self, system, q + a * h * w, w, t + a * h)
            return p0 - (1 - a) * h * F, p1 + a * h * F

    case = perturbed_case(rolling_disk_on_incline)
    orders = [
        np.min(
            measured_order(case.system, method, case.q0, case.v0, t_end=2.0, steps=(80, 160, 320)).global_[:2]
        )
        for method in (OnlyS(0.2, symmetric=True), GeneratingFunction(0.2, symmetric=True))
    ]
    assert_allclose(orders, [1, 2], rtol=0, atol=0.1)


def test_the_remainder_before_13_is_of_second_order():
    """q1 - q0 - h dH/dp = (h^2 / 2) d2q/dt2 + ...: O(h^2), not o(h^2)."""
    case = perturbed_case(rolling_disk_on_incline)
    system, h, q0, v0 = case.system, 1e-3, np.asarray(case.q0), np.asarray(case.v0)
    rest = (np.asarray(exact.arc(system, q0, v0, h).q1) - q0 - h * v0) / h**2
    assert_allclose(rest, np.asarray(system.acceleration(q0, v0)) / 2, rtol=0, atol=1e-2)
    assert size(rest) > 0.1


def test_the_reaction_is_not_a_conservative_force():
    """Section 1.1: it depends on the velocity, and as a function of q alone it is not a gradient."""
    case = perturbed_case(nonholonomic_particle)
    system = case.system

    def reaction(q, v):
        return system.mu(q, v).T @ system.multipliers(q, v)

    by_q, by_v = (np.asarray(x) for x in jax.jit(jax.jacfwd(reaction, (0, 1)))(case.q0, case.v0))
    assert size(by_v) > 0.1
    assert size(by_q - by_q.T) > 0.1
