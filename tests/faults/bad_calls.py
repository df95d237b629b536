"""Calls of the library with wrong arguments, drawn at random: each gives a result, or one sentence of ours.

    python tests/faults/bad_calls.py --calls 2000 --seed 0

A call is right in everything but one argument, or two, which are replaced by values of all kinds. It is
broken if an exception comes from elsewhere than noslip, is not one of those that noslip raises for bad input,
has more than one line or none, if a call takes longer than a minute, or if it leaves a damaged file.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

import noslip
from noslip import Interrupted, SolveFailed, System, Trajectory, ensemble, integrators, load, rerun, simulate
from noslip.integrators.composition import Composition
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.generating_function import GeneratingFunction
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic
from noslip.sampling import Ball, on_constraint
from noslip.systems import nonholonomic_particle

HOME = str(Path(noslip.__file__).parent)
EXPECTED = (ValueError, TypeError, OSError, ImportError, SolveFailed, Interrupted)
PARTICLE, STATE = nonholonomic_particle.system(), nonholonomic_particle.typical_state()


class Strange:
    """Nothing that anybody would give."""

    def __repr__(self) -> str:
        raise RuntimeError("no text either")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("nor an array")


def values(folder: Path) -> list[Any]:
    """What is put in the place of an argument."""
    (folder / "text.nc").write_text("no run")
    (folder / "empty.nc").write_bytes(b"")
    return [
        None,
        True,
        False,
        0,
        1,
        -1,
        2.5,
        -0.0,
        1e-300,
        1e300,
        float("nan"),
        float("inf"),
        10**400,
        2**63,
        1 + 2j,
        "",
        "nope",
        "0.1",
        "a/b",
        "\0",
        "x" * 300,
        "é",
        b"bytes",
        [],
        (),
        {},
        set(),
        [[]],
        [1, [2]],
        [None],
        ["x"],
        {"k": 1.0},
        {"k": None},
        {"nope": 1},
        {1: 2},
        {"k": [1.0, 2.0]},
        object(),
        Strange(),
        print,
        int,
        lambda: 0,
        lambda *a: 1 / 0,
        lambda *a: None,
        lambda *a: "text",
        lambda q, v, p: np.sin(q[0]),
        np.zeros(3),
        np.zeros((3, 3)),
        np.zeros((2, 3)),
        np.full(3, np.nan),
        np.zeros(3, np.float32),
        np.array(["a"]),
        np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False]),
        np.array([1, 2, 3], object),
        jnp.zeros(0),
        np.array("2020-01-01", "M8"),
        Ellipsis,
        slice(3),
        range(3),
        iter([1.0]),
        Path("nowhere") / "a.zarr",
        folder,
        folder / "text.nc",
        folder / "empty.nc",
        SemiImplicitDLA(),
        SemiImplicitDLA,
        PARTICLE,
        STATE,
        np.random.default_rng(0),
        KeyError("k"),
        ("x", "y", "z"),
        ("x", "x", "z"),
        {"e": 3},
    ]


def lagrangian(q: Any, v: Any, p: Any) -> Any:
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)


def one_forms(q: Any, p: Any) -> Any:
    return jnp.array([[-q[1], 0.0, 1.0]])


def stop(done: int, total: int) -> None:
    if done > 5000:
        raise KeyboardInterrupt


def calls(folder: Path) -> list[tuple[Callable[..., Any], dict[str, Any]]]:
    """Functions with arguments that are right."""
    where = folder / "run.nc"
    simulate(PARTICLE, SemiImplicitDLA(), *STATE, step_size=0.1, steps=3).save(where)
    run = {
        "system": PARTICLE,
        "integrator": SemiImplicitDLA(),
        "q0": STATE[0],
        "v0": STATE[1],
        "step_size": 0.1,
        "steps": 4,
        "t_end": None,
        "t0": 0.0,
        "parameters": None,
        "save_every": 1,
        "backend": "auto",
        "progress": stop,
        "throw": True,
        "store": None,
    }
    members = {k: x for k, x in run.items() if k not in ("q0", "v0")}
    members |= {
        "q0s": np.stack([STATE[0]] * 3),
        "v0s": np.stack([STATE[1]] * 3),
        "observables": None,
        "threads": None,
        "chunk": None,
        "cluster": None,
    }
    definition = {
        "lagrangian": lagrangian,
        "one_forms": one_forms,
        "coordinates": ("x", "y", "z"),
        "parameters": {"k": 1.0},
        "angles": (),
        "first_integrals": {},
        "fibre": None,
        "multiplier": None,
        "frame": None,
        "force": None,
        "drift": None,
        "constraint": None,
    }
    stored = {**run, "store": folder / "calls.zarr"}
    return [
        (simulate, run),
        (simulate, run),
        (simulate, stored),
        (ensemble, members),
        (System, definition),
        (System, definition),
        (load, {"path": where}),
        (rerun, {"path": where, "system": None, "integrator": None}),
        (Trajectory.open, {"path": folder / "calls.zarr"}),
        (noslip.saved.verify, {"path": where}),
        (noslip.Ensemble.open, {"path": folder / "calls.zarr"}),
        (noslip.Observable, {"function": "energy", "statistics": ("max",)}),
        (VelocityNonholonomic, {"beta": 0.5}),
        (Composition, {"base": DiscreteGradient(), "scheme": "suzuki4"}),
        (DiscreteGradient, {"gradient": "gonzalez", "frame": "system", "nodes": 3}),
        (GeneratingFunction, {"alpha": 0.5, "symmetric": False, "projected": False}),
        (integrators.parse, {"text": "VelocityNonholonomic(beta=0.3)"}),
        (integrators.make, {"text": "VelocityNonholonomic", "options": {"beta": "0.3"}}),
        (noslip.systems.open_source, {"name": "gearbox"}),
        (Ball, {"centre": np.zeros(3), "radius": 1.0}),
        (
            on_constraint,
            {
                "system": PARTICLE,
                "members": 3,
                "region": Ball(np.zeros(3), 1.0),
                "seed": 1,
                "temperature": 1.0,
            },
        ),
    ]


def mutated(right: dict[str, Any], pool: list[Any], rng: random.Random) -> dict[str, Any]:
    wrong = dict(right)
    for _ in range(rng.choice((1, 1, 1, 2))):
        wrong[rng.choice(sorted(right))] = rng.choice(pool)
    if rng.random() < 0.03:
        wrong["nonsense"] = 1
    return wrong


def judge(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """ "result", "refused", or what is wrong with what came."""
    try:
        function(**arguments)
    except EXPECTED as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = len(frames) == 1 or frames[-1].filename.startswith(HOME)
        text = str(error)
        if not ours:
            return f"from elsewhere, {type(error).__name__}: {text[:100]!r} at {frames[-1].filename[-40:]}"
        return "refused" if text and "\n" not in text else f"no sentence: {text[:200]!r}"
    except _TooLong:
        return "hangs"
    except BaseException as error:
        if any("raised by `progress`" in note for note in getattr(error, "__notes__", ())):
            return "refused"  # the user's own
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:100]!r} at {frame.filename[-40:]}:{frame.lineno}"
    return "result"


class _TooLong(BaseException):
    pass


@contextlib.contextmanager
def within(seconds: int) -> Any:
    """An alarm, where there is one."""

    def ring(*_: object) -> None:
        raise _TooLong

    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, ring)
        signal.alarm(seconds)
    try:
        yield
    finally:
        if hasattr(signal, "SIGALRM"):
            signal.alarm(0)


def bad_calls(count: int, seed: int, folder: Path) -> collections.Counter[str]:
    """Outcomes and their numbers; what is broken is printed with its arguments."""
    rng, seen = random.Random(seed), collections.Counter[str]()
    known, pool = calls(folder), values(folder)
    before = (folder / "run.nc").read_bytes()
    os.chdir(folder)
    for number in range(count):
        function, right = rng.choice(known)
        arguments = mutated(right, pool, rng)
        with within(60), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = judge(function, arguments)
        seen[outcome if outcome in ("result", "refused") else "broken"] += 1
        if outcome not in ("result", "refused"):
            changed = {k: _text(x) for k, x in arguments.items() if x is not right.get(k)}
            print(f"call {number}: {function.__qualname__}({changed}): {outcome}", flush=True)
        for left in filter(Path.is_dir, folder.iterdir()):
            if noslip.saved.verify(left).damaged:
                print(f"call {number}: {left} is damaged")
                seen["broken"] += 1
            shutil.rmtree(left)
    left = sorted(x.name for x in folder.iterdir())
    if left != ["empty.nc", "run.nc", "text.nc"] or (folder / "run.nc").read_bytes() != before:
        print(f"files are left, or changed: {left}")
        seen["broken"] += 1
    return seen


def _text(value: Any) -> str:
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    faulthandler.enable()
    folder, here = Path(tempfile.mkdtemp()), os.getcwd()
    try:
        seen = bad_calls(asked.calls, asked.seed, folder)
    finally:
        os.chdir(here)
        shutil.rmtree(folder)
    print(dict(seen))
    return int(seen["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main())
