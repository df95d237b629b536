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

SECONDS_PER_CALL = 0.2  # of the loop of one trajectory
Progress = Callable[[int, int], None]  # of the steps done and the steps in all
ENDINGS = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])  # not on Windows


class Pace:
    """The number of steps of the next call: what fits into `seconds`, at most eight times the last one.
    Calls end at multiples of `grain`, or at the end."""

    def __init__(self, first_piece: int, seconds: float, grain: int = 1):
        self.piece, self.seconds, self.grain = first_piece, seconds, grain

    def stop(self, done: int, end: int) -> int:
        """The step to which the call that begins now, at step `done`, shall go."""
        self.done, self.began = done, time.perf_counter()
        return min(-(-(done + self.piece) // self.grain) * self.grain, end)

    def reached(self, done: int) -> None:
        """That call has ended at step `done`."""
        rate = (done - self.done) / max(time.perf_counter() - self.began, 1e-9)  # clocks may jump
        self.piece = max(1, min(8 * self.piece, int(rate * self.seconds) + 1))


class Interruption:
    """Context in which Ctrl-C, SIGTERM and SIGHUP ask to stop after the call under way; asked twice, it stops
    at once. What was asked during the last call is the `cause` of an exception as well, with the whole run,
    or programs of many short runs would not stop. The last two are left to those who have taken them
    already, as `nohup` has, or a server. Of no use to runs that are over at once, which are not `watched`."""

    def __init__(self, watched: bool = True) -> None:
        self.cause: BaseException | None = None
        self.before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {}
        self.mine = watched and threading.current_thread() is threading.main_thread()

    def __enter__(self) -> Interruption:
        if self.mine:
            self.before = {signal.SIGINT: signal.signal(signal.SIGINT, self._ask)}
            for number in ENDINGS:
                if signal.getsignal(number) is signal.SIG_DFL:
                    self.before[number] = signal.signal(number, self._ask)
        return self

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.cause = KeyboardInterrupt()

    @property
    def asked(self) -> bool:
        return self.cause is not None

    def attend(self, show: Progress, done: int, total: int) -> None:
        """Show it; what the user's function raises asks to stop, too, so that nothing is lost by it."""
        try:
            show(done, total)
        except BaseException as error:
            self.cause = error

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


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
