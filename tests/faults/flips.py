"""Random bits of stored files turned over: whatever changes a number that is read must be reported.

    python tests/faults/flips.py --flips 1000 --seed 0

makes a NetCDF file, a trajectory on disk and an ensemble on disk in a temporary folder, and prints for each
how many flips were reported by reading, how many changed nothing that is read, and how many were silent, of
which there must be none. What `noslip verify` says of the same flips is counted beside it.
"""

from __future__ import annotations

import argparse
import collections
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from noslip import Damaged, Ensemble, ensemble, load, simulate
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA
from noslip.run import store_layout, trajectory_store
from noslip.saved import verify
from noslip.systems import gearbox

KINDS = ("run.nc", "run.zarr", "ensemble.zarr")


def make(folder: Path) -> None:
    """The three kinds of files, with several chunks each."""
    state = gearbox.typical_state()
    how: dict[str, Any] = {"step_size": 0.1, "steps": 60}
    small = trajectory_store.CHUNK_BYTES, store_layout.CHUNK_BYTES
    trajectory_store.CHUNK_BYTES, store_layout.CHUNK_BYTES = 10_000, 4_000
    try:
        run = simulate(gearbox.system(), SemiImplicitDLA(), *state, **how, store=folder / "run.zarr")
        run.save(folder / "run.nc")
        parameters = {"epsilon": np.linspace(0.1, 0.3, 5)}
        ensemble(
            gearbox.system(), SemiImplicitDLA(), *state, **how, save_every=5, parameters=parameters,
            observables=["energy_error"], store=folder / "ensemble.zarr", chunk=3,
        )  # fmt: skip
    finally:
        trajectory_store.CHUNK_BYTES, store_layout.CHUNK_BYTES = small


def numbers(path: Path) -> dict[str, Any]:
    """Everything that is read of a file: arrays and the record of the run."""
    found = Ensemble.open(path) if path.name == "ensemble.zarr" else load(path)
    data = found.to_xarray()
    arrays = {str(name): (x.dtype.str, x.shape, x.values.tobytes()) for name, x in data.variables.items()}
    return arrays | {"record": data.attrs["noslip"]}


def flip(path: Path, rng: np.random.Generator) -> tuple[Path, bytes, str]:
    """Turn one bit over, each bit as likely as any other; the file, what it was, and where."""
    files = [path] if path.is_file() else sorted(x for x in path.rglob("*") if x.is_file())
    sizes = np.array([x.stat().st_size for x in files], float)
    chosen = files[rng.choice(len(files), p=sizes / sizes.sum())]
    before = chosen.read_bytes()
    bit = int(rng.integers(8 * len(before)))
    data = bytearray(before)
    data[bit // 8] ^= 1 << bit % 8
    chosen.write_bytes(data)
    return chosen, before, f"{chosen.name if path.is_file() else chosen.relative_to(path)}, bit {bit}"


def judge(path: Path, right: dict[str, Any], rng: np.random.Generator) -> tuple[str, str, bool]:
    """What becomes of one flip, where it was, and whether `verify` tells of it."""
    chosen, before, where = flip(path, rng)
    try:
        try:
            outcome = "harmless" if numbers(path) == right else "silent"
        except Damaged:
            outcome = "reported"
        except Exception as error:
            outcome = f"reported as {type(error).__name__}: {str(error)[:80]}"
        return outcome, where, bool(verify(path).damaged)
    finally:
        chosen.write_bytes(before)


def flips(kind: str, count: int, seed: int, folder: Path) -> collections.Counter[str]:
    """Outcomes and their numbers; those that should not be are printed."""
    rng, right, seen = np.random.default_rng(seed), numbers(folder / kind), collections.Counter[str]()
    for _ in range(count):
        outcome, where, verified = judge(folder / kind, right, rng)
        seen[outcome] += 1
        seen["seen by verify"] += verified
        if outcome not in ("reported", "harmless"):
            print(f"{kind}: {outcome} at {where}")
        if outcome == "reported" and not verified:
            print(f"{kind}: reported, but not by verify, at {where}")
            seen["not seen by verify"] += 1
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--flips", type=int, default=1000, help="of each kind of file")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    bad = 0
    try:
        make(folder)
        for kind in KINDS:
            seen = flips(kind, asked.flips, asked.seed, folder)
            print(f"{kind}: {dict(seen)}", flush=True)
            fine = seen["reported"] + seen["harmless"]
            bad += asked.flips - fine + seen["not seen by verify"]
    finally:
        shutil.rmtree(folder)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
