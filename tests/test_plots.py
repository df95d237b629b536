"""Pictures: what is drawn, that nothing is shown or half-drawn, and the edge cases of real runs."""

from __future__ import annotations

import io
import sys
from dataclasses import replace

import numpy as np
import pytest

import noslip
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.plots.trajectory import BINS, FLOOR, compare_runs, plot_trajectory
from noslip.simulate import simulate
from noslip.systems import chaplygin_sleigh, gearbox, rolling_disk

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def run() -> noslip.Trajectory:
    return simulate(gearbox.system(), RungeKutta4(), *gearbox.typical_state(), step_size=0.1, steps=3 * BINS)


@pytest.fixture(scope="module")
def disk() -> noslip.Trajectory:
    return simulate(
        rolling_disk.system(), RungeKutta4(), *rolling_disk.typical_state(), step_size=0.1, steps=30
    )


def drawn(figure: object) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)  # type: ignore[attr-defined]
    return file.getvalue()


def test_one_run_shows_path_energy_constraint_and_multipliers(run: noslip.Trajectory) -> None:
    figure = run.plot()
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["path (dot: start)", "energy", "constraint residual", "multipliers"]
    assert all(ax.get_xlabel() for ax in figure.axes)
    assert all(ax.get_ylabel() for ax in figure.axes)
    assert "from the state" in figure.axes[3].get_ylabel()
    assert figure.axes[1].get_yscale() == figure.axes[2].get_yscale() == "log"
    assert "RungeKutta4() on gearbox, h = 0.1" in figure.get_suptitle()
    assert drawn(figure).startswith(b"\x89PNG")


def test_pyplot_keeps_nothing(run: noslip.Trajectory) -> None:
    plot_trajectory(run)
    if "matplotlib.pyplot" in sys.modules:
        assert not sys.modules["matplotlib.pyplot"].get_fignums()


def test_error_curves_of_long_runs_show_the_largest_of_each_bin(run: noslip.Trajectory) -> None:
    peaked = replace(run, energy=run.energy.copy())
    peaked.energy[333] += 100.0
    line = plot_trajectory(peaked).axes[1].get_lines()[0]
    assert len(line.get_xdata()) == BINS
    assert np.max(line.get_ydata()) == pytest.approx(100.0 / np.max(run.energy_scale), rel=1e-3)


def test_two_constraints_have_two_colours_and_styles(disk: noslip.Trajectory) -> None:
    for ax in plot_trajectory(disk).axes[2:]:
        first, second = ax.get_lines()[:2]
        assert first.get_color() != second.get_color()
        assert first.get_linestyle() != second.get_linestyle()
        assert ax.get_legend() is not None


def test_path_is_drawn_in_the_plane_of_x_and_y(disk: noslip.Trajectory, run: noslip.Trajectory) -> None:
    assert (plot_trajectory(disk).axes[0].get_xlabel(), plot_trajectory(disk).axes[0].get_ylabel()) == (
        "x",
        "y",
    )
    assert (plot_trajectory(run).axes[0].get_xlabel(), plot_trajectory(run).axes[0].get_ylabel()) == (
        "q1",
        "q2",
    )


def test_zeros_single_states_and_rest_are_drawn() -> None:
    sleigh, q0 = chaplygin_sleigh.system(), [0.0, 0.0, 0.3]
    at_rest = simulate(sleigh, RungeKutta4(), q0, [0.0, 0.0, 0.0], step_size=0.1, steps=4)
    one_state = simulate(sleigh, RungeKutta4(), *chaplygin_sleigh.typical_state(), step_size=0.1, steps=0)
    for short in (at_rest, one_state):
        figure = plot_trajectory(short)
        assert drawn(figure)
        assert np.min(figure.axes[1].get_lines()[0].get_ydata()) >= FLOOR
    assert drawn(compare_runs({"rest": at_rest, "start": one_state}))


def test_comparison_has_one_legend_and_the_first_integrals(run: noslip.Trajectory) -> None:
    figure = compare_runs({"a": run, "b": replace(run, q=run.q + 0.1)}, path_times=(5.0, 10.0))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles[0].startswith("path, t = 5 to 10")
    assert titles[3] == "first integrals"
    assert drawn(figure)


def test_comparison_without_first_integrals_shows_multipliers(disk: noslip.Trajectory) -> None:
    bare = replace(disk, first_integrals={})
    assert compare_runs({"a": bare}).axes[3].get_title(loc="left") == "multipliers"


def test_comparison_refuses_nothing_and_strangers(run: noslip.Trajectory, disk: noslip.Trajectory) -> None:
    with pytest.raises(ValueError, match="at least one run"):
        compare_runs({})
    with pytest.raises(ValueError, match="runs of one system"):
        compare_runs({"a": run, "b": disk})


def test_missing_matplotlib_names_the_extra(run: noslip.Trajectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"noslip\[plots\]"):
        run.plot()
