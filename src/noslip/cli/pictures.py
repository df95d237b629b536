"""The commands on saved runs: `noslip report` and `noslip animate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noslip.cli.inputs import as_saved, make_integrator, open_source
from noslip.cli.show import one_sentence

if TYPE_CHECKING:
    from noslip.integrators.base import Integrator
    from noslip.system import System
    from noslip.trajectory import RunInfo

pictures = typer.Typer()
SAVED = "A file written by `noslip run -o` or `Trajectory.save`."


@pictures.command()
def report(
    file: Annotated[Path, typer.Argument(help=SAVED)],
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
) -> None:
    """Write a page about one saved run: equations, what was preserved, the solves, plots."""
    with one_sentence():
        from noslip.plots.trajectory import require_matplotlib
        from noslip.trajectory import load

        if output.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"`-o` must end in .html, but '{output}' was provided")
        require_matplotlib()
        run = load(file)
        from noslip.report import write_report

        write_report(run, output, system_of(run.info), method_of(run.info))
        typer.echo(f"wrote {output}")


@pictures.command()
def animate(
    file: Annotated[Path, typer.Argument(help=SAVED)],
    output: Annotated[Path, typer.Option("--output", "-o", help="Film to write: .gif, or .mp4 with ffmpeg.")],
    seconds: Annotated[float, typer.Option(help="Length of the film.")] = 6.0,
    frames_per_second: Annotated[int, typer.Option(help="Pictures per second.")] = 15,
) -> None:
    """Show a saved run as a film: the body where the system has a picture, else a point on its path."""
    with one_sentence():
        from noslip.plots import animation
        from noslip.trajectory import load

        run = load(file)
        animation.animate(run, output, seconds=seconds, frames_per_second=frames_per_second)
        typer.echo(f"wrote {output}")


def system_of(info: RunInfo) -> System | None:
    """The system of a saved run with its parameters, where the file says where it came from."""
    if not info.source:
        return None
    arguments = {name: as_saved(value) for name, value in info.arguments.items()}
    parameters = {name: as_saved(value) for name, value in info.parameters.items()}
    return open_source(info.source).build(arguments).with_parameters(parameters)


def method_of(info: RunInfo) -> Integrator:
    """The integrator of a saved run."""
    options = {k: tuple(x) if isinstance(x, list) else x for k, x in info.options.items()}
    return make_integrator(info.integrator, options)
