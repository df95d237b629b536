"""Work on ranges of a long row of things, shared among threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_ranges(run: Callable[[int, int], None], count: int, threads: int) -> None:
    """Call run(a, b) for ranges that make up 0 to `count`, on so many threads."""
    if threads == 1 or count < 2:
        run(0, count)
        return
    ends = np.linspace(0, count, min(count, 8 * threads) + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(run, a, b) for a, b in pairwise(ends)]:
            done.result()
