"""The commands `noslip study ...`: the papers' figures and tables, reproduced and judged."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from noslip.cli.show import INTERRUPTED, console, one_sentence, print_table, stop

T = TypeVar("T")

study = typer.Typer(
    help="Reproduce the figures and tables of the papers, with a verdict on every row.",
    no_args_is_help=True,
)


@study.command("list")
def list_studies() -> None:
    """List the studies: name, paper, and what each reproduces."""
    from noslip.studies import discover
    from noslip.studies._base import title

    rows = [(name, module.PAPER, title(module)) for name, module in discover().items()]
    print_table(("study", "paper", "what it reproduces"), rows)


@study.command("run")
def run_studies(
    name: Annotated[str, typer.Argument(help="A study from `noslip study list`, or `all`.")],
    full: Annotated[
        bool, typer.Option("--full", help="The papers' own sizes instead of the quick form.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for a figure, two CSV tables and a JSON file of each study.")
    ] = None,
) -> None:
    """Run one study or all, and end with a table: quantity, kind, paper, ours, verdict, reason."""
    with one_sentence():
        from noslip import studies
        from noslip.studies._base import counted

        chosen = studies.names() if name == "all" else [name]
        modules = {each: studies.find(each) for each in chosen}
        if out is not None:
            from noslip.plots.trajectory import require_matplotlib

            if out.exists() and not out.is_dir():
                raise ValueError(f"`--out {out}` must be a folder, but it is a file")
            require_matplotlib()
            out.mkdir(parents=True, exist_ok=True)
        table: list[tuple[str, ...]] = []
        every: list[tuple[str, str]] = []
        for each, module in modules.items():
            began = time.perf_counter()
            try:
                outcome = module.run(full, _bar)
            except KeyboardInterrupt:
                kept = f"; what came before is in {out}" if out is not None and table else ""
                stop(f"interrupted in study {each}{kept}", INTERRUPTED)
            seconds = time.perf_counter() - began
            verdicts = [(r.declared.kind, r.verdict) for r in outcome.rows]
            every += verdicts
            typer.echo(f"{each}: {counted(verdicts)}; {seconds:.1f} s")
            if out is not None:
                from noslip.studies._write import write

                for path in write(module, outcome, out, full, seconds):
                    typer.echo(f"wrote {path}")
            table += [
                (each, r.quantity, r.declared.kind, r.declared.paper, r.shown, r.verdict, r.reason)
                for r in outcome.rows
            ]
        print_table(("study", "quantity", "kind", "paper", "ours", "verdict", "reason"), table)
        many = f"{len(modules)} studies" if len(modules) > 1 else "1 study"
        typer.echo(f"{counted(every)} in {many}")


def _bar(items: Sequence[T], what: str) -> Iterable[T]:
    """A progress bar on a terminal, nothing elsewhere; it leaves no line behind."""
    from rich.progress import track

    screen = console()
    return track(items, description=what, console=screen, transient=True, disable=not screen.is_terminal)
