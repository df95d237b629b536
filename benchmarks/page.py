"""The tables of the pages on performance, written from the JSON files of the benchmarks and nothing else.

A page is prose with places for tables, `<!-- NAME: begin -->` to `<!-- NAME: end -->`, filled in here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks import (
    calls,
    encounters,
    large,
    peers,
    peers_of_bodies,
    researcher,
    rolling,
    size,
    sliders,
    wasm,
    wasm_pairs,
    whole_calls,
)
from noslip.bench import bodies, energy, engine, ensembles, kernels, programs
from noslip.files import replacing, write_text
from noslip.markdown import table
from noslip.studies import cfhm_variance

PAGES = (
    "engine.md", "engine_programs.md", "engine_wasm.md", "performance.md", "work_precision.md",
    "ball_and_bicycle.md", "rolling_in_space.md", "energy_and_first_integrals.md",
    "how_to/make_a_live_page.md", "how_to/steer_a_run.md",
)  # fmt: skip
PICTURES = {
    "images/work_precision.png": peers.picture,
    "images/ball_and_bicycle.png": peers_of_bodies.picture,
}


def write(measured: Path, docs: Path) -> list[Path]:
    """Fill in the tables of the pages in `docs` and draw the pictures; return what was written."""
    results = load(measured)
    tables = sections(results)
    for name in PAGES:
        write_text(docs / name, filled((docs / name).read_text(encoding="utf-8"), tables))
    for name, picture in PICTURES.items():
        with replacing(docs / name) as part:
            picture(results["peers_cpu"]).savefig(part, dpi=110)
    return [docs / name for name in (*PAGES, *PICTURES)]


def load(measured: Path) -> dict[str, Any]:
    """The results by the names of their files."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(measured.glob("*.json"))}


def filled(text: str, tables: dict[str, str]) -> str:
    """The page with its tables."""
    for name, content in tables.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        before, mark, rest = text.partition(begin)
        if mark:
            text = before + begin + content + "\n" + end + rest.partition(end)[2]
    return text


def sections(results: dict[str, Any]) -> dict[str, str]:
    """The tables by name; one of a machine that was not measured is a sentence."""
    compared = results["peers_cpu"]
    tables = {
        "engine": engine.markdown(results["engine_cpu"]),
        "engine host": engine.markdown(results["engine_h200"]),
        "kernels": kernels.markdown(results["kernels_h200"]),
        "programs": table(programs.HEAD, programs.cells(results["programs_cpu"])),
        "left out": table(programs.LEFT_OUT, programs.left_out(results["programs_cpu"])),
        "goals": goals(results),
        "peers": peers.markdown(compared),
        "points": peers.all_points(compared),
        "whole calls": whole_calls.markdown(results["whole_calls_cpu"]),
        "researcher": researcher.markdown(results["researcher_cpu"]),
        "size": size.markdown(results["size_cpu"]) + "\n\n" + where_it_stops(results["size_cpu"]),
        "large": large.markdown(results["large_cpu"]),
        "bodies": bodies.markdown(results["bodies_cpu"]),
        "first": first_results(results["engine_cpu"]),
        "versions": ", ".join(f"{name} {value}" for name, value in compared["versions"].items()),
        "wasm": wasm.markdown(results["wasm_cpu"]),
        "calls": calls.markdown(results["calls_cpu"]),
        "encounters": encounters.markdown(results["encounters_cpu"]),
        **dict(zip(("parts", "long"), energy.markdown(results["energy_cpu"]), strict=True)),
        "sliders": sliders.markdown(results["sliders_cpu"]),
        "wasm pairs": wasm_pairs.markdown(results["wasm_pairs_cpu"]),
        **peers_of_bodies.sections(compared),
        **rolling.sections(results["rolling_cpu"]),
    }
    for name, module in (("ensembles", ensembles), ("variance", cfhm_variance)):
        for machine in ("cpu", "h200"):
            key = f"{name}_{machine}"
            tables[key] = module.markdown(results[key]) if key in results else "Not measured yet."
    return tables


def goals(results: dict[str, Any]) -> str:
    """What was aimed at, what was measured, and whether it suffices."""
    rows = []
    quick = peers.quickest(results["peers_cpu"])
    for system in ("knife edge", "rolling disk", "particle"):
        rivals = {row["rival"]: row for row in quick if row["system"] == system and "ratio" in row}
        heyoka = rivals.pop("heyoka Taylor", None)
        rivals.pop("noslip", None)
        rivals.pop(peers.FLOW, None)
        name, row = min(rivals.items(), key=lambda item: item[1]["ratio"])
        ratio = row["ratio"]
        more = f" ({row['ratio to stepping']:.3g} times the stepping alone)"
        if heyoka is not None:
            more += f"; heyoka {heyoka['ratio']:.3g} ({heyoka['ratio to stepping']:.3g})"
        goal = f"at error {peers.ACCURACY:.0e} on the {system} as fast as any peer but heyoka"
        rows.append([goal, f"the next, {name}, takes {ratio:.3g} times as long{more}", _yes(ratio >= 1)])
    rows += [[goal, told, _yes(met)] for goal, told, met in whole_calls.goals(results["whole_calls_cpu"])]
    scipy = next(row["ratio"] for row in results["researcher_cpu"]["rows"] if "scipy" in row["by"])
    goal = "one trajectory 200 times faster than NumPy with scipy.optimize"
    rows.append([goal, f"{scipy:.0f} times", _yes(scipy >= 200)])
    native = [row for row in results["engine_cpu"]["rows"] if row["by"] == "native" and "ratio to c" in row]
    ratios = [row["ratio to c"] for row in native]
    span = f"{min(ratios):.2f} to {max(ratios):.2f}"
    rows.append(["native within 1.25 of C", span, _yes(max(ratios) <= 1.25)])
    gpu, told = results.get("variance_h200"), "not measured yet"
    if gpu:
        row, drawn = gpu["rows"][0], gpu["sampling seconds"]
        told = f"{row['members']} members: {row['seconds']:.1f} s, and {drawn:.1f} s to draw the states"
    met = _yes(gpu["rows"][0]["seconds"] + gpu["sampling seconds"] < 60) if gpu else ""
    rows.append(["CFHM's variance (SI-DLA) with 1e6 members on a GPU within a minute", told, met])
    return table(("goal", "measured", "met"), rows)


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
    rows = [
        [row["by"], *(f"{row['parts'][name]:.3g} s" for name in parts)]
        for row in engine["rows"]
        if row["what"] == "time to first result"
    ]
    return table(("by", *parts), rows)
