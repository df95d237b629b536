"""Every system of the catalogue has a scene, and its bodies are where the coordinates say."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from noslip import rotations, systems
from noslip.engine.backends.numpy_rows import evaluate
from noslip.engine.translate import translate
from noslip.plots.meshes import mesh
from noslip.plots.space import moved
from noslip.scenes import Scene, scene
from noslip.systems import (
    ball_in_bowl,
    ball_in_cone,
    ball_in_cylinder,
    car_with_trailers,
    chaplygin_sleigh,
    chaplygin_sphere,
    gearbox,
    knife_edge,
    rattleback,
    roller_racer,
    rolling_coin,
    rolling_disk,
    rolling_disk_on_incline,
    segway,
    snake_robot,
    spherical_pendulum,
    suslov,
    turntable_ball,
    two_wheeled_robot,
    unicycle,
)

CATALOGUE = [name for name, module in systems.discover().items() if module.__name__.startswith("noslip.")]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_system_has_a_scene_that_moves_with_it(name: str) -> None:
    module = systems.find(name)
    system, (q, _) = module.system(), module.typical_state()
    assert system.scene is not None
    stage, rng = scene(system), np.random.default_rng(0)
    others = np.asarray(q) + 0.1 * rng.standard_normal((3, system.n))
    others[0] = q
    multipliers = rng.standard_normal((3, system.m + system.k))
    there = stage.rows(others, multipliers, np.zeros(3))
    assert all(np.all(np.isfinite(x)) for x in there)
    np.testing.assert_allclose(np.linalg.norm(there.poses[..., 3:], axis=-1), 1.0, rtol=1e-14)
    assert max(np.ptp(x, axis=0).max(initial=0.0) for x in (there.poses, there.marks)) > 1e-3
    shapes = [jax.ShapeDtypeStruct(x.shape[1:], float) for x in (others, multipliers)]
    given = {key: jax.ShapeDtypeStruct(np.shape(x), float) for key, x in stage.parameters.items()}
    assert translate(lambda state, p: stage.numbers(*state, 0.0, p), shapes, given).outputs  # for pages
    data = json.loads(json.dumps(stage.parts(system.n).data(), allow_nan=False))
    assert [len(data[x]) for x in ("bodies", "marks", "arrows")] == [
        there.poses.shape[1], there.marks.shape[1], there.arrows.shape[1],
    ]  # fmt: skip
    assert len(Scene.of_data(data).bodies) == len(data["bodies"])


def numbers_of(stage, q, multipliers):
    """At one state."""
    rows = stage.rows(np.asarray(q)[None], np.asarray(multipliers)[None], np.zeros(1))
    return jax.tree.map(lambda x: x[0], rows)


def pose_of(stage, body, q):
    return evaluate(lambda _, p, q: stage.poses(q)[body], 0, (), np.asarray(q)[None])[0]


def matrix(u):
    return Rotation.from_quat(u, scalar_first=True).as_matrix()


def velocity(function, q, v):
    """Of a point that moves with q."""
    along = evaluate(lambda *x: jax.jvp(function, x[2:3], x[3:])[1], 0, (), *np.asarray([q, v])[:, None])
    return along[0]


def material(stage, body: int, at, q, v):
    """The velocity of the point of a body that is at a place now."""

    there = pose_of(stage, body, q)
    own = matrix(there[3:]).T @ (np.asarray(at) - there[:3])

    def place(q):
        pose = stage.poses(q)[body]
        return pose[:3] + rotations.matrix(pose[3:]) @ own

    return velocity(place, q, v)


@pytest.mark.parametrize(
    ("module", "parameters"),
    [
        (rolling_disk, {"r": 0.7}),
        (rolling_disk_on_incline, {"r": 0.6, "alpha": 0.4}),
        (two_wheeled_robot, {"r": 0.3, "b": 0.6}),
        (turntable_ball, {"r": 0.8, "Omega": 0.0}),
    ],
)
def test_the_material_point_at_a_contact_rests(module, parameters) -> None:
    """Rolling is what the constraints say and what one sees: the same point of the same body."""
    system = module.system(**parameters)
    q, v = module.typical_state()
    v = np.asarray(system.project_velocity(q, np.asarray(v) + 0.3))
    stage = scene(system)
    shown, there = stage.parts(system.n).bodies, numbers_of(stage, q, np.zeros(system.m + system.k))
    wheels = [k for k, body in enumerate(shown) if body.pattern == "sectors" and body.name != "table"]
    assert wheels
    floor = next((k for k, body in enumerate(shown) if body.name == "floor"), None)
    up = np.array([0.0, 0.0, 1.0]) if floor is None else matrix(there.poses[floor, 3:])[:, 2]
    for k in wheels:
        contact = there.poses[k, :3] - parameters["r"] * up
        assert abs(contact @ up) < 1e-14  # on the ground
        assert np.linalg.norm(material(stage, k, contact, q, v)) < 1e-13
        # and so it is seen: the lowest point of the mesh is at the contact, to the size of its faces
        body = moved(mesh(shown[k], there.sizes[k]), there.poses[k])
        assert abs(np.min(body.vertices @ up)) < 0.02 * parameters["r"] + 1e-12


@pytest.mark.parametrize("module", [chaplygin_sleigh, knife_edge])
def test_a_blade_points_along_its_velocity(module) -> None:
    system, (q, v) = module.system(), module.typical_state()
    stage = scene(system)
    k = [body.name for body in stage.parts(system.n).bodies].index("blade")
    ahead = matrix(pose_of(stage, k, q)[3:])[:, 0]
    moving = velocity(lambda q: stage.poses(q)[k, :3], q, v)
    np.testing.assert_allclose(np.cross(ahead, moving), 0.0, atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("module", "arguments", "bodies"),
    [
        (rolling_disk_on_incline, {"alpha": 0.4}, ("disk",)),
        (chaplygin_sleigh, {"a": 0.7}, ("blade",)),
        (knife_edge, {"alpha": 0.3}, ("blade",)),
        (two_wheeled_robot, {}, ("body", "left wheel", "right wheel")),
        (spherical_pendulum, {"length": 1.0}, ("bob",)),
        (rolling_coin, {"h": 0.1}, ("body",)),
        (rattleback, {}, ("body",)),
        (ball_in_bowl, {}, ("ball",)),
        (ball_in_cone, {}, ("ball",)),
        (ball_in_cylinder, {}, ("ball",)),
        (chaplygin_sphere, {"r": 0.7}, ("body",)),
        (roller_racer, {}, ("rear cart", "front cart")),
        (snake_robot, {}, ("link 1", "link 2", "link 3")),
        (segway, {}, ("platform", "left wheel", "right wheel")),
        (unicycle, {}, ("wheel",)),
    ],
)
def test_arrows_are_the_reactions(module, arguments, bodies) -> None:
    """The power of the forces at their points is that of mu^T lam, for any velocity: those of the constraint
    do none of it."""
    system, (q, v) = module.system(**arguments), module.typical_state()
    stage, rng = scene(system), np.random.default_rng(1)
    lam, w = rng.standard_normal(system.m + system.k), rng.standard_normal(system.n)
    names = [body.name for body in stage.parts(system.n).bodies]
    forms = np.asarray(system.mu(q, v))[: system.m + system.k]
    power = 0.0
    numbers = numbers_of(stage, q, lam)
    for k in range(len(numbers.arrows)):
        body = bodies[min(k, len(bodies) - 1)]
        moving = material(stage, names.index(body), numbers.arrows[k, :3], q, w)
        power += numbers.arrows[k, 3:] @ moving
    assert power == pytest.approx(lam @ forms @ w, rel=1e-12)


def test_the_gearbox_rolls_where_the_pendulum_holds_the_wheel() -> None:
    """With q3 held, the rim of the wheel and the disk below it move alike; with q3 moving, along the axle."""
    q, v = (np.asarray(x) for x in gearbox.typical_state())
    stage = scene(gearbox.system())
    contact = np.array([gearbox.R * np.sin(q[2]), 0.0, 0.0])
    speeds = [material(stage, k, contact, q, v) for k in (0, 1)]
    slip = speeds[1] - speeds[0]
    np.testing.assert_allclose(slip[1:], 0.0, atol=1e-15)
    assert slip[0] == pytest.approx(gearbox.R * np.cos(q[2]) * v[2])


def test_trailers_hang_on_the_axle_before_them() -> None:
    system = car_with_trailers.system(k=3, d=0.9)
    q, _ = car_with_trailers.typical_state(k=3)
    stage = scene(system)
    assert [body.name for body in stage.parts(system.n).bodies].count("drawbar") == 3
    feet = numbers_of(stage, q, np.zeros(system.m)).arrows[:, :3]
    assert len(feet) == system.m == 5
    for k in range(3):  # rear axle, then the trailers' axles
        ahead, behind = feet[0] if k == 0 else feet[k + 1], feet[k + 2]
        assert np.linalg.norm(ahead - behind) == pytest.approx(0.9)


def test_a_body_about_a_point_turns_as_its_rates_say() -> None:
    q, v = suslov.typical_state()
    stage = scene(suslov.system())
    u, du = pose_of(stage, 0, q)[3:], velocity(lambda q: stage.poses(q)[0, 3:], q, v)
    np.testing.assert_allclose(rotations.body_rates(u, du), suslov.body_rates(q, v), atol=1e-14)
