"""The built wheel in a fresh environment, with nothing but what it asks for: what users get works.

`make wheel-test` runs this; it is not among the default tests, since it installs packages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
OPTIONAL = ("matplotlib", "zarr", "heyoka", "distributed", "pytest", "mypy", "sphinx", "diffrax", "pydy")
BENCH = {
    "__init__",
    "ball",
    "bicycle",
    "bodies",
    "checkout",
    "energy",
    "engine",
    "ensembles",
    "kernels",
    "machine",
    "programs",
}
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}


def run(*command: str | Path, folder: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == code, f"{command} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT, folder=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the programs of a new environment that holds the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder, folder=folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    install = ("-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    run(programs / "python", *install, folder=folder)
    return programs


def test_the_wheel_holds_the_package_and_nothing_of_the_benchmarks(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    parts = {name.split("/")[0] for name in names}
    assert {part for part in parts if not part.endswith(".dist-info")} == {"noslip"}
    bench = {Path(name).stem for name in names if name.startswith("noslip/bench/")}
    assert bench == BENCH
    assert not [name for name in names if re.search(r"c_source|peers|researcher|gonzalez_numpy|\.c$", name)]
    sources = (ROOT / "src" / "noslip").rglob("*.py")
    assert {name for name in names if name.endswith(".py")} == {
        path.relative_to(ROOT / "src").as_posix() for path in sources
    }
    assert "noslip/py.typed" in names


def test_the_wheel_asks_for_versions_that_were_tested(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    needs = re.findall(r"^Requires-Dist: ([^;\n]+)$", archive.read(metadata).decode(), flags=re.MULTILINE)
    assert len(needs) == 10
    assert all(re.fullmatch(r"[a-z0-9]+>=[0-9.]+", need) for need in needs), needs


def test_optional_packages_are_absent(programs: Path, tmp_path: Path) -> None:
    code = "import importlib.util, sys; print([m for m in sys.argv[1:] if importlib.util.find_spec(m)])"
    assert run(programs / "python", "-c", code, *OPTIONAL, folder=tmp_path).stdout == "[]\n"


def test_help_and_lists_are_shown(programs: Path, tmp_path: Path) -> None:
    noslip = programs / "noslip"
    assert "Simulate mechanical systems" in run(noslip, "--help", folder=tmp_path).stdout
    assert "gearbox" in run(noslip, "systems", folder=tmp_path).stdout
    assert "DiscreteGradient" in run(noslip, "integrators", folder=tmp_path).stdout


def test_a_run_is_native_and_repeats_bit_for_bit(programs: Path, tmp_path: Path) -> None:
    words = ("run", "gearbox", "--integrator", "DiscreteGradient", "--step-size", "0.1", "--steps", "500")
    done = run(programs / "noslip", *words, "-o", "run.nc", folder=tmp_path)
    assert re.search(r"backend +native", done.stdout)
    assert "identical bit for bit" in run(programs / "noslip", "rerun", "run.nc", folder=tmp_path).stdout


def test_work_against_precision_needs_no_heyoka(programs: Path, tmp_path: Path) -> None:
    words = ("work-precision", "knife_edge", "-i", "RungeKutta4", "--t-end", "1", "--steps", "20")
    assert "RungeKutta4() " in run(programs / "noslip", *words, folder=tmp_path).stdout


def test_the_first_example_of_the_readme_runs_up_to_its_picture(programs: Path, tmp_path: Path) -> None:
    done = run(programs / "python", "-W", "error", "-c", EXAMPLES[0], folder=tmp_path, code=1)
    assert "1000 steps" in done.stdout
    assert (tmp_path / "particle.nc").is_file()
    assert "pictures need matplotlib, which is not installed" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("number", range(1, len(EXAMPLES)))
def test_the_other_examples_of_the_readme_run(number: int, programs: Path, tmp_path: Path) -> None:
    assert run(programs / "python", "-W", "error", "-c", EXAMPLES[number], folder=tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "gearbox", "-i", "RungeKutta4", "--step-size", "0.1", "--steps", "9", "--plot", "a.png"),
         "pictures need matplotlib, which is not installed; install noslip with its extra: noslip[plots]"),
        (("ensemble", "gearbox", "-i", "RungeKutta4", "--step-size", "0.1", "--steps", "9", "--members", "3",
          "--vary", "epsilon=0:0.3", "-o", "a.zarr"),
         "a run on disk needs the package zarr, but it is not installed; pip install noslip[store]"),
        (("bench", "peers"), "'peers' needs a checkout of the repository; installed are engine, kernels, "
         "energy, programs, ensembles, bodies, variance"),
    ],
)  # fmt: skip
def test_what_is_absent_is_said_in_one_sentence(
    words: tuple[str, ...], sentence: str, programs: Path, tmp_path: Path
) -> None:
    done = run(programs / "noslip", *words, folder=tmp_path, code=2)
    assert done.stderr == f"noslip: {sentence}\n"
    assert list(tmp_path.iterdir()) == []
