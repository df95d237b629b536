"""What is measured on a machine with a GPU: ensembles by size, and CFHM's variance with a million members.

`python -m benchmarks gpu FOLDER` writes variance_h200.json and ensembles_h200.json to FOLDER; put them into
docs/measured and run `python -m benchmarks page docs/measured -o docs`. Everything tells its seconds at once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

from noslip.bench import ensembles
from noslip.bench.machine import versions
from noslip.files import write_text
from noslip.studies import cfhm_variance


def measure(folder: Path, tell: Callable[[str], None]) -> None:
    """Both, each written as soon as it is there."""
    if jax.default_backend() != "gpu":
        raise ValueError(f"this needs a GPU, but JAX sees {jax.devices()}")
    began = time.perf_counter()

    def show(row: dict[str, Any]) -> None:
        tell(f"[{time.perf_counter() - began:6.1f} s] {row}")

    result = ensembles.measure(show, cpu=False)
    tell(ensembles.markdown(result))
    write_text(folder / "ensembles_h200.json", json.dumps(result, indent=1) + "\n")
    found = cfhm_variance.measure(10**6, show, backend="gpu")
    tell(f"sampling took {found['sampling seconds']:.1f} s\n{cfhm_variance.markdown(found)}")
    result = {"benchmark": "variance", "versions": versions(), **found}
    write_text(folder / "variance_h200.json", json.dumps(result, indent=1) + "\n")
