"""The engine against its limit: the same scalar program printed as C, and C written by hand."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from benchmarks import c_source
from noslip.bench import engine
from noslip.bench.engine import Rivals, Row
from noslip.engine.backends import native
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.run.many_native import NativeMembers
from noslip.run.one_native import NativeTrajectory
from noslip.systems import quartic

BY_HAND = Path(__file__).parent / "quartic.c"
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-shared", "-fPIC", "-lm")


def measure(show: Callable[[Row], None] = lambda row: None) -> dict[str, Any]:
    """The rows of `noslip.bench.engine`; with gcc also those of C, and all ratios to it."""
    if shutil.which("gcc") is None:
        return engine.measure(show)
    with tempfile.TemporaryDirectory() as folder:
        return engine.measure(show, C(Path(folder)))


class C:
    """Rivals that gcc compiles, each in a folder of its own: a library is loaded once by its name."""

    def __init__(self, folder: Path):
        self.folder = folder

    def of_one(self, runner: NativeTrajectory, system: str, method: Integrator, steps: int) -> Rivals:
        printed = c_source.compile_c(c_source.time_loop(runner.programs.step), 1, self._new_folder())
        rivals: Rivals = {"c": lambda: printed(runner.fixed, runner.carry.copy(), 1, steps)}
        if system == "quartic" and isinstance(method, DiscreteGradient):
            rivals["c by hand"] = self._by_hand(engine.STEP[system], steps)
        return rivals

    def of_many(self, lanes: NativeMembers, steps: int) -> Rivals:
        source, groups = c_source.time_loop(lanes.code.single.step), len(lanes.full)
        printed = c_source.compile_c(source, native.lanes(), self._new_folder())
        return {"c": lambda: printed(lanes.lanes.fixed, lanes.full.copy(), groups, steps)}

    def _by_hand(self, h: float, steps: int) -> Callable[[], None]:
        library = self._new_folder() / "by_hand.so"
        subprocess.run(["gcc", str(BY_HAND), "-o", str(library), *FLAGS], check=True)
        loaded = ctypes.CDLL(str(library))
        loaded.run.restype = ctypes.c_double
        loaded.run.argtypes = [ctypes.c_void_p, *[ctypes.c_double] * 3, ctypes.c_long]
        run = native.NativeFunction(loaded.run, loaded)
        q, v = (np.asarray(x) for x in quartic.typical_state())
        z = np.concatenate([q, np.asarray(quartic.frame(jnp.asarray(q), {})).T @ v])
        return lambda: run(z.copy(), h, 1.0, 1.0, steps)

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))
