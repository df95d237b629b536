"""`noslip rerun`: a saved run again, compared with the file bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.show import DIFFERENT, console, one_sentence
from noslip.cli.targets import STORE, check_targets, refuse_input, write_run


def rerun(
    file: options.SavedRun,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the new run here.")] = None,
    system: options.GivenSystem = None,
    integrator: options.GivenIntegrator = None,
) -> None:
    """Repeat a saved run and compare it with the file, bit for bit. Your own code must be named again:
    a file that a saved run names is not opened."""
    with one_sentence():
        if output is not None and output.suffix == STORE:
            raise ValueError(f"`-o` must be a NetCDF file, but '{output}' was provided")
        check_targets(output, None)
        refuse_input(output, file)
        from noslip import saved

        again = saved.rerun(file, system=system, integrator=integrator, progress=console().is_terminal)
        write_run(again.run, output, None)
        if again.identical:
            t = again.saved.t
            typer.echo(f"identical bit for bit: {len(t)} saved times up to t = {t[-1]:g}")
            return
        sizes = (f"{name}: {size}" for name, size in again.differences.items())
        typer.echo("the new run differs from the saved one, at most by " + ", ".join(sizes))
        typer.echo("possible reason: " + again.possible_reason)
    raise typer.Exit(DIFFERENT)
