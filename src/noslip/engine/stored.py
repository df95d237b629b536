"""Programs and machine code that an earlier process has made, from the folder of `shelf`; else made now, and
put there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from noslip.engine import garbage, shelf, written
from noslip.engine.program import CannotTranslate, Program
from noslip.engine.told import CannotTell, joined


def program(parts: tuple[object, ...], make: Callable[[], Program]) -> Program:
    """The program that is made from these parts and nothing else."""
    with garbage.set_aside():
        return _program(parts, make)


def _program(parts: tuple[object, ...], make: Callable[[], Program]) -> Program:
    if shelf.refusal(shelf.folder()) is not None:
        return make()
    try:
        words = joined(("program", *parts))
    except CannotTell:
        return make()
    if (data := shelf.find(words)) is not None:
        with contextlib.suppress(written.Unreadable):
            return written.from_bytes(data)
    try:
        made = make()
    except CannotTranslate as refusal:
        shelf.put(words, written.refusal_to_bytes(refusal))
        raise
    with contextlib.suppress(written.Unreadable):
        shelf.put(words, written.to_bytes(made))
    return made


def word(parts: tuple[object, ...], make: Callable[[], str]) -> str:
    """The word that these parts and nothing else decide."""
    if shelf.refusal(shelf.folder()) is not None:
        return make()
    try:
        words = joined(("word", *parts))
    except CannotTell:
        return make()
    return code(words, lambda: make().encode()).decode()


def code(words: str, make: Callable[[], bytes]) -> bytes:
    """The machine code that these words, the text of the functions among them, decide."""
    data = shelf.find(words)
    if data is None:
        shelf.put(words, data := make())
    return data


def has(words: str) -> bool:
    """Whether machine code was put there under these words."""
    return shelf.find(words) is not None
