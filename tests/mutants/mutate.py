"""Do the default tests see a wrong formula? Each mutation in turn, in a copy of the checkout.

    python tests/mutants/mutate.py [--jobs 2] [--whole] [part of a name ...]

The tests that a mutation names run first, in their order, until the first failure; if all of them pass, it is
said to live, or with --whole only after the whole default suite has passed too. It is killed by a failure, or
by taking longer than ten minutes. The exit status is 1 if one lives.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from mutations import ALL, Mutation

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".*_cache", "__pycache__", ".venv", "site", "*.egg-info", "dist")
LIMIT = 600.0  # seconds; a solve that never ends is seen too


def copied(folder: Path) -> Path:
    """A copy of the checkout that the tests import from."""
    copy = folder / "checkout"
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
    return copy


def passes(copy: Path, arguments: list[str]) -> tuple[bool, str]:
    """Whether default tests pass in a copy, and the last words of one that does not."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, timeout=LIMIT, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"no end within {LIMIT:g} s"
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"pytest {arguments} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}"
        )
    return done.returncode == 0, failed[0].split(" - ")[0].removeprefix("FAILED ") if failed else ""


def verdict(copy: Path, mutation: Mutation, whole: bool) -> tuple[bool, str]:
    """Whether the default tests kill a mutation, and which of them."""
    file = copy / mutation.file
    right = file.read_text()
    file.write_text(mutation.applied(right))
    try:
        for test in mutation.tests:
            alive, words = passes(copy, shlex.split(test))
            if not alive:
                return True, words
        if whole:
            alive, words = passes(copy, ["-n", "2", "--dist", "worksteal"])
            return not alive, words
        return False, f"passed {', '.join(mutation.tests)}"
    finally:
        file.write_text(right)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="mutations whose file has one of these words in its name")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the checkout at work at once")
    parser.add_argument(
        "--whole", action="store_true", help="the whole default suite before one is said to live"
    )
    options = parser.parse_args()
    chosen = [m for m in ALL if not options.names or any(name in m.name for name in options.names)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies: SimpleQueue[Path] = SimpleQueue()
        for job in range(options.jobs):
            copies.put(copied(Path(folder) / str(job)))

        def judged(mutation: Mutation) -> bool:
            copy, start = copies.get(), time.perf_counter()
            killed, words = verdict(copy, mutation, options.whole)
            copies.put(copy)
            seconds = time.perf_counter() - start
            change = f"{mutation.old}  ->  {mutation.new}"
            word = "killed" if killed else "ALIVE "
            print(f"{word} {seconds:5.0f} s  {mutation.name}: {change}\n    {words}", flush=True)
            return killed

        killed = sum(pool.map(judged, chosen))
    print(f"{killed} of {len(chosen)} killed")
    return int(killed < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
