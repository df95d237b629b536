"""What an attack on version 0.1 found in arguments, user files and pictures: each gets its sentence now."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

from noslip import System, Trajectory, integrators, simulate
from noslip.cli import app
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.plots.portraits import plot_order
from noslip.run.pacing import Interruption

XYZ = ("x", "y", "z")


def particle(**how: Any) -> System:
    def lagrangian(q, v, p):
        return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

    def one_forms(q, p):
        return jnp.array([[-q[1], 0.0, 1.0]])

    right = {"lagrangian": lagrangian, "one_forms": one_forms, "coordinates": XYZ, "parameters": {"k": 1.0}}
    return System(**{**right, **how})


def run(**how: Any) -> Trajectory:
    right: dict[str, Any] = {"q0": [0.2, 0.5, -0.1], "v0": [0.8, 0.6, 0.4], "step_size": 0.1, "steps": 3}
    return simulate(particle(), SemiImplicitDLA(), **{**right, **how})


FINDINGS: dict[str, Any] = {
    "`base` must be an integrator, but 5 was provided": lambda: Composition(base=5),
    "`parameters` must be a mapping of names, but None": lambda: particle(parameters=None),
    "`coordinates` must name at least one coordinate": lambda: particle(coordinates=()),
    r"`t_end` must be real numbers, but 10+\.\.\. \(int\)": lambda: run(steps=None, t_end=10**400),
    "unknown backend 'None'": lambda: run(backend=None),
    "a first integral must have a name without '/'": lambda: particle(
        first_integrals={"a/b": lambda q, v, p: q[0]}
    ),
    "`symmetric` must be True or False, but 'nope'": lambda: GeneratingFunction(symmetric="nope"),
    "`nodes` must be a whole number, but 1.5": lambda: DiscreteGradient(gradient="mean_value", nodes=1.5),
    "`beta` must be a number, but '0.3'": lambda: VelocityNonholonomic(beta="0.3"),
    "written with each argument once and by its name": lambda: integrators.parse(
        "VelocityNonholonomic(**{'beta': 0.3})"
    ),
    "`t_end` must be real numbers, but '0.1'": lambda: run(steps=None, t_end="0.1"),
    "`q0` must have a value everywhere": lambda: run(
        q0=np.ma.masked_array([0.2, 0.5, 1], [True, False, False])
    ),
    r"`step_size` must change the time, but at t0 = 1e\+17": lambda: run(t0=1e17),
    "`progress` must be True, False or a function, but 'x'": lambda: run(progress="x"),
    "`throw` must be True or False, but 'x'": lambda: run(throw="x"),
    "`store` must be the name of a file or folder, but 5": lambda: run(store=5),
    "`path` must be the name of a file or folder, but 5": lambda: Trajectory.open(5),
}


@pytest.mark.parametrize("sentence", FINDINGS)
def test_a_bad_argument_gets_its_sentence(sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        FINDINGS[sentence]()
    assert "\n" not in str(caught.value)


def with_numpy(q, v, p):
    return 0.5 * np.dot(v, v)  # NumPy


def with_math(q, v, p):
    return 0.5 * jnp.dot(v, v) - math.sin(q[0])  # math


def with_a_case(q, v, p):
    if q[0] > 0:  # a case
        return jnp.dot(v, v)
    return 0.5 * jnp.dot(v, v)


def with_float(q, v, p):
    return 0.5 * jnp.dot(v, v) + float(q[0])  # float


@pytest.mark.parametrize("function", [with_numpy, with_math, with_a_case, with_float])
def test_what_jax_cannot_trace_is_told_with_the_users_line(function):
    line = next(
        k
        for k, text in enumerate(Path(__file__).read_text().splitlines(), 1)
        if text.endswith(("# NumPy", "# math", "# a case", "# float"))
        and k > function.__code__.co_firstlineno
    )
    made = r"`lagrangian\(q, v, p\)` must be made of jax.numpy's functions"
    sentence = rf"{made}.*{Path(__file__).name}, line {line}: "
    with pytest.raises(ValueError, match=sentence):
        particle(lagrangian=function)

    def force(q, v, t, p):
        return np.array([v[0], 0.0, 0.0])

    with pytest.raises(ValueError, match=r"`force\(q, v, t, p\)` must be made of jax.numpy's functions"):
        particle(force=force)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1\nraise KeyError('mine')\n", "line 2: KeyError: 'mine'"),
        ("import sys\nsys.exit(0)\n", "line 2: SystemExit: 0"),
        ("def f(:\n", "line 1: SyntaxError"),
        ("def robot():\n    return 1 / 0\n", "'mine.py:robot' failed with ZeroDivisionError"),
    ],
)
def test_a_users_file_that_raises_or_leaves_is_bad_input(tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(text)
    result = CliRunner().invoke(
        app, ["run", "mine.py:robot", "-i", "RungeKutta4", "--step-size", "0.1", "--steps", "3", "-o", "a.nc"]
    )
    assert result.exit_code == 2
    assert said in result.output
    assert result.output.count("\n") == 1
    assert not Path("a.nc").exists()


def test_an_order_that_cannot_be_measured_is_not_called_nan():
    errors = np.array([[1e-3, np.nan], [1e-4, np.nan]])
    measured = SimpleNamespace(global_=(2.0, np.nan), step_sizes=np.array([0.2, 0.1]), global_errors=errors)
    figure = plot_order({"mine": measured, "other": measured})
    legends = [
        text.get_text() for ax in figure.axes if ax.get_legend() for text in ax.get_legend().get_texts()
    ]
    assert "mine: 2.00" in legends
    assert not [text for text in legends if "nan" in text]


def test_the_legend_of_five_constraints_does_not_cover_the_title():
    q = [f"q{k}" for k in range(7)]
    system = System(
        lambda q, v, p: 0.5 * v @ v,
        one_forms=lambda q, p: jnp.eye(7)[:5] + 0.1 * q[6] * jnp.eye(7, k=1)[:5],
        coordinates=q,
    )
    result = simulate(system, SemiImplicitDLA(), np.zeros(7), np.eye(7)[6], step_size=0.1, steps=4)
    figure = result.plot()
    figure.canvas.draw()
    for ax in figure.axes:
        if legend := ax.get_legend():
            title = ax._left_title.get_window_extent()
            assert not title.overlaps(legend.get_window_extent())


def test_interruptions_are_watched_in_the_main_thread_only():
    import threading

    seen = []
    thread = threading.Thread(target=lambda: seen.append(Interruption().mine))
    thread.start()
    thread.join()
    assert seen == [False]
    assert Interruption().mine
