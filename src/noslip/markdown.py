"""Markdown tables, written in this one place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Cells are Markdown already; a row shorter than the head is filled with empty cells."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        if len(row) > len(head):
            raise ValueError(f"a row must have at most {len(head)} cells, but it has {len(row)}: {row}")
        cells = [str(cell).replace("\n", " ") for cell in row] + [""] * (len(head) - len(row))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
