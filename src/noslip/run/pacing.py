"""How far each call of a compiled loop goes, so that progress is shown and Ctrl-C answered in time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

Progress = Callable[[int, int], None]  # of the steps done and the steps in all


class Pace:
    """The number of steps of the next call: what fits into `seconds`, at most eight times the last one."""

    def __init__(self, first_piece: int, seconds: float):
        self.piece, self.seconds = first_piece, seconds

    def stop(self, done: int, end: int) -> int:
        """The step to which the call that begins now, at step `done`, shall go."""
        self.done, self.began = done, time.perf_counter()
        return min(done + self.piece, end)

    def reached(self, done: int) -> None:
        """That call has ended at step `done`."""
        rate = (done - self.done) / (time.perf_counter() - self.began)
        self.piece = max(1, min(8 * self.piece, int(rate * self.seconds) + 1))


class Interruption:
    """Context in which Ctrl-C asks to stop after the call under way; asked twice, it stops at once.
    Of no use to runs that are over at once, which are not `watched`."""

    def __init__(self, watched: bool = True) -> None:
        self.asked = False
        self.mine = watched and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interruption:
        if self.mine:
            self.before = signal.signal(signal.SIGINT, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(self, *_: object) -> None:
        if self.mine:
            signal.signal(signal.SIGINT, self.before)


class Meter:
    """Context that yields show(done, total): a bar, the user's function, or nothing."""

    def __init__(self, progress: bool | Progress | None, total: int):
        self.progress, self.total = progress, total
        self.bar: Bar | None = None

    def __enter__(self) -> Progress:
        if callable(self.progress):
            return self.progress
        if not self.progress:
            return lambda *_: None
        from rich.progress import Progress as Bar

        bar = self.bar = Bar(transient=True)
        bar.start()
        task = bar.add_task("steps", total=self.total)
        return lambda done, _: bar.update(task, completed=done)

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()
