"""The ball by MuJoCo, the bicycle by Exudyn: simulators with steps of a fixed size and bodies of their own.

Each is a function (problem, steps) -> solver, as in `solvers`. MuJoCo's contact and friction are soft, so
what it solves is another problem, near this one. Exudyn has a joint for discs that roll without slip, none
for balls.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import by_hand
from benchmarks.problems import Problem
from noslip.bench import ball, bicycle

Solver = Callable[[], tuple[Any, Any]]
BALL = """<mujoco><option timestep="{h!r}" integrator="{integrator}" gravity="0 0 -9.81" cone="elliptic"
 tolerance="1e-14" iterations="200"/>
<default><geom friction="5 0 0" condim="3" solref="{stiff!r} 1" solimp="0.99 0.99 0.001"/></default>
<worldbody><geom type="plane" size="0 0 1"/><body pos="0 0 {r!r}">
<joint type="slide" axis="1 0 0" stiffness="{k!r}"/><joint type="slide" axis="0 1 0" stiffness="{k!r}"/>
<joint type="slide" axis="0 0 1"/><joint type="ball"/>
<inertial pos="0 0 0" mass="{m!r}" diaginertia="{I[0]!r} {I[1]!r} {I[2]!r}"/>
<geom type="sphere" size="{r!r}"/></body></worldbody></mujoco>"""


def mujoco_ball(integrator: str) -> Callable[[Problem, float], Solver]:
    """Slides with the spring, a ball joint, and a sphere on a plane; settings as on the page on rolling."""

    def make(problem: Problem, steps: float) -> Solver:
        mujoco = importlib.import_module("mujoco")
        h, body = problem.span / steps, {"m": ball.MASS, "r": ball.RADIUS, "k": ball.SPRING}
        text = BALL.format(**body, I=ball.INERTIA.tolist(), h=h, stiff=2 * h, integrator=integrator)
        model = mujoco.MjModel.from_xml_string(text)
        data, (q, v) = mujoco.MjData(model), problem.state

        def run() -> tuple[Any, Any]:
            mujoco.mj_resetData(model, data)
            data.qpos[:] = [q[0], q[1], 0.0, *q[2:]]
            data.qvel[:] = [v[0], v[1], 0.0, *by_hand.spin(q[2:], v[2:])]
            mujoco.mj_step(model, data, int(steps))
            u = data.qpos[3:].copy()
            rate = 0.5 * np.array(by_hand.times(u, data.qvel[3:]))
            return np.concatenate([data.qpos[:2], u]), np.concatenate([data.qvel[:2], rate])

        return run

    return make


def exudyn_bicycle(method: str) -> Callable[[Problem, float], Solver]:
    """Four bodies with Euler parameters, three revolute joints, two joints of rolling discs. Newton's
    tolerances are a hundredth of the default, all else is by default."""

    def make(problem: Problem, steps: float) -> Solver:
        sys.exudynFast = True  # type: ignore[attr-defined]
        exu = importlib.import_module("exudyn")
        system, bodies = _bicycle(exu, importlib.import_module("exudyn.utilities"), problem)
        settings = exu.SimulationSettings()
        settings.timeIntegration.numberOfSteps = int(steps)
        settings.timeIntegration.endTime = problem.span
        settings.timeIntegration.newton.relativeTolerance = 1e-10
        settings.timeIntegration.newton.absoluteTolerance = 1e-12
        settings.solution.file.write = False
        solver = getattr(exu.DynamicSolverType, method)

        def run() -> tuple[Any, Any]:
            if not system.SolveDynamic(settings, solverType=solver, showHints=False):
                raise ArithmeticError("SolveDynamic did not succeed")
            return _as_coordinates(exu, system, bodies, problem)

        return run

    return make


def _bicycle(exu: Any, items: Any, problem: Problem) -> tuple[Any, list[Any]]:
    """The system of Exudyn, assembled, and its bodies: rear wheel, frame, fork, front wheel."""
    system, (q, v) = exu.SystemContainer().AddSystem(), problem.state
    parts, centres = by_hand.parts(np, q, v)
    arms = (bicycle.REAR, bicycle.BODY, bicycle.HANDLEBAR, bicycle.FRONT)
    bodies = [
        system.CreateRigidBody(
            referencePosition=arm,  # upright, with the road at z = 0, which is how the problem begins
            initialVelocity=centre.J @ v,
            initialAngularVelocity=part.W,
            inertia=items.RigidBodyInertia(mass=mass, inertiaTensor=inertia),
            gravity=[0.0, 0.0, bicycle.GRAVITY],
        )
        for part, centre, arm, mass, inertia in zip(
            parts, centres, arms, bicycle.MASSES, bicycle.INERTIAS, strict=True
        )
    ]
    rear, frame, fork, front = bodies
    axis = [np.sin(bicycle.TILT), 0.0, np.cos(bicycle.TILT)]
    hinges = ((rear, bicycle.REAR, [0, 1, 0]), (fork, bicycle.PIVOT, axis), (front, bicycle.FRONT, [0, 1, 0]))
    for body, place, about in hinges:
        on = fork if body == front else frame
        system.CreateRevoluteJoint(itemNumbers=[on, body], position=place, axis=about)
    ground = system.AddMarker(items.MarkerBodyRigid(bodyNumber=system.CreateGround()))
    for wheel, place in ((rear, bicycle.REAR), (front, bicycle.FRONT)):
        marker = system.AddMarker(items.MarkerBodyRigid(bodyNumber=wheel))
        disc = {"discRadius": -place[2], "discAxis": [0, 1, 0], "planeNormal": [0, 0, -1]}
        system.AddObject(items.ObjectJointRollingDisc(markerNumbers=[ground, marker], **disc))
    system.Assemble()
    return system, bodies


def _as_coordinates(exu: Any, system: Any, bodies: list[Any], problem: Problem) -> tuple[Any, Any]:
    """(q, v) of the problem from places and rotations; the turns of wheels that are nearest to the truth."""
    kinds = exu.OutputVariableType

    def read(kind: Any) -> list[np.ndarray]:
        return [np.asarray(system.GetObjectOutputBody(body, kind)) for body in bodies]

    rear, frame, fork, front = (turn.reshape(3, 3) for turn in read(kinds.RotationMatrix))
    head = by_hand.turn(np, 1, bicycle.TILT)
    steer = head.T @ frame.T @ fork @ head
    angles = [
        np.arctan2(-frame[0, 1], frame[1, 1]), np.arcsin(frame[2, 1]), np.arctan2(-frame[2, 0], frame[2, 2]),
        np.arctan2(steer[1, 0], steer[0, 0]), _about_y(frame.T @ rear), _about_y(fork.T @ front),
    ]  # fmt: skip
    q = np.concatenate([read(kinds.Position)[0], angles])
    q[7:] += 2 * np.pi * np.round((problem.end[0][7:] - q[7:]) / (2 * np.pi))
    parts, _ = by_hand.parts(np, q, np.zeros(9))
    J = np.concatenate([part.J for part in parts])[:, 3:]
    rates = np.linalg.lstsq(J, np.concatenate(read(kinds.AngularVelocity)), rcond=None)[0]
    return q, np.concatenate([read(kinds.Velocity)[0], rates])


def _about_y(turn: np.ndarray) -> float:
    return float(np.arctan2(turn[0, 2], turn[0, 0]))
