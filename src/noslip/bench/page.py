"""The tables of the pages on performance, written from the JSON files of the benchmarks and nothing else.

A page is prose with places for tables, `<!-- NAME: begin -->` to `<!-- NAME: end -->`, filled in here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from noslip.bench import ensembles, researcher, size, variance, work_precision

PAGES, PICTURE = ("performance.md", "work_precision.md"), "images/work_precision.png"


def write(measured: Path, docs: Path) -> list[Path]:
    """Fill in the tables of the pages in `docs` and draw the picture; return what was written."""
    from noslip.plots.work_precision import plot_work_precision

    results = load(measured)
    tables = sections(results)
    for name in PAGES:
        (docs / name).write_text(filled((docs / name).read_text(), tables))
    plot_work_precision(results["peers_cpu"]).savefig(docs / PICTURE, dpi=110)
    return [docs / name for name in (*PAGES, PICTURE)]


def load(measured: Path) -> dict[str, Any]:
    """The results by the names of their files."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(measured.glob("*.json"))}


def filled(text: str, tables: dict[str, str]) -> str:
    """The page with its tables."""
    for name, table in tables.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, mark, rest = text.partition(begin)
        if mark:
            text = before + begin + table + "\n" + end + rest.partition(end)[2]
    return text


def sections(results: dict[str, Any]) -> dict[str, str]:
    """The tables by name; one of a machine that was not measured is a sentence."""
    peers = results["peers_cpu"]
    tables = {
        "goals": goals(results),
        "peers": work_precision.markdown(peers),
        "points": work_precision.all_points(peers),
        "researcher": researcher.markdown(results["researcher_cpu"]),
        "size": size.markdown(results["size_cpu"]) + "\n\n" + where_it_stops(results["size_cpu"]),
        "first": first_results(results["engine_cpu"]),
        "versions": ", ".join(f"{name} {value}" for name, value in peers["versions"].items()),
    }
    for name, module in (("ensembles", ensembles), ("variance", variance)):
        for machine in ("cpu", "h200"):
            key = f"{name}_{machine}"
            table = module.markdown(results[key]) if key in results else "Not measured yet."
            tables[key] = table
    return tables


def goals(results: dict[str, Any]) -> str:
    """What was aimed at, what was measured, and whether it suffices."""
    lines = ["| goal | measured | met |", "|---|---|---|"]
    quick = work_precision.quickest(results["peers_cpu"])
    for system in ("knife edge", "rolling disk", "particle"):
        rivals = {row["rival"]: row for row in quick if row["system"] == system and "ratio" in row}
        heyoka = rivals.pop("heyoka Taylor", None)
        rivals.pop("noslip", None)
        name, row = min(rivals.items(), key=lambda item: item[1]["ratio"])
        ratio = row["ratio"]
        more = f" ({row['ratio to stepping']:.3g} times the stepping alone)"
        if heyoka is not None:
            more += f"; heyoka {heyoka['ratio']:.3g} ({heyoka['ratio to stepping']:.3g})"
        lines.append(
            f"| at error {work_precision.ACCURACY:.0e} on the {system} as fast as any peer but heyoka | "
            f"the next, {name}, takes {ratio:.3g} times as long{more} | {_yes(ratio >= 1)} |"
        )
    scipy = next(row["ratio"] for row in results["researcher_cpu"]["rows"] if "scipy" in row["by"])
    lines.append(
        f"| one trajectory 200 times faster than NumPy with scipy.optimize | {scipy:.0f} times | "
        f"{_yes(scipy >= 200)} |"
    )
    rows = [row for row in results["engine_cpu"]["rows"] if row["by"] == "native" and "ratio to c" in row]
    ratios = [row["ratio to c"] for row in rows]
    lines.append(
        f"| native within 1.25 of C | {min(ratios):.2f} to {max(ratios):.2f} | {_yes(max(ratios) <= 1.25)} |"
    )
    gpu, told = results.get("variance_h200"), "not measured yet"
    if gpu:
        row, drawn = gpu["rows"][0], gpu["sampling seconds"]
        told = f"{row['members']} members: {row['seconds']:.1f} s, and {drawn:.1f} s to draw the states"
    met = _yes(gpu["rows"][0]["seconds"] + gpu["sampling seconds"] < 60) if gpu else ""
    lines.append(f"| CFHM's variance (SI-DLA) with 1e6 members on a GPU within a minute | {told} | {met} |")
    return "\n".join(lines)


def _yes(met: bool) -> str:
    return "yes" if met else "no"


def where_it_stops(result: dict[str, Any]) -> str:
    """A sentence for each method: the largest size with native code, and where XLA becomes quicker."""
    sentences = []
    for method in dict.fromkeys(row["method"] for row in result["rows"]):
        native = [row for row in result["rows"] if row["method"] == method and row["by"] == "native"]
        done = [row for row in native if "ns" in row]
        slower = [row["n"] for row in done if row["ratio"] > 1]
        refused = [row for row in native if "refused" in row]
        text = f"{method}: native code up to n = {max(row['n'] for row in done)}, "
        text += f"slower than XLA from n = {min(slower)} on" if slower else "quicker than XLA all the way"
        if refused:
            text += f"; from n = {refused[0]['n']} on XLA runs it ({refused[0]['refused']})"
        sentences.append(text + ".")
    return "\n".join(sentences)


def first_results(engine: dict[str, Any]) -> str:
    """Seconds from nothing to a result, from the benchmark of the engine."""
    parts = ("total", "import", "system", "first run", "second run")
    lines = ["| by | " + " | ".join(parts) + " |", "|" + "---|" * (len(parts) + 1)]
    for row in engine["rows"]:
        if row["what"] == "time to first result":
            cells = [f"{row['parts'][name]:.3g} s" for name in parts]
            lines.append(f"| {row['by']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
