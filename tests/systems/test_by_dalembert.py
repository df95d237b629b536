"""Bodies in space, vehicles and linkages against d'Alembert's principle, not at their default parameters."""

import numpy as np
import pytest
from dalembert import Body, quaternion_turn, unbalanced, x_turn, y_turn, z_turn

from noslip import systems
from noslip.systems import whipple_bicycle
from noslip.testing.systems import perturbed

UP = np.array([0.0, 0.0, 1.0])
slow = pytest.mark.slow


def made(name, **changed):
    """The system with all parameters changed, and an admissible state near the typical one."""
    module = systems.find(name)
    parameters = perturbed(dict(module.system().parameters)) | changed
    system = module.system().with_parameters(parameters)
    q, v = module.typical_state()
    q = np.asarray(system.project_position(q)) if system.k else q
    return system, np.asarray(q), np.asarray(system.project_velocity(q, v)), parameters


def point(x, y, z=0.0):
    return np.array([x, y, z * np.ones_like(x)])


def heading(angle):
    return point(np.cos(angle), np.sin(angle))


def sideways(angle):
    return point(-np.sin(angle), np.cos(angle))


def on_the_plane(p, inertia, contact, rotor=(0.0, 0.0, 0.0), flat=False):
    """A body with a quaternion that rolls on z = 0: its place is (x, y, z), or (x, y, r) for a ball."""
    first = 2 if flat else 3
    body = Body(
        p["m"],
        lambda q: point(q[0], q[1], p["r"]) if flat else q[:3],
        lambda q: quaternion_turn(q[first:]),
        inertia,
        np.array(rotor),
    )

    def slip(q, dq, t):
        A = quaternion_turn(q[first:])
        return body.velocity(q, dq, A @ contact(A[2]))

    return [body], slip


def ellipsoid(p):
    squares = np.array([p["a"], p["b"], p["c"]]) ** 2
    inertia = [[p["A"], p["D"], 0.0], [p["D"], p["B"], 0.0], [0.0, 0.0, p["C"]]]
    return on_the_plane(p, inertia, lambda g: p["h"] * UP - squares * g / np.sqrt(np.sum(squares * g**2)))


def coin(p):
    def contact(g):
        rim = np.sqrt(g[0] ** 2 + g[1] ** 2)
        return np.array([-p["r"] * g[0] / rim, -p["r"] * g[1] / rim, -p["h"] * np.ones_like(rim)])

    return on_the_plane(p, (p["A"], p["A"], p["C"]), contact)


def torus(p):
    def contact(g):
        rim = np.sqrt(g[0] ** 2 + g[1] ** 2)
        return -p["R"] * np.array([g[0] / rim, g[1] / rim, 0 * rim]) - p["r"] * g

    return on_the_plane(p, (p["A"], p["A"], p["C"]), contact)


def sphere(p, rubber=False):
    rotor = [p.get(name, 0.0) for name in ("s1", "s2", "s3")]
    (body,), slip = on_the_plane(p, (p["A"], p["B"], p["C"]), lambda g: -p["r"] * g, rotor, flat=True)

    def without_spin(q, dq, t):  # the velocity of a point beside the middle, less that of the middle
        spin = body.velocity(q, dq, np.array([1.0, 0.0, 0.0])) - body.velocity(q, dq, np.zeros(3))
        return np.append(slip(q, dq, t), spin[1])

    return [body], without_spin if rubber else slip


def inside(normal):
    """A ball that touches a wall in the direction n(x), where its middle can move along the wall only."""

    def parts(p):
        body = Body(p["m"], lambda q: q[:3], lambda q: quaternion_turn(q[3:]), [p["I"]] * 3)
        return [body], lambda q, dq, t: body.velocity(q, dq, p["r"] * normal(q[:3], p))

    return parts


def cylinder(x, p):
    return np.array([x[0], x[1], 0 * x[2]]) / np.sqrt(x[0] ** 2 + x[1] ** 2)


def cone(x, p):
    rho = np.sqrt(x[0] ** 2 + x[1] ** 2)
    return np.array([p["c"] * x[0] / rho, p["c"] * x[1] / rho, -1 + 0 * rho]) / np.sqrt(1 + p["c"] ** 2)


def bowl(x, p):
    return x / np.sqrt(np.sum(x**2))


def turntable(p):
    (body,), slip = on_the_plane(p, [p["I"]] * 3, lambda g: -p["r"] * g, flat=True)

    def relative(q, dq, t):
        speed = p["Omega"] * (1 + p["swing"] * np.cos(p["pace"] * t))
        return slip(q, dq, t) - speed * point(-q[1], q[0])

    return [body], relative


def about_a_point(p, rows):
    """A body whose third row or column of A'^T A vanishes."""
    body = Body(0.0, lambda q: 0 * q[:3], quaternion_turn, (p["A"], p["B"], p["C"]))

    def slip(q, dq, t):
        A = quaternion_turn(q)
        spin = np.stack([body.velocity(q, dq, A[:, k]) for k in range(3)], axis=1)  # A'
        return np.array([(A.T @ spin)[1, 0] if rows == "body" else (spin @ A.T)[1, 0]])

    return [body], slip


def suslov(p):
    return *about_a_point(p, "body"), lambda q: np.array([p["b1"], p["b2"], 0.0]) @ quaternion_turn(q)[2]


def veselova(p):
    moments = np.array([p["A"], p["B"], p["C"]])
    return *about_a_point(p, "space"), lambda q: 0.5 * p["k"] * np.sum(moments * quaternion_turn(q)[2] ** 2)


def racer(p):
    rear = Body(p["m1"], lambda q: point(q[0], q[1]), lambda q: z_turn(q[2]), (0, 0, p["J1"]))
    front = Body(
        p["m2"],
        lambda q: point(q[0], q[1]) + p["d1"] * heading(q[2]) + p["d2"] * heading(q[2] + q[3]),
        lambda q: z_turn(q[2] + q[3]),
        (0, 0, p["J2"]),
    )

    def slip(q, dq, t):
        none = np.zeros(3)
        return np.array(
            [
                rear.velocity(q, dq, none) @ sideways(q[2]),
                front.velocity(q, dq, none) @ sideways(q[2] + q[3]),
            ]
        )

    return [rear, front], slip, lambda q: -p["k"] * np.cos(q[3]), lambda q, dq, t: p["torque"] * dq[3]


def segway(p):
    def axle(q):
        return point(q[0], q[1], p["r"])

    def wheel(side, angle):
        return Body(
            p["m_w"],
            lambda q: axle(q) + side * p["b"] * sideways(q[2]),
            lambda q: z_turn(q[2]) @ y_turn(q[angle]),
            (p["J"], p["I"], p["J"]),
        )

    def turn(q):
        return z_turn(q[2]) @ y_turn(q[3])

    left, right = wheel(1, 4), wheel(-1, 5)
    body = Body(p["m"], lambda q: axle(q) + p["l"] * turn(q)[:, 2], turn, (p["A"], p["B"], p["C"]))

    def slip(q, dq, t):
        return np.concatenate([wheel.velocity(q, dq, -p["r"] * UP)[:2] for wheel in (left, right)])

    def motors(q, dq, t):
        return p["torque_left"] * (dq[4] - dq[3]) + p["torque_right"] * (dq[5] - dq[3])

    return [left, right, body], slip, None, motors


def snake(p):
    def place(i):
        def at(q):
            r = point(q[0], q[1])
            for j in range(i):
                r = r - p["l"] * (heading(q[2 + j]) + heading(q[3 + j]))
            return r

        return at

    links = [Body(p["m"], place(i), lambda q, i=i: z_turn(q[2 + i]), (0, 0, p["J"])) for i in range(3)]

    def slip(q, dq, t):
        return np.array([x.velocity(q, dq, np.zeros(3)) @ sideways(q[2 + i]) for i, x in enumerate(links)])

    def wave(q, dq, t):
        return sum(
            p["torque"] * np.sin(p["pace"] * t - p["lag"] * i) * (dq[1 + i] - dq[2 + i]) for i in (1, 2)
        )

    return links, slip, lambda q: -p["c"] * (np.cos(q[2] - q[3]) + np.cos(q[3] - q[4])), wave


def unicycle(p):
    def upright(q):
        return z_turn(q[2]) @ x_turn(q[3])

    def axle(q):
        return point(q[0], q[1]) + p["r"] * upright(q)[:, 2]

    def rider_turn(q):
        return upright(q) @ y_turn(q[5])

    wheel = Body(p["m"], axle, lambda q: upright(q) @ y_turn(q[4]), (p["J"], p["I"], p["J"]))
    rider = Body(
        p["M"], lambda q: axle(q) + p["l"] * rider_turn(q)[:, 2], rider_turn, (p["A"], p["B"], p["C"])
    )

    def slip(q, dq, t):
        return wheel.velocity(q, dq, -p["r"] * upright(q)[:, 2])

    return [wheel, rider], slip, None, lambda q, dq, t: p["torque"] * (dq[4] - dq[5])


def bicycle(p):
    """With z up, while the catalogue's points down: x and the angles about it are alike."""
    lengths = whipple_bicycle.LENGTHS
    hub, w, steering = lengths["rR"], lengths["w"], lengths["tilt"]

    def frame(q):
        return z_turn(-q[3]) @ x_turn(q[4]) @ y_turn(-q[5])

    def fork(q):
        return frame(q) @ y_turn(-steering) @ z_turn(-q[6]) @ y_turn(steering)

    def origin(q):
        return np.array([q[0], -q[1], -q[2]])

    def seen(x, z):  # from the hub, z upwards
        return np.array([x, 0.0, -z - hub])

    pivot = seen(w + lengths["c"], 0.0)

    def on_fork(x, z):
        return lambda q: origin(q) + frame(q) @ pivot + fork(q) @ (seen(x, z) - pivot)

    def tensor(of):
        xx, xz, yy, zz = (p[f"I{of}{x}"] for x in ("xx", "xz", "yy", "zz"))
        return [[xx, 0.0, -xz], [0.0, yy, 0.0], [-xz, 0.0, zz]]

    def spun(of):
        return p[f"I{of}xx"], p[f"I{of}yy"], p[f"I{of}xx"]

    rider = Body(
        p["mB"], lambda q: origin(q) + frame(q) @ seen(lengths["xB"], lengths["zB"]), frame, tensor("B")
    )
    bar = Body(p["mH"], on_fork(lengths["xH"], lengths["zH"]), fork, tensor("H"))
    rear = Body(p["mR"], origin, lambda q: frame(q) @ y_turn(-q[7]), spun("R"))
    front = Body(p["mF"], on_fork(w, -lengths["rF"]), lambda q: fork(q) @ y_turn(-q[8]), spun("F"))

    def slip(q, dq, t):
        found = []
        for wheel, turn, radius in ((rear, frame, hub), (front, fork, lengths["rF"])):
            axle = turn(q)[:, 1]
            low = axle * axle[2] - UP
            found.append(wheel.velocity(q, dq, radius * low / np.sqrt(np.sum(low**2))))
        return np.concatenate(found)

    return [rider, bar, rear, front], slip


def in_the_wall(angle):
    """Directions in the vertical plane x, z."""
    return np.array([np.cos(angle), 0 * angle, np.sin(angle)])


def rod(mass, length, place, angle):
    inertia = (0, mass * length**2 / 12, 0)
    return Body(mass, place, lambda q: y_turn(-angle(q)), inertia)


def linkage(p):
    l1, l2, l3 = p["l1"], p["l2"], p["l3"]
    ground = np.array([p["d"], 0.0, 0.0])
    rods = [
        rod(p["m1"], l1, lambda q: l1 / 2 * in_the_wall(q[0]), lambda q: q[0]),
        rod(p["m2"], l2, lambda q: l1 * in_the_wall(q[0]) + l2 / 2 * in_the_wall(q[1]), lambda q: q[1]),
        rod(p["m3"], l3, lambda q: ground + l3 / 2 * in_the_wall(q[2]), lambda q: q[2]),
    ]

    def slip(q, dq, t):  # the ends of coupler and rocker move alike
        ends = [rods[i].velocity(q, dq, length / 2 * in_the_wall(q[i])) for i, length in ((1, l2), (2, l3))]
        return (ends[0] - ends[1])[[0, 2]]

    return rods, slip


def piston(p):
    r, l = p["r"], p["l"]
    crank = Body(0.0, lambda q: 0 * q, lambda q: y_turn(-q[0]), (0, p["J"], 0))
    middle = rod(p["m"], l, lambda q: r * in_the_wall(q[0]) + l / 2 * in_the_wall(-q[1]), lambda q: -q[1])
    slider = Body(p["M"], lambda q: np.array([q[2], 0 * q[2], 0 * q[2]]))

    def slip(q, dq, t):
        end = middle.velocity(q, dq, l / 2 * in_the_wall(-q[1]))
        return (end - slider.velocity(q, dq, np.zeros(3)))[[0, 2]]

    return [crank, middle, slider], slip, lambda q: 0.5 * p["k"] * (q[2] - p["x0"]) ** 2


def bead(p):
    def slip(q, dq, t):  # the velocity is along the tangent of the helix
        s = q[0] / p["b"]
        rate = dq[0] / p["b"]
        return dq[1:] - rate * p["a"] * np.array([np.cos(s), np.sin(s)])

    return [Body(p["m"], lambda q: q)], slip


CASES = {
    "rattleback": ellipsoid,
    "rolling_coin": coin,
    "rolling_torus": torus,
    "chaplygin_sphere": sphere,
    "chaplygin_gyrostat": sphere,
    "rubber_sphere": lambda p: sphere(p, rubber=True),
    "ball_in_cylinder": inside(cylinder),
    "ball_in_cone": inside(cone),
    "ball_in_bowl": inside(bowl),
    "varying_turntable_ball": turntable,
    "suslov_quaternion": suslov,
    "veselova_quaternion": veselova,
    "roller_racer": racer,
    "segway": segway,
    "snake_robot": snake,
    "unicycle": unicycle,
    "four_bar": linkage,
    "slider_crank": piston,
    "bead_on_a_curve": bead,
    "whipple_bicycle": bicycle,
}
QUICK = ("roller_racer", "segway", "slider_crank", "suslov_quaternion")
CHANGED = {
    "rolling_coin": {"h": 0.17},
    "roller_racer": {"torque": 0.3},
    "segway": {"torque_left": 0.2, "torque_right": -0.3},
    "snake_robot": {"torque": 0.4},
    "unicycle": {"torque": 0.3},
}


@pytest.mark.parametrize("name", [x if x in QUICK else pytest.param(x, marks=slow) for x in CASES])
def test_no_admissible_displacement_does_work(name):
    system, q, v, p = made(name, **CHANGED.get(name, {}))
    bodies, slip, potential, power = (*CASES[name](p), None, None)[:4]
    left = unbalanced(system, q, v, bodies, slip, gravity=p.get("g", 0.0), potential=potential, power=power)
    assert left < 1e-9


def test_a_wrong_parameter_is_seen():
    system, q, v, p = made("slider_crank")
    bodies, slip, potential = piston(p | {"J": 1.001 * p["J"]})
    assert unbalanced(system, q, v, bodies, slip, gravity=p["g"], potential=potential) > 1e-6


def test_a_snake_has_two_links_or_more():
    module = systems.find("snake_robot")
    with pytest.raises(ValueError, match="`k` must be at least 2, but 1 was provided"):
        module.system(k=1)
    q, v = module.typical_state(k=5)
    p = module.system(k=5).parameters
    assert np.max(np.abs(module.one_forms(q, p) @ module.frame(q, p))) < 1e-15
    assert np.max(np.abs(module.one_forms(q, p) @ v)) < 1e-15
