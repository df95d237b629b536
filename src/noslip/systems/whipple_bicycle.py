"""Whipple's bicycle: rider and rear frame, handlebar and fork, and two wheels that roll on a level road.

Coordinates x, y, z of the rear hub, yaw, roll and pitch of the rear frame, and the turns of the hinges: steer
(the fork), rear and front (the wheels). x points ahead, y to the right, z down, as in the benchmark of
Meijaard, Papadopoulos, Ruina, Schwab 2007, which gives the default parameters and most of their names:
wheelbase w, trail c, tilt of the steering axis, gravity g; and of the rear wheel R, the rear body B with its
rider, the handlebar H and the front wheel F the radius r, the place x, z of the mass centre, the mass m and
the moments of inertia I.

The system is made by `noslip.bodies` from four bodies and three hinges: L is their kinetic and potential
energy. Each wheel touches the road (a holonomic constraint) and does not slip (two one-forms), so that nine
coordinates have three free velocities. `model` is that `Model`: it finds starts and names the forces at the
road. Masses, moments and gravity are parameters of the system; lengths and the tilt are fixed in its making.

No first integral is known besides the energy. To ride upright and straight is a steady motion at any speed,
stable by itself between 4.3 and 6.0 m/s with the default parameters. The angles are singular at a roll of a
right angle.
"""

from __future__ import annotations

import math

import numpy as np

from noslip.bodies import Model, disk, free, plane, revolute
from noslip.errors import unknown_name
from noslip.system import System

LENGTHS = {
    "w": 1.02, "c": 0.08, "tilt": math.pi / 10, "rR": 0.3, "rF": 0.35,
    "xB": 0.3, "zB": -0.9, "xH": 0.9, "zH": -0.7,
}  # fmt: skip
MASSES = {
    "g": 9.81, "mR": 2.0, "IRxx": 0.0603, "IRyy": 0.12, "mF": 3.0, "IFxx": 0.1405, "IFyy": 0.28,
    "mB": 85.0, "IBxx": 9.2, "IBxz": 2.4, "IByy": 11.0, "IBzz": 2.8,
    "mH": 4.0, "IHxx": 0.05892, "IHxz": -0.00756, "IHyy": 0.06, "IHzz": 0.00708,
}  # fmt: skip


def model(**parameters: float) -> Model:
    """The bicycle with some of its parameters changed."""
    for name in parameters:
        if name not in {**LENGTHS, **MASSES}:
            raise ValueError(unknown_name("parameter", name, [*LENGTHS, *MASSES]))
    p = {name: parameters.get(name, value) for name, value in LENGTHS.items()}
    hub = p["rR"]  # above the road; places are seen from it
    axis = (math.sin(p["tilt"]), 0.0, math.cos(p["tilt"]))
    steering = revolute(axis, at=(p["w"] + p["c"], 0.0, hub), angle="steer")
    made = Model(
        gravity="g", down="z", parameters={x: parameters.get(x, value) for x, value in MASSES.items()}
    )
    for of, name, on, joint, centre in (
        ("B", "frame", "ground", free(sequence="zxy"), (p["xB"], 0.0, hub + p["zB"])),
        ("H", "fork", "frame", steering, (p["xH"], 0.0, hub + p["zH"])),
    ):
        inertia: list[list[float | str]] = [
            [f"I{of}xx", 0.0, f"I{of}xz"],
            [0.0, f"I{of}yy", 0.0],
            [f"I{of}xz", 0.0, f"I{of}zz"],
        ]
        made.body(name, on=on, joint=joint, mass=f"m{of}", centre=centre, inertia=inertia)
    for of, name, on, ahead in (("R", "rear", "frame", 0.0), ("F", "front", "fork", p["w"])):
        radius, moments = p[f"r{of}"], (f"I{of}xx", f"I{of}yy", f"I{of}xx")
        axle = revolute("y", at=(ahead, 0.0, hub - radius))
        made.body(name, on=on, joint=axle, mass=f"m{of}", inertia=moments, shape=disk(radius, "y"))
        made.rolls_on(name, plane(normal="-z"))
    return made


def system(**parameters: float) -> System:
    return model(**parameters).system()


def upright(speed: float, roll_rate: float = 0.0, **parameters: float) -> tuple[np.ndarray, np.ndarray]:
    """Riding along x, with a kick to the side; the benchmark's manoeuvre is that of 4.6 and 0.5."""
    still = dict.fromkeys(("x", "y", "yaw", "roll", "rear", "steer", "front"), 0.0)
    return model(**parameters).start(still, {"x": speed, "roll": roll_rate, "steer": 0.0})


def typical_state() -> tuple[np.ndarray, np.ndarray]:
    """At a stable speed, leaning to the right and steering there."""
    there = {"x": 0.4, "y": -0.2, "yaw": 0.35, "roll": 0.25, "rear": 0.6, "steer": 0.3, "front": -0.5}
    return model().start(there, {"x": 4.4, "roll": -0.9, "steer": 1.7})
