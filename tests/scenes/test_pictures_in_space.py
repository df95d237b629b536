"""Scenes on paper: whole meshes, a camera that sees right, films and plots of a scene of one's own."""

from __future__ import annotations

import io
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from noslip import System, simulate
from noslip.cli import app
from noslip.integrators import RungeKutta4
from noslip.plots.animation import animate
from noslip.plots.meshes import mesh
from noslip.plots.space import directions, faces_of, fitted, hidden
from noslip.plots.stills import from_above, plot_scene
from noslip.scenes import (
    PURPLE,
    Blade,
    Camera,
    Cone,
    Cuboid,
    Cylinder,
    Ellipsoid,
    Floor,
    Mark,
    Plate,
    Scene,
    Solid,
    Sphere,
    Spring,
    Torus,
    scene,
)
from noslip.systems import chaplygin_sleigh, rolling_disk

OWN = """
import jax.numpy as jnp
from noslip import System
from noslip.scenes import PURPLE, Floor, Mark, Scene, Solid, Sphere

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

def scene(q, p):
    ball = Solid(Sphere(0.2 * p["k"]), q, colour=PURPLE)
    return Scene(bodies=(ball, Solid(Floor())), marks=(Mark(q),))

def system(k: float = 1.0):
    return System(
        lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": k}, scene=scene
    )

def typical_state():
    return [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]
"""


def volume(solid: Solid) -> float:
    """By the divergence theorem: right only if the mesh is closed and all its faces look outwards."""
    m = mesh(solid, np.asarray(solid.sizes))
    total = 0.0
    for group in m.faces:
        corners = m.vertices[group] + np.array([3.0, 2.0, 1.0])  # so that no face lies towards the origin
        for k in range(1, corners.shape[1] - 1):
            total += np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, k], corners[:, k + 1])) / 6
    return float(total)


@pytest.mark.parametrize(
    ("shape", "exact"),
    [
        (Sphere(1.2), 4 / 3 * np.pi * 1.2**3),
        (Ellipsoid(1.0, 2.0, 0.5), 4 / 3 * np.pi),
        (Cylinder(0.7, 0.3), np.pi * 0.49 * 0.3),
        (Cylinder(0.1, 3.0), np.pi * 0.01 * 3.0),
        (Cone(0.7, 2.0), np.pi * 0.49 * 2 / 3),
        (Torus(2.0, 0.5), 2 * np.pi**2 * 2 * 0.25),
        (Cuboid(1.0, 2.0, 3.0), 6.0),
        (Plate(points=[[0, 0], [0, 2], [1, 2], [1, 0]], x=3.0, thickness=0.5), 3.0),
        (Blade(2.0, 1.0, 0.5), 0.25 * (1.75 + 0.5 / 3)),
    ],
)
def test_meshes_are_closed_and_look_outwards(shape, exact) -> None:
    about = 0.15 if shape.sizes[-1] == 3.0 and shape.kind() == "cylinder" else 0.05
    assert volume(Solid(shape)) == pytest.approx(exact, rel=about)


def test_the_camera_sees_what_is_above_above_and_what_is_right_right() -> None:
    right, up, back = directions(Camera(azimuth=-90.0, elevation=30.0))
    np.testing.assert_allclose(right, [1.0, 0.0, 0.0], atol=1e-15)
    assert up[2] > 0.8
    assert back @ [0.0, -1.0, 0.0] > 0.8
    points = np.random.default_rng(0).standard_normal((50, 3)) + 7
    view = fitted(Camera(), points, 4 / 3)
    there, _ = view(points)
    assert np.all(np.abs(there) <= [4 / 3, 1.0])
    assert np.max(np.abs(there) / [4 / 3, 1.0]) > 0.75


def pixels(figure) -> np.ndarray:
    data = io.BytesIO()
    figure.savefig(data, dpi=60)
    return np.asarray(Image.open(data).convert("RGB"), dtype=int)


def falling(drawn=None, names=("x", "y", "z")):
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - q[2]

    system = System(lagrangian, coordinates=names, scene=drawn)
    return simulate(system, RungeKutta4(), np.zeros(3), [1.0, 0.2, 0.0], step_size=0.1, steps=10)


def coloured(image: np.ndarray, colour: str) -> float:
    """How much of an image is of about that colour, in light or in shade."""
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    light = image.max(axis=-1, keepdims=True) / wanted.max()
    return float(np.mean(np.all(np.abs(image - light * wanted) < 25, axis=-1) & (light[..., 0] > 0.6)))


def test_what_is_nearer_hides_what_is_behind_it() -> None:
    def drawn(q, p):
        near = Solid(Sphere(0.5), jnp.array([2.0, -2.0, 0.0]) + 0 * q, colour=PURPLE)
        behind = Solid(Sphere(0.4), (0.0, 0.0, 0.0), colour="#009E73")
        return Scene(bodies=(near, behind), camera=Camera(azimuth=-45.0, elevation=0.0))

    image = pixels(falling(drawn).plot("scene"))
    assert coloured(image, PURPLE) > 0.05
    assert coloured(image, "#009E73") == 0.0


def test_points_are_hidden_by_what_is_before_them_and_by_nothing_else() -> None:
    view = fitted(Camera(azimuth=0.0, elevation=0.0), np.array([[-2.0, -2, -2], [2, 2, 2]]), 1.0)
    ball = mesh(Solid(Sphere(1.0)), np.array([1.0, 0.0, 0.0]))
    points = np.array(
        [[-1.5, 0.1, 0.1], [1.5, 0.1, 0.1], [-1.5, 1.5, 0.0], [0.0, 0.0, 0.0], [1.001, 0.0, 0.0]]
    )
    opaque, glass = (faces_of(view, Solid(Sphere(1.0), opacity=x), ball) for x in (1.0, 0.5))
    np.testing.assert_array_equal(hidden(view, opaque, points), [True, False, False, True, False])
    assert not hidden(view, glass, points).any()


def test_a_scene_of_ones_own_is_in_the_film_the_report_and_the_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)

    def ran(*words: str) -> None:
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, result.output

    ran("run", "mine.py:system", "-i", "RungeKutta4", "--step-size", "0.1", "--steps", "10", "-o", "a.nc")
    for given, amount in (((), 0.0), (("--system", "mine.py:system"), 0.01)):
        ran("animate", "a.nc", "-o", "a.gif", "--seconds", "0.2", *given)
        with Image.open("a.gif") as film:
            assert film.n_frames == 3
            shown = coloured(np.asarray(film.convert("RGB"), dtype=int), PURPLE)
            assert (shown > 0) == (amount > 0)
    ran("report", "a.nc", "-o", "a.html", "--system", "mine.py:system")
    assert "what moves, where it was, and the paths" in Path("a.html").read_text()


def test_hostile_names_are_only_names(tmp_path: Path) -> None:
    names = (r"$\frac{$", "<b>&</b>", "a\nb")
    run = falling(names=names)
    plot_scene(run)
    shown = [text.get_text() for ax in plot_scene(run).axes for text in ax.texts]
    assert r"\$\frac{\$" in shown
    pixels(plot_scene(run))
    animate(run, tmp_path / "x.gif", seconds=0.2)
    run.plot("q").savefig(tmp_path / "q.png")


def test_the_view_follows_what_goes_far(tmp_path: Path) -> None:
    def drawn(q, p):
        return Scene(
            bodies=(Solid(Cuboid(0.05, 0.05, 0.05), q, colour=PURPLE), Solid(Floor())), marks=(Mark(q),)
        )

    run = falling(drawn)
    animate(run, tmp_path / "x.gif", seconds=0.4)
    with Image.open(tmp_path / "x.gif") as film:
        for k in range(film.n_frames):
            film.seek(k)
            assert coloured(np.asarray(film.convert("RGB"), dtype=int), PURPLE) > 0.01


def test_plots_of_columns() -> None:
    run = simulate(
        chaplygin_sleigh.system(), RungeKutta4(), *chaplygin_sleigh.typical_state(), step_size=0.1, steps=5
    )
    figure = run.plot("q")
    assert [ax.get_ylabel() for ax in figure.axes if ax.get_visible()] == ["x", "y", "theta (angle, rad)"]
    np.testing.assert_array_equal(figure.axes[1].get_lines()[0].get_ydata(), run.q[:, 1])
    np.testing.assert_array_equal(run.plot("v").axes[2].get_lines()[0].get_ydata(), run.v[:, 2])
    line = run.plot("multipliers").axes[0].get_lines()[0]
    np.testing.assert_array_equal(line.get_ydata(), run.multipliers[:, 0])
    np.testing.assert_array_equal(line.get_xdata(), run.multiplier_t)
    with pytest.raises(ValueError, match="unknown picture 'scenes'; did you mean 'scene'"):
        run.plot("scenes")
    with pytest.raises(ValueError, match="without constraints has no multipliers"):
        falling().plot("multipliers")


def test_footprints_of_bodies() -> None:
    stage = scene(rolling_disk.system(r=0.5))
    (disk,) = from_above(stage, np.array([2.0, 1.0, np.pi / 2, 0.3]))
    np.testing.assert_array_equal(disk[0], disk[-1])
    np.testing.assert_allclose([disk.min(axis=0), disk.max(axis=0)], [[1.98, 0.5], [2.02, 1.5]], atol=5e-3)


def test_a_spring_is_a_line_from_end_to_end() -> None:
    (curve,) = mesh(Solid(Spring(2.0, 0.1)), np.array([2.0, 0.1, 0.0])).curves
    np.testing.assert_allclose(curve[[0, -1]], [[0, 0, 0], [0, 0, 2.0]], atol=1e-12)
