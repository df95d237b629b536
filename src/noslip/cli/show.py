"""How the command line speaks: tables, one sentence on stderr, exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from noslip.errors import Damaged, first_line
from noslip.files import DISK_FAILS

if TYPE_CHECKING:
    from rich.console import Console

BAD_INPUT, NOT_SOLVED, DIFFERENT, DAMAGED, NOT_WRITTEN, INTERRUPTED = 2, 3, 4, 5, 6, 130


def console() -> Console:
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=160)


def print_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None, headless: bool = False
) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, show_header=not headless, title=title and escape(title), title_justify="left"
    )
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console().print(table)


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn what a user can mend into one sentence on stderr and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        stop("interrupted before there was anything to keep", INTERRUPTED)
    except Damaged as error:
        stop(first_line(error), DAMAGED)
    except OSError as error:
        full = error.errno in DISK_FAILS
        stop(first_line(error), NOT_WRITTEN if full else BAD_INPUT)
    except (ValueError, TypeError, ImportError) as error:
        stop(first_line(error), BAD_INPUT)


def stop(message: str, code: int) -> NoReturn:
    typer.echo(f"noslip: {message}", err=True)
    raise typer.Exit(code)
