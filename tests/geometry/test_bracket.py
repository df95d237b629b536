"""The triple (D*, Pi, H): CFHM (5), (7)-(9), (16)-(18) against the motion, for every linear system."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from catalogue_by_size import LARGE
from noslip import System, systems
from noslip.geometry.bracket import Bracket, structure_functions
from noslip.geometry.frames import FRAMES, Frame
from noslip.systems import chaplygin_sleigh, quartic, rolling_disk, suslov
from noslip.testing.integrators import Case, perturbed_case

LINEAR = [
    name
    for name, module in systems.discover().items()
    if name not in LARGE - {"bead_on_a_curve"} and module.system().kind == "linear"
    if module.system().force is None  # which is no part of Pi grad H
]


def gyroscopic():
    """A bent constraint in a magnetic field: a(q) and M(q) both depend on q."""
    system = System(
        lambda q, v, p: (
            0.5 * (1 + 0.3 * jnp.sin(q[0])) * jnp.dot(v, v)
            + 0.4 * (q[0] ** 2 * v[1] - jnp.sin(q[1]) * v[2])
            - jnp.cos(q[0] + q[2])
        ),
        one_forms=lambda q, p: jnp.array([[jnp.sin(q[1]), 0.3 * q[2], 1.0]]),
        coordinates=("x", "y", "z"),
        frame=lambda q, p: jnp.array([[1.0, 0.0], [0.0, 1.0], [-jnp.sin(q[1]), -0.3 * q[2]]]),
    )
    q = jnp.array([0.4, -0.7, 0.5])
    return Case("gyroscopic", system, q, system.project_velocity(q, jnp.array([0.8, 0.3, -0.2])))


QUICK = ("chaplygin_sleigh", "rolling_disk")
REST = [pytest.param(name, marks=pytest.mark.slow) for name in LINEAR if name not in QUICK]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["gyroscopic", *QUICK, *REST])
def test_pi_grad_h_is_the_motion(name):
    """(9) equals v and the acceleration carried to rho, in every frame; (16) there and back; Pi skew."""
    case = gyroscopic() if name == "gyroscopic" else perturbed_case(systems.find(name))
    system, q, v = case.system, case.q0, case.v0

    @jax.jit
    def all_of(q, v):
        out = []
        for kind in FRAMES:
            bracket = Bracket(Frame(system, kind))
            z = bracket.from_velocity(q, v)
            point = bracket.at(z)
            wanted = jax.jvp(bracket.from_velocity, (q, v), (v, system.acceleration(q, v)))[1]
            g = point.gradient()
            out.append(
                (point.v, point.p, point.energy(), g, point.matrix(), wanted, jax.grad(bracket.energy)(z))
            )
            out[-1] += (point.apply(g), bracket.energy_and_slope(z, wanted)[1])
        return out

    for v1, p, energy, g, Pi, wanted, by_grad, field, slope in all_of(q, v):
        assert_allclose(v1, v, atol=1e-13)
        assert_allclose(p, system.momentum(q, v), atol=1e-13)
        assert_allclose(energy, system.energy(q, v), rtol=1e-13, atol=1e-14)
        assert_allclose(g, by_grad, atol=1e-12)
        assert_allclose(Pi @ g, wanted, atol=1e-12)
        assert_allclose(field, wanted, atol=1e-12)
        assert_allclose(slope, g @ wanted, atol=1e-12)
        assert_array_equal(Pi, -Pi.T)


def point_and_pi(system, q, v):
    """z of a state and Pi(z), in the frame of the system."""
    bracket = Bracket(Frame(system))

    @jax.jit
    def both(q, v):
        z = bracket.from_velocity(q, v)
        return z, bracket.matrix(z)

    return map(np.asarray, both(q, v))


def compiled_structure_functions(system):
    return jax.jit(lambda q: structure_functions(Frame(system), q))


def test_the_papers_brackets():
    """(8) of the rolling disk, the sleigh before (22), and the block of the quartic system (errata)."""
    disk = rolling_disk.system(m=1.3, r=0.7, I=0.6, J=0.4)
    q, v = map(np.asarray, rolling_disk.typical_state())
    _, Pi = point_and_pi(disk, q, disk.project_velocity(q, v))
    c, s = np.cos(q[2]), np.sin(q[2])
    X = np.array([[0.7 * c, 0], [0.7 * s, 0], [0, 1], [1, 0]])
    assert_allclose(Pi, np.block([[np.zeros((4, 4)), X], [-X.T, np.zeros((2, 2))]]), atol=1e-15)

    m, J, a = 1.3, 6.0, 0.8
    sleigh = chaplygin_sleigh.system(m=m, J=J, a=a)
    q, v = chaplygin_sleigh.typical_state()
    z, Pi = point_and_pi(sleigh, q, v)
    curve = a * np.sqrt(m) / (J + m * a**2)
    assert_allclose(Pi[3:, 3:], curve * z[3] * np.array([[0, -1], [1, 0]]), atol=1e-14)
    C = np.asarray(compiled_structure_functions(sleigh)(q))
    assert_allclose(C[0, 1], [curve, 0], atol=1e-14)

    z, Pi = point_and_pi(quartic.system(), *quartic.typical_state())
    w, eta = z[1:4], z[10:]
    kappa = w @ eta / (1 + w @ w)
    block = kappa * np.block([[np.zeros((3, 3)), -np.eye(3)], [np.eye(3), np.zeros((3, 3))]])
    assert_allclose(Pi[7:, 7:], block, atol=1e-14)


def test_the_structure_constants_of_suslovs_problem():
    """C_12^1 = I13 / I11, C_12^2 = I23 / I22, whatever the attitude (CFHM section 4.3)."""
    system, (q, _) = suslov.system(I11=1.2, I22=1.6, I13=0.3, I23=-0.2), suslov.typical_state()
    found = compiled_structure_functions(system)
    for shift in (0.0, 0.7):
        C = np.asarray(found(np.asarray(q) + shift))
        assert_allclose(C[0, 1], [0.3 / 1.2, -0.2 / 1.6], atol=1e-13)
        assert_array_equal(C[1, 0], -C[0, 1])


def test_the_equations_in_quasi_velocities():
    """CFHM (5): d/dt dl/dy + C y dl/dy - X dl/dq = 0 along the motion, on a non-constant metric."""
    case = perturbed_case(suslov)
    system, q, v = case.system, case.q0, case.v0
    frame = Frame(system)
    bracket = Bracket(frame)

    def restricted(q, y):
        return system.lagrangian(q, frame(q) @ y, system.parameters)

    @jax.jit
    def all_of(q, v, a):
        rho, rho_dot = jax.jvp(lambda q, v: bracket.from_velocity(q, v)[3:], (q, v), (v, a))
        y = bracket.at(jnp.concatenate([q, rho])).y
        by_q, by_y = jax.grad(restricted, (0, 1))(q, y)
        C = structure_functions(frame, q)
        return by_y, rho, rho_dot + jnp.einsum("abc,b,c->a", C, y, rho) - frame(q).T @ by_q

    by_y, rho, rest = all_of(q, v, system.acceleration(q, v))
    assert_allclose(by_y, rho, atol=1e-14)
    assert_allclose(rest, 0, atol=1e-13)
