"""Machine code that is made quickly at first, and well as soon as it has been in use for some time.

To optimise takes longer than all else on the way to a first result, and a short run does not earn it back.
The bits of results do not depend on it, so the change may happen whenever it pays.
"""

from __future__ import annotations

import math
import threading
import time
import zlib
from collections.abc import Callable

import numpy as np

PATIENCE = 5e-6  # seconds of use for each line of text: a tenth of what it takes to optimise them
HUGE, WHOLE = 40_000, 8e-5  # lines from which on that takes many seconds, and then all of these for each line

Call = Callable[..., None]


class NativeFunction:
    """A function of machine code that takes NumPy arrays for pointers; `owner` holds the code."""

    def __init__(self, call: Call, owner: object):
        self.call, self.owner = call, owner

    def __call__(self, *args: np.ndarray | float | None) -> None:
        # the tuple of arguments keeps temporary arrays alive until the call is over
        self.call(*[a.ctypes.data if type(a) is np.ndarray else a for a in args])

    def improved(self, most: float = math.inf) -> NativeFunction:
        """The function as it will stay: made well, unless that is of more than so many lines."""
        return self


class ImprovedFunction(NativeFunction):
    """One that is made quickly, by `make(text, quickly)`, and measures how long it runs."""

    def __init__(self, text: str, make: Callable[[str, bool], NativeFunction]):
        self._make, self._now, self._lock = make, make(text, True), threading.Lock()
        self._text, self._lines = zlib.compress(text.encode(), 1), text.count("\n")
        self._left = self._lines * (PATIENCE if self._lines < HUGE else WHOLE)  # seconds; then infinite

    @property
    def call(self) -> Call:  # type: ignore[override]
        raise AttributeError("the machine code may change: ask for what is `improved`")

    def __call__(self, *args: np.ndarray | float | None) -> None:
        if self._left < 0:
            self.improved()
        now = self._now  # held while it runs
        began = time.perf_counter()
        now(*args)
        self._left -= time.perf_counter() - began

    def improved(self, most: float = math.inf) -> NativeFunction:
        with self._lock:
            if self._text and self._lines <= most:
                self._now = self._make(zlib.decompress(self._text).decode(), False)
                self._text, self._left = b"", math.inf
        return self._now
