"""What can go wrong in a run, and the sentences that say so."""

from __future__ import annotations

import difflib
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class SolveFailed(RuntimeError):
    """An implicit step could not be solved; `trajectory` holds everything before it (or the ensemble)."""

    def __init__(self, message: str, trajectory: Any):
        super().__init__(message)
        self.trajectory = trajectory


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a run, or a signal that ends it; `trajectory` holds what had been saved until then."""

    def __init__(self, message: str, trajectory: Any):
        super().__init__(message)
        self.trajectory = trajectory


def stopped(cause: BaseException, message: str, trajectory: Any) -> BaseException:
    """What ends a run early: `Interrupted` where it was asked to, else the exception that the user's own
    `progress` raised; either has what there is as its `trajectory`."""
    if isinstance(cause, KeyboardInterrupt):
        return Interrupted(message, trajectory)
    cause.trajectory = trajectory  # type: ignore[attr-defined]
    cause.add_note(f"raised by `progress`: {message}")
    return cause


class Damaged(ValueError):
    """Stored data that are not what was written: a checksum does not fit, or a part is missing."""


class NotHamiltonizable(ValueError):
    """A reduced motion without a multiplier f(r); the message says which condition fails, by how much."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """One sentence for a name that does not exist, with the nearest one that does."""
    known, name = sorted(known), name if isinstance(name, str) else shown(name)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known) or 'none'}."
    return f"unknown {kind} '{name}'; {hint}"


def shown(value: object) -> str:
    """What was provided, in one line that is not too long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a number of too many digits, say, or an object of the user
        text = f"something of type {type(value).__name__}"
    return text if len(text) <= 100 else f"{text[:80]}... ({type(value).__name__})"


def users_line(error: BaseException) -> str:
    """Where in code that is not installed an error came up: ", in FILE, line N: TEXT"; or nothing."""
    own = str(Path(__file__).parent)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        installed = "site-packages" in frame.filename or frame.filename.startswith((own, "<frozen"))
        if not installed and not frame.filename.startswith(sys.base_prefix):
            text = f": {frame.line}" if frame.line else ""
            return f", in {frame.filename}, line {frame.lineno}{text}"
    return ""


def first_line(error: BaseException) -> str:
    """What an error says, in one line."""
    return str(error).strip().partition("\n")[0] or type(error).__name__
