"""The ball and the bicycle among the points of `peers`: tables, sentences and the picture of their page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.peers import ERRORS, FLOW, Row, curves_of, per_step
from noslip.markdown import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BODIES = ("ball", "bicycle")
LEVELS = (1e-4, 1e-8)


def quickest(result: Row, body: str, level: float) -> tuple[list[Row], list[str]]:
    """The quickest point of each method with an error of at most `level`, the quickest first; and who has
    none."""
    rows = [row for row in result["rows"] if row["system"] == body]
    best: dict[str, Row] = {}
    for row in rows:
        if "seconds" not in row or row["error"] > level:
            continue
        if row["by"] not in best or row["seconds"] < best[row["by"]]["seconds"]:
            best[row["by"]] = row
    missing = [by for by in dict.fromkeys(row["by"] for row in rows) if by not in best]
    return sorted(best.values(), key=lambda row: row["seconds"]), missing


def sections(result: Row) -> dict[str, str]:
    """What the page shows."""
    tables = {f"{body} {level:.0e}": _within(result, body, level) for body in BODIES for level in LEVELS}
    return tables | {
        "bodies kept": _kept(result),
        "bodies found": _found(result),
        "bodies truth": _truth(result),
    }


def _within(result: Row, body: str, level: float) -> str:
    found, missing = quickest(result, body, level)
    head = ("by", "setting", "time of a call", "times the quickest", "per step", *ERRORS)
    lines = [
        (row["by"], row["setting"], f"{1e3 * row['seconds']:.3g} ms",
         f"{row['seconds'] / found[0]['seconds']:.3g}", per_step(row),
         *(f"{row[name]:.0e}" for name in ERRORS))
        for row in found
    ]  # fmt: skip
    none = f"\n\nNo point within {level:.0e}: {', '.join(missing)}." if missing else ""
    return table(head, lines) + none


def _kept(result: Row) -> str:
    """The least and the largest error in energy and constraint of each, over all settings."""
    lines = []
    for body in BODIES:
        rows = [row for row in result["rows"] if row["system"] == body and "seconds" in row]
        for by in dict.fromkeys(row["by"] for row in rows):
            ranges = []
            for name in ERRORS[1:]:
                values = [row[name] for row in rows if row["by"] == by]
                ranges.append(f"{min(values):.0e} to {max(values):.0e}")
            lines.append((body, by, *ranges))
    return table(("problem", "by", *ERRORS[1:]), lines)


def _found(result: Row) -> str:
    """For each problem and error the same sentences about who is quick."""
    return "\n".join(f"- {_sentence(result, body, level)}" for body in BODIES for level in LEVELS)


def _sentence(result: Row, body: str, level: float) -> str:
    found, _ = quickest(result, body, level)
    text = f"The {body}, error {level:.0e}: "
    ours = [row for row in found if row["by"].startswith("noslip ") and row["by"] != FLOW]
    if not ours:
        return text + "none of noslip's methods that step gets there."
    best = ours[0]
    text += f"the quickest is {found[0]['by']} with {1e3 * found[0]['seconds']:.3g} ms. "
    text += f"The quickest of noslip's methods that step, {best['by'].removeprefix('noslip ')}, takes "
    text += f"{1e3 * best['seconds']:.3g} ms"
    others = [row for row in found if not row["by"].startswith("noslip ")]
    others += [row for row in found if row["by"] == FLOW]
    for k, row in enumerate(others):
        name = "`ReferenceFlow`" if row["by"] == FLOW else row["by"]
        ratio = f"{row['seconds'] / best['seconds']:.3g} times"
        if k == 0:
            text += f"; beside it {name} takes {ratio} as long"
        else:
            text += f"{' and' if k == len(others) - 1 else ','} {name} {ratio}"
    return text + "."


def _truth(result: Row) -> str:
    rows = [
        (name, f"{found['span']:g}", f"{found['ReferenceFlow']:.0e}")
        for name, found in result["truth"].items()
        if name in BODIES
    ]
    return table(("problem", "time", "largest difference in q and v"), rows)


def picture(result: Row) -> Figure:
    """Time against error, a panel for each of the two."""
    from noslip.plots.work_precision import plot_work_precision

    names = list(dict.fromkeys(row["by"] for row in result["rows"] if row["system"] in BODIES))
    panels: dict[str, Any] = {body: curves_of(result, body, names) for body in BODIES}
    return plot_work_precision(panels, dashed=[by for by in names if not by.startswith("noslip ")])
