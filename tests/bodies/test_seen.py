"""What models look like: their bodies where they are, the forces of their contacts, what is down below."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from noslip import rotations
from noslip.bodies import Model, cone, disk, ellipsoid, free, plane, revolute, sphere
from noslip.engine.backends.numpy_rows import evaluate
from noslip.scenes import Stage, scene
from noslip.scenes.stage import Numbers
from noslip.systems import rattleback


def numbers_of(stage: Stage, q: np.ndarray, multipliers: np.ndarray) -> Numbers:
    """At one state."""
    return jax.tree.map(lambda x: x[0], stage.rows(q[None], multipliers[None], np.zeros(1)))


def stone() -> Model:
    model = Model(gravity=9.81, parameters={"a": 0.2})
    model.body("stone", joint=free(), mass=1.0, inertia=(2e-4, 1.6e-3, 1.7e-3),
               shape=ellipsoid(("a", 0.03, 0.02), at=(0, 0, 0.01)))  # fmt: skip
    model.rolls_on("stone", plane())
    return model


def test_a_stone_looks_like_that_of_the_catalogue() -> None:
    q, _ = rattleback.typical_state()
    lam = np.array([0.3, -0.2, 9.0])
    one, two = (
        numbers_of(scene(s.with_parameters({"a": 0.25})), np.asarray(q), lam)
        for s in (stone().system(), rattleback.system())
    )
    same = np.sign(np.dot(one.poses[0, 3:], two.poses[0, 3:]))
    np.testing.assert_allclose(one.poses[0, :3], two.poses[0, :3], atol=1e-15)
    np.testing.assert_allclose(same * one.poses[0, 3:], two.poses[0, 3:], atol=1e-14)
    np.testing.assert_allclose(one.sizes[0], [0.25, 0.03, 0.02])
    np.testing.assert_allclose(one.marks, two.marks, atol=1e-15)
    np.testing.assert_allclose(one.arrows, two.arrows, atol=1e-14)


def scooter() -> Model:
    """A wheel that trails a body, in a world whose z points down."""
    model = Model(gravity=1.0, down="z")
    model.body("deck", joint=free(sequence="zxy"), mass=2.0, centre=(0.2, 0, -0.6), inertia=(0.3, 0.4, 0.5))
    model.body("wheel", on="deck", joint=revolute("y", at=(-0.5, 0, -0.3)), mass=1.0, inertia=(0.1, 0.2, 0.1),
               shape=disk(0.3, "y"))  # fmt: skip
    model.rolls_on("wheel", plane(normal="-z"))
    return model


def test_what_is_down_is_below_and_forces_have_the_power_of_the_reactions() -> None:
    model = scooter()
    system = model.system()
    q, v = model.start({"z": -0.05}, {"x": 0.3})
    stage, rng = scene(system), np.random.default_rng(2)
    lam, w = rng.standard_normal(system.m + system.k), rng.standard_normal(system.n)
    shown = numbers_of(stage, q, lam)
    k = [body.name for body in stage.parts(system.n).bodies].index("wheel")
    assert shown.poses[k, 2] > 0.2
    assert shown.marks[0, 2] == pytest.approx(0.0, abs=1e-12)
    point, force = np.split(shown.arrows[0], 2)
    own = Rotation.from_quat(shown.poses[k, 3:], scalar_first=True).inv().apply(point - shown.poses[k, :3])

    def place(q):
        pose = stage.poses(q)[k]
        return pose[:3] + rotations.matrix(pose[3:]) @ own

    (moving,) = evaluate(lambda *x: jax.jvp(place, x[2:3], x[3:])[1], 0, (), q[None], w[None])
    forms = np.asarray(system.mu(q, v))[: system.m + system.k]
    assert force @ moving == pytest.approx(lam @ forms @ w, rel=1e-9)


def test_a_ball_in_a_cone_shows_both() -> None:
    model = Model(gravity=1.0)
    model.body("ball", joint=free(), mass=1.0, inertia=0.1, shape=sphere(0.3))
    model.rolls_on("ball", cone(0.7))
    data = json.loads(scene(model.system()).json(np.array([0.6, 0.8, 1.5, 1.0, 0, 0, 0])))
    assert [body["kind"] for body in data["bodies"]] == ["sphere", "surface"]


def test_bars_reach_to_where_a_loop_closes() -> None:
    model = Model(gravity=9.81)
    for name, x in (("crank", 0.0), ("rocker", 0.5)):
        model.body(name, joint=revolute("y", at=(x, 0, 0)), mass=1.0, centre=(x, 0, 0.1),
                   inertia=(0.01, 0.01, 0.001))  # fmt: skip
    model.body("coupler", on="crank", joint=revolute("y", at=(0, 0, 0.2)), mass=1.0, centre=(0.25, 0, 0.2),
               inertia=(0.001, 0.05, 0.05))  # fmt: skip
    model.loop(("coupler", (0.5, 0, 0.3)), ("rocker", (0.5, 0, 0.3)))
    stage = scene(model.system())
    shown = numbers_of(stage, np.zeros(3), np.zeros(2))
    for name in ("coupler", "rocker"):
        bars = [k for k, body in enumerate(stage.parts(3).bodies) if body.name == name]
        ends = [shown.poses[k, :3] + side * rotations.matrix(shown.poses[k, 3:])[:, 2] * shown.sizes[k, 1] / 2
                for k in bars for side in (1, -1) if shown.sizes[k, 1] > 0]  # fmt: skip
        assert min(np.linalg.norm(end - np.array([0.5, 0, 0.3])) for end in ends) < 1e-12
