"""Whipple's bicycle twice: by `noslip.bodies`, and by Newton's and Euler's equations for its four bodies with
all forces at joints and contacts as unknowns, in NumPy, without anything of noslip."""

import numpy as np

from noslip.bodies import Model, disk, free, plane, revolute

TILT, GRAVITY = np.pi / 10, 9.81
STEERING = np.array([np.sin(TILT), 0.0, np.cos(TILT)])
PIVOT = np.array([1.1, 0.0, 0.0])
MASSES = {"frame": 85.0, "rear": 2.0, "fork": 4.0, "front": 3.0}
CENTRES = {
    "frame": np.array([0.3, 0.0, -0.9]),
    "rear": np.array([0.0, 0.0, -0.3]),
    "fork": np.array([0.9, 0.0, -0.7]),
    "front": np.array([1.02, 0.0, -0.35]),
}
INERTIAS = {
    "frame": np.array([[9.2, 0.0, 2.4], [0.0, 11.0, 0.0], [2.4, 0.0, 2.8]]),
    "rear": np.diag([0.0603, 0.12, 0.0603]),
    "fork": np.array([[0.05892, 0.0, -0.00756], [0.0, 0.06, 0.0], [-0.00756, 0.0, 0.00708]]),
    "front": np.diag([0.1405, 0.28, 0.1405]),
}
RADII = {"rear": 0.3, "front": 0.35}


def model() -> Model:
    """The benchmark of Meijaard, Papadopoulos, Ruina, Schwab 2007; z points down."""
    made = Model(gravity=GRAVITY, down="z")
    joints = {
        "frame": free(sequence="zxy"),
        "rear": revolute("y", at=CENTRES["rear"]),
        "fork": revolute(STEERING, at=PIVOT, angle="steer"),
        "front": revolute("y", at=CENTRES["front"]),
    }
    for name, on in (("frame", "ground"), ("rear", "frame"), ("fork", "frame"), ("front", "fork")):
        made.body(
            name,
            on=on,
            joint=joints[name],
            mass=MASSES[name],
            centre=CENTRES[name],
            inertia=INERTIAS[name],
            shape=disk(RADII[name], "y") if name in RADII else None,
        )
    for wheel in RADII:
        made.rolls_on(wheel, plane(normal="-z"))
    return made


def turn(axis, angle):
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def cross(a):
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


class Seen:
    """A state (x, y, z, yaw, roll, pitch, rear, steer, front) as rotations, places and spins in space."""

    def __init__(self, q, v):
        ex, ey, ez = np.eye(3)
        yaw, lean = turn(ez, q[3]), turn(ez, q[3]) @ turn(ex, q[4])
        frame = lean @ turn(ey, q[5])
        fork = frame @ turn(STEERING, q[7])
        self.R = {
            "frame": frame,
            "rear": frame @ turn(ey, q[6]),
            "fork": fork,
            "front": fork @ turn(ey, q[8]),
        }
        self.gimbal = (ez, yaw @ ex, lean @ ey)
        self.hinges = {"rear": frame @ ey, "fork": frame @ STEERING, "front": fork @ ey}
        self.rates = {"rear": v[6], "fork": v[7], "front": v[8]}
        W = sum(rate * axis for rate, axis in zip(v[3:6], self.gimbal, strict=True))
        steered = W + v[7] * self.hinges["fork"]
        self.W = {"frame": W, "rear": W + v[6] * self.hinges["rear"], "fork": steered}
        self.W["front"] = steered + v[8] * self.hinges["front"]
        self.pivot = q[:3] + frame @ PIVOT
        self.place = {
            "frame": q[:3] + frame @ CENTRES["frame"],
            "rear": q[:3] + frame @ CENTRES["rear"],
            "fork": self.pivot + fork @ (CENTRES["fork"] - PIVOT),
            "front": self.pivot + fork @ (CENTRES["front"] - PIVOT),
        }


def rim(seen, wheel):
    """From the centre of a wheel to its lowest point, and how fast that changes."""
    down, axle = np.array([0.0, 0.0, 1.0]), seen.hinges[wheel]
    daxle = np.cross(seen.W[wheel], axle)
    low = down - axle * axle[2]
    dlow = -daxle * axle[2] - axle * daxle[2]
    size = np.linalg.norm(low)
    return RADII[wheel] * low / size, RADII[wheel] * (dlow - low * (low @ dlow) / size**2) / size


def newton_euler(q, v):
    """Accelerations of the nine coordinates, and the forces on the wheels, from 24 accelerations, 15
    reactions of three hinges and 6 of two contacts."""
    seen, names = Seen(q, v), list(MASSES)
    rows, right = np.zeros((45, 45)), np.zeros(45)
    of = {name: 6 * k for k, name in enumerate(names)}  # acceleration and angular acceleration
    for name, k in of.items():
        J = seen.R[name] @ INERTIAS[name] @ seen.R[name].T
        rows[k : k + 3, k : k + 3] = MASSES[name] * np.eye(3)
        rows[k + 3 : k + 6, k + 3 : k + 6] = J
        right[k + 2] = MASSES[name] * GRAVITY
        right[k + 3 : k + 6] = -np.cross(seen.W[name], J @ seen.W[name])
    place = 24
    for first, second, point in (
        ("frame", "rear", seen.place["rear"]),
        ("frame", "fork", seen.pivot),
        ("fork", "front", seen.place["front"]),
    ):
        axis = seen.hinges[second]
        across = np.linalg.svd(axis[None])[2][1:]
        for name, sign in ((second, 1.0), (first, -1.0)):
            k, arm, W = of[name], point - seen.place[name], seen.W[name]
            rows[k : k + 3, place : place + 3] -= sign * np.eye(3)
            rows[k + 3 : k + 6, place : place + 3] -= sign * cross(arm)
            rows[k + 3 : k + 6, place + 3 : place + 5] -= sign * across.T
            rows[place : place + 3, k : k + 3] = sign * np.eye(3)
            rows[place : place + 3, k + 3 : k + 6] = -sign * cross(arm)
            rows[place + 3 : place + 5, k + 3 : k + 6] = sign * across
            right[place : place + 3] -= sign * np.cross(W, np.cross(W, arm))
        right[place + 3 : place + 5] = across @ np.cross(seen.W[first], axis) * seen.rates[second]
        place += 5
    for wheel in RADII:
        arm, darm = rim(seen, wheel)
        k = of[wheel]
        rows[k : k + 3, place : place + 3] = -np.eye(3)
        rows[k + 3 : k + 6, place : place + 3] = -cross(arm)
        rows[place : place + 3, k : k + 3] = np.eye(3)
        rows[place : place + 3, k + 3 : k + 6] = -cross(arm)
        right[place : place + 3] = -np.cross(seen.W[wheel], darm)
        place += 3
    found = np.linalg.solve(rows, right)
    return of_coordinates(seen, v, {name: found[k : k + 6] for name, k in of.items()}), found[39:].reshape(
        2, 3
    )


def of_coordinates(seen, v, found):
    """Second derivatives of the coordinates from the accelerations of the bodies."""
    e1, e2, e3 = seen.gimbal
    turning = np.cross(e1, e2) * v[3] * v[4] + np.cross(e1 * v[3] + e2 * v[4], e3) * v[5]
    angles = np.linalg.solve(np.stack(seen.gimbal, axis=1), found["frame"][3:] - turning)
    arm = -seen.R["frame"] @ CENTRES["frame"]
    W, alpha = seen.W["frame"], found["frame"][3:]
    origin = found["frame"][:3] + np.cross(alpha, arm) + np.cross(W, np.cross(W, arm))
    hinges = {
        name: seen.hinges[name] @ (found[name][3:] - found[on][3:])
        for name, on in (("rear", "frame"), ("fork", "frame"), ("front", "fork"))
    }
    return np.concatenate([origin, angles, [hinges["rear"], hinges["fork"], hinges["front"]]])
