"""Commands with wrong words, drawn at random: each ends with a code that is documented and one sentence.

    python tests/faults/bad_commands.py --commands 1000 --seed 0 --processes 30

A command is right in everything but one word or two, which are replaced, left out or added, or name files
that are damaged. It is broken by a traceback, by a code other than 0, 2, 3, 4, 5, 6 and 130, by an error
without a sentence on stderr, by a file that is left half-written, or if a file that was there before is
changed. Most run in this process; --processes of them run in one of their own.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

from noslip.cli import app

sys.path.insert(0, str(Path(__file__).parent))

from bad_calls import _TooLong, within

MAIN = "from noslip.cli import main; main()"
CODES = {0, 2, 3, 4, 5, 6, 130}
USER = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

particle = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": 1.0})

def typical_state():
    return [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]
"""
BROKEN = {
    "raises.py": "x = 1\nraise KeyError('mine')\n",
    "leaves.py": "import sys\nsys.exit(0)\n",
    "syntax.py": "def f(:\n",
    "with_numpy.py": USER.replace("import jax.numpy as jnp", "import numpy as jnp"),
    "with_math.py": USER.replace('p["k"] *', "__import__('math').sin(q[0]) *"),
    "case.py": USER.replace("    return 0.5", "    if q[0] > 0:\n        return 0.0\n    return 0.5"),
    "late.py": USER + "\ndef system():\n    return 1 / 0\n",
    "odd.py": USER + "\nsystem = 5\n",
}
RUN = ["run", "nonholonomic_particle", "-i", "SemiImplicitDLA", "--step-size", "0.1", "--steps", "6"]
COMMANDS = [
    [*RUN, "-o", "out.nc"],
    [*RUN, "-o", "out.zarr"],
    [*RUN, "--set", "k=0.7", "--save-every", "2", "--backend", "native"],
    [*RUN, "--q0", "0.2,0.5,-0.1", "--v0", "0.8,0.6,0.4", "--t0", "1.0", "--plot", "out.png"],
    [
        "run",
        "mine.py:particle",
        "-i",
        "VelocityNonholonomic",
        "--option",
        "beta=0.3",
        "--step-size",
        "0.1",
        "--t-end",
        "1.0",
    ],
    ["rerun", "run.nc", "-o", "again.nc"],
    ["rerun", "run.zarr"],
    ["verify", "run.nc"],
    ["verify", "run.zarr"],
    ["verify", "members.zarr"],
    ["report", "run.nc", "-o", "out.html"],
    [
        "ensemble",
        "nonholonomic_particle",
        "-i",
        "SemiImplicitDLA",
        "--step-size",
        "0.1",
        "--steps",
        "4",
        "--members",
        "3",
        "--vary",
        "k=0.5:1.0",
        "-o",
        "out_members.zarr",
    ],
    ["systems"],
    ["integrators"],
    ["integrators", "--markdown"],
    ["study", "list"],
    ["--version"],
]
WORDS = [
    "",
    "-",
    "--",
    "nope",
    "-1",
    "0",
    "nan",
    "inf",
    "1e400",
    "9" * 400,
    "0.1",
    "1,2",
    "a,b,c",
    "k=",
    "=1",
    "k=x",
    "nope=1",
    "x" * 300,
    "é",
    "\n",
    "a\tb",
    "../..",
    "/dev/null",
    "/dev/full",
    "/",
    ".",
    "link.nc",
    "pipe",
    "run.nc",
    "run.zarr",
    "mine.py",
    "mine.py:",
    ":",
    "mine.py:nope",
    "mine.py:typical_state",
    "missing.py:x",
    "--help",
    "--nope",
    "-o",
    "-i",
    "--set",
    "SemiImplicitDLA(",
    "VelocityNonholonomic(beta=2)",
    "Composition(base=5)",
    "[",
    "{",
    "%s",
    "VelocityNonholonomic(**{'beta': 1})",
    "__import__('os')",
    "text.nc",
    "empty.nc",
    "cut.nc",
    "flipped.nc",
    "folder",
    "folder/x.nc",
    "nowhere/x.nc",
    "out.txt",
    "native",
    "gpu",
    "xla",
    "5:1",
    "1:x",
    *(f"{x}:particle" for x in BROKEN),
    *(f"{x}:system" for x in BROKEN),
    "0x10",
    "1_000",
    "--steps=6",
    "--steps=",
    "true",
    "None",
    "-o=x",
    "members.zarr",
]


def prepare(folder: Path) -> None:
    """Files that commands may name: a run in both forms, an ensemble, damaged ones, and the user's own."""
    os.chdir(folder)
    (folder / "mine.py").write_text(USER)
    for name, text in BROKEN.items():
        (folder / name).write_text(text)
    for words in (COMMANDS[0], COMMANDS[1], COMMANDS[11]):
        made = CliRunner().invoke(app, words)
        assert made.exit_code == 0, made.output
    (folder / "out.nc").rename("run.nc")
    (folder / "out.zarr").rename("run.zarr")
    (folder / "out_members.zarr").rename("members.zarr")
    data = (folder / "run.nc").read_bytes()
    (folder / "cut.nc").write_bytes(data[: len(data) // 2])
    (folder / "flipped.nc").write_bytes(data[:999] + bytes([data[999] ^ 8]) + data[1000:])
    (folder / "text.nc").write_text("no run")
    (folder / "empty.nc").write_bytes(b"")
    (folder / "link.nc").symlink_to("run.nc")
    (folder / "folder").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe")


def seen_files(folder: Path) -> dict[str, str]:
    """Every file with its content, in a few letters."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        elif path.is_symlink():
            found[path.relative_to(folder).as_posix()] = f"-> {os.readlink(path)}"
    return found


def mutated(right: list[str], rng: random.Random) -> list[str]:
    words = list(right)
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(words) + 1)
        kind = rng.random()
        if kind < 0.7 and place < len(words):
            words[place] = rng.choice(WORDS)
        elif kind < 0.85:
            words.insert(place, rng.choice(WORDS))
        elif place < len(words):
            del words[place]
    return words


def call(words: list[str], apart: bool) -> tuple[int, str, str]:
    """Code, stderr, and what was not caught."""
    if apart:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *words], capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stderr, ""
    with within(60):
        try:
            result = CliRunner().invoke(app, words)
        except _TooLong:
            return -1, "", "hangs"
    escaped = result.exception
    wrong = (
        "" if escaped is None or isinstance(escaped, SystemExit) else f"{type(escaped).__name__}: {escaped}"
    )
    return result.exit_code, result.stderr, wrong[:200]


def judge(words: list[str], folder: Path, before: dict[str, str], apart: bool) -> str:
    """ "done", "refused", or what is wrong."""
    code, errors, escaped = call(words, apart)
    after = seen_files(folder)
    if escaped or "Traceback" in errors:
        return f"escaped {escaped or errors[-200:]!r}"
    if code not in CODES:
        return f"code {code}: {errors[-200:]!r}"
    if code and not errors.strip():
        return f"code {code} without a word"
    asked = (
        {words[k + 1] for k, word in enumerate(words[:-1]) if word in ("-o", "--plot")}
        if code == 0
        else set()
    )
    if lost := [name for name, digest in before.items() if after.get(name) != digest and name not in asked]:
        return f"changed {lost}"
    left = [name for name in after if ".part-" in name]
    written = sorted({name.partition("/")[0] for name in after if name not in before})
    if left or (code in (2, 5) and written):
        return f"code {code}, but left {left or written}"
    return "done" if code == 0 else "refused"


def bad_commands(count: int, seed: int, folder: Path, processes: int) -> collections.Counter[str]:
    rng, seen = random.Random(seed), collections.Counter[str]()
    before, copy = seen_files(folder), Path(tempfile.mkdtemp())
    shutil.copytree(folder, copy / "files", symlinks=True, ignore=shutil.ignore_patterns("pipe"))
    for number in range(count):
        words = mutated(rng.choice(COMMANDS), rng)
        if any("\0" in word for word in words):
            continue
        outcome = judge(words, folder, before, apart=number < processes)
        seen[outcome if outcome in ("done", "refused") else "broken"] += 1
        if outcome not in ("done", "refused"):
            print(f"command {number}: {words}: {outcome}", flush=True)
        for name in {name.partition("/")[0] for name in seen_files(folder) if name not in before}:
            shutil.rmtree(folder / name) if (folder / name).is_dir() else (folder / name).unlink()
        for name, digest in seen_files(folder).items():
            if before[name] != digest:
                shutil.copy(copy / "files" / name, folder / name)
    shutil.rmtree(copy)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commands", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=30)
    asked = parser.parse_args()
    folder, here = Path(tempfile.mkdtemp()), os.getcwd()
    try:
        prepare(folder)
        seen = bad_commands(asked.commands, asked.seed, folder, asked.processes)
    finally:
        os.chdir(here)
        shutil.rmtree(folder)
    print(dict(seen))
    return int(seen["broken"] > 0)


if __name__ == "__main__":
    sys.exit(main())
