"""Functions that hardly ever run: written and compiled when one of them is called for the first time.

The code that calls one reads its address from a variable of the module. At first that is a function of Python
which has the machine code made, puts the true address into the variable, and goes there.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
SOON = 0.01  # seconds


class Rarely:
    """The functions of these names, compiled together by `make`."""

    def __init__(self, names: Sequence[str], make: Callable[[], Any]):
        self.names, self._make = list(names), make
        self._module: Any = None
        self._lock = threading.Lock()

    def address(self, name: str) -> int:
        """Where the machine code is; made now if it is not there."""
        with self._lock:
            if self._module is None:
                self._module = self._make()
        return int(self._module.engine.get_function_address(name))

    def entered_at(self, places: Sequence[int]) -> list[Any]:
        """Put into the variables at these addresses, one for each name, what is to be called; it has to be
        held as long as the code that calls."""
        return [self._entrance(name, at) for name, at in zip(self.names, places, strict=True)]

    def _entrance(self, name: str, at: int) -> Any:
        variable = ctypes.c_void_p.from_address(at)

        def first(given: int, made: int) -> None:
            waiting: list[BaseException] = []
            while True:
                try:
                    variable.value = address = self.address(name)
                    CALL(address)(given, made)
                    break
                except BaseException as error:  # of a signal: not before this is done, and not in here, where
                    if waiting and not isinstance(error, KeyboardInterrupt):  # it would be lost
                        raise  # what comes again is not a signal
                    waiting.append(error)
            if waiting:
                threading.Timer(SOON, _raise_in, (threading.get_ident(), waiting[0])).start()

        entrance = CALL(first)
        variable.value = ctypes.cast(entrance, ctypes.c_void_p).value
        return entrance


def _raise_in(thread: int, error: BaseException) -> None:
    """Raise it in that thread, which is back from the machine code or soon will be."""
    kind = type(error)
    if kind is KeyboardInterrupt:
        return _thread.interrupt_main()
    again = type(kind.__name__, (kind,), {"__init__": lambda self: kind.__init__(self, *error.args)})
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(again))
    return None
