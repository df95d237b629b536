"""Text of the package as Markdown: docstrings, tables, and plain words that Markdown leaves alone."""

from __future__ import annotations

import inspect
import re
from typing import Any


def verbatim(doc: str) -> str:
    """A docstring as it was written: paragraphs as text, indented formulas as they stand."""
    parts = []
    for block in re.split(r"\n\s*\n", doc):
        lines = block.splitlines()
        inside = [line for line in lines if line.startswith("    ")]
        if inside and len(inside) == len(lines):
            parts.append("```text\n" + inspect.cleandoc(block) + "\n```")
        elif inside:  # a paragraph with formulas in its middle
            parts.append("```text\n" + block + "\n```")
        else:
            parts.append(escaped(block))
    return "\n\n".join(parts)


def escaped(text: Any) -> str:
    """Plain text that Markdown leaves alone; what is between back quotes stays as it is."""
    pieces = re.split(r"(`[^`]*`|\*\*[a-z]+\*\*)", str(text))
    return "".join(piece if k % 2 else _plain(piece) for k, piece in enumerate(pieces))


def _plain(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\*_|\[\]#$])", r"\\\1", safe)


def first_line(value: Any) -> str:
    return escaped((inspect.getdoc(value) or "").partition("\n")[0])
