"""A GPU for tests where there is none: the members' functions of the kernels compiled for the host and
called for one member after the other. It has the interface of `noslip.engine.backends.cuda.Device`."""

import ctypes
import functools
import re

import numpy as np

from noslip.engine.backends import native


class HostArray:
    def __init__(self, values):
        self.values = np.ascontiguousarray(values).reshape(-1).view(np.int64)

    def put(self, values):
        assert values.nbytes == self.values.nbytes
        self.values[:] = np.ascontiguousarray(values).reshape(-1).view(np.int64)

    def get(self, shape):
        return self.values.reshape(shape).copy()

    def get_into(self, out):
        out[...] = self.values.reshape(out.shape)
        return out


@functools.cache
class HostKernel:
    """Of one text there is one: a device in two shares, or a run of its own, need not compile it again."""

    def __init__(self, text):
        body, _, _ = text.partition("define ptx_kernel")
        body = re.sub(r"declare i32 @llvm\.nvvm.*\n", "", body)
        given = re.search(r"internal void @member\((.*?)\) alwaysinline", body)[1].split(", ")
        names = [part.split(" %")[1] for part in given]
        passed = ", ".join(
            f"{'ptr' if 'ptr' in p else 'i64'} %{n}" for p, n in zip(given, names, strict=True)
        )
        signature = ", ".join(given).replace("i64 %member", "i64 %members")
        entry = f"""define void @all({signature}) {{
entry:
  br label %head
head:
  %member = phi i64 [ 0, %entry ], [ %next, %turn ]
  %inside = icmp slt i64 %member, %members
  br i1 %inside, label %turn, label %leave
turn:
  call void @member({passed})
  %next = add i64 %member, 1
  br label %head
leave:
  ret void
}}"""
        types = [ctypes.c_void_p if "ptr" in part else ctypes.c_int64 for part in given]
        self.registers, self.local = 0, 0
        self.function = native.Module(body + entry, quickly=True).function("all", *types)

    def launch(self, members, *tables, numbers=()):
        self.function(*(table.values for table in tables), members, *numbers)


class HostDevice:
    capability = 90

    def array(self, values):
        return HostArray(values.copy())

    def empty(self, slots):
        return HostArray(np.zeros(slots, np.int64))

    def kernel(self, text, effort=0):
        return HostKernel(text)

    def peak(self):
        return 1e12

    def wait(self):
        pass
