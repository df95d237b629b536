"""Processes that are forked after JAX has begun to work: XLA would wait there for threads that do not exist.

What is compiled already as native code runs in such a process, unless a thread was just compiling when it was
forked. All else needs XLA, and gets a sentence instead of waiting for ever.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

_forked = False


def require_xla() -> None:
    """Refuse to use XLA where it would hang."""
    if _forked:
        _refuse()


def _refuse(*_: object, **__: object) -> NoReturn:
    raise RuntimeError(
        "this process was forked after JAX had begun to work, and XLA cannot work in it; start processes by "
        "multiprocessing.get_context('spawn'), or fork before the first use of noslip"
    )


def _in_child() -> None:
    """Let XLA refuse where it would hang. JAX has no public name for that, so it is looked for."""
    jax = sys.modules.get("jax")
    bridge, compiler = (sys.modules.get(f"jax._src.{name}") for name in ("xla_bridge", "compiler"))
    at_work = getattr(bridge, "backends_are_initialized", None)
    if jax is None or at_work is None or not at_work() or not hasattr(compiler, "compile_or_get_cached"):
        return
    global _forked
    _forked = True
    jax.clear_caches()  # what is compiled would be run without asking anybody
    compiler.compile_or_get_cached = _refuse  # type: ignore[union-attr]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
