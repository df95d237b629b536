"""What was measured, and on what: the versions and the machine that every result names."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from noslip.engine import shelf


def printed_by(code: str, folder: str) -> dict[str, Any]:
    """The JSON that a new process prints, with its cache in a folder."""
    env = os.environ | {shelf.VARIABLE: folder}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def versions() -> dict[str, str]:
    """What was measured, and on what."""
    found = {"python": platform.python_version(), "processor": _processor(), "cores": str(os.cpu_count())}
    for name in ("noslip", "jax", "jaxlib", "llvmlite", "numpy"):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    with suppress(OSError, subprocess.CalledProcessError):
        first = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=True).stdout
        found["gcc"] = first.splitlines()[0]
    return found


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
