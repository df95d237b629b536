"""The commands `noslip cache`: what earlier processes have compiled."""

from __future__ import annotations

import typer

from noslip.cli.show import BAD_INPUT, one_sentence, print_table, stop

cache = typer.Typer(help="What has been compiled and waits on disk for the next process.")


@cache.callback(invoke_without_command=True)
def show(context: typer.Context) -> None:
    """Show the folder, how many things are in it, and their size. `NOSLIP_CACHE_DIR` names another folder."""
    if context.invoked_subcommand is not None:
        return
    from noslip.engine import shelf

    with one_sentence():
        place = shelf.folder()
        if (reason := shelf.refusal(place)) is not None or place is None:
            typer.echo(f"nothing is kept: {reason}")
            return
        sizes = [entry.st_size for _, entry in shelf.entries(place)]
        size = f"{sum(sizes) / 2**20:.1f} MB of at most {shelf.MOST / 2**20:.0f} MB"
        print_table(
            ("", ""), [("folder", str(place)), ("entries", str(len(sizes))), ("size", size)], headless=True
        )


@cache.command("clear")
def clear() -> None:
    """Remove everything that is kept there."""
    from noslip.engine import shelf

    with one_sentence():
        place = shelf.folder()
        if (reason := shelf.refusal(place)) is not None or place is None:
            stop(f"there is no cache: {reason}", BAD_INPUT)
        count = shelf.clear(place)
        typer.echo(f"{place}: {count} {'entry' if count == 1 else 'entries'} removed")
