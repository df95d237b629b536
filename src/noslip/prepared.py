"""Runs that are made many times, or taken one step at a time.

`prepare` does once what every call of `simulate` does anew: checks, the choice of a backend, compilation. A
prepared call fills two tables of numbers and calls machine code; what it returns is a `Trajectory` whose
arrays are taken out of those tables when they are first asked for.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from noslip.engine.program import CannotTranslate
from noslip.errors import SolveFailed
from noslip.integrators.base import Integrator
from noslip.integrators.solve import Status
from noslip.numerics.tracing import is_traced
from noslip.results import Flown, Unread, as_trajectory
from noslip.run.arguments import as_floats, check_run, whole
from noslip.run.choose import Beginning, on_cpu
from noslip.run.drive import stable
from noslip.run.driving import of_step
from noslip.run.inputs import as_numbers, columns_of, copied, given_inputs
from noslip.run.one_native import CAPACITY, NativeTrajectory, saves
from noslip.run.pairing import pairing_of
from noslip.run.quick import Quick
from noslip.run.quick_flow import QuickFlow, brief
from noslip.run.record import run_info
from noslip.run.runner import TrajectoryRunner
from noslip.run.step import Row
from noslip.simulate import simulate
from noslip.system import System
from noslip.system.derived import Parameters
from noslip.system.inputs import Held, InputLike
from noslip.system.time import visible
from noslip.trajectory import Origin, Trajectory

BRIEF = 4096  # steps; longer runs can be interrupted and watch their progress, as those of `simulate`
Loss = Callable[[Trajectory], Any]


class _Source(NamedTuple):
    """What a run leaves behind, and how to read it."""

    plan: Prepared
    quick: Quick
    words: np.ndarray
    parameters: Parameters | None
    inputs: Mapping[str, np.ndarray] | np.ndarray | None  # as `copied` gives them

    def array(self, name: str) -> np.ndarray:
        plan = self.plan
        return self.quick.array(self.words, name, plan.t0, plan.step_size, plan.integrator.own_time)

    def trajectory(self) -> Trajectory:
        plan, quick = self.plan, self.quick
        system = plan.system if self.parameters is None else plan.system.with_parameters(self.parameters)
        how = (plan.inputs_between, plan.steps, plan.t0, plan.step_size)
        columns = columns_of(quick.names, self.inputs)
        given = given_inputs(system, columns, *how)
        plain = self.parameters is None and columns is None
        pairing = quick.pairing if plain else pairing_of(given.system, plan.integrator)
        q, v = quick.initial_of(self.words)
        runner = NativeTrajectory(pairing, q, v, plan.t0, plan.step_size, given.table)
        runner.carry, runner.reached = quick.end_of(self.words), plan.steps
        run = (plan.t0, plan.step_size, plan.steps, plan.save_every, "native")
        info = run_info(pairing, *run, given)
        rows, origin = quick.rows_of(self.words), Origin(pairing, runner)
        return as_trajectory(pairing, rows, q, v, info, np, origin, None, given.values)


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a number that was computed from a run."""

    q0: np.ndarray
    v0: np.ndarray
    parameters: Parameters
    inputs: Mapping[str, np.ndarray]


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

    The first call checks everything that `simulate` checks, as does the first with inputs of other names;
    later ones that the state is finite and its velocity admissible, that every step was solved and all rows
    are finite and of their energy.
    """

    system: System
    integrator: Integrator
    step_size: float
    steps: int
    t0: float
    save_every: int
    inputs_between: str
    backend: str
    _quick: dict[tuple[str, ...], Quick] = field(default_factory=dict, repr=False)  # by names of inputs
    _flow: list[QuickFlow] = field(default_factory=list, repr=False)  # one, where the method is a flow

    def __call__(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        parameters: Parameters | None = None,
        inputs: Mapping[str, InputLike] | None = None,
    ) -> Trajectory:
        """One run from (q0, v0). `inputs` are as those of `simulate`; one with functions of t is a call of
        it."""
        plain = type(q0) is type(v0) is np.ndarray and parameters is None and _are_arrays(inputs)
        if self._flow and not inputs and (plain or not is_traced(q0, v0, parameters)):
            flow = self._flow[0]
            q, v = self._states(q0, v0)
            numbers = None if parameters is None else flow.with_parameters(parameters)
            if (columns := flow.run(q, v, numbers)) is not None:
                return Unread(Flown(flow, columns, q.copy(), v.copy(), parameters and dict(parameters)))
        quick = self._quick.get(_names(inputs))
        if quick is not None and (plain or not is_traced(q0, v0, parameters, inputs)):
            q, v = self._states(q0, v0)
            if (run := self._quickly(quick, q, v, parameters, inputs)) is not None:
                return run
        began = time.monotonic()
        run = self._carefully(q0, v0, parameters, inputs)
        if self.integrator.host_driven:
            if not (self._flow or inputs) and self.inputs_between == "hold" and brief(self.steps, began):
                how = (self.t0, self.step_size, self.steps, self.save_every)
                self._flow.append(QuickFlow(pairing_of(self.system, self.integrator), *how))
        elif quick is None and run.info.backend == "native":
            self._prepare_quick(inputs)
        return run

    def _quickly(
        self,
        quick: Quick,
        q: np.ndarray,
        v: np.ndarray,
        parameters: Parameters | None,
        inputs: Mapping[str, InputLike] | None,
    ) -> Trajectory | None:
        """The run by machine code alone, or None where there is a doubt."""
        given: Any = None
        if parameters is None and not inputs:
            words = quick.run(q, v)
        else:
            given, table = copied(inputs, self.inputs_between, self.steps, self.t0, self.step_size)
            fixed = quick.with_parameters(parameters, None if table is None else table[0])
            words = quick.run(q, v, fixed, table)
        parameters = None if parameters is None else dict(parameters)
        return None if words is None else Unread(_Source(self, quick, words, parameters, given))

    def _carefully(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        parameters: Parameters | None,
        inputs: Mapping[str, InputLike] | None = None,
    ) -> Trajectory:
        return simulate(
            self.system, self.integrator, q0, v0, parameters=parameters, step_size=self.step_size,
            steps=self.steps, t0=self.t0, inputs=inputs, inputs_between=self.inputs_between,
            save_every=self.save_every, backend=self.backend,
        )  # fmt: skip

    def _prepare_quick(self, inputs: Mapping[str, InputLike] | None = None) -> None:
        rows = saves(0, self.steps, self.steps, self.save_every)
        if self.backend == "xla" or self.steps > BRIEF or not 0 < rows < CAPACITY:
            return
        if inputs and any(map(callable, inputs.values())):
            return
        how = (self.t0, self.step_size, self.steps, self.save_every, rows)
        given = given_inputs(self.system, inputs, self.inputs_between, self.steps, self.t0, self.step_size)
        with contextlib.suppress(CannotTranslate):
            made = Quick(pairing_of(given.system, self.integrator), *how, given.table)
            self._quick[_names(inputs)] = made

    def _states(self, q0: ArrayLike, v0: ArrayLike) -> list[np.ndarray]:
        shape = (self.system.n,)
        return [
            x if type(x) is np.ndarray and x.dtype == np.float64 and x.shape == shape
            else as_floats(name, x, shape, False)
            for name, x in (("q0", q0), ("v0", v0))
        ]  # fmt: skip

    def start(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        parameters: Parameters | None = None,
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
            runner = stable(Beginning(pairing, q, v, self.t0, self.step_size, self.backend, drive)).runner()
        return Stepper(runner, system, begin, self.integrator.own_time, self.t0, self.step_size)

    def value_and_gradient(self, loss: Loss) -> Callable[..., tuple[float, Gradient]]:
        """f(q0, v0, parameters=None, inputs=None): loss(run), a number that JAX makes of the run's arrays,
        and its derivatives by the initial state, the parameters and the inputs. Compiled once, in the first
        call."""

        def value(q: ArrayLike, v: ArrayLike, p: Any, u: Any) -> tuple[Any, Any]:
            run = self._carefully(q, v, p, u)
            return loss(run), jnp.max(run.report.status)

        compiled = jax.jit(jax.value_and_grad(value, (0, 1, 2, 3), has_aux=True))

        def call(
            q0: ArrayLike,
            v0: ArrayLike,
            parameters: Parameters | None = None,
            inputs: Mapping[str, InputLike] | None = None,
        ) -> tuple[float, Gradient]:
            q, v = self._states(q0, v0)
            given, table = copied(inputs, self.inputs_between, self.steps, self.t0, self.step_size)
            columns = columns_of(inputs, given)
            system = self.system if parameters is None else self.system.with_parameters(parameters)
            with on_cpu():
                if not self._admits(q, v, parameters, columns, table):
                    how = (self.inputs_between, self.steps, self.t0, self.step_size)
                    here = given_inputs(system, columns, *how).system
                    check_run(here, self.integrator, q, v, self.t0, self.step_size, "auto")
                    self._prepare_quick(columns)
                (number, status), found = compiled(q, v, visible(system.parameters), columns or {})
            if int(status) != Status.SOLVED:
                raise SolveFailed(f"a step failed: {Status(int(status)).message}", None)
            return float(number), Gradient(*jax.tree.map(np.asarray, found))

        return call

    def _admits(
        self,
        q: np.ndarray,
        v: np.ndarray,
        parameters: Parameters | None,
        inputs: Mapping[str, InputLike] | None,
        table: np.ndarray | None,
    ) -> bool:
        """Whether a run from there can begin without any doubt."""
        quick = self._quick.get(_names(inputs))
        if quick is None:
            return False
        first = None if table is None else table[0]
        return quick.admits(q, v, quick.with_parameters(parameters, first), first)


def _names(inputs: Mapping[str, InputLike] | None) -> tuple[str, ...]:
    return tuple(sorted(inputs)) if inputs else ()


def _are_arrays(inputs: Mapping[str, InputLike] | None) -> bool:
    """Whether none of them is traced, told at once."""
    return inputs is None or (type(inputs) is dict and all(type(x) is np.ndarray for x in inputs.values()))


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
