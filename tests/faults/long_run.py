"""A very long run on disk, killed and gone on with several times: flat memory, and energy without a trend.

    nice python tests/faults/long_run.py --steps 1000000000 --rows 1000000 --kills 6

runs DiscreteGradient on the knife edge, in processes of its own. Each but the last is killed (SIGKILL) when
it has done its share of the steps. Printed are the memory of each process early and late, the time, and of
the whole run the largest error of the energy and its slope.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from noslip import Trajectory, simulate
from noslip.analysis.conservation import drift, energy_error
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.systems import knife_edge


def resident() -> float:
    """Megabytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def child(where: str, steps: int, every: int, stop: int) -> None:
    """The call; it says how far it is and how large, and waits to be killed at step `stop`."""
    last = [time.monotonic()]

    def progress(done: int, total: int) -> None:
        if time.monotonic() > last[0] + 1.0 or done >= stop:
            print(json.dumps([done, resident()]), flush=True)
            last[0] = time.monotonic()
        if done >= stop:
            signal.pause()

    simulate(
        knife_edge.system(), DiscreteGradient(), *knife_edge.typical_state(), step_size=0.01, steps=steps,
        save_every=every, store=where, progress=progress,
    )  # fmt: skip
    print(json.dumps([steps, resident()]), flush=True)


def stage(where: Path, steps: int, every: int, stop: int) -> tuple[int, list[float]]:
    """One process, up to step `stop`; where it began, and its memory along the way."""
    words = [sys.executable, __file__, "--child", str(where), str(steps), str(every), str(stop)]
    sizes, first = [], -1
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            done, size = json.loads(line)
            first = done if first < 0 else first
            sizes.append(size)
            if done >= stop and stop < steps:
                process.kill()
                break
    return first, sizes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=10**9)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--child", nargs=4)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child[0], *map(int, asked.child[1:]))
        return 0
    folder, every, began = Path(tempfile.mkdtemp()), asked.steps // asked.rows, time.perf_counter()
    try:
        for k in range(1, asked.kills + 2):
            stop = asked.steps * k // (asked.kills + 1) if k <= asked.kills else 2**62
            first, sizes = stage(folder / "run.zarr", asked.steps, every, stop)
            early, late = sizes[min(2, len(sizes) - 1)], sizes[-1]
            print(
                f"process {k}: first seen at step {first}, memory {early:.0f} MB early, {late:.0f} MB late, "
                f"{max(sizes):.0f} MB at most; {time.perf_counter() - began:.0f} s so far",
                flush=True,
            )
        run = Trajectory.open(folder / "run.zarr")
        error = energy_error(run)
        slope = drift(np.asarray(run.t), error)
        size = sum(path.stat().st_size for path in (folder / "run.zarr").rglob("*") if path.is_file()) / 1e6
        print(
            f"{len(run.t)} rows, {int(np.sum(run.report.steps))} steps, success {run.success}, "
            f"{size:.0f} MB on disk; energy error at most {np.max(np.abs(error)):.1e}, "
            f"slope {slope.slope:.1e} +- {slope.standard_error:.1e} over t = {run.t[-1]:g}"
        )
        return int(not run.success or len(run.t) != asked.rows + 1)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
