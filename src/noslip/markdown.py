"""Tables in Markdown, and in the HTML that notebooks show."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Cells are Markdown already, but for bars; a row shorter than the head is filled with empty cells."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        if len(row) > len(head):
            raise ValueError(f"a row must have at most {len(head)} cells, but it has {len(row)}: {row}")
        cells = [re.sub(r"(?<!\\)\|", r"\|", str(cell).replace("\n", " ")) for cell in row] + [""] * (
            len(head) - len(row)
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """A title and rows of a name and a value, as a notebook shows them."""
    cells = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in rows)
    return f"<table><caption>{html.escape(title)}</caption>{cells}</table>"
