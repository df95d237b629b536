"""Machines by `bodies`, beside their equations by hand: loops, wheels with motors, edges, springs."""

import jax.numpy as jnp
import numpy as np
import pytest

from noslip import simulate
from noslip.bodies import LiftOff, Model, disk, fixed, free, planar, plane, prismatic, revolute
from noslip.engine.backends.numpy_rows import evaluate
from noslip.integrators import DiscreteGradient, RungeKutta4


def motion(_, system, q, v):
    return system.acceleration(q, v, 0.0), system.multipliers(q, v, 0.0)


def accelerations(system, q, v):
    return tuple(x[0] for x in evaluate(motion, None, system, np.asarray(q)[None], np.asarray(v)[None]))


# ---- loops ----------------------------------------------------------------------------------------
CRANK, ROD, OFFSET = 0.3, 0.8, 0.05


def slider_crank():
    """In the plane of x and z; the slider is a little above the crank's hinge."""
    model = Model(gravity=9.81)
    model.body("crank", joint=revolute("-y"), mass=0.7, centre=(0.15, 0.0, 0.0), inertia=(0.01, 0.02, 0.02))
    model.body(
        "rod",
        on="crank",
        joint=revolute("-y", at=(CRANK, 0.0, 0.0), own=(0.0, 0.0, 0.0)),
        mass=0.5,
        centre=(0.4, 0.0, 0.0),
        inertia=(0.01, 0.03, 0.03),
    )
    model.body("slider", joint=prismatic("x", at=(0.0, 0.0, OFFSET)), mass=1.1)
    model.loop(("rod", (ROD, 0.0, 0.0)), ("slider", (0.0, 0.0, OFFSET)))
    return model


def inertia_and_potential(angle):
    """Of the crank's angle alone: T = J(angle) rate^2 / 2, V(angle)."""
    c, s = np.cos(angle), np.sin(angle)
    b = np.arcsin((OFFSET - CRANK * s) / ROD)  # of the rod, from x
    db = -CRANK * c / (ROD * np.cos(b))
    rod = np.array([-CRANK * s - 0.4 * np.sin(b) * db, CRANK * c + 0.4 * np.cos(b) * db])
    slider = -CRANK * s - ROD * np.sin(b) * db
    J = 0.02 + 0.7 * 0.15**2 + 0.03 * db**2 + 0.5 * rod @ rod + 1.1 * slider**2
    return J, 9.81 * (0.7 * 0.15 * s + 0.5 * (CRANK * s + 0.4 * np.sin(b)))


def test_a_slider_crank_moves_by_its_one_equation():
    model = slider_crank()
    system = model.system()
    assert (system.n, system.m, system.k) == (3, 0, 2)  # nothing moves along y
    q, v = model.start({"crank": 0.7}, {"crank": 3.0}, near={"slider": 1.0})
    h, steps = 1e-3, ((1, 0.75), (2, -0.15), (3, 1 / 60))
    dJ, dV = (
        sum(
            w * (inertia_and_potential(0.7 + k * h)[x] - inertia_and_potential(0.7 - k * h)[x])
            for k, w in steps
        )
        / h
        for x in (0, 1)
    )
    found, _ = accelerations(system, q, v)
    J = inertia_and_potential(0.7)[0]
    np.testing.assert_allclose(found[0], -(0.5 * dJ * 3.0**2 + dV) / J, rtol=1e-9)
    whole = 0.5 * J * 9 + inertia_and_potential(0.7)[1] + 1.1 * 9.81 * OFFSET
    np.testing.assert_allclose(energy(system, q, v), whole, rtol=1e-13)


def energy(system, q, v):
    return float(evaluate(lambda _, s, q, v: s.energy(q, v), None, system, q[None], v[None])[0])


def test_the_force_of_a_loop_is_what_the_rod_pushes_with():
    """The slider is accelerated by nothing else along its way."""
    model = slider_crank()
    q, v = model.start({"crank": 0.7}, {"crank": 3.0}, near={"slider": 1.0})
    run = simulate(model.system(), DiscreteGradient(), q, v, step_size=1e-3, steps=4)
    found, _ = accelerations(model.system(), run.q[2], run.v[2])
    np.testing.assert_allclose(-model.reactions(run)["rod-slider"].force[2, 0], 1.1 * found[2], rtol=1e-3)
    assert np.max(np.abs(run.holonomic_residual)) < 1e-14


@pytest.mark.slow
def test_a_hinge_that_closes_a_loop_keeps_the_axis():
    """A door on a free frame: five equations leave one degree of freedom against the frame."""
    model = Model(gravity=0.0)
    model.body("frame", joint=free(names=("x", "y", "z", "a")), mass=1.0, inertia=(0.3, 0.4, 0.5))
    model.body("door", joint=free(names=("X", "Y", "Z", "b")), mass=2.0, inertia=(0.2, 0.3, 0.4))
    model.loop(("frame", (0.5, 0.0, 0.0)), ("door", (-0.3, 0.1, 0.0)), hinge="z", name="hinge")
    q, _ = model.start(
        {"a": [0.9, 0.3, -0.2, 0.1]}, {"a": [0.3, 0.2, -0.4]}, near={"b": [0.9, 0.3, -0.2, 0.4]}
    )
    system = model.system()
    assert system.k == 5
    poses = model.poses(q)
    axes = [np.asarray(A)[:, 2] for A, _ in poses.values()]
    np.testing.assert_allclose(axes[0], axes[1], atol=1e-12)
    ends = [
        np.asarray(A) @ x + r for (A, r), x in zip(poses.values(), ([0.5, 0, 0], [-0.3, 0.1, 0]), strict=True)
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-12)


# ---- wheels ---------------------------------------------------------------------------------------
R, B, AHEAD = 0.1, 0.25, 0.07


def wheel_set():
    model = Model(gravity=9.81)
    model.body("cart", joint=planar(), mass=3.0, centre=(AHEAD, 0.0, R), inertia=(0.1, 0.1, 0.12))
    for name, side in (("left", B), ("right", -B)):
        model.body(
            name,
            on="cart",
            joint=revolute("y", at=(0.0, side, R)),
            mass=0.4,
            inertia=(0.001, 0.002, 0.001),
            shape=disk(R, "y"),
        )
        model.rolls_on(name, plane())
        model.motor(name, f"{name}_torque")
    return model


def test_a_wheel_set_is_driven_by_its_torques():
    """(m + 2 m_w + 2 I / r^2) u' = sum of torques / r + m d w^2, and so for the turn w."""
    model = wheel_set()
    system = model.system()
    assert (system.n, system.m, system.k) == (
        5,
        3,
        0,
    )  # one axle slips sideways once; heights keep themselves
    assert tuple(system.inputs) == ("left_torque", "right_torque")
    q, v = model.start({"yaw": 0.4}, {"left": 3.0, "right": 5.0})
    left, right = 0.3, -0.2
    driven = system.with_parameters({"left_torque": left, "right_torque": right})
    found, _ = accelerations(driven, q, v)
    u, w = R * (3.0 + 5.0) / 2, R * (5.0 - 3.0) / (2 * B)
    du = ((left + right) / R + 3.0 * AHEAD * w**2) / (3.0 + 0.8 + 2 * 0.002 / R**2)
    turning = 0.12 + 3.0 * AHEAD**2 + 2 * (0.001 + 0.4 * B**2 + 0.002 * B**2 / R**2)
    dw = ((right - left) * B / R - 3.0 * AHEAD * u * w) / turning
    np.testing.assert_allclose(v[2], w, rtol=1e-12)
    np.testing.assert_allclose(found[2:], [dw, (du - B * dw) / R, (du + B * dw) / R], rtol=1e-11)


def test_what_rigid_bodies_leave_open_is_not_a_number():
    model = wheel_set()
    q, v = model.start({}, {"left": 3.0, "right": 5.0})
    given = {"left_torque": 0.3, "right_torque": -0.2}
    run = simulate(model.system(), RungeKutta4(), q, v, step_size=0.001, steps=20, inputs=given)
    forces = model.reactions(run)
    spins = np.gradient(run.v[:, -2:], run.t, axis=0)
    for name, torque, spin in zip(("left", "right"), given.values(), spins.T, strict=True):
        assert np.all(np.isnan(forces[name].normal))
        assert np.all(np.isnan(forces[name].sideways))  # both are the axle's
        assert np.all(np.isnan(forces[name].friction))
        balance = (torque - 0.002 * spin) / R  # of the wheel about its axle: I spin' = torque - R along
        np.testing.assert_allclose(forces[name].along[2:-2], balance[2:-2], rtol=1e-4)


def test_a_wheel_that_is_pulled_up_lifts_off():
    model = Model(gravity=10.0)
    model.body("x", joint=prismatic("x"))
    model.body("z", on="x", joint=prismatic("z"))
    model.body("wheel", on="z", joint=revolute("y"), mass=2.0, inertia=0.1, shape=disk(0.5, "y"))
    model.rolls_on("wheel", plane())
    model.push("pull", ("wheel", (0.0, 0.0, 0.0)), along="z")
    q, v = model.start(rates={"x": 1.0})
    np.testing.assert_allclose([q[1], v[2]], [0.5, 2.0])
    pull = np.linspace(0.0, 40.0, 41)
    run = simulate(model.system(), RungeKutta4(), q, v, step_size=0.1, steps=41, inputs={"pull": pull})
    with pytest.warns(LiftOff, match=r"the normal force of 'wheel' is -1 at t = 2.2: there it lifts off"):
        found = model.reactions(run)["wheel"]
    np.testing.assert_allclose(found.normal[1:], 20.0 - pull, atol=1e-12)


# ---- edges, springs, dampers ----------------------------------------------------------------------
def test_a_sleigh_on_a_knife_edge_turns_by_its_two_equations():
    model = Model(gravity=9.81)
    model.body("sleigh", joint=planar(), mass=1.4, centre=(0.3, 0.0, 0.0), inertia=(0.1, 0.1, 0.2))
    model.knife_edge("sleigh", at=(0.0, 0.0, 0.0))
    q, v = model.start({"yaw": 0.5}, {"yaw": 0.8, "x": 1.2})
    u, w = v[0] * np.cos(0.5) + v[1] * np.sin(0.5), 0.8
    found, multipliers = accelerations(model.system(), q, v)
    np.testing.assert_allclose(found[2], -1.4 * 0.3 * u * w / (0.2 + 1.4 * 0.09), rtol=1e-12)
    ahead = found[0] * np.cos(0.5) + found[1] * np.sin(0.5)
    np.testing.assert_allclose(ahead, 0.3 * w**2, rtol=1e-12)
    assert len(multipliers) == 1


def test_springs_dampers_and_fixed_parts_act_as_they_should():
    model = Model(gravity=0.0, parameters={"k": 5.0})
    model.body("slide", joint=prismatic("x", length="s"), mass=1.0)
    model.body("load", on="slide", joint=fixed(at=(0.2, 0.0, 0.0), own=(0.0, 0.0, 0.0)), mass=0.5)
    model.joint_spring("s", stiffness="k", rest=0.1, damping=0.3)
    model.spring(
        ("load", (0.0, 0.0, 0.0)), ("ground", (0.0, 0.4, 0.0)), stiffness=7.0, length=0.2, damping=0.9
    )
    s, rate = 0.3, 1.7
    length = np.hypot(s + 0.2, 0.4)
    along = (s + 0.2) / length
    force = -5.0 * (s - 0.1) - 0.3 * rate - 7.0 * (length - 0.2) * along - 0.9 * rate * along**2
    found, _ = accelerations(model.system(), [s], [rate])
    np.testing.assert_allclose(found, force / 1.5, rtol=1e-12)


# ---- joints that are moved ------------------------------------------------------------------------
SWING = {"rate": 2.0}


def shaken():
    """A pendulum on a slide that is moved to and fro."""
    model = Model(gravity=9.81)
    model.body("slide", joint=prismatic("x", length=lambda t: 0.3 * jnp.sin(SWING["rate"] * t)))
    model.body("arm", on="slide", joint=revolute("-y"), mass=1.3, centre=(0.0, 0.0, -0.6), inertia=0.02)
    return model


def test_a_pendulum_on_a_shaken_slide_moves_by_its_equation():
    """(J + m l^2) a'' = -m l (g sin a + x'' cos a)."""
    q, v, t = np.array([0.4]), np.array([1.1]), 0.7
    found = shaken().system().acceleration(q, v, t)
    pull = 9.81 * np.sin(0.4) - 0.3 * 4.0 * np.sin(1.4) * np.cos(0.4)
    np.testing.assert_allclose(found, -1.3 * 0.6 * pull / (0.02 + 1.3 * 0.36), rtol=1e-12)


def test_what_a_given_motion_reads_must_stay_as_it_was(monkeypatch):
    system = shaken().system()
    system.refuse_changed()
    monkeypatch.setitem(SWING, "rate", 3.0)
    with pytest.raises(ValueError, match="reads 'SWING', which must stay as it was"):
        system.refuse_changed()
    assert shaken().system() != system


# ---- wrong use ------------------------------------------------------------------------------------
def started():
    model = Model(gravity=9.81, parameters={"m": 1.0})
    model.body("wheel", joint=free(), mass="m", inertia=(0.1, 0.2, 0.1), shape=disk(0.5, "y"))
    return model


def bad(**changes):
    given = {"joint": free(names=("a", "b", "c", "d")), "mass": 1.0, "inertia": 0.1} | changes
    return lambda model: model.body("other", **given)


WRONG = {
    "unknown body 'whel'; did you mean 'wheel'?": lambda m: m.rolls_on("whel", plane()),
    "the mass of 'other' must be positive, but -1 was given": bad(mass=-1.0),
    "no principal moment above the sum of the others, but they are 1, 1, 3": bad(inertia=(1.0, 1.0, 3.0)),
    "the inertia of 'other' must be symmetric": bad(inertia=[[1.0, 0.1, 0], [0, 1, 0], [0, 0, 1]]),
    "'other' uses an unknown parameter 'M'; known: m.": bad(mass="M"),
    "must be made by free, planar, revolute, prismatic or fixed": bad(joint="free"),
    "unknown body 'frame'; known: ground, wheel.": bad(on="frame"),
    "must have a mass where it has an inertia": bad(mass=None),
    "the name of a body must be new, but there is a 'wheel' already": lambda m: m.body("wheel", joint=free()),
    "must roll on a surface such as plane(), but 'ground' was given": lambda m: m.rolls_on("wheel", "ground"),
    "rolls on itself": lambda m: m.rolls_on("wheel", plane(), of="wheel"),
    "`radius` of contact 'wheel' must be positive": lambda m: m.rolls_on(
        "wheel", plane(), shape=disk(-1.0, "y")
    ),
    "a loop must join two bodies": lambda m: m.loop(("wheel", (0, 0, 0)), ("wheel", (1, 0, 0))),
    "must be a pair of a body and a place": lambda m: m.loop("wheel", "ground"),
    "a spring must have a `stiffness` or a `damping`": lambda m: m.joint_spring("x"),
    "must be three numbers, but (1, 2) was given": bad(centre=(1, 2)),
    "must be 'x', 'y', 'z' or three numbers, not all zero": lambda m: revolute((0, 0, 0)),
    "`names` of a free joint must be 4 names": lambda m: free(names=("x", "y")),
    "the name of an input must be a word, but 3 was given": lambda m: m.motor("x", 3),
    "`parameters` must be a mapping": lambda m: Model(gravity=1.0, parameters=3),
    "a start must be given by a mapping": lambda m: m.start([1, 2]),
    "'x' must be given by a finite number, but 'a' was given": lambda m: m.start({"x": "a"}),
    "`sequence` must be three axes": lambda m: free(sequence="zzx"),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_wrong_use_is_refused_in_one_sentence(sentence):
    with pytest.raises((ValueError, TypeError)) as refusal:
        WRONG[sentence](started())
    assert sentence in str(refusal.value)


def test_what_cannot_be_together_is_refused_by_the_system():
    with pytest.raises(ValueError, match="a model must have a body that can move"):
        Model(gravity=1.0).system()
    empty = Model(gravity=1.0)
    empty.body("arm", joint=revolute("x"))
    with pytest.raises(ValueError, match="every coordinate must move some mass, but 'arm' can change"):
        empty.system()
    model = started()
    model.motor("spin", "torque")
    with pytest.raises(ValueError, match="unknown coordinate 'spin'"):
        model.system()
    stuck = Model(gravity=1.0)
    stuck.body("wheel", joint=planar(at=(0.0, 0.0, 0.7)), mass=1.0, inertia=0.1, shape=disk(0.5, "y"))
    stuck.rolls_on("wheel", plane())
    with pytest.raises(
        ValueError, match=r"'wheel' must be able to close, but its gap \(normal\) is 0.2 wherever"
    ):
        stuck.system()


def test_a_start_that_is_open_or_slips_is_refused_with_the_name():
    model = slider_crank()
    with pytest.raises(ValueError, match=r"with crank, slider kept was found.*'rod-slider' \(x\)"):
        model.start({"crank": 0.3, "slider": 3.0})
    with pytest.raises(ValueError, match="but something does with the rates of crank, slider"):
        model.start({"crank": 0.3}, {"crank": 3.0, "slider": 1.0}, near={"slider": 1.0})
    with pytest.raises(ValueError, match="unknown coordinate 'crnk'; did you mean 'crank'"):
        model.start({"crnk": 0.3})
    with pytest.raises(ValueError, match="'crank' must be given by a finite number"):
        model.start({"crank": [0.3]})


def test_names_of_two_free_bodies_carry_theirs():
    model = started()
    model.body("ball", joint=free(), mass=1.0, inertia=0.1)
    model.body("flap", on="ball", joint=revolute("x"), mass=1.0, inertia=0.1)
    names = model.system().coordinates
    assert names[:4] == ("wheel_x", "wheel_y", "wheel_z", "wheel_u0")
    assert names[-2:] == ("ball_u3", "flap")
    assert model.system().rotations == ("wheel_u", "ball_u")
