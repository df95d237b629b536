"""Runs that are made many times, or taken one step at a time.

`prepare` does once what every call of `simulate` does anew: checks, the choice of a backend, compilation. A
prepared call fills two tables of numbers and calls machine code; what it returns is a `Trajectory` whose
arrays are taken out of those tables when they are first asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noslip.engine.program import CannotTranslate
from noslip.errors import SolveFailed, unknown_name
from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status
from noslip.numerics.tracing import is_traced
from noslip.run.along import BLOWN_UP, conserves_energy
from noslip.run.arguments import as_floats, check_run, parallel_at, whole
from noslip.run.choose import on_cpu, trajectory_runner
from noslip.run.driving import of_step
from noslip.run.inputs import as_numbers, given_inputs
from noslip.run.one_native import CAPACITY, NativeTrajectory, saves
from noslip.run.pairing import Pairing, pairing_of
from noslip.run.record import run_info
from noslip.run.runner import TrajectoryRunner
from noslip.run.step import TURN, Row
from noslip.simulate import as_trajectory, simulate
from noslip.system import System
from noslip.system.conditions import LOOKS
from noslip.system.inputs import Held
from noslip.system.time import visible
from noslip.trajectory import Origin, Trajectory

QUICKLY = ("t", "q", "v", "energy")
BRIEF = 4096  # steps; longer runs can be interrupted and watch their progress, as those of `simulate`
Loss = Callable[[Trajectory], Any]


class _Unread(Trajectory):
    """A trajectory still in the slots of native code; what is asked for most is taken out by itself."""

    def __init__(self, make: Callable[[], Trajectory], array: Callable[[str], np.ndarray]):
        self.__dict__.update(make=make, array=array)

    def __getattr__(self, name: str) -> Any:
        if "make" not in self.__dict__:
            raise AttributeError(f"a Trajectory has no attribute '{name}'")
        if name in QUICKLY:
            self.__dict__[name] = self.__dict__["array"](name)
        else:
            made = vars(self.__dict__["make"]())
            del self.__dict__["make"], self.__dict__["array"]
            self.__dict__.update({**made, **self.__dict__})
            object.__setattr__(self, "__class__", Trajectory)
        return getattr(self, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        assert self.report is not None  # read, it is a plain trajectory
        return self.__reduce_ex__(protocol)


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a number that was computed from a run."""

    q0: np.ndarray
    v0: np.ndarray
    parameters: Mapping[str, Any]


def prepare(
    system: System,
    integrator: Integrator,
    *,
    step_size: float,
    steps: int,
    t0: float = 0.0,
    save_every: int = 1,
    inputs_between: str = "hold",
    backend: str = "auto",
) -> Prepared:
    """A run that will be made many times, from various states and with various parameters."""
    if not isinstance(system, System):
        raise TypeError(f"`system` must be a System, but {system!r} was provided")
    h, t = (float(as_floats(name, x, (), False)) for name, x in (("step_size", step_size), ("t0", t0)))
    if not (0 < h < np.inf and np.isfinite(t)):
        raise ValueError(f"`step_size` must be positive and `t0` finite, but {h!r} and {t!r} were provided")
    if not isinstance(integrator, Integrator):
        raise TypeError(f"`integrator` must be an integrator, but {integrator!r} was provided")
    every, count = whole("save_every", save_every, 1), whole("steps", steps, 0)
    if reason := pairing_of(system, integrator).refusal:
        raise ValueError(f"{type(integrator).__name__} cannot run on this system: {reason}")
    given_inputs(system, None, inputs_between, count, t, h)
    return Prepared(system, integrator, h, count, t, every, inputs_between, backend)


@dataclass(frozen=True, eq=False)
class Prepared:
    """See `prepare`. A call returns what `simulate` returns, with the same bits of q, v and multipliers.

    The first call checks everything that `simulate` checks; later ones that the state is finite and its
    velocity admissible, that every step was solved and all rows are finite and of their energy.
    """

    system: System
    integrator: Integrator
    step_size: float
    steps: int
    t0: float
    save_every: int
    inputs_between: str
    backend: str
    _quick: list[_Quick] = field(default_factory=list, repr=False)

    def __call__(
        self,
        q0: Any,
        v0: Any,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Trajectory:
        """One run from (q0, v0); one with `inputs` is a call of `simulate`."""
        if inputs is not None:
            return self._carefully(q0, v0, parameters, inputs)
        plain = type(q0) is type(v0) is np.ndarray and parameters is None  # the usual case, told at once
        if self._quick and (plain or not is_traced(q0, v0, parameters)):
            q, v = self._states(q0, v0)
            if (run := self._quick[0].run(self, q, v, parameters)) is not None:
                return run
        run = self._carefully(q0, v0, parameters)
        if run.info.backend == "native":
            self._prepare_quick()
        return run

    def _carefully(
        self,
        q0: Any,
        v0: Any,
        parameters: Mapping[str, Any] | None,
        inputs: Mapping[str, Any] | None = None,
    ) -> Trajectory:
        return simulate(
            self.system, self.integrator, q0, v0, parameters=parameters, step_size=self.step_size,
            steps=self.steps, t0=self.t0, inputs=inputs, inputs_between=self.inputs_between,
            save_every=self.save_every, backend=self.backend,
        )  # fmt: skip

    def _prepare_quick(self) -> None:
        rows = saves(0, self.steps, self.steps, self.save_every)
        if self._quick or self.backend == "xla" or self.steps > BRIEF or not 0 < rows < CAPACITY:
            return
        with contextlib.suppress(CannotTranslate):
            self._quick.append(_Quick(pairing_of(self.system, self.integrator), self.step_size, rows))

    def _states(self, q0: Any, v0: Any) -> list[np.ndarray]:
        shape = (self.system.n,)
        return [
            x if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == shape
            else as_floats(name, x, shape, False)
            for name, x in (("q0", q0), ("v0", v0))
        ]  # fmt: skip

    def start(
        self,
        q0: Any,
        v0: Any,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, float] | None = None,
    ) -> Stepper:
        """A run that is taken one step at a time, for closed loops; `steps` does not bound it. `inputs` are
        those of the first step, for the row of the initial time."""
        q, v = self._states(q0, v0)
        system = self.system if parameters is None else self.system.with_parameters(parameters)
        begin = {name: system.parameters[name] for name in system.inputs} | as_numbers(system, inputs)
        if begin and self.integrator.own_time:
            raise ValueError(
                "a method that makes its own time has no steps of known length to hold inputs over"
            )
        drive = Held({name: np.array([x]) for name, x in begin.items()}) if begin else None
        system = system.driven(of_step(drive, 0))
        with on_cpu():
            pairing = check_run(system, self.integrator, q, v, self.t0, self.step_size, self.backend)
            stable = pairing.where_forms_are_parallel if parallel_at(pairing, q, v, self.t0) else pairing
            runner = trajectory_runner(stable, q, v, self.t0, self.step_size, self.backend, drive)
        return Stepper(runner, system, begin, self.integrator.own_time, self.t0, self.step_size)

    def value_and_gradient(self, loss: Loss) -> Callable[..., tuple[float, Gradient]]:
        """f(q0, v0, parameters=None): loss(run), a number that JAX makes of the run's arrays, and its
        derivatives by the initial state and the parameters. Compiled once, in the first call."""

        def value(q: Any, v: Any, p: Any) -> tuple[Any, Any]:
            run = self._carefully(q, v, p)
            return loss(run), jnp.max(run.report.status)

        compiled = jax.jit(jax.value_and_grad(value, (0, 1, 2), has_aux=True))

        def call(q0: Any, v0: Any, parameters: Mapping[str, Any] | None = None) -> tuple[float, Gradient]:
            q, v = self._states(q0, v0)
            system = self.system if parameters is None else self.system.with_parameters(parameters)
            with on_cpu():
                if not (self._quick and self._quick[0].admits(self, q, v, parameters)):
                    check_run(system, self.integrator, q, v, self.t0, self.step_size, "auto")
                    self._prepare_quick()
                (number, status), found = compiled(q, v, visible(system.parameters))
            if int(status) != Status.SOLVED:
                raise SolveFailed(f"a step failed: {Status(int(status)).message}", None)
            dq, dv, dp = jax.tree.map(np.asarray, found)
            return float(number), Gradient(dq, dv, dp)

        return call


class _Quick:
    """The machine code of a prepared run, and where in its memory what is: the initial state, the state of
    the method with the verdict on its start behind it, and the rows."""

    def __init__(self, pairing: Pairing, h: float, rows: int):
        programs = self.programs = pairing.programs
        self.pairing, self.system = pairing, pairing.system
        self.fixed = programs.tables["fixed"].pack([*pairing.leaves, h], 1, 1)
        slots = zip(sorted(self.system.parameters), programs.tables["fixed"].places, strict=False)
        self.slots = visible(dict(slots))
        start, out = programs.checked_start_one
        self.start, self.advance = start.call, programs.advance_one.call
        self.carry, self.row, self.rows = programs.tables["carry"].slots, programs.tables["row"].slots, rows
        self.state = 2 * self.system.n + 1
        self.verdict = self.state + out.slots - 1
        self.first = self.verdict - self.row
        self.table = self.verdict + 1
        self.status = self.state + programs.tables["carry"].first_slots.interval.status
        places = self.row_slots = programs.tables["row"].first_slots
        self.energy, self.scale = places.energy, places.energy_scale
        n = self.system.n
        self.places = np.r_[places.t, places.q : places.q + n, places.v : places.v + n]
        self.conserved = conserves_energy(self.system)
        self.looks = np.unique(np.linspace(0, rows, LOOKS).round().astype(int))[:, None]
        self.fixed_often = np.repeat(self.fixed, len(self.looks), axis=0)

    def run(
        self, plan: Prepared, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, Any] | None
    ) -> Trajectory | None:
        """The run, or None where there is a doubt."""
        fixed = self.fixed if parameters is None else self._with(parameters)
        n, steps = len(q), plan.steps
        memory = np.empty(self.table + (self.rows + 1) * self.row, np.int64)
        numbers = memory.view(np.float64)
        numbers[:n], numbers[n : 2 * n], numbers[2 * n] = q, v, plan.t0
        given, here = fixed.ctypes.data, memory.ctypes.data
        state, rows = here + 8 * self.state, here + 8 * (self.table + self.row)
        self.start(given, here, state, 1)
        if not memory[self.verdict]:
            return None
        memory[self.table : self.table + self.row] = memory[self.first : self.verdict]
        self.advance(given, state, rows, 1, 0, steps, steps, plan.save_every, self.rows)
        table = memory[self.table :].reshape(-1, self.row)
        if memory[self.status] != Status.SOLVED or not self._sound(table.view(np.float64)):
            return None
        if self.system.rows > 1 and not self._independent(fixed, table):
            return None
        return _Unread(
            lambda: self._read(plan, parameters, memory, table), lambda name: self._array(plan, table, name)
        )

    def admits(
        self, plan: Prepared, q: np.ndarray, v: np.ndarray, parameters: Mapping[str, Any] | None
    ) -> bool:
        """Whether a run from there can begin without any doubt."""
        fixed = self.fixed if parameters is None else self._with(parameters)
        memory, n = np.empty(self.table, np.int64), len(q)
        numbers = memory.view(np.float64)
        numbers[:n], numbers[n : 2 * n], numbers[2 * n] = q, v, plan.t0
        self.start(fixed.ctypes.data, memory.ctypes.data, memory.ctypes.data + 8 * self.state, 1)
        return bool(memory[self.verdict])

    def _array(self, plan: Prepared, table: np.ndarray, name: str) -> np.ndarray:
        """One of QUICKLY, with the bits that it has in the whole trajectory."""
        numbers, places, n = table.view(np.float64), self.row_slots, self.system.n
        if name == "t" and not plan.integrator.own_time:
            return np.asarray(plan.t0) + table[:, places.step] * np.asarray(plan.step_size)
        if name in ("t", "energy"):
            return numbers[:, getattr(places, name)].copy()
        if name == "q":
            return numbers[:, places.q : places.q + n] + TURN * numbers[:, places.turns : places.turns + n]
        return numbers[:, places.v : places.v + n].copy()

    def _with(self, parameters: Mapping[str, Any]) -> np.ndarray:
        fixed = self.fixed.copy()
        numbers = fixed.view(np.float64)
        for name, value in parameters.items():
            place = self.slots.get(name)
            if place is None:
                raise ValueError(unknown_name("parameter", name, self.slots))
            if type(value) is float and place.stop - place.start == 1 and value - value == 0:
                numbers[0, place, 0] = value
            else:
                checked = self.pairing.system.with_parameters({name: value}).parameters[name]
                numbers[0, place, 0] = np.ravel(checked)
        return fixed

    def _sound(self, numbers: np.ndarray) -> bool:
        """Whether all numbers of the rows are finite, and the energy is of its size. The last slot of a row,
        of its record, is a whole number."""
        total = float(np.add.reduce(numbers[:, :-1], axis=None))
        if total - total != 0:
            return False
        if not self.conserved:
            return True
        energy = numbers[:, self.energy]
        change = float(energy.max()) - float(energy.min())
        return change <= BLOWN_UP * float(numbers[0, self.scale])

    def _independent(self, fixed: np.ndarray, table: np.ndarray) -> bool:
        """Whether the one-forms are surely not nearly parallel at the rows that `parallel_along` looks at."""
        values, count = table[self.looks, self.places], len(self.looks)
        found = np.empty(count)
        many = self.fixed_often if fixed is self.fixed else np.repeat(fixed, count, axis=0)
        self.programs.independence_one(many, values, found, count)
        return min(found.tolist()) > 0

    def _read(
        self, plan: Prepared, parameters: Mapping[str, Any] | None, memory: np.ndarray, table: np.ndarray
    ) -> Trajectory:
        pairing, n = self.pairing, self.system.n
        if parameters is not None:
            pairing = pairing_of(plan.system.with_parameters(parameters), plan.integrator)
        q, v = memory.view(np.float64)[: 2 * n].reshape(2, n).copy()
        runner = NativeTrajectory(pairing, q, v, plan.t0, plan.step_size)
        end = memory[self.state : self.state + self.carry]
        runner.carry, runner.reached = end[None, :, None].copy(), plan.steps
        rows = self.programs.tables["row"].split_bits(table)
        how = (plan.t0, plan.step_size, plan.steps, plan.save_every, "native")
        info = run_info(pairing, *how, inputs_between=plan.inputs_between)
        return as_trajectory(pairing, rows, q, v, info, np, Origin(pairing, runner))


class Stepper:
    """A run that is taken one step at a time; the whole state of its method is kept between them."""

    def __init__(
        self,
        runner: TrajectoryRunner[Any],
        system: System,
        inputs: Mapping[str, float],
        own_time: bool,
        t0: float,
        h: float,
    ):
        self._runner, self._own_time, self._t0, self._h = runner, own_time, t0, h
        self._system, self._inputs = system, inputs
        self._row: Any = runner.first
        self._steps = 0

    def step(self, inputs: Mapping[str, float] | None = None) -> Stepper:
        """One step further, with these inputs held over it; those that are not given stay as they were. A
        step that cannot be solved raises `SolveFailed` and leaves all as it was."""
        now = self._inputs if inputs is None else {**self._inputs, **as_numbers(self._system, inputs)}
        if now:
            self._runner.feed(Held(dict(now)))
        k = self._steps + 1
        row, _, failed = self._runner.to(k, k, 1)
        if failed:
            status = Status(int(self._runner.join([row]).interval.status[-1]))
            raise SolveFailed(f"step {k} failed: {status.message}", self)
        self._row, self._steps, self._inputs = row, k, now
        return self

    @property
    def row(self) -> Row:
        """Everything that a saved time shows."""
        return jax.tree.map(lambda x: x[0], self._runner.join([self._row]))

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self._steps

    @property
    def t(self) -> float:
        """The time."""
        return self._runner.last(self._row)[0] if self._own_time else self._t0 + self._steps * self._h

    @property
    def q(self) -> np.ndarray:
        """The coordinates; angles are unwrapped."""
        return self._runner.last(self._row)[1]

    @property
    def v(self) -> np.ndarray:
        """The velocities."""
        return self._runner.last(self._row)[2]
