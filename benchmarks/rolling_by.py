"""A coin rolls, by one package in one process: `python rolling_by.py PACKAGE`, a task as JSON on its input.

The answer is JSON too: the seconds of processor time from the start of the process until the first run that
is timed, those of a run, and rows of place, velocity, rotation from body to space and angular velocity in the
body. Each package is imported by its own function, so that the others need not be there.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Task = dict[str, Any]
Rows = list[list[float]]
ROUNDS = 3
TURNED = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
"""Exudyn's joint has the axis of the disc along x, noslip's coin along z."""


def timed(run: Callable[[], Rows]) -> Task:
    """What the process has used so far, and the least of some rounds of the run itself."""
    setup, best = time.process_time(), float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        rows = run()
        best = min(best, time.process_time() - began)
    return {"setup": setup, "seconds": best, "rows": rows}


def by_noslip(task: Task) -> Task:
    """The catalogue's coin, by calls that are warm."""
    import noslip
    from noslip import integrators, rotations
    from noslip.systems import rolling_coin

    p = task["coin"]
    system = rolling_coin.system(**p)
    u = np.asarray(rotations.from_matrix(np.array(task["turn"])))
    q = np.concatenate([task["place"], u])
    v = np.concatenate([task["velocity"], np.asarray(rotations.from_rates(u, np.array(task["rates"])))])
    method = getattr(integrators, task["method"])(*task["settings"])

    def run() -> Rows:
        found = noslip.simulate(
            system, method, q, v, step_size=task["step"], steps=task["steps"], save_every=task["every"]
        )
        return [np.concatenate([a, b]).tolist() for a, b in zip(found.q, found.v, strict=True)]

    run()
    answer = timed(run)
    answer["rows"] = [_of_quaternion(np.array(row)) for row in answer["rows"]]
    return answer


def _of_quaternion(row: np.ndarray) -> list[float]:
    """Place, velocity, rotation and rates of (x, y, z, u) and its velocity; u is of unit length."""
    x, u, v, du = row[:3], row[3:7], row[7:10], row[10:]
    a, b = u[0], u[1:]
    cross = np.array([[0.0, -b[2], b[1]], [b[2], 0.0, -b[0]], [-b[1], b[0], 0.0]])
    turn = np.eye(3) + 2 * a * cross + 2 * cross @ cross
    rates = 2 * (a * du[1:] - du[0] * b - np.cross(b, du[1:]))
    return [*x, *v, *turn.ravel(), *rates]


def by_exudyn(task: Task) -> Task:
    """A rigid body with Euler parameters and the joint of a rolling disc. Newton's tolerances are a hundredth
    of the default, all else is by default."""
    sys.exudynFast = True  # type: ignore[attr-defined]
    exu = importlib.import_module("exudyn")
    system, sensors = _disc(exu, importlib.import_module("exudyn.utilities"), task)
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = task["steps"]
    settings.timeIntegration.endTime = task["step"] * task["steps"]
    settings.timeIntegration.newton.relativeTolerance = 1e-10
    settings.timeIntegration.newton.absoluteTolerance = 1e-12
    settings.solutionSettings.writeSolutionToFile = False
    settings.solutionSettings.sensorsWritePeriod = task["step"] * task["every"]
    solver = getattr(exu.DynamicSolverType, task["method"])

    def run() -> Rows:
        if not system.SolveDynamic(settings, solverType=solver, showHints=False):
            raise RuntimeError("SolveDynamic did not succeed")
        return np.concatenate([system.GetSensorStoredData(one)[:, 1:] for one in sensors], axis=1).tolist()

    answer = timed(run)
    rows = np.array(answer["rows"])
    rows[:, 6:15] = (rows[:, 6:15].reshape(-1, 3, 3) @ TURNED.T).reshape(-1, 9)
    rows[:, 15:] = rows[:, 15:] @ TURNED.T
    return answer | {"rows": rows.tolist()}


def _disc(exu: Any, items: Any, task: Task) -> tuple[Any, list[Any]]:
    """The system of Exudyn, assembled, and what observes its disc."""
    system, p = exu.SystemContainer().AddSystem(), task["coin"]
    body = system.CreateRigidBody(
        referencePosition=task["place"],
        referenceRotationMatrix=np.array(task["turn"]) @ TURNED,
        initialVelocity=task["velocity"],
        initialAngularVelocity=np.array(task["turn"]) @ task["rates"],
        inertia=items.RigidBodyInertia(mass=p["m"], inertiaTensor=np.diag([p["C"], p["A"], p["A"]])),
        gravity=[0.0, 0.0, -p["g"]],
    )
    ground = system.AddMarker(items.MarkerBodyRigid(bodyNumber=system.CreateGround()))
    centre = system.AddMarker(items.MarkerBodyRigid(bodyNumber=body))
    system.AddObject(items.ObjectJointRollingDisc(markerNumbers=[ground, centre], discRadius=p["r"]))
    kinds = ("Position", "Velocity", "RotationMatrix", "AngularVelocityLocal")
    found = [getattr(exu.OutputVariableType, kind) for kind in kinds]
    sensors = [items.SensorBody(bodyNumber=body, storeInternal=True, outputVariableType=x) for x in found]
    sensors = [system.AddSensor(sensor) for sensor in sensors]
    system.Assemble()
    return system, sensors


MODEL = """<mujoco><option timestep="{step!r}" integrator="{integrator}" gravity="0 0 -{g!r}" cone="elliptic"
 tolerance="1e-14" iterations="200"/>
<default><geom friction="5 0 0" condim="3" solref="{stiff!r} 1" solimp="0.99 0.99 0.001"/></default>
<worldbody><geom type="plane" size="0 0 1"/><body><freejoint/>
<inertial pos="0 0 0" mass="{m!r}" diaginertia="{A!r} {A!r} {C!r}"/>
<geom type="cylinder" size="{r!r} {thin!r}"/></body></worldbody></mujoco>"""


def by_mujoco(task: Task) -> Task:
    """A free body with a thin cylinder on a plane; contact and friction are soft, as MuJoCo's are."""
    mujoco = importlib.import_module("mujoco")
    p = task["coin"]
    step = task["step"]
    text = MODEL.format(**p, step=step, stiff=2 * step, integrator=task["method"], thin=1e-6 * p["r"])
    model = mujoco.MjModel.from_xml_string(text)
    data, quaternion = mujoco.MjData(model), np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.array(task["turn"]).ravel())

    def row() -> list[float]:
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, data.qpos[3:])
        return [*data.qpos[:3], *data.qvel[:3], *turn, *data.qvel[3:]]

    def run() -> Rows:
        mujoco.mj_resetData(model, data)
        data.qpos[:] = [*task["place"], *quaternion]
        data.qvel[:] = [*task["velocity"], *task["rates"]]
        rows = [row()]
        for _ in range(task["steps"] // task["every"]):
            mujoco.mj_step(model, data, task["every"])
            rows.append(row())
        return rows

    return timed(run)


def main() -> None:
    package, task = sys.argv[1], json.load(sys.stdin)
    answer = {"noslip": by_noslip, "exudyn": by_exudyn, "mujoco": by_mujoco}[package](task)
    print(json.dumps(answer | {"version": importlib.metadata.version(package)}))


if __name__ == "__main__":
    main()
