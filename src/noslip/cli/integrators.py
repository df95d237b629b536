"""`noslip integrators`: every method, what it promises and where it is from."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from noslip.cli.show import one_sentence, print_table
from noslip.markdown import table
from noslip.texts import listed

HEAD = ("integrator", "parameters", "order", "preserves", "reference", "what it is")


def list_integrators(
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown table.")] = False,
) -> None:
    """List the methods: parameters, order, what each preserves, and the source."""
    with one_sentence():
        from noslip.integrators import discover

        rows = []
        for name, cls in discover().items():
            method = cls()
            what = (inspect.getdoc(cls) or "").partition("\n")[0]
            order = "exact" if method.exact else str(method.order)
            kept = ", ".join(sorted(method.preserves)) or "-"
            rows.append((name, listed(method.options()) or "-", order, kept, method.reference, what))
        if not markdown:
            print_table(HEAD, rows)
            return
        typer.echo(table(HEAD, [(f"`{n}`", o if o == "-" else f"`{o}`", *rest) for n, o, *rest in rows]))
