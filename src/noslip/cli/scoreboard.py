"""`noslip scoreboard`: what each method keeps on each system."""

from __future__ import annotations

from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.bench import JsonFile, check_json, write_json
from noslip.cli.show import one_sentence


def show_scoreboard(
    system: Annotated[list[str] | None, typer.Option(help=f"{options.OWN_SYSTEM}; may be repeated.")] = None,
    integrator: Annotated[
        list[str] | None, typer.Option("--integrator", "-i", help="A method; may be repeated.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of each run.")] = 2000,
    step_size: options.StepSize = 0.1,
    also: Annotated[
        list[str] | None, typer.Option(help="A method besides the defaults; may be repeated.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Measure what each method keeps on each system, as Markdown tables."""
    with one_sentence():
        from dataclasses import asdict

        from noslip import integrators, systems
        from noslip.analysis import scoreboard
        from noslip.bench.machine import versions

        check_json(json_file)
        for name in system or ():
            systems.open_source(name)
        chosen = [integrators.parse(text) for text in integrator or ()]
        methods = (chosen or scoreboard.defaults()) + [integrators.parse(text) for text in also or ()]
        names = tuple(system) if system else tuple(scoreboard.SYSTEMS)
        scores = scoreboard.scoreboard(methods, names, steps=steps, step_size=step_size)
        typer.echo(scoreboard.as_markdown(scores))
        setting = {"benchmark": "scoreboard", "step_size": step_size, "steps": steps, "versions": versions()}
        write_json({**setting, "rows": [asdict(score) for score in scores]}, json_file)
