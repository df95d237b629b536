"""What systems look like: bodies with shape and pose as functions of the state, marks, arrows.

A system says so by `System(..., scene=function)`, function(q, p) or function(q, t, p) returning a `Scene`;
`scene(system)` gives what pictures, films, reports and pages draw.
"""

from noslip.scenes.parts import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Arrow,
    Camera,
    Mark,
    Scene,
    Solid,
)
from noslip.scenes.shapes import (
    Blade,
    Cone,
    Cuboid,
    Cylinder,
    Ellipsoid,
    Floor,
    Line,
    Plate,
    Shape,
    Sphere,
    Spring,
    Surface,
    Torus,
    turned_sheet,
)
from noslip.scenes.stage import Numbers, Stage, in_coordinates, scene
from noslip.scenes.turns import along, heading, wheel

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "SKY",
    "VERMILION",
    "Arrow",
    "Blade",
    "Camera",
    "Cone",
    "Cuboid",
    "Cylinder",
    "Ellipsoid",
    "Floor",
    "Line",
    "Mark",
    "Numbers",
    "Plate",
    "Scene",
    "Shape",
    "Solid",
    "Sphere",
    "Spring",
    "Stage",
    "Surface",
    "Torus",
    "along",
    "heading",
    "in_coordinates",
    "scene",
    "turned_sheet",
    "wheel",
]  # fmt: skip
