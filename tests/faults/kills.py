"""A long run and an ensemble, ended at random moments by signals and by full disks, and gone on with.

    python tests/faults/kills.py --kills 100 --others 20 --seed 0

starts the same call again and again, each time in a new process, and ends it by SIGKILL (--kills times) and
by SIGTERM, SIGHUP, SIGINT and a full disk (--others times each), in a random order; then lets it finish and
compares every bit with a run that nobody disturbed. A process that ends in any other way, by a crash say, is
a failure. The disk is a tmpfs that is made small and then large again, which needs the right to mount;
without it full disks are left out, and that is said.
"""

from __future__ import annotations

import argparse
import gc
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr  # noqa: F401  once for all children: an interrupted import is another story

from noslip import Ensemble, Trajectory, ensemble, simulate
from noslip.files import DISK_FAILS
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.run import store, store_layout, trajectory_store
from noslip.systems import gearbox

ENDINGS = ("SIGTERM", "SIGHUP", "SIGINT", "full disk")
INTERRUPTED, FULL, DONE = 130, 6, 0
HANGS = 120  # seconds after which a process does
SYSTEM, STATE = gearbox.system(), gearbox.typical_state()


def one(steps: int, where: Path | None, progress: Any = None) -> Any:
    return simulate(
        SYSTEM, DiscreteGradient(), *STATE, step_size=0.1, steps=steps, save_every=max(1, steps // 20_000),
        backend="native", store=where, progress=progress,
    )  # fmt: skip


def many(steps: int, where: Path | None, progress: Any = None) -> Any:
    return ensemble(
        SYSTEM, DiscreteGradient(), *STATE, step_size=0.1, steps=steps, save_every=max(1, steps // 300),
        parameters={"epsilon": np.linspace(0.1, 0.3, 21)}, observables=["energy_error"], backend="native",
        threads=1, store=where, chunk=None if where is None else 8, progress=progress,
    )  # fmt: skip


CALLS: dict[str, Callable[..., Any]] = {"trajectory": one, "ensemble": many}


def child(kind: str, steps: int, where: Path, told: int) -> int:
    """The call, in a process of its own, which says when it is on its way."""
    trajectory_store.SECONDS_BETWEEN_CHECKPOINTS = store.SECONDS_BETWEEN_CHECKPOINTS = 0.02
    trajectory_store.SHARE_OF_WRITING = 1.0
    trajectory_store.CHUNK_BYTES = store_layout.CHUNK_BYTES = 100_000

    def progress(done: int, total: int) -> None:
        os.write(told, b".")

    try:
        CALLS[kind](steps, where, progress)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno in DISK_FAILS:
            return FULL
        raise
    return DONE


def forked(*what: Any) -> tuple[int, int]:
    """The child's number, and where it speaks. It is forked from a process that has compiled the step, so
    that a hundred of them take minutes; it runs native code only."""
    listen, tell = os.pipe()
    os.set_blocking(tell, False)
    number = os.fork()
    if number:
        os.close(tell)
        return number, listen
    code = 1
    gc.freeze()  # what the parent has made is not freed here: JAX may wait for threads that are not here
    try:
        os.close(listen)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = child(*what, tell)
    except BlockingIOError:
        pass
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


class Disk:
    """A tmpfs whose room can be changed, or a plain folder where that cannot be had."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(self.folder)], capture_output=True
        )
        self.mounted = made.returncode == 0

    def room(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)

    def fill(self) -> None:
        """Leave no room, while others write."""
        for _ in range(100):
            if not subprocess.run(
                ["mount", "-o", f"remount,size={self.used()}", str(self.folder)], capture_output=True
            ).returncode:
                return

    def used(self) -> int:
        whole = os.statvfs(self.folder)
        return (whole.f_blocks - whole.f_bfree) * whole.f_frsize

    def close(self) -> None:
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=True)
        shutil.rmtree(self.folder)


def disturb(kind: str, steps: int, disk: Disk, ending: str, rng: np.random.Generator) -> str:
    """Start the call, end it, and say how it ended."""
    begins_full = ending == "full disk" and rng.random() < 0.3
    if begins_full:
        disk.room(disk.used() + int(rng.integers(0, 20_000)))
    process, listen = forked(kind, steps, disk.folder / "store")
    if rng.random() < 0.9 and _ready(listen, HANGS):
        os.read(listen, 1)  # else it may be ended while it begins
    if not begins_full:
        time.sleep(rng.uniform(0.0, 0.1))
    if ending == "full disk":
        disk.fill()
    else:
        os.kill(process, getattr(signal, ending))
    began, status, patience = time.monotonic(), None, 5.0
    while status is None:
        found, value = os.waitpid(process, os.WNOHANG)
        status = value if found else None
        if ending == "SIGINT" and status is None and time.monotonic() > began + patience:
            os.kill(process, signal.SIGINT)  # the first was swallowed, say by a callback of JAX
            patience += 5.0
        if time.monotonic() > began + HANGS:
            os.close(listen)
            _end(process)
            return f"{ending}: hangs"
        while len(os.read(listen, 4096) if _ready(listen) else b"") == 4096:
            pass
        time.sleep(0.002)
    os.close(listen)
    if ending == "full disk":
        disk.room(2**30)
    code = os.waitstatus_to_exitcode(status)
    expected = {"SIGKILL": -signal.SIGKILL, "full disk": FULL}.get(ending, INTERRUPTED)
    early = {"SIGTERM": -signal.SIGTERM, "SIGHUP": -signal.SIGHUP}.get(ending)  # before there was a run
    return ending if code in (expected, early) else f"{ending}: ended with {code}" if code else "was done"


def _ready(listen: int, seconds: float = 0.0) -> bool:
    return bool(select.select([listen], [], [], seconds)[0])


def _end(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def _finished(process: int) -> str:
    """How it ends when nobody disturbs it."""
    began = time.monotonic()
    while not (found := os.waitpid(process, os.WNOHANG))[0]:
        if time.monotonic() > began + 10 * HANGS:
            _end(process)
            return "at last: hangs"
        time.sleep(0.01)
    code = os.waitstatus_to_exitcode(found[1])
    return "at last done" if code == DONE else f"at last: {code}"


def same(kind: str, where: Path, expected: Any) -> list[str]:
    """The arrays that differ in a bit from those of a run in memory."""
    found = (Trajectory if kind == "trajectory" else Ensemble).open(where).to_xarray()
    right = expected.to_xarray()
    return [
        str(name)
        for name in {*found.variables, *right.variables}
        if name not in found or found[name].values.tobytes() != right[name].values.tobytes()
    ]


def trial(kind: str, steps: int, kills: int, others: int, seed: int) -> tuple[Counter[str], list[str]]:
    """All the endings, then the end; how each process ended, and the arrays that came out wrong."""
    rng, disk = np.random.default_rng(seed), Disk()
    endings = ["SIGKILL"] * kills + [name for name in ENDINGS for _ in range(others)]
    if not disk.mounted:
        print("no right to mount a tmpfs: full disks are left out")
        endings = [name for name in endings if name != "full disk"]
    try:
        CALLS[kind](2000, None)  # compiles
        seen = Counter(disturb(kind, steps, disk, str(name), rng) for name in rng.permutation(endings))
        process, listen = forked(kind, steps, disk.folder / "store")
        seen[_finished(process)] += 1
        os.close(listen)
        left = [path for path in disk.folder.rglob(".part-*") if time.time() - path.stat().st_mtime > 60]
        seen["leftovers"] += len(left)
        return seen, same(kind, disk.folder / "store", CALLS[kind](steps, None))
    finally:
        disk.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--others", type=int, default=20)
    parser.add_argument("--steps", type=int, default=20_000_000)
    parser.add_argument("--members-steps", type=int, default=6_000_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    bad = 0
    for kind, steps in (("trajectory", asked.steps), ("ensemble", asked.members_steps)):
        if not steps:
            continue
        began = time.perf_counter()
        seen, wrong = trial(kind, steps, asked.kills, asked.others, asked.seed)
        fine = {"SIGKILL", *ENDINGS, "was done", "at last done", "leftovers"}
        bad += len(wrong) + sum(count for name, count in seen.items() if name not in fine)
        print(
            f"{kind}: {dict(seen)}; differing arrays: {wrong or 'none'}; {time.perf_counter() - began:.0f} s"
        )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
