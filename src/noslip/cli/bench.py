"""The commands `noslip bench ...`: speed, as ratios from one run, and how long exact energy lasts.

Here is what users can measure on their machines. In a checkout of the repository the commands of
`benchmarks/` are found as well, and come before those of the same name here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from noslip.cli.show import BAD_INPUT, one_sentence, print_table, stop

Markdown = Annotated[bool, typer.Option("--markdown", help="Only Markdown tables, at the end.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write all numbers here.")]


class _WithCheckout(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        from noslip.bench import checkout

        return list(dict.fromkeys([*super().list_commands(ctx), *checkout.commands()]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from noslip.bench import checkout

        found = checkout.commands().get(cmd_name) or super().get_command(ctx, cmd_name)
        if found is None and checkout.folder() is None:
            here = ", ".join(super().list_commands(ctx))
            stop(f"'{cmd_name}' needs a checkout of the repository; installed are {here}", BAD_INPUT)
        return found


bench = typer.Typer(help="Measure speed, and energy over long runs.", no_args_is_help=True, cls=_WithCheckout)


@bench.command("engine")
def bench_engine(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Native code against XLA, one trajectory and many."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import engine

        result = engine.measure(lambda row: None if markdown else typer.echo(engine.line(row)))
        report(result, engine.markdown(result) if markdown else "", json_file)


@bench.command("kernels")
def bench_kernels(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """A GPU: steps per second of a million members and more, seconds to the first step, bits."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import kernels

        result = kernels.measure(shown(markdown))
        report(result, kernels.markdown(result) if markdown else "", json_file)


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
        report(result, "\n\n".join(energy.markdown(result)) if markdown else "", json_file)


@bench.command("programs")
def bench_programs(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Size and compile time of every method on every system."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import programs
        from noslip.markdown import table

        result = programs.measure()
        for head, rows in (
            (programs.HEAD, programs.cells(result)),
            (programs.LEFT_OUT, programs.left_out(result)),
        ):
            if markdown:
                typer.echo(table(head, rows) + "\n")
            else:
                print_table(head, rows)
        write_json(result, json_file)


@bench.command("ensembles")
def bench_ensembles(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """Millions of member steps per second against the number of members."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import ensembles

        result = ensembles.measure(shown(markdown))
        report(result, ensembles.markdown(result), json_file)


@bench.command("bodies")
def bench_bodies(markdown: Markdown = False, json_file: JsonFile = None) -> None:
    """A ball in quaternions and a bicycle, without frames: first results, steps and short calls."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench import bodies

        result = bodies.measure(shown(markdown))
        report(result, bodies.markdown(result), json_file)


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
    """The study of CFHM's variance with many members: slope and offset with error bars, and the time."""
    with one_sentence():
        check_json(json_file)
        from noslip.bench.machine import versions
        from noslip.errors import unknown_name
        from noslip.studies import cfhm_variance

        names = tuple(method or cfhm_variance.MEASURED)
        for name in names:
            if name not in cfhm_variance.MEASURED:
                raise ValueError(unknown_name("method", name, cfhm_variance.MEASURED))
        found = cfhm_variance.measure(members, shown(markdown), methods=names, backend=backend)
        typer.echo(f"sampling took {found['sampling seconds']:.1f} s")
        result = {"benchmark": "variance", "versions": versions(), **found}
        report(result, cfhm_variance.markdown(result), json_file)


def shown(markdown: bool) -> Callable[[Mapping[str, Any]], None]:
    """Shows rows as they come, unless a table follows."""

    def show(row: Mapping[str, Any]) -> None:
        cells = (f"{name} {x:.4g}" if isinstance(x, float) else f"{name} {x}" for name, x in row.items())
        typer.echo(", ".join(cells))

    return (lambda row: None) if markdown else show


def report(result: Mapping[str, Any], table: str, json_file: Path | None) -> None:
    """The table, if there is one, what was measured with which versions, and the file."""
    if table:
        typer.echo(table)
    typer.echo(", ".join(f"{name} {value}" for name, value in result["versions"].items()))
    write_json(result, json_file)


def check_json(path: Path | None) -> None:
    """Refuse, before anything is measured, a file that could not be written afterwards."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"`--json` must be a file in a folder that exists, but '{path}' was provided")
    from noslip.files import require_plain

    require_plain(path)


def write_json(result: Mapping[str, Any], path: Path | None) -> None:
    """Write the numbers, if a file was asked for."""
    if path is not None:
        import json

        from noslip.files import write_text

        write_text(path, json.dumps(result, indent=1) + "\n")
