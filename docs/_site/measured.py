"""What the scoreboard measured of each method, for its page: a picture and the numbers."""

from __future__ import annotations

import io
import json
from functools import cache
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

STORED = Path(__file__).parents[1] / "measured" / "scoreboard.json"
SHOWN = {"energy": "o", "first_integrals": "s", "constraint": "^", "reversible": "x"}
FLOOR = 1e-17


@cache
def stored() -> dict[str, Any]:
    return dict(json.loads(STORED.read_text()))


def rows(name: str) -> list[dict[str, Any]]:
    """Of the method with its default parameters, one for each system on which it ran."""
    return [row for row in stored()["rows"] if row["method"] == f"{name}()" and not row["note"]]


def cells(name: str) -> list[tuple[str, ...]]:
    return [
        (
            row["system"],
            *("-" if row[key] is None else f"{row[key]:.0e}" for key in SHOWN),
            "-" if row["order"] is None else f"{row['order']:.2f}",
        )
        for row in rows(name)
    ]


def picture(name: str) -> bytes:
    """The largest errors on each system, on one scale: what is kept lies at round-off."""
    found = rows(name)
    with rc_context({"svg.hashsalt": "noslip", "font.size": 9, "svg.fonttype": "path"}):
        figure = Figure(figsize=(7.2, 2.6), layout="constrained")
        axes = figure.subplots()
        for k, (key, mark) in enumerate(SHOWN.items()):
            points = [
                (i + 0.12 * (k - 1.5), max(row[key], FLOOR))
                for i, row in enumerate(found)
                if row[key] is not None
            ]
            if points:
                axes.semilogy(*zip(*points, strict=True), mark, label=key.replace("_", " "))
        axes.axhspan(FLOOR, 1e-13, color="0.92", zorder=0)
        axes.text(-0.55, 6e-14, "round-off", va="top", color="0.45", fontsize=8)
        axes.set(ylim=(FLOOR / 2, 30), ylabel="largest error", xlim=(-0.6, len(found) - 0.4))
        axes.set_xticks(range(len(found)), [row["system"].replace("_", "\n") for row in found])
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
