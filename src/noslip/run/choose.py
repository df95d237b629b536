"""Which backend runs: the one place that chooses it, and says why where it is not the first choice."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from noslip.engine.backends import cuda
from noslip.engine.program import CannotTranslate, TooLarge
from noslip.run.many_gpu import GpuMembers
from noslip.run.many_native import NativeMembers
from noslip.run.many_xla import XlaMembers
from noslip.run.member import Member, MemberInputs
from noslip.run.one_native import NativeTrajectory
from noslip.run.one_reference import ReferenceTrajectory
from noslip.run.one_xla import XlaTrajectory
from noslip.run.pairing import Pairing
from noslip.run.reference_events import WatchingReference
from noslip.run.runner import MembersRunner, TrajectoryRunner
from noslip.system.inputs import Drive

BACKENDS = ("auto", "xla", "native", "gpu")
R = TypeVar("R")


def on_cpu() -> AbstractContextManager[None]:
    """One trajectory is a long chain of tiny operations: a CPU's work, also where JAX prefers a GPU."""
    return jax.default_device(jax.local_devices(backend="cpu")[0])


class Beginning(NamedTuple):
    """Where one trajectory begins, and all that its runner is made of."""

    pairing: Pairing
    q: np.ndarray
    v: np.ndarray
    t: float
    h: float
    backend: str = "auto"
    inputs: Drive = None

    def runner(self) -> TrajectoryRunner[Any]:
        """What advances it, at the start."""
        return trajectory_runner(self.pairing, self.q, self.v, self.t, self.h, self.backend, self.inputs)

    @property
    def orthogonal(self) -> Beginning:
        """The same with one-forms that are made orthogonal before they are used."""
        return self._replace(pairing=self.pairing.where_forms_are_parallel)

    def elsewhere(self, q: np.ndarray, v: np.ndarray, t: float, inputs: Drive) -> Beginning:
        """The same method from another state."""
        return self._replace(q=q, v=v, t=t, inputs=inputs)


def trajectory_runner(
    pairing: Pairing,
    q: np.ndarray,
    v: np.ndarray,
    t: float,
    h: float,
    backend: str = "auto",
    inputs: Drive = None,
) -> TrajectoryRunner[Any]:
    """One trajectory: native code, XLA's, or the host's where the method is a flow and has no step."""
    if pairing.integrator.host_driven:
        made = WatchingReference if pairing.events else ReferenceTrajectory
        return made(pairing, q, v, t, h, inputs)
    return _compiled_or_xla(
        lambda: NativeTrajectory(pairing, q, v, t, h, inputs),
        lambda: XlaTrajectory(pairing, q, v, t, h, inputs),
        backend,
        "native code",
    )


def members_runner(member: Member, inputs: MemberInputs, backend: str, threads: int | None) -> MembersRunner:
    """Many members: kernels on GPUs where JAX prefers them, lanes of native code, or XLA's vmap."""
    if member.integrator.host_driven:
        name = type(member.integrator).__name__
        raise ValueError(f"{name} runs one trajectory at a time; call simulate for each member")
    if backend == "gpu" and not cuda.count():
        raise ValueError("backend 'gpu' needs a GPU with NVIDIA's driver, but there is none; use 'auto'")

    def compiled() -> MembersRunner:
        if backend == "gpu" or (backend == "auto" and jax.default_backend() == "gpu"):
            return GpuMembers(member, inputs)
        with on_cpu():
            return NativeMembers(member, inputs, threads)

    return _compiled_or_xla(compiled, lambda: XlaMembers(member, inputs), backend, "compiled ensemble")


def _compiled_or_xla(compiled: Callable[[], R], xla: Callable[[], R], backend: str, what: str) -> R:
    """XLA runs what has no scalar program. It does so without a word where it is the better choice, with a
    warning where an operation is missing, and not at all where the caller asked for another backend."""
    if backend == "xla":
        return xla()
    try:
        return compiled()
    except CannotTranslate as reason:
        if backend != "auto":
            raise ValueError(f"backend '{backend}' cannot run this: {reason}; use 'auto' or 'xla'") from None
        if not isinstance(reason, TooLarge):
            warnings.warn(f"no {what}: {reason}; XLA runs this instead", stacklevel=6)
    return xla()
