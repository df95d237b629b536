"""Python's search for garbage, set aside while programs are made: they are a hundred thousand small objects
that all stay, and to look through them again and again takes a fifth of the time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_waiting = 0  # how many have set it aside
_found_on = False  # whether it ran before the first of them


@contextmanager
def set_aside() -> Iterator[None]:
    """While the block runs no garbage is looked for, in any thread; then as it was before."""
    global _waiting, _found_on
    with _lock:
        if not _waiting:
            _found_on = gc.isenabled()
            gc.disable()
        _waiting += 1
    try:
        yield
    finally:
        with _lock:
            _waiting -= 1
            if not _waiting and _found_on:
                gc.enable()
