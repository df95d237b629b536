"""The command `noslip work-precision`: seconds of a call against the error at the end, of any methods."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noslip.cli import options
from noslip.cli.bench import JsonFile, Markdown, check_json, write_json
from noslip.cli.show import one_sentence, print_table
from noslip.cli.targets import check_targets

if TYPE_CHECKING:
    from noslip.analysis.work_precision import WorkPoint


def run_work_precision(
    system: Annotated[str, typer.Argument(help="A catalogue name, or your own: my_system.py:particle")],
    integrator: Annotated[
        list[str], typer.Option("--integrator", "-i", help="A method; may be repeated.", metavar="METHOD")
    ],
    t_end: Annotated[float, typer.Option(help="Final time; the error is that at the end.")] = 10.0,
    steps: Annotated[
        list[int] | None, typer.Option(help="A number of steps; may be repeated, from few to many.")
    ] = None,
    set_: options.Parameters = None,
    q0: Annotated[str | None, typer.Option(help="Initial coordinates, a,b,c.")] = None,
    v0: options.Velocities = None,
    backend: options.Backend = "auto",
    markdown: Markdown = False,
    json_file: JsonFile = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .pdf or .svg.")] = None,
) -> None:
    """Measure the time of a call against its error at the end, for each method and number of steps."""
    with one_sentence():
        check_json(json_file)
        check_targets(None, plot)
        from dataclasses import asdict

        from noslip import integrators
        from noslip.analysis import work_precision
        from noslip.bench.machine import versions
        from noslip.systems import open_source

        methods = [integrators.parse(text) for text in integrator]
        source = open_source(system)
        arguments = source.arguments(options.pairs("--set", set_))
        model = source.build(arguments)
        q, v = options.initial_state(source, model, arguments, q0, v0)
        counts = tuple(steps or work_precision.STEPS)
        points = work_precision.work_precision(
            model, methods, q, v, t_end=t_end, steps=counts, backend=backend
        )
        if markdown:
            typer.echo(work_precision.as_markdown(points))
        else:
            print_table(work_precision.HEAD, [work_precision.cells(point) for point in points])
        setting = {"benchmark": "work-precision", "system": system, "t_end": t_end, "versions": versions()}
        write_json({**setting, "rows": [asdict(point) for point in points]}, json_file)
        if plot is not None:
            _draw(system, points, plot)


def _draw(system: str, points: list[WorkPoint], plot: Path) -> None:
    from noslip.files import replacing
    from noslip.plots.work_precision import plot_work_precision

    curves: dict[str, list[tuple[float, float]]] = {}
    for point in points:
        if point.error is not None and point.seconds is not None:
            curves.setdefault(point.by, []).append((point.error, point.seconds))
    if not curves:
        raise ValueError("no method has a point to draw")
    with replacing(plot) as part:
        plot_work_precision({system: curves}).savefig(part, dpi=150)
    typer.echo(f"wrote {plot}")
