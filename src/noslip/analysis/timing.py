"""How things are timed: rivals in turn, the best of several rounds, since shared machines are noisy."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

ROUNDS = 7
K = TypeVar("K")


def best_of_rounds(
    rivals: Mapping[K, Callable[[], object]],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[K, float]:
    """Seconds of each rival: the best of several rounds, in each of which all are timed in turn.

    Where rivals differ by orders of magnitude the clock should be `time.process_time`: on a busy machine a
    long run is sure to be set aside for others, a short one is not.
    """
    best = dict.fromkeys(rivals, float("inf"))
    for _ in range(rounds):
        for name, run in rivals.items():
            began = clock()
            run()
            best[name] = min(best[name], clock() - began)
    return best


@contextmanager
def one_core() -> Iterator[None]:
    """Keep the process on one processor, where the system lets us."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)
