"""`noslip report` and `noslip animate`: pages and films of saved runs, and what they refuse."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from noslip import simulate
from noslip.analysis import measured_order
from noslip.cli import app
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.plots.animation import animate
from noslip.plots.portraits import plot_order, plot_phase_portrait
from noslip.systems import knife_edge


@pytest.fixture(scope="module")
def edge():
    return simulate(
        knife_edge.system(m=1.3), SemiImplicitDLA(), *knife_edge.typical_state(), step_size=0.1, t_end=6.0
    )


def told(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.output


def test_the_page_says_what_was_kept_and_needs_nothing_else(edge, tmp_path: Path) -> None:
    edge.save(tmp_path / "edge.nc")
    assert told("report", tmp_path / "edge.nc", "-o", tmp_path / "edge.html")[0] == 0
    page = (tmp_path / "edge.html").read_text()
    for words in (
        "SemiImplicitDLA on knife_edge",
        "m = 1.3",
        "60 steps of 0.1",
        "first integral drive",
        "solved",
    ):
        assert words in page, words
    # SI-DLA keeps the constraint and turns at a constant rate, but not the energy
    rows = dict(re.findall(r"<tr><td>([^<]*)</td>.*?<td[^>]*>([^<]*)</td></tr>", page))
    assert rows["constraint phi(q, v) = 0"] == "kept to round-off"
    assert rows["energy"] == "not kept"
    assert page.count("<svg") == 3  # L, the constraint, the equations of motion
    assert r"aria-label=\"L = \frac{J" in page.replace('"', r"\"")
    assert page.count("data:image/png;base64") == 3
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))  # formulas on one page do not borrow each other's glyphs


def test_a_system_that_the_file_does_not_name_has_no_equations(
    particle, particle_state, tmp_path: Path
) -> None:
    simulate(particle, RungeKutta4(), *particle_state, step_size=0.1, steps=3).save(tmp_path / "own.nc")
    assert told("report", tmp_path / "own.nc", "-o", tmp_path / "own.html")[0] == 0
    page = (tmp_path / "own.html").read_text()
    assert "does not say where the system came from" in page
    assert "every step is explicit" in page


@pytest.mark.parametrize("command", ["report", "animate"])
def test_refusals_are_one_sentence_and_write_nothing(command: str, edge, tmp_path: Path) -> None:
    edge.save(tmp_path / "edge.nc")
    before = set(tmp_path.iterdir())
    good = "x.html" if command == "report" else "x.gif"
    for words, said in (
        ((tmp_path / "none.nc", "-o", tmp_path / good), "there is no file"),
        ((tmp_path / "edge.nc", "-o", tmp_path / "x.txt"), "must end in"),
        ((tmp_path / "edge.nc", "-o", tmp_path / "no" / good), "in a folder that exists"),
    ):
        code, text = told(command, *words)
        assert (code, said in text, len(text.splitlines())) == (2, True, 1), text
    assert set(tmp_path.iterdir()) == before


def test_a_film_has_its_frames_and_shows_the_body_moving(edge, tmp_path: Path) -> None:
    edge.save(tmp_path / "edge.nc")
    code, text = told("animate", tmp_path / "edge.nc", "-o", tmp_path / "edge.gif", "--seconds", 0.4)
    assert code == 0, text
    with Image.open(tmp_path / "edge.gif") as film:
        assert film.n_frames == 6
        first = np.asarray(film.convert("RGB"), dtype=int)
        film.seek(5)
        assert np.mean(np.abs(np.asarray(film.convert("RGB"), dtype=int) - first) > 60) > 1e-3


def test_films_refuse_what_they_cannot_show(edge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        ValueError, match=r"MP4 needs the program ffmpeg, which is not installed; write a .gif"
    ):
        animate(edge, tmp_path / "x.mp4")
    with pytest.raises(ValueError, match="`seconds` must be positive, but -1 was provided"):
        animate(edge, tmp_path / "x.gif", seconds=-1)


def test_portraits_and_orders(edge, particle, particle_state) -> None:
    figure = plot_phase_portrait({"run": edge, "again": edge})
    assert [ax.get_xlabel() for ax in figure.axes if ax.get_visible()] == ["x", "y", "phi (angle, rad)"]
    turning = figure.axes[2].get_lines()[0].get_xdata()
    assert np.nanmax(np.abs(turning)) <= np.pi
    assert np.isnan(turning).sum() == 1  # one passage through pi, where the line is broken
    measured = measured_order(particle, RungeKutta4(), *particle_state, t_end=1.0, steps=(8, 16, 32))
    legend = plot_order({"RK4": measured}).axes[0].get_lines()[0].get_label()
    assert legend == f"RK4: {measured.global_[0]:.2f}"
    other = simulate(particle, RungeKutta4(), *particle_state, step_size=0.1, steps=2)
    for call, said in (
        (lambda: plot_phase_portrait({}), "at least one run"),
        (lambda: plot_phase_portrait({"a": edge, "b": other}), "runs of one system"),
        (lambda: plot_order({}), "at least one method"),
    ):
        with pytest.raises(ValueError, match=said):
            call()
