"""How a check says no: with an exception of its own, so that `python -O` does not silence it."""

from __future__ import annotations


class CheckFailed(AssertionError):
    """A method or a system does not do what it claims; the message says in one sentence what, and where."""


def require(condition: object, sentence: str) -> None:
    """Go on if the condition holds."""
    if not bool(condition):
        raise CheckFailed(sentence)
