"""The commands `noslip bench ...`: speed, as ratios from one run, and how long exact energy lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from noslip.cli.show import one_sentence, print_table

Markdown = Annotated[bool, typer.Option("--markdown", help="Only Markdown tables, at the end.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write all numbers here.")]
bench = typer.Typer(help="Measure speed, and energy over long runs.", no_args_is_help=True)


@bench.command("engine")
def bench_engine(
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """Native code, XLA and the GPU against C printed from the same program, and C written by hand."""
    with one_sentence():
        check_json(json_file)
        import importlib.util
        import shutil

        from noslip.bench import engine

        if importlib.util.find_spec("llvmlite") is None:
            typer.echo("llvmlite is not here: only the GPU, if there is one, is measured")
        elif shutil.which("gcc") is None:
            typer.echo("gcc is not here: rows of C, and ratios to it, are left out")
        result = engine.measure(lambda row: None if markdown else typer.echo(_bench_line(row)))
        if markdown:
            typer.echo(engine.markdown(result))
        _versions_line(result)
        write_json(result, json_file)


@bench.command("energy")
def bench_energy(
    full: Annotated[
        bool, typer.Option("--full", help="Also 1e9 steps, about a quarter of an hour more.")
    ] = False,
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """Energy, its parts and the constraint over 5e5 and 1e7 steps of a gearbox; some minutes."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import energy

        result = energy.measure(lambda row: None if markdown else typer.echo(energy.line(row)), full)
        if markdown:
            typer.echo("\n\n".join(energy.markdown(result)))
        _versions_line(result)
        write_json(result, json_file)


@bench.command("programs")
def bench_programs(
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """Size and compile time of every method on every system."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import programs
        from noslip.bench._clock import versions

        rows = list(programs.table())
        cells = [[str(row.get(name, row.get("reason", "") if i == 2 else ""))
                  for i, name in enumerate(programs.HEAD)] for row in rows]  # fmt: skip
        if markdown:
            typer.echo("| " + " | ".join(programs.HEAD) + " |\n|" + "---|" * len(programs.HEAD))
            for line in cells:
                typer.echo("| " + " | ".join(line) + " |")
        else:
            print_table(programs.HEAD, cells)
        write_json({"benchmark": "programs", "versions": versions(), "rows": rows}, json_file)


@bench.command("peers")
def bench_peers(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Work against precision: noslip and SciPy, SUNDIALS, solve_dae, PyDy, diffrax, heyoka."""
    with one_sentence():
        from noslip.bench import work_precision

        result = work_precision.measure(_shown(markdown))
        _report(result, work_precision.markdown(result), json_file)


@bench.command("researcher")
def bench_researcher(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """One trajectory against the same scheme in NumPy and scipy.optimize."""
    with one_sentence():
        from noslip.bench import researcher

        result = researcher.measure(_shown(markdown))
        _report(result, researcher.markdown(result), json_file)


@bench.command("size")
def bench_size(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Cost against the number of coordinates, native code and XLA."""
    with one_sentence():
        from noslip.bench import size

        result = size.measure(_shown(markdown))
        _report(result, size.markdown(result), json_file)


@bench.command("ensembles")
def bench_ensembles(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Millions of member steps per second against the number of members."""
    with one_sentence():
        from noslip.bench import ensembles

        result = ensembles.measure(_shown(markdown))
        _report(result, ensembles.markdown(result), json_file)


@bench.command("variance")
def bench_variance(
    members: Annotated[int, typer.Option(help="Initial conditions; the paper has 200.")] = 10_000,
    method: Annotated[
        list[str] | None, typer.Option(help="SI-DLA, I-DLA, SPARK or GONZALEZ; may be repeated.")
    ] = None,
    backend: Annotated[str, typer.Option(help="Where to compute.")] = "auto",
    markdown: Markdown = False,
    json_file: JsonFile = None,
) -> None:
    """CFHM's variance of the energy error: slope and offset with error bars."""
    with one_sentence():
        from noslip.bench import variance
        from noslip.errors import unknown_name

        names = tuple(method or variance.METHODS)
        for name in names:
            if name not in variance.METHODS:
                raise ValueError(unknown_name("method", name, variance.METHODS))
        result = variance.measure(members, _shown(markdown), methods=names, backend=backend)
        typer.echo(f"sampling took {result['sampling seconds']:.1f} s")
        _report(result, variance.markdown(result), json_file)


@bench.command("page")
def bench_page(
    measured: Annotated[Path, typer.Argument(help="Folder with the JSON files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the pages and their picture.")],
) -> None:
    """Make the pages on performance from what was measured."""
    with one_sentence():
        from noslip.bench import page

        for path in page.write(measured, output):
            typer.echo(f"wrote {path}")


def _shown(markdown: bool) -> Callable[[Mapping[str, Any]], None]:
    """Shows rows as they come, unless a table follows."""

    def show(row: Mapping[str, Any]) -> None:
        cells = (f"{name} {x:.4g}" if isinstance(x, float) else f"{name} {x}" for name, x in row.items())
        typer.echo(", ".join(cells))

    return (lambda row: None) if markdown else show


def _report(result: Mapping[str, Any], table: str, json_file: Path | None) -> None:
    typer.echo(table)
    typer.echo(", ".join(f"{name} {value}" for name, value in result["versions"].items()))
    write_json(result, json_file)


def _bench_line(row: Mapping[str, Any]) -> str:
    """A row of measurements for people."""
    line = f"{row['what']:22} {row['system']:8} {row['method']:22} {row['by']:12}"
    if "ns" in row:
        line += f" {row['ns']:9.2f} ns per step and member"
    if "seconds" in row:
        line += f" {row['seconds']:9.2f} s"
    if "ratio to c" in row:
        line += f"  {row['ratio to c']:6.2f} x C"
    if "steps per second" in row:
        line += f"  {row['steps per second']:.2e} steps/s"
    more = {**row.get("parts", {}), **(row.get("work", {}) if row["by"] in ("native", "gpu kernel") else {})}
    return line + "".join(f"  {name} {value:.3g}" for name, value in more.items())


def _versions_line(result: Mapping[str, Any]) -> None:
    typer.echo(", ".join(f"{name} {value}" for name, value in result["versions"].items()))


def check_json(path: Path | None) -> None:
    """Refuse, before anything is measured, a file that could not be written afterwards."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ValueError(f"`--json` must be a file in a folder that exists, but '{path}' was provided")


def write_json(result: Mapping[str, Any], path: Path | None) -> None:
    """Write the numbers, if a file was asked for."""
    if path is not None:
        import json

        path.write_text(json.dumps(result, indent=1) + "\n")
