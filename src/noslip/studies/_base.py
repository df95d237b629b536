"""What a study is: numbers of a paper beside ours, a verdict for each, and the curves behind them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeVar

from noslip.plots.panels import Panel

T = TypeVar("T")
UNEXPLAINED = "outside the tolerance, and we do not know why"
ROUND_OFF = 1e-13  # what the papers call machine precision, for quantities of order one


class Track(Protocol):
    """Goes through items and may show how far it is."""

    def __call__(self, items: Sequence[T], what: str) -> Iterable[T]: ...


def silent(items: Sequence[T], what: str) -> Iterable[T]:
    """A `Track` that shows nothing."""
    return items


@dataclass(frozen=True)
class StudyRow:
    """One number of a paper, ours beside it, and whether they agree.

    `spread` is the relative change that `ours` may show on another machine; None where only the verdict is
    reproducible, as for round-off. A row that differs says why; one that agrees may say in which reading.
    """

    quantity: str
    paper: str
    ours: float
    agrees: bool
    reason: str = ""
    spread: float | None = 1e-4

    def __post_init__(self) -> None:
        if not self.agrees and not self.reason:
            object.__setattr__(self, "reason", UNEXPLAINED)

    @property
    def verdict(self) -> str:
        return "agrees" if self.agrees else "differs"

    @property
    def shown(self) -> str:
        """`ours` with as many digits as anyone reads."""
        size = abs(self.ours)
        return f"{self.ours:.1e}" if 0 < size < 1e-6 or size >= 1e6 else f"{self.ours:.6g}"


def number(
    quantity: str, paper: float, ours: float, *, within: float, reason: str = "", spread: float | None = 1e-4
) -> StudyRow:
    """A row for a number that the paper prints: it agrees if the difference is at most `within`."""
    return StudyRow(quantity, f"{paper:g}", float(ours), abs(ours - paper) <= within, reason, spread)


def claim(
    quantity: str, paper: str, ours: float, holds: bool, reason: str = "", spread: float | None = 1e-4
) -> StudyRow:
    """A row for words of the paper: `holds` says whether our number bears them out."""
    return StudyRow(quantity, paper, float(ours), bool(holds), reason, spread)


def round_off(
    quantity: str, paper: str, ours: float, *, bound: float = ROUND_OFF, reason: str = ""
) -> StudyRow:
    """A row for what must vanish to round-off; how much of it remains depends on the machine."""
    return StudyRow(quantity, paper, float(ours), bool(ours <= bound), reason, None)


@dataclass(frozen=True)
class Study:
    """The outcome: what went in, a row for each number, and the panels of the figure."""

    inputs: Mapping[str, Any]
    rows: tuple[StudyRow, ...]
    panels: tuple[Panel, ...]

    def __post_init__(self) -> None:
        quantities = [row.quantity for row in self.rows]
        twice = {q for q in quantities if quantities.count(q) > 1}
        if twice:
            raise ValueError(f"each row of a study must have its own name, but {sorted(twice)} came twice")


def title(module: ModuleType) -> str:
    """The first line of the study's file."""
    return (inspect.getdoc(module) or "").partition("\n")[0].rstrip(".")


def explanation(module: ModuleType) -> str:
    """What the study's file says after its title."""
    return (inspect.getdoc(module) or "").partition("\n")[2].strip()
