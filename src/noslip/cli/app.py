"""The command `noslip`, put together from one file per command.

Exit codes: 0 done; 2 bad input, nothing written; 3 a step could not be solved, the part before it is
kept; 4 a rerun differs from the saved run; 5 a stored file is damaged; 6 a file could not be written, since
the disk is full or fails; 130 interrupted, what had been saved until then is kept.
Commands import what they need when they are called, so that `--help` stays quick and loads no JAX.
"""

from __future__ import annotations

from typing import Annotated

import typer

from noslip.cli.animate import animate
from noslip.cli.bench import bench
from noslip.cli.cache import cache
from noslip.cli.ensemble import run_ensemble
from noslip.cli.explore import explore
from noslip.cli.export import export
from noslip.cli.integrators import list_integrators
from noslip.cli.reduce import reduce
from noslip.cli.report import report
from noslip.cli.rerun import rerun
from noslip.cli.run import run
from noslip.cli.scoreboard import show_scoreboard
from noslip.cli.study import study
from noslip.cli.systems import list_systems
from noslip.cli.verify import verify
from noslip.cli.work_precision import run_work_precision
from noslip.version import __version__

app = typer.Typer(
    help="Simulate mechanical systems with nonholonomic constraints, and see what each method preserves.",
    epilog="Exit codes: 0 done, 2 bad input, 3 a step not solved, 4 a rerun differs, 5 damaged data, "
    "6 a disk that is full or fails, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Entry point of the `noslip` command."""
    app(prog_name="noslip")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"noslip {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.command("systems")(list_systems)
app.command("integrators")(list_integrators)
app.command("run")(run)
app.command("rerun")(rerun)
app.command("report")(report)
app.command("animate")(animate)
app.command("export")(export)
app.command("explore")(explore)
app.command("verify")(verify)
app.command("ensemble")(run_ensemble)
app.command("reduce")(reduce)
app.command("scoreboard")(show_scoreboard)
app.command("work-precision")(run_work_precision)
app.add_typer(study, name="study")
app.add_typer(bench, name="bench")
app.add_typer(cache, name="cache")
