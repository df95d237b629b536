"""Small models by `bodies` beside flows that are written here by hand, in NumPy."""

import numpy as np
import pytest

from noslip import rotations, simulate
from noslip.bodies import (
    Model,
    disk,
    ellipsoid,
    free,
    plane,
    revolute,
    torus,
)
from noslip.engine.backends.numpy_rows import evaluate
from noslip.integrators import ReferenceFlow


def motion(_, system, q, v):
    return system.acceleration(q, v, 0.0), system.multipliers(q, v, 0.0)


def accelerations(system, q, v):
    return tuple(x[0] for x in evaluate(motion, None, system, q[None], v[None]))


# ---- a double pendulum: a tree --------------------------------------------------------------------
def double_pendulum():
    model = Model(gravity=9.81, parameters={"m": 1.3, "l": 0.7})
    model.body("upper", joint=revolute("y"), mass="m", centre=(0.0, 0.0, -0.4), inertia=(0.05, 0.06, 0.02))
    model.body(
        "lower",
        on="upper",
        joint=revolute("y", at=(0.0, 0.0, "l"), own=(0.0, 0.0, 0.0)),
        mass=0.8,
        centre=(0.0, 0.0, -0.3),
        inertia=(0.03, 0.04, 0.02),
    )
    return model


def test_a_double_pendulum_moves_by_its_textbook_equations():
    """The second hinge is above the first; angles about y from the vertical, the second relative."""
    system = double_pendulum().system()
    q, v = np.array([0.7, -1.1]), np.array([1.3, 0.4])
    m1, m2, l, c1, c2, J1, J2, g = 1.3, 0.8, 0.7, -0.4, -0.3, 0.06, 0.04, 9.81
    a, b = q[0], q[0] + q[1]
    va, vb = v[0], v[0] + v[1]
    mass = np.array(
        [
            [J1 + m1 * c1**2 + m2 * l**2, m2 * l * c2 * np.cos(a - b)],
            [m2 * l * c2 * np.cos(a - b), J2 + m2 * c2**2],
        ]
    )
    force = np.array(
        [
            -m2 * l * c2 * np.sin(a - b) * vb**2 + (m1 * c1 + m2 * l) * g * np.sin(a),
            m2 * l * c2 * np.sin(a - b) * va**2 + m2 * c2 * g * np.sin(b),
        ]
    )
    first, second = np.linalg.solve(mass, force)
    found, _ = accelerations(system, q, v)
    np.testing.assert_allclose(found, [first, second - first], rtol=1e-12)
    other = system.with_parameters({"m": 2.0, "l": 0.5})
    assert not np.allclose(accelerations(other, q, v)[0], found)


# ---- a coin: a disk in quaternions ----------------------------------------------------------------
RADIUS, MASS, GRAVITY = 0.4, 1.7, 9.81
MOMENTS, UP = np.array([0.07, 0.136, 0.07]), np.array([0.0, 0.0, 1.0])


def coin(shape=None, inertia=MOMENTS, surface=None, rubber=False):
    model = Model(gravity=GRAVITY)
    model.body("coin", joint=free(), mass=MASS, inertia=inertia, shape=shape or disk(RADIUS, "y"))
    model.rolls_on("coin", surface or plane(), rubber=rubber)
    return model


def newton_euler(arm_of, J, q, v, normal=UP, rubber=False):
    """Accelerations of centre and body rates, and the contact force, of a body that rolls on a plane. The arm
    is a function of the rotation; its rate is by differences of sixth order."""
    R, u, du = np.asarray(rotations.matrix(q[3:])), q[3:], v[3:]
    w = (
        2
        * np.array([[-u[1], u[0], u[3], -u[2]], [-u[2], -u[3], u[0], u[1]], [-u[3], u[2], -u[1], u[0]]])
        @ du
    )
    W = R @ w
    arm, h = arm_of(R), 1e-3

    def turned(s):
        angle = s * np.linalg.norm(W)
        x, y, z = W / np.linalg.norm(W)
        K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        return arm_of((np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K) @ R)

    darm = sum(c * (turned(k * h) - turned(-k * h)) for k, c in ((1, 0.75), (2, -0.15), (3, 1 / 60))) / h
    cross = np.cross(np.eye(3), arm).T * -1.0  # cross @ x = arm x x
    size = 10 if rubber else 9
    rows, right = np.zeros((size, size)), np.zeros(size)
    Jspace = R @ J @ R.T
    rows[:3, :3], rows[:3, 6:9] = MASS * np.eye(3), -np.eye(3)
    rows[3:6, 3:6], rows[3:6, 6:9] = Jspace, -cross
    rows[6:9, :3], rows[6:9, 3:6] = np.eye(3), -cross
    right[2] = -MASS * GRAVITY
    right[3:6] = -np.cross(W, Jspace @ W)
    right[6:9] = -np.cross(W, darm)
    if rubber:
        rows[3:6, 9], rows[9, 3:6] = -normal, normal
    found = np.linalg.solve(rows, right)
    return found[:3], found[3:6], found[6:9]


def disk_arm(R, n=UP, radius=RADIUS):
    across = n - R[:, 1] * (R[:, 1] @ n)
    return -radius * across / np.linalg.norm(across)


def egg_arm(R):
    gamma, half = R[2], np.array([0.2, 0.3, 0.15])
    return R @ (-(half**2) * gamma / np.sqrt(gamma**2 @ half**2))


FULL = np.array([[0.07, 0.01, -0.005], [0.01, 0.1, 0.02], [-0.005, 0.02, 0.08]])
SLOPE = np.array([np.sin(0.3), 0.0, np.cos(0.3)])
ROLLERS = {
    "disk on an incline": (
        (disk(RADIUS, "y"), MOMENTS, plane(normal=SLOPE)),
        lambda R: disk_arm(R, SLOPE),
        np.diag(MOMENTS),
    ),
    "ellipsoid": ((ellipsoid((0.2, 0.3, 0.15)), FULL), egg_arm, FULL),
    "torus": (
        (torus(0.3, 0.1, "y"), FULL),
        lambda R: disk_arm(R, radius=0.3) - [0.0, 0.0, 0.1],
        FULL,
    ),
    "rubber": ((ellipsoid((0.2, 0.3, 0.15)), FULL, None, True), egg_arm, FULL),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ROLLERS)
def test_what_rolls_moves_by_newtons_and_eulers_equations(name):
    arguments, arm, J = ROLLERS[name]
    model = coin(*arguments)
    rubber = name == "rubber"
    rates = {"u": [0.7, -3.0, 0.4]} if not rubber else {"u0": 0.3, "u1": -0.2}
    q, v = model.start({"x": 0.1, "y": -0.2, "u": [0.8, 0.3, -0.4, 0.2]}, rates)
    normal = SLOPE if "incline" in name else UP
    point = model.contact_points(q)["coin"]
    np.testing.assert_allclose(point, q[:3] + arm(np.asarray(rotations.matrix(q[3:]))), atol=1e-13)
    assert abs(normal @ point) < 1e-13
    a, _, force = newton_euler(arm, J, q, v, normal, rubber)
    found, multipliers = accelerations(model.system(), q, v)
    np.testing.assert_allclose(found[:3], a, atol=1e-9)
    m = model.system().m
    np.testing.assert_allclose(multipliers[m], normal @ force, rtol=1e-9)
    np.testing.assert_allclose(
        np.linalg.norm(multipliers[:2]), np.linalg.norm(force - normal * (normal @ force)), rtol=1e-8
    )


def in_a_circle(lean=0.4, turning=2.0):
    """A coin that leans and rolls on a circle at a rate: its moments balance for one spin."""
    c, s, axial = np.cos(lean), np.sin(lean), MOMENTS[1] + MASS * RADIUS**2
    spin = (MOMENTS[0] * turning**2 * c - MASS * GRAVITY * RADIUS) * s / (turning * c * axial) - turning * s
    model, u = coin(), np.array([np.cos(lean / 2), np.sin(lean / 2), 0.0, 0.0])
    w = [0.0, spin + turning * s, turning * c]
    return model, *model.start({"x": 0.0, "y": 0.0, "u": u}, {"u": w})


def test_a_coin_in_steady_motion_goes_round_in_a_circle():
    model, q, v = in_a_circle()
    found, _ = accelerations(model.system(), q, v)
    np.testing.assert_allclose(found[:3], [-2.0 * v[1], 2.0 * v[0], 0.0], atol=1e-12)
    assert not np.allclose(v[:2], 0)


@pytest.mark.slow
def test_a_coin_returns_from_its_circle():
    model, q, v = in_a_circle()
    run = simulate(model.system(), ReferenceFlow(), q, v, step_size=np.pi / 10, steps=10)
    np.testing.assert_allclose(run.q[-1, :3], q[:3], atol=1e-10)
    np.testing.assert_allclose(run.v[-1, :3], v[:3], atol=1e-10)
    assert np.max(np.abs(run.q[:, :2])) > 0.5
