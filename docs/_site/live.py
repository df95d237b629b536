"""Simulations that run in the reader's browser: what `noslip export` writes, one page for each system.

They are made again only when a file of the package has changed, which the name of their folder tells.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import multiprocessing
import shutil
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
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
    stamp.write_text(made_from)
    paths = {name: folder / "live" / f"{name}.html" for name in names}
    missing = [name for name, path in paths.items() if not path.is_file()]
    # each compiles for seconds, on one core; a forked process could not use JAX
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_export, missing, [paths[name] for name in missing]))


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
