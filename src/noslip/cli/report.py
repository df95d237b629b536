"""`noslip report`: a page about one saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.show import one_sentence
from noslip.cli.targets import check_targets, refuse_input


def report(
    file: options.SavedRun,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    system: options.GivenSystem = None,
    integrator: options.GivenIntegrator = None,
) -> None:
    """Write a page about one saved run: equations, what was preserved, the solves, plots."""
    with one_sentence():
        from noslip.plots.trajectory import require_matplotlib
        from noslip.saved import integrator_of, needed, system_of
        from noslip.systems import open_source
        from noslip.trajectory import load

        if output.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"`-o` must end in .html, but '{output}' was provided")
        require_matplotlib()
        check_targets(output, None)
        refuse_input(output, file)
        run = load(file)
        from noslip.report import left_out, write_report

        missing = needed(run.info, system, integrator)
        model = None if "system" in missing else system_of(run.info, system)
        method = None if "integrator" in missing else integrator_of(run.info, integrator)
        picture = None if system is None else open_source(system).picture
        write_report(run, output, model, method, picture)
        typer.echo(f"wrote {output}")
        for what in missing:
            typer.echo(left_out(run, what))
