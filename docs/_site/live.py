"""Simulations that run in the reader's browser: what `noslip export` writes, one page for each system.

They are made again only when a file of the package has changed, which the name of their folder tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import shutil
from collections.abc import Iterable
from pathlib import Path

import noslip

AVAILABLE = importlib.util.find_spec("noslip.cli.export") is not None


def export(folder: Path, names: Iterable[str]) -> None:
    """Write folder/live/NAME.html for each system; without the command there is nothing to do."""
    if not AVAILABLE:
        return
    stamp = folder / "stamp"
    made_from = _fingerprint()
    if not stamp.is_file() or stamp.read_text() != made_from:
        shutil.rmtree(folder, ignore_errors=True)
    (folder / "live").mkdir(parents=True, exist_ok=True)
    for name in names:
        if not (folder / "live" / f"{name}.html").is_file():
            _export(name, folder / "live" / f"{name}.html")
    stamp.write_text(made_from)


def _export(name: str, path: Path) -> None:
    from noslip.cli import app

    with contextlib.redirect_stdout(io.StringIO()):
        app(["export", name, "--output", str(path)], standalone_mode=False)


def _fingerprint() -> str:
    """Of all files of the package."""
    package = Path(noslip.__file__).parent
    files = sorted(path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    seen = hashlib.sha256()
    for path in files:
        seen.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return seen.hexdigest()
