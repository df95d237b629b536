"""What the pages of studies and references say: the stored results of the full forms, the bibliography."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from noslip import references, studies
from noslip.studies._base import CHECK, KINDS, counted, explanation, title
from prose import plain, sentence, typeset

STORED = Path(__file__).parents[1] / "studies"
COLUMNS = re.compile(r"(.*): (\w+)")  # "line 3: x_d" is in the row "line 3" of a table, under x_d


def stored(name: str) -> dict[str, Any]:
    return dict(json.loads((STORED / f"{name}.json").read_text()))


def verdicts(rows: list[dict[str, Any]]) -> str:
    text = counted((row["kind"], row["verdict"]) for row in rows)
    return text[:1].upper() + text[1:]


def study(name: str, module: ModuleType) -> dict[str, Any]:
    found = stored(name)
    sections = []
    for kind, what in KINDS.items():
        rows = [row for row in found["rows"] if row["kind"] == kind]
        if rows:
            table, rest = as_printed(rows)
            sections.append((kind, what, table, listed(rest), "expected" if kind == CHECK else "paper"))
    return {
        "name": name,
        "title": title(module),
        "text": typeset(explanation(module)),
        "verdicts": verdicts(found["rows"]),
        "sections": sections,
        "notes": [
            (sentence(r["quantity"]), r["verdict"], sentence(r["reason"]))
            for r in found["rows"]
            if r["reason"]
        ],
        "inputs": [(f"`{key}`", f"`{json.dumps(value)}`") for key, value in found["inputs"].items()],
        "versions": ", ".join(f"{k} {v}" for k, v in found["versions"].items()),
    }


def as_printed(
    rows: list[dict[str, Any]],
) -> tuple[tuple[list[str], list[list[str]]] | None, list[dict[str, Any]]]:
    """The rows that make up a table of the paper, as that table, and all others.

    A cell shows the printed number; below it stands ours, where it does not round to the same digits.
    """
    cells = {row["quantity"]: row for row in rows}
    found = [COLUMNS.fullmatch(quantity) for quantity in cells]
    lines = list(dict.fromkeys(m[1] for m in found if m))
    columns = list(dict.fromkeys(m[2] for m in found if m))
    full = [line for line in lines if all(f"{line}: {column}" in cells for column in columns)]
    if len(columns) < 2 or len(full) < 3:
        return None, rows
    body = [[line, *(_cell(cells[f"{line}: {column}"]) for column in columns)] for line in full]
    inside = {f"{line}: {column}" for line in full for column in columns}
    return (["", *(sentence(column) for column in columns)], body), [
        row for quantity, row in cells.items() if quantity not in inside
    ]


def _cell(row: dict[str, Any]) -> str:
    if row["verdict"] == "agrees":
        return f"{row['paper']} ✓"
    return f"{row['paper']} **≠ {shown(row['ours'])}**"


def listed(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [
        (
            sentence(row["quantity"]),
            sentence(row["paper"]),
            shown(row["ours"]),
            row["rule"],
            "✓" if row["verdict"] == "agrees" else "**differs**",
        )
        for row in rows
    ]


def shown(value: float) -> str:
    size = abs(value)
    return f"{value:.1e}" if 0 < size < 1e-4 or size >= 1e6 else f"{value:.6g}"


def overview() -> list[tuple[str, references.Work, list[dict[str, Any]]]]:
    """(paper, its reference, its studies) with the counts of each study."""
    every = {name: stored(name) for name in studies.names()}
    made = []
    for paper in references.PAPERS:
        own = []
        for name, found in every.items():
            if found["paper"] == paper:
                pairs = [(row["kind"], row["verdict"]) for row in found["rows"]]
                counts = [(pairs.count((kind, "agrees")), pairs.count((kind, "differs"))) for kind in KINDS]
                own.append({"name": name, "title": found["title"], "counts": counts})
        if own:
            made.append((paper, references.WORKS[paper], own))
    return made


def total() -> str:
    return counted((row["kind"], row["verdict"]) for name in studies.names() for row in stored(name)["rows"])


def full(work: references.Work) -> str:
    """A reference with its DOI as a link."""
    link = f" [doi:{work.doi}]({work.url})" if work.doi else ""
    return plain(work.text) + link


def anchor(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", key.lower())
