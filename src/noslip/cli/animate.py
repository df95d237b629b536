"""`noslip animate`: a saved run as a film."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.show import one_sentence
from noslip.cli.targets import check_targets, refuse_input


def animate(
    file: options.SavedRun,
    output: Annotated[Path, typer.Option("--output", "-o", help="Film to write: .gif, or .mp4 with ffmpeg.")],
    seconds: Annotated[float, typer.Option(help="Length of the film.")] = 6.0,
    frames_per_second: Annotated[int, typer.Option(help="Pictures per second.")] = 15,
    system: options.GivenSystem = None,
) -> None:
    """Show a saved run as a film: what its system looks like, or a point among its coordinates."""
    with one_sentence():
        from noslip.plots import animation
        from noslip.saved import system_of
        from noslip.systems import open_source
        from noslip.trajectory import load

        check_targets(output, None)
        refuse_input(output, file)
        run = load(file)
        picture = None if system is None else open_source(system).picture
        model = None if system is None or picture is not None else system_of(run.info, system)
        animation.animate(
            run, output, picture=picture, system=model, seconds=seconds, frames_per_second=frames_per_second
        )
        typer.echo(f"wrote {output}")
