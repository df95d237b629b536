"""From a slider to new plots: what a page with three methods takes in Chromium, move by move.

Pages are those of `noslip export`, opened from disk with 1000 steps. A move is an event of a slider; it
ends behind the frame in which the page has drawn the new runs, when that is laid out and painted. Where Linux
tells it, a move has also what the page's own thread took of the processor and how long it waited for one
while others ran: a slow move of usual work is one of a busy machine.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from noslip.bench.machine import versions
from noslip.markdown import table
from noslip.systems import open_source
from noslip.web.content import content
from noslip.web.page import page
from noslip.web.subjects import methods, subject

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip
SYSTEMS = ("chaplygin_sleigh", "rolling_disk", "gearbox")
GOAL = 50.0  # milliseconds
PAUSE = (0.2, 0.35)  # seconds between moves: after the link has been written, and not in step with frames
SCRIPT = Path(__file__).with_name("slider_moves.js")
Row = dict[str, Any]


def measure(
    names: Sequence[str] = (),
    series: int = 3,
    moves: int = 100,
    show: Callable[[Row], None] = lambda row: None,
) -> dict[str, Any]:
    """A row for each series: with the motion standing still, and once while it plays."""
    if CHROMIUM is None or importlib.util.find_spec("playwright") is None:
        raise ValueError("this needs Chromium and the package playwright, but they are not both installed")
    rows = []
    with tempfile.TemporaryDirectory() as folder, _chromium() as browser:
        for name in names or SYSTEMS:
            data = _content(name)
            path = Path(folder) / f"{name}.html"
            path.write_text(page(data), encoding="utf-8")
            for k in range(series + 1):
                made = _series(browser, path.as_uri(), _sliders(data), moves, seed=k, playing=k == series)
                rows.append({"system": name, **made})
                show({key: value for key, value in rows[-1].items() if key != "each"})
        chromium = browser.version
    what = {"benchmark": "sliders", "versions": versions(), "chromium": chromium}
    return {**what, "steps": data["system"]["steps"], "goal ms": GOAL, "rows": rows}


def _content(name: str) -> dict[str, Any]:
    source = open_source(name)
    model = source.build({})
    start = source.start(model, {})
    return content(subject(source, model, {}, start.q, start.v), methods(None))


def _sliders(data: dict[str, Any]) -> list[str]:
    """Those of numbers among the parameters, and of the speeds."""
    system = data["system"]
    numbers = [
        x["name"] for x in system["parameters"] if len(x["values"]) == 1 and x["name"] not in system["inputs"]
    ]
    return [*numbers, *(f"d{name}/dt" for name in system["coordinates"])]


@contextmanager
def _chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


def _series(browser: Any, address: str, names: list[str], moves: int, seed: int, playing: bool) -> Row:
    """Moves of a page that was just opened, the first of them among the others."""
    chance = random.Random(seed)
    context = browser.new_context(reduced_motion="no-preference" if playing else "reduce")
    opened = context.new_page()
    opened.add_init_script(path=SCRIPT)
    opened.goto(address)
    opened.wait_for_selector("body[data-done]", timeout=60_000)
    main = _main_thread(browser)
    ranges = {name: _range(opened, name) for name in names}
    load, each = os.getloadavg()[0], []
    for k in range(moves):
        name = names[k % len(names)]
        low, high = ranges[name]
        time.sleep(chance.uniform(*PAUSE))
        before = _taken(main)
        move = opened.evaluate("([name, value]) => moved(name, value)", [name, chance.uniform(low, high)])
        after = _taken(main)
        if before and after:
            move |= {"processor": after[0] - before[0], "waited": after[1] - before[1]}
        each.append({"slider": name, **move})
    context.close()
    return {"playing": playing, "load": [load, os.getloadavg()[0]], **_summary(each), "each": each}


def _range(opened: Any, name: str) -> tuple[float, float]:
    """The middle of a slider, where methods solve their steps."""
    slider = opened.locator(f"input[aria-label='{name}, slider']")
    low, high = (float(slider.get_attribute(end)) for end in ("min", "max"))
    return low + 0.3 * (high - low), low + 0.7 * (high - low)


def _summary(each: list[Row]) -> Row:
    found = [move["painted"] for move in each]
    worst = max(each, key=lambda move: move["painted"])
    made = {
        "moves": len(each),
        "median": median(found),
        "90 %": quantiles(found, n=10)[-1],
        "max": max(found),
        "over": sum(x >= GOAL for x in found),
        "failed": sum(move["failed"] for move in each),
    }
    if "processor" in worst:
        made["processor"] = median(move["processor"] for move in each)
        made |= {f"{name} of the slowest": worst[name] for name in ("processor", "waited")}
    return made


def _main_thread(browser: Any) -> str | None:
    """Where Linux tells about the thread of the page: that of the renderer that has a worker."""
    asked = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")
    for process in asked["processInfo"]:
        tasks = Path(f"/proc/{process['id']}/task")
        with suppress(OSError):
            if any("DedicatedWorker" in (task / "comm").read_text() for task in tasks.iterdir()):
                return str(tasks / str(process["id"]) / "schedstat")
    return None


def _taken(path: str | None) -> tuple[float, float] | None:
    """Milliseconds of a thread on a processor, and those in which it could have run."""
    with suppress(OSError):
        if path is not None:
            run, waited, _ = Path(path).read_text().split()
            return int(run) / 1e6, int(waited) / 1e6
    return None


def markdown(result: dict[str, Any]) -> str:
    head = ["system", "motion", "moves", "median", "90 %", "slowest", f"{result['goal ms']:.0f} ms or more",
            "of the processor, median", "slowest: processor", "slowest: waited for one", "load"]  # fmt: skip
    rows = []
    for row in result["rows"]:
        of = [f"{row[key]:.0f} ms" if key in row else ""
              for key in ("processor", "processor of the slowest", "waited of the slowest")]  # fmt: skip
        rows.append([
            row["system"], "plays" if row["playing"] else "stands", str(row["moves"]),
            *(f"{row[key]:.0f} ms" for key in ("median", "90 %", "max")), str(row["over"]), *of,
            " to ".join(f"{x:.1f}" for x in row["load"]),
        ])  # fmt: skip
    return table(head, rows)
