"""`noslip verify`: every checksum of a saved run or an ensemble."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noslip.cli.show import DAMAGED, one_sentence, stop


def verify(
    path: Annotated[Path, typer.Argument(help="A NetCDF file, or the folder of a run or an ensemble.")],
) -> None:
    """Check that every byte of a saved run or ensemble is what was written."""
    with one_sentence():
        from noslip import saved

        found = saved.verify(path)
        for sentence in found.damaged[:-1]:
            typer.echo(f"noslip: {sentence}", err=True)
        if found.damaged:
            stop(found.damaged[-1], DAMAGED)
        files = "1 file" if found.files == 1 else f"{found.files} files"
        bare = f", {found.unchecked} of them of an older version, without checksums" * bool(found.unchecked)
        typer.echo(f"{path}: {files}, nothing damaged or missing{bare}")
