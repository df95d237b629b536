"""One ensemble on many workers: Dask with a worker killed, JAX processes, and several devices of one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from noslip import Ensemble, ensemble
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import gearbox

SYSTEM = gearbox.system()
Q0, V0 = (np.asarray(x) for x in gearbox.typical_state())
EPSILON = np.linspace(0.0, 0.3, 26)
METHOD = SemiImplicitDLA()


def run(method=METHOD, **how):
    return ensemble(
        SYSTEM, method, Q0, V0, parameters={"epsilon": EPSILON}, step_size=0.1,
        observables=("energy_error",), **how,
    )  # fmt: skip


def assert_same(a: Ensemble, b: Ensemble) -> None:
    first, second = a.to_xarray(), b.to_xarray()
    for name in first.variables:
        assert first[name].values.tobytes() == second[name].values.tobytes(), name


@pytest.mark.slow
def test_a_worker_killed_in_mid_run_loses_and_repeats_nothing(tmp_path):
    pytest.importorskip("zarr")
    distributed = pytest.importorskip("distributed")
    how = {"steps": 300_000, "save_every": 100_000}  # a chunk takes some tenths of a second
    killed = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill_one_at_work(done, total):
            if not killed and (busy := [w for w, tasks in client.processing().items() if tasks]):
                pids = client.run(os.getpid)
                killed.append(pids[busy[0]])
                os.kill(killed[0], signal.SIGKILL)

        stored = run(store=tmp_path / "a.zarr", chunk=7, cluster=client, progress=kill_one_at_work, **how)
        survivors = client.run(os.getpid).values()
    assert killed
    assert killed[0] not in survivors
    assert stored.success
    assert_same(stored, run(**how))


# as many devices as XLA is told, on one processor
DEVICES = """
import json, sys
import jax, numpy as np
import noslip
from noslip import ensemble
from noslip.run.many_xla import XlaMembers
from noslip.run.member import Member, MemberGroup, MemberInputs
from noslip.integrators.runge_kutta4 import RungeKutta4
from noslip.systems import gearbox
q0, v0 = (np.asarray(x) for x in gearbox.typical_state())
epsilon = np.linspace(0.0, 0.3, 26)
run = ensemble(gearbox.system(), RungeKutta4(), q0, v0, parameters={"epsilon": epsilon}, step_size=0.1,
               steps=40, observables=("energy_error",), backend="xla")
inputs = MemberInputs(gearbox.system(), MemberGroup(q0, v0, {"epsilon": epsilon}, 26), 0.1, 0.0)
members = XlaMembers(Member(RungeKutta4(), ()), inputs)
shares = [shard.data.shape[0] for shard in members.full.carry.step.addressable_shards]
print(json.dumps({"devices": len(jax.devices()), "shares": shares, "q": run.q.tolist(),
                  "drift": run.statistics["energy_error"]["max"].tolist()}))
"""


def test_members_are_shared_among_the_devices_of_a_process():
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    done = subprocess.run(
        [sys.executable, "-c", DEVICES],
        capture_output=True,
        text=True,
        env={**os.environ, "XLA_FLAGS": flags},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["devices"] == 4
    assert found["shares"] == [7, 7, 7, 7]  # 26 members, filled up to 28
    one = run(RungeKutta4(), steps=40)
    np.testing.assert_allclose(found["q"], one.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found["drift"], one.statistics["energy_error"]["max"], rtol=0, atol=1e-14)


# the same call in two processes that know of each other
PROCESS = """
import sys
import jax
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]))
import numpy as np
from noslip import ensemble
from noslip.run import store
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.systems import gearbox
mine, run_chunk = [], store.run_chunk
store.run_chunk = lambda plan, folder, k, show: (mine.append(k), run_chunk(plan, folder, k, show))
q0, v0 = (np.asarray(x) for x in gearbox.typical_state())
run = ensemble(gearbox.system(), SemiImplicitDLA(), q0, v0, parameters={"epsilon": np.linspace(0.0, 0.3, 26)},
               step_size=0.1, steps=40, observables=("energy_error",), store=sys.argv[3], chunk=5)
assert run.success
print(mine)
"""


@pytest.mark.slow
def test_processes_of_jax_share_the_chunks(tmp_path):
    pytest.importorskip("zarr")
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    command = [sys.executable, "-c", PROCESS, address]
    both = [
        subprocess.Popen([*command, str(i), str(tmp_path / "a.zarr")], stdout=-1, stderr=-1, text=True)
        for i in range(2)
    ]
    outputs = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert [out.splitlines()[-1] for out, _ in outputs] == ["[0, 2, 4]", "[1, 3, 5]"]
    assert_same(Ensemble.open(tmp_path / "a.zarr"), run(steps=40))
