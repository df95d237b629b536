"""GPUs by the driver that every machine with one has: contexts, memory, kernels out of PTX.

The driver's C interface is called directly; it is small, stable, and asks for no package.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np

from noslip.engine.backends.ptx import compiled

BLOCK = 32  # threads: one warp, whose registers are free as soon as its members are done (measured)
# numbers of attributes in the driver's interface
CLOCK_KHZ, MULTIPROCESSORS, CAPABILITY_MAJOR, CAPABILITY_MINOR = 13, 16, 75, 76
DOUBLES = {60: 32, 70: 32, 80: 32, 90: 64}  # operations on doubles that a multiprocessor begins in a cycle
LOCAL_BYTES, REGISTERS = 3, 4
ERROR_LOG, ERROR_LOG_SIZE, OPTIMIZE = 5, 6, 7
MOST, LEAST = 4, 1  # what the driver may spend on a kernel; below that it saves no time


class CudaError(RuntimeError):
    """The driver refused a call."""


@functools.cache
def _driver() -> ctypes.CDLL | None:
    """The driver, ready for use, or None where there is none."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return library if library.cuInit(c_uint(0)) == 0 else None
    return None


def count() -> int:
    """How many GPUs the driver shows to this process."""
    driver, number = _driver(), c_int(0)
    if driver is None or driver.cuDeviceGetCount(byref(number)) != 0:
        return 0
    return number.value


def _check(driver: ctypes.CDLL, code: int, log: str = "") -> None:
    if code == 0:
        return
    text = ctypes.c_char_p()
    known = driver.cuGetErrorString(c_int(code), byref(text)) == 0 and text.value is not None
    reason = text.value.decode() if known and text.value else f"error {code}"
    raise CudaError(f"the GPU's driver says: {reason}{': ' + log if log else ''}")


class Array:
    """Memory on a device, given back with the object."""

    def __init__(self, device: Device, size: int):
        self.device, self.size, self.pointer = device, size, c_uint64()
        with device.current() as driver:
            _check(driver, driver.cuMemAlloc_v2(byref(self.pointer), c_size_t(max(size, 8))))
        weakref.finalize(self, device.free, self.pointer.value)

    def put(self, values: np.ndarray) -> None:
        values = np.ascontiguousarray(values)
        assert values.nbytes == self.size, f"{values.nbytes} bytes do not fit into {self.size}"
        with self.device.current() as driver:
            source = values.ctypes.data_as(c_void_p)
            _check(driver, driver.cuMemcpyHtoD_v2(self.pointer, source, c_size_t(self.size)))

    def get(self, shape: tuple[int, ...]) -> np.ndarray:
        return self.get_into(np.empty(shape, np.int64))

    def get_into(self, out: np.ndarray) -> np.ndarray:
        assert out.nbytes == self.size, f"{self.size} bytes are no table of shape {out.shape}"
        with self.device.current() as driver:
            target = out.ctypes.data_as(c_void_p)
            _check(driver, driver.cuMemcpyDtoH_v2(target, self.pointer, c_size_t(self.size)))
        return out


class Kernel:
    """The entry `run` of a module on one device; `registers` and `local` bytes are what a thread takes."""

    def __init__(self, device: Device, text: str, effort: int):
        self.device = device
        module, self.entry, log = c_void_p(), c_void_p(), ctypes.create_string_buffer(1 << 14)
        options = (c_int * 3)(ERROR_LOG, ERROR_LOG_SIZE, OPTIMIZE)
        values = (c_void_p * 3)(ctypes.cast(log, c_void_p), c_void_p(len(log)), c_void_p(effort))
        code = compiled(text, device.capability).encode() + b"\0"
        with device.current() as driver:
            loaded = driver.cuModuleLoadDataEx(byref(module), code, c_uint(3), options, values)
            _check(driver, loaded, log.value.decode(errors="replace"))
            _check(driver, driver.cuModuleGetFunction(byref(self.entry), module, b"run"))
            self.registers, self.local = (
                self._attribute(driver, which) for which in (REGISTERS, LOCAL_BYTES)
            )
        self.module = module

    def _attribute(self, driver: ctypes.CDLL, which: int) -> int:
        value = c_int()
        _check(driver, driver.cuFuncGetAttribute(byref(value), c_int(which), self.entry))
        return value.value

    def launch(self, members: int, *tables: Array, numbers: tuple[int, ...] = ()) -> None:
        """Begin run(tables, members, numbers), which goes on while the host does."""
        given = [*(t.pointer for t in tables), *(ctypes.c_int64(n) for n in (members, *numbers))]
        places = (c_void_p * len(given))(*(ctypes.cast(byref(x), c_void_p) for x in given))
        blocks = -(-members // BLOCK)
        with self.device.current() as driver:
            _check(
                driver,
                driver.cuLaunchKernel(
                    self.entry, c_uint(blocks), c_uint(1), c_uint(1), c_uint(BLOCK), c_uint(1), c_uint(1),
                    c_uint(0), None, places, None,
                ),
            )  # fmt: skip


class Device:
    """One GPU, in the context that everything in this process shares."""

    def __init__(self, number: int):
        driver = _driver()
        assert driver is not None, "there is no driver"
        self.driver, self.number, self.handle, self.context = driver, number, c_int(), c_void_p()
        _check(driver, driver.cuDeviceGet(byref(self.handle), c_int(number)))
        _check(driver, driver.cuDevicePrimaryCtxRetain(byref(self.context), self.handle))
        self.capability = 10 * self._attribute(CAPABILITY_MAJOR) + self._attribute(CAPABILITY_MINOR)

    def _attribute(self, which: int) -> int:
        value = c_int()
        _check(self.driver, self.driver.cuDeviceGetAttribute(byref(value), c_int(which), self.handle))
        return value.value

    def peak(self) -> float | None:
        """Operations on doubles that can begin in a second, where the number of its units is known here."""
        units = DOUBLES.get(self.capability)
        return units and 1e3 * self._attribute(CLOCK_KHZ) * self._attribute(MULTIPROCESSORS) * units

    @contextmanager
    def current(self) -> Iterator[ctypes.CDLL]:
        """The driver with this device's context, whatever was current before is so again."""
        _check(self.driver, self.driver.cuCtxPushCurrent_v2(self.context))
        try:
            yield self.driver
        finally:
            self.driver.cuCtxPopCurrent_v2(byref(c_void_p()))

    def array(self, values: np.ndarray) -> Array:
        made = Array(self, values.nbytes)
        made.put(values)
        return made

    def empty(self, slots: int) -> Array:
        return Array(self, 8 * slots)

    def kernel(self, text: str, effort: int = MOST) -> Kernel:
        return Kernel(self, text, effort)

    def wait(self) -> None:
        """Until all that was begun is done."""
        with self.current() as driver:
            _check(driver, driver.cuCtxSynchronize())

    def free(self, pointer: int) -> None:
        with self.current() as driver:
            driver.cuMemFree_v2(c_uint64(pointer))


@functools.cache
def device(number: int) -> Device:
    return Device(number)
