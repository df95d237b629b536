"""A modelling layer for those who think in bodies: joints, shapes that roll, loops, springs, motors.

`Model` collects them, and `Model.system()` is the `System` that they make: its Lagrangian from the velocities
of the bodies, one-forms for what rolls and skates, holonomic constraints for contacts and loops, forces and
inputs.
"""

from noslip.bodies.joints import fixed, free, planar, prismatic, revolute
from noslip.bodies.model import Model
from noslip.bodies.reactions import LiftOff, Reaction
from noslip.bodies.shapes import disk, ellipsoid, sphere, torus
from noslip.bodies.surfaces import bowl, cone, cylinder, graph, incline, plane

__all__ = [
    "LiftOff",
    "Model",
    "Reaction",
    "bowl",
    "cone",
    "cylinder",
    "disk",
    "ellipsoid",
    "fixed",
    "free",
    "graph",
    "incline",
    "planar",
    "plane",
    "prismatic",
    "revolute",
    "sphere",
    "torus",
]
