"""The benchmarks that are not installed: `benchmarks/` of the checkout that noslip is imported from."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any


def folder() -> Path | None:
    """`benchmarks/` beside `src/`, or None where noslip is installed."""
    source = Path(__file__).resolve().parents[2]
    found = source.parent / "benchmarks"
    return found if source.name == "src" and (found / "commands.py").is_file() else None


def commands() -> dict[str, Any]:
    """Its commands by name, as Typer makes them; none where there is no checkout."""
    found = folder()
    if found is None:
        return {}
    from typer.main import get_command

    root = str(found.parent)
    if root not in sys.path:
        sys.path.append(root)
    return dict(get_command(importlib.import_module("benchmarks.commands").app).commands)  # type: ignore[attr-defined]
