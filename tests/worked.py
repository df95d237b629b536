"""The worked examples: their scripts as modules, and what their pages say that they print."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
ROUND_OFF = 1e-8  # below it numbers depend on the machine


def example(stem: str) -> ModuleType:
    """A script of examples/, imported but not run."""
    spec = importlib.util.spec_from_file_location(
        stem.lstrip("0123456789_"), ROOT / "examples" / f"{stem}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed_on(page: str) -> str:
    """The blocks of text on a page of docs/examples."""
    text = (ROOT / "docs" / "examples" / f"{page}.md").read_text()
    blocks = re.findall(r"^```text\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    return "".join(blocks)


def assert_page_shows(page: str, output: str, tolerance: float = 1e-3) -> None:
    """Every line of the page is printed, in this order, with these words, and with these numbers as far as
    they do not depend on the machine. What is printed after "wrote" or "measured" is not compared."""
    said = re.split(r"^(?:wrote|measured)", output, flags=re.MULTILINE)[0].splitlines()
    shown = re.split(r"^(?:wrote|measured)", printed_on(page), flags=re.MULTILINE)[0].splitlines()
    assert [NUMBER.sub("#", line).split() for line in said] == [NUMBER.sub("#", x).split() for x in shown]
    for a, b in zip(said, shown, strict=True):
        for x, y in zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)), strict=True):
            assert abs(x - y) <= max(tolerance * abs(y), ROUND_OFF), f"the page has {b!r}, the script {a!r}"
