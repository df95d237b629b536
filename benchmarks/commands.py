"""The commands of `python -m benchmarks`; in a checkout they are those of `noslip bench` too."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from noslip.cli.bench import JsonFile, Markdown, check_json, report, shown
from noslip.cli.show import one_sentence

app = typer.Typer(
    help="Measure noslip against C, its peers and NumPy, and make the pages that show it.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command("engine")
def measure_engine(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Native code and XLA against C printed from the same program, and C written by hand."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import engine
        from noslip.bench import engine as installed

        if shutil.which("gcc") is None:
            typer.echo("gcc is not here: rows of C, and ratios to it, are left out")
        result = engine.measure(lambda row: None if markdown else typer.echo(installed.line(row)))
        report(result, installed.markdown(result) if markdown else "", json_file)


@app.command("peers")
def measure_peers(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Work against precision: noslip, SciPy, SUNDIALS, solve_dae, PyDy, diffrax, heyoka, MuJoCo, Exudyn."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import peers

        result = peers.measure(shown(markdown))
        report(result, peers.markdown(result), json_file)


@app.command("calls")
def measure_calls(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """What a call of one step costs: prepared runs, steppers, gradients, diffrax, heyoka."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import calls

        result = calls.measure(shown(markdown))
        report(result, calls.markdown(result), json_file)


@app.command("whole-calls")
def measure_whole_calls(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """What a call costs that ends with an error of 1e-10: noslip, diffrax, heyoka."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import whole_calls

        result = whole_calls.measure(shown(markdown))
        report(result, whole_calls.markdown(result), json_file)


@app.command("encounters")
def measure_encounters(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """What variable steps save on close encounters at equal error: evaluations and CPU time."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import encounters

        result = encounters.measure(shown(markdown))
        report(result, encounters.markdown(result), json_file)


@app.command("researcher")
def measure_researcher(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """One trajectory against the same scheme in NumPy and scipy.optimize."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import researcher

        result = researcher.measure(shown(markdown))
        report(result, researcher.markdown(result), json_file)


@app.command("large")
def measure_large(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """What 20 to 200 coordinates cost: chains of bodies, the quartic system, a system without zeros."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import large

        result = large.measure(shown(markdown))
        report(result, large.markdown(result), json_file)


@app.command("size")
def measure_size(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Cost against the number of coordinates, native code and XLA."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import size

        result = size.measure(shown(markdown))
        report(result, size.markdown(result), json_file)


@app.command("wasm")
def measure_wasm(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """WebAssembly against native code: sizes, compile times and speed in node."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import wasm

        result = wasm.measure(shown(markdown))
        report(result, wasm.markdown(result), json_file)


@app.command("wasm-pairs")
def measure_wasm_pairs(
    names: Annotated[str, typer.Option("--systems", help="Names with commas between; all by default.")] = "",
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """Every method on every system as WebAssembly: the bits of native code, sizes, compile times."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import wasm_pairs

        result = wasm_pairs.measure(names.split(",") if names else (), shown(markdown))
        report(result, wasm_pairs.markdown(result), json_file)


@app.command("sliders")
def measure_sliders(
    names: Annotated[
        str, typer.Option("--systems", help="Names with commas between; three by default.")
    ] = "",
    series: Annotated[int, typer.Option("--series", min=1, help="Series of each system.")] = 3,
    moves: Annotated[int, typer.Option("--moves", min=2, help="Moves of a series.")] = 100,
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """From a slider to new plots of three methods in Chromium, move by move."""
    with one_sentence():
        check_json(json_file)
        from benchmarks import sliders

        result = sliders.measure(names.split(",") if names else (), series, moves, shown(markdown))
        report(result, sliders.markdown(result), json_file)


@app.command("rolling")
def measure_rolling(
    python: Annotated[
        str, typer.Option("--python", help="The interpreter that has exudyn and mujoco.")
    ] = sys.executable,
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """A coin and a wheel that roll in space: noslip, Exudyn, MuJoCo."""
    with one_sentence():
        check_json(json_file)
        if shutil.which(python) is None:
            raise ValueError(f"`--python` must be an interpreter, but '{python}' was provided")
        from benchmarks import rolling

        result = rolling.measure(python, shown(markdown))
        tables = [
            f"{problem.name}\n\n{rolling.markdown(result, problem.name)}" for problem in rolling.PROBLEMS
        ]
        report(result, "\n\n".join(tables), json_file)


@app.command("gpu")
def measure_gpu(
    folder: Annotated[
        Path, typer.Argument(help="Where the two JSON files go.", file_okay=False, exists=True)
    ],
) -> None:
    """Ensembles by size and CFHM's variance with a million members, on a machine with a GPU."""
    with one_sentence():
        from benchmarks import gpu

        gpu.measure(folder, typer.echo)


@app.command("page")
def make_page(
    measured: Annotated[Path, typer.Argument(help="Folder with the JSON files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the pages and their picture.")],
) -> None:
    """Make the pages on performance from what was measured."""
    with one_sentence():
        from benchmarks import page

        for path in page.write(measured, output):
            typer.echo(f"wrote {path}")
