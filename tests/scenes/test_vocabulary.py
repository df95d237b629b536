"""What a scene is: its parts, its numbers as functions of the state, its JSON, and what is refused."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip import System, rotations
from noslip.engine.translate import translate
from noslip.scenes import (
    Arrow,
    Blade,
    Camera,
    Cone,
    Cuboid,
    Cylinder,
    Ellipsoid,
    Floor,
    Line,
    Mark,
    Plate,
    Scene,
    Solid,
    Sphere,
    Spring,
    Surface,
    Torus,
    along,
    heading,
    scene,
    wheel,
)
from noslip.scenes.shapes import SHAPES

EVERY_SHAPE = (
    Sphere(0.3),
    Ellipsoid(1.0, 2.0, 3.0),
    Cylinder(0.5, 0.1),
    Cone(0.5, 1.0),
    Torus(1.0, 0.2),
    Cuboid(1.0, 2.0, 3.0),
    Plate(points=[[0, 0], [1, 0], [0, 1]], x=2.0, thickness=0.1),
    Blade(1.0, 0.2, 0.05),
    Spring(2.0, 0.1),
    Line(points=[[0, 0, 0], [1, 2, 3]], z=2.0),
    Surface(points=np.zeros((2, 3, 3)), x=0.5),
    Floor(),
)
HOSTILE = '</script><script>alert(1)</script>\u2028 $x$ "quoted" \\'


def pendulum(drawn) -> System:
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - p["g"] * q[2]

    def holonomic(q, p):
        return jnp.array([jnp.dot(q, q) - p["l"] ** 2])

    return System(
        lagrangian,
        holonomic=holonomic,
        coordinates=("x", "y", "z"),
        parameters={"g": 1.0, "l": 2.0},
        scene=drawn,
    )


def drawn(q, p):
    rotation, length = along((0.0, 0.0, 0.0), q)
    return Scene(
        bodies=(
            Solid(Cylinder(0.1, length), q / 2, rotation, name="rod"),
            Solid(Sphere(0.2 * p["l"]), q, heading(q[0])),
        ),
        marks=(Mark(q, name=HOSTILE),),
        arrows=(Arrow(q, 2 * q[None, :], name="tension"),),
    )


def test_every_shape_survives_json_and_so_do_names() -> None:
    assert {type(shape) for shape in EVERY_SHAPE} == set(SHAPES.values())
    bodies = tuple(
        Solid(shape, (1.0, 2.0, k), heading(0.1 * k), name=HOSTILE, pattern="sectors", opacity=0.5)
        for k, shape in enumerate(EVERY_SHAPE)
    )
    whole = Scene(
        bodies,
        (Mark((1.0, 0.0, 0.0), trail=False),),
        (Arrow((0.0, 0.0, 0.0), [[1.0, 2.0, 3.0]]),),
        Camera(10.0, 20.0, False),
        ("a", "b", "c"),
    )
    text = json.dumps(whole.data(), allow_nan=False)
    again = Scene.of_data(json.loads(text))
    assert json.loads(text) == whole.data()
    first, second = whole.data(), again.data()
    for one, two in zip(first["bodies"], second["bodies"], strict=True):
        assert one.pop("pose") == pytest.approx(two.pop("pose"), rel=1e-15)
    assert first == second
    assert [type(body.shape) for body in again.bodies] == [type(shape) for shape in EVERY_SHAPE]
    assert again.bodies[0].name == HOSTILE


def test_the_numbers_follow_the_state_and_the_parameters() -> None:
    stage = scene(pendulum(drawn))
    q, lam = np.array([0.6, -0.8, np.sqrt(3.0)]), np.array([-0.7])
    there = stage.numbers(q, lam, 0.0, {"l": 3.0})
    assert there.poses.shape == (2, 7)
    np.testing.assert_allclose(np.linalg.norm(there.poses[:, 3:], axis=1), 1.0, rtol=1e-15)
    # the rod ends at the origin and at q
    centre, A = there.poses[0, :3], rotations.matrix(there.poses[0, 3:])
    np.testing.assert_allclose(centre + A @ jnp.array([0, 0, there.sizes[0, 1] / 2]), q, atol=1e-15)
    np.testing.assert_allclose(centre - A @ jnp.array([0, 0, there.sizes[0, 1] / 2]), 0.0, atol=1e-15)
    np.testing.assert_allclose(there.sizes[1], [0.6, 0.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(there.arrows, [[*q, *(-1.4 * q)]], rtol=1e-15)  # G = 2 q
    np.testing.assert_array_equal(stage.poses(q), stage.numbers(q, lam).poses)


def test_the_engine_and_xla_compile_a_scene() -> None:
    stage = scene(pendulum(drawn))
    q, lam, p = np.array([0.6, -0.8, np.sqrt(3.0)]), np.array([-0.7]), {"g": 1.0, "l": 2.5}
    here = stage.numbers(q, lam, 0.0, p)
    there = jax.jit(lambda q, lam, p: stage.numbers(q, lam, 0.0, p))(q, lam, p)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15), here, there)
    shapes = [jax.ShapeDtypeStruct(x.shape, float) for x in (q, lam)]
    number = jax.ShapeDtypeStruct((), float)
    assert translate(lambda x, p: stage.numbers(*x, 0.0, p), shapes, dict.fromkeys(p, number)).shape


def test_a_scene_may_take_the_time_and_the_system_stays_as_it_is() -> None:
    system = pendulum(lambda q, t, p: Scene(bodies=(Solid(Sphere(1.0), q + t),)))
    assert not system.moving
    np.testing.assert_allclose(scene(system).poses(np.zeros(3), 2.5)[0, :3], 2.5)


def test_what_has_no_scene_is_a_point_in_its_coordinates() -> None:
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v)

    four = System(lagrangian, coordinates=("phi", "z", "w", "x"), angles=("phi",))
    shown = scene(four).scene([1.0, 2.0, 3.0, 4.0])
    assert shown.axes == ("x", "z", "w")
    np.testing.assert_array_equal(shown.marks[0].position, [4.0, 2.0, 3.0])
    one = scene(System(lagrangian, coordinates=("s",))).scene([3.0])
    assert one.axes == ("s", "", "")
    np.testing.assert_array_equal(one.marks[0].position, [3.0, 0.0, 0.0])


def test_a_wheel_rolls_forwards_on_the_point_below_its_centre() -> None:
    """The velocity of the material point at the contact is zero when the centre moves by r spin."""
    r, theta, rate = 0.7, 0.4, 1.3

    def rim(t, below):
        A = rotations.matrix(wheel(theta, rate * t))
        centre = jnp.array([r * rate * t * jnp.cos(theta), r * rate * t * jnp.sin(theta), r])
        return centre + A @ below

    @jax.jit
    def place_and_velocity(t):
        below = rotations.matrix(wheel(theta, 0.0)).T @ np.array([0.0, 0.0, -r])
        return rim(t, below), jax.jacfwd(rim)(t, below)

    place, velocity = place_and_velocity(0.0)
    np.testing.assert_allclose(place, 0.0, atol=1e-15)
    np.testing.assert_allclose(velocity, 0.0, atol=1e-14)


@pytest.mark.parametrize("end", [(0.0, 0.0, -1.0), (0.0, 0.0, 2.0), (1e-9, 0.0, -1.0), (0.3, -0.4, 0.5)])
def test_along_points_where_it_must(end) -> None:
    rotation, length = along((0.0, 0.0, 0.0), end)
    np.testing.assert_allclose(
        rotations.matrix(rotation) @ jnp.array([0.0, 0.0, length]), end, atol=1e-9 * float(length)
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Solid(Sphere((1.0, 2.0))), "`radius` of a sphere must be one number"),
        (lambda: Solid("sphere"), "`shape` must be one of noslip.scenes"),
        (lambda: Solid(Sphere(1.0), (1.0, 2.0)), r"`position` must have shape \(3,\), but \(2,\)"),
        (lambda: Solid(Sphere(1.0), ("a", 0, 0)), "`position` must be numbers"),
        (lambda: Solid(Sphere(1.0), colour="red"), "`colour` must be written as '#0072B2', but 'red'"),
        (lambda: Solid(Sphere(1.0), pattern="stripes"), "unknown pattern 'stripes'"),
        (lambda: Solid(Sphere(1.0), opacity=0), r"`opacity` must be in \(0, 1\], but 0"),
        (lambda: Plate(points=[[0, 0, 0], [1, 0, 0]]), r"`points` of a plate must be fixed finite numbers"),
        (lambda: Arrow((0, 0, 0), (1, 0, 0)), r"`directions` must have shape \(rows, 3\)"),
        (lambda: Scene(bodies=(Sphere(1.0),)), "`bodies` must be a tuple of Solid"),
        (lambda: Scene(axes=("x",)), "`axes` must be three names"),
        (lambda: Camera(azimuth=float("nan")), "within 360 degrees"),
        (lambda: Scene.of_data({"bodies": []}), "must be data of the format 1"),
        (lambda: Scene.of_data({"format": 1, "bodies": []}), "lacks a part"),
        (lambda: scene(pendulum(lambda q, p: 3)).scene(np.zeros(3)), "must return a noslip.scenes.Scene"),
        (lambda: scene(pendulum(drawn)).numbers(np.ones(3), np.zeros(2)), "a row for each of the 2"),
    ],
)
def test_what_is_wrong_gets_one_sentence(make, said) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_a_scene_must_be_a_function() -> None:
    with pytest.raises(TypeError, match="`scene` must be a function of q and p, but 'disk' was provided"):
        pendulum("disk")
