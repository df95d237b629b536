"""Many distinct systems in one process: what was compiled for them is bounded, and comes back the same.

    nice python tests/faults/many_systems.py --systems 2000

makes systems with functions of their own and runs each natively, with SemiImplicitDLA and with
DiscreteGradient. Printed is the memory along the way, the most that it ever was, and at the end whether the
first systems, which have had to be compiled again, give the bits that they gave before. `--hold` keeps all
results, and with them their systems; `--backend xla` runs the steps by XLA, some seconds for each system.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import jax.numpy as jnp

from noslip import System, Trajectory, simulate
from noslip.engine import kept
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.semi_implicit_dla import SemiImplicitDLA

METHODS = (SemiImplicitDLA(), DiscreteGradient())
AGAIN = 5  # systems that are run again at the end


def resident() -> float:
    """Megabytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def distinct(k: int) -> System:
    """The k-th system: its functions are its own, and no two have the same numbers in them."""
    c = 1.0 + k / 1000

    def lagrangian(q, v, p):
        return 0.5 * (1 + 0.1 * jnp.sin(c * q[0])) * jnp.dot(v, v) - p["k"] * c * (q[0] ** 2 + q[1] ** 2)

    def one_forms(q, p):
        return jnp.array([[-c * q[1], 0.0, 1.0]])

    return System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": 1.3})


def runs(k: int, backend: str) -> list[Trajectory]:
    made, q, v = distinct(k), [0.2, 0.5, -0.1], [0.8, 0.6, 0.4 * (1 + k / 1000)]
    return [simulate(made, m, q, v, step_size=0.1, steps=10, backend=backend) for m in METHODS]


def many(count: int, backend: str, hold: bool) -> bool:
    """Whether the memory stayed under a gigabyte and the first systems gave the same again."""
    begin, held, first = time.monotonic(), [], []
    for k in range(count):
        results = runs(k, backend)
        first += [results] if k < AGAIN else []
        held += [results] if hold else []
        if (k + 1) % 50 == 0 or k + 1 in (1, 10, count):
            seconds = time.monotonic() - begin
            said = f"{k + 1:6d} systems  {resident():6.0f} MB  {kept.taken()} of {kept.ROOM}  {seconds:.0f} s"
            print(said, flush=True)
    same = all(runs(k, backend) == results for k, results in enumerate(first))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"at most {most:.0f} MB; the first systems again: {'the same bits' if same else 'OTHER BITS'}")
    return same and most < 1000


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--systems", type=int, default=2000)
    parser.add_argument("--backend", default="native", choices=("native", "xla"))
    parser.add_argument("--hold", action="store_true")
    options = parser.parse_args()
    raise SystemExit(0 if many(options.systems, options.backend, options.hold) else 1)
