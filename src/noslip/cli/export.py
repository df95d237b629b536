"""`noslip export`: a system as a page that runs in any browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.show import one_sentence
from noslip.cli.targets import check_targets

METHODS = "Methods with commas between; SemiImplicitDLA,DiscreteGradient,RungeKutta4 where none are named."


def export(
    system: options.SystemName,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")],
    integrators: Annotated[str | None, typer.Option("--integrators", help=METHODS)] = None,
    set_: options.Parameters = None,
    q0: Annotated[str | None, typer.Option(help="Initial coordinates, a,b,c.")] = None,
    v0: options.Velocities = None,
) -> None:
    """Write one file that runs the system in the reader's browser, offline, with the bits of `simulate`."""
    with one_sentence():
        if output.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"`-o` must end in .html, but '{output}' was provided")
        check_targets(output, None)
        from noslip.files import write_text
        from noslip.systems import open_source
        from noslip.web.content import content
        from noslip.web.page import page
        from noslip.web.subjects import given, methods, subject

        chosen = methods(integrators)
        source = open_source(system)
        arguments = source.arguments(options.pairs("--set", set_))
        model = source.build(arguments)
        q, v = options.initial_state(source, model, arguments, q0, v0)
        about = (given if q0 or v0 else subject)(source, model, arguments, q, v)
        made = content(about, chosen)
        write_text(output, page(made))
        for refused in made["refused"]:
            typer.echo(f"left out {refused['name']}: {refused['reason']}")
        typer.echo(f"wrote {output}")
