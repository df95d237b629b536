"""What a study is: rows declared beside the paper, our numbers, a verdict by a rule, and the curves."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, TypeVar

from noslip.plots.panels import Panel
from noslip.studies._rules import DIGITS, EXPONENTS, Rule

T = TypeVar("T")
UNEXPLAINED = "outside the rule, and we do not know why"
NUMBER, STATEMENT, CHECK = "number", "statement", "check"
KINDS = {
    NUMBER: "a numerical result that the paper prints, each counted once",
    STATEMENT: "words, an order or a formula of the paper, which our number bears out or not",
    CHECK: "our own: another reading of what is counted already, or what the paper does not say",
}


class Track(Protocol):
    """Goes through items and may show how far it is."""

    def __call__(self, items: Sequence[T], what: str) -> Iterable[T]: ...


def silent(items: Sequence[T], what: str) -> Iterable[T]:
    """A `Track` that shows nothing."""
    return items


@dataclass(frozen=True)
class DeclaredRow:
    """What is known before the study runs: the quantity, its kind, what the paper says of it, and the rule.

    `paper` is what stands on the page, `value` what the rule compares with. `reason` says why ours differs,
    where it does; `note` is said in any case. `spread` is the relative change that our number may show on
    another machine; None where only the verdict is reproducible, as for round-off and chaos. `full` marks
    rows of the full form only.
    """

    quantity: str
    kind: str
    rule: Rule
    paper: str
    value: float = float("nan")
    reason: str = ""
    note: str = ""
    spread: float | None = 1e-4
    full: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"a row must be one of {', '.join(KINDS)}, but '{self.kind}' was given")

    def judged(self, ours: float, note: str = "") -> StudyRow:
        """The row with our number; `note` is what only the run can say."""
        agrees = bool(self.rule.agrees(float(ours), self.value, self.paper))
        told = [self.note, note] + ([] if agrees else [self.reason or UNEXPLAINED])
        return StudyRow(self, float(ours), agrees, "; ".join(filter(None, told)))


@dataclass(frozen=True)
class StudyRow:
    """A declared row with our number and the verdict of its rule."""

    declared: DeclaredRow
    ours: float
    agrees: bool
    reason: str

    @property
    def quantity(self) -> str:
        return self.declared.quantity

    @property
    def verdict(self) -> str:
        return "agrees" if self.agrees else "differs"

    @property
    def shown(self) -> str:
        """`ours` with as many digits as anyone reads."""
        size = abs(self.ours)
        return f"{self.ours:.1e}" if 0 < size < 1e-6 or size >= 1e6 else f"{self.ours:.6g}"


# ---- rows -----------------------------------------------------------------------------------------
def number(
    quantity: str,
    paper: str,
    *,
    kind: str = NUMBER,
    reason: str = "",
    note: str = "",
    spread: float | None = 1e-4,
) -> DeclaredRow:
    """A number with the digits that the paper prints."""
    return DeclaredRow(quantity, kind, DIGITS, paper, float(paper), reason, note, spread)


def exponent(
    quantity: str, paper: int, *, kind: str = STATEMENT, reason: str = "", note: str = ""
) -> DeclaredRow:
    """An order or a power that the paper states."""
    return DeclaredRow(quantity, kind, EXPONENTS, str(paper), float(paper), reason, note, 1e-2)


def statement(
    quantity: str,
    paper: str,
    rule: Rule,
    value: float = float("nan"),
    *,
    reason: str = "",
    note: str = "",
    spread: float | None = 1e-4,
    full: bool = False,
) -> DeclaredRow:
    """Words or a formula of the paper."""
    return DeclaredRow(quantity, STATEMENT, rule, paper, value, reason, note, spread, full)


def check(
    quantity: str,
    expected: str,
    rule: Rule,
    value: float = float("nan"),
    *,
    reason: str = "",
    note: str = "",
    spread: float | None = 1e-4,
    full: bool = False,
) -> DeclaredRow:
    """What we ask beside the paper."""
    return DeclaredRow(quantity, CHECK, rule, expected, value, reason, note, spread, full)


def judge(
    rows: Mapping[str, DeclaredRow], ours: Mapping[str, float | tuple[float, str]], full: bool = True
) -> tuple[StudyRow, ...]:
    """The declared rows in their order with our numbers, each alone or with a note; none may be missing."""
    wanted = declared(rows, full)
    if set(wanted) != set(ours):
        raise ValueError(
            f"a study must give a number for each row that it declares, but these differ: "
            f"{sorted(set(wanted) ^ set(ours))}"
        )
    pairs = {key: value if isinstance(value, tuple) else (value, "") for key, value in ours.items()}
    return tuple(row.judged(*pairs[key]) for key, row in wanted.items())


def declared(rows: Mapping[str, DeclaredRow], full: bool) -> dict[str, DeclaredRow]:
    """The rows of that form."""
    twice = [q for q, many in Counter(row.quantity for row in rows.values()).items() if many > 1]
    if twice:
        raise ValueError(f"each row of a study must have its own name, but {twice} came twice")
    return {key: row for key, row in rows.items() if full or not row.full}


@dataclass(frozen=True)
class Study:
    """The outcome: what went in, the judged rows, and the panels of the figure."""

    inputs: Mapping[str, Any]
    rows: tuple[StudyRow, ...]
    panels: tuple[Panel, ...]


def counted(pairs: Iterable[tuple[str, str]]) -> str:
    """(kind, verdict) of many rows in words: "31 numbers agree, 2 differ; 4 statements agree, 0 differ"."""
    counts = Counter(pairs)
    parts = []
    for kind in KINDS:
        agree, differ = counts[kind, "agrees"], counts[kind, "differs"]
        if agree + differ:
            many = f"{agree} {kind}s agree" if agree != 1 else f"1 {kind} agrees"
            parts.append(f"{many}, {differ} {'differs' if differ == 1 else 'differ'}")
    return "; ".join(parts)


def title(module: ModuleType) -> str:
    """The first line of the study's file."""
    return (inspect.getdoc(module) or "").partition("\n")[0].rstrip(".")


def explanation(module: ModuleType) -> str:
    """What the study's file says after its title."""
    return (inspect.getdoc(module) or "").partition("\n")[2].strip()
