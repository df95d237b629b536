"""Files that commands write: refused before anything is computed, and written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from noslip.files import replacing, require_folder, require_plain, require_writable

if TYPE_CHECKING:
    from noslip.trajectory import Trajectory

STORE = ".zarr"
KINDS = (".html", ".htm", ".gif", ".mp4")  # that say by themselves what they are
PICTURES = (".png", ".pdf", ".svg")


def check_targets(output: Path | None, plot: Path | None) -> None:
    """Refuse, before anything is computed, files that could not be written afterwards."""
    if output is not None and output.suffix == STORE:
        from noslip.run.checked import require_zarr

        require_zarr()
        require_folder(output, "a run of noslip")
        if not output.exists():
            require_writable(output)
        output = None
    if output is not None and output.suffix not in KINDS:
        _refuse_other_files(output)
    for option, path in (("-o", output), ("--plot", plot)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            what = (
                "a file, but it is a folder"
                if path.is_dir()
                else f"in a folder that exists, not in '{path.parent}'"
            )
            raise ValueError(f"`{option} {path}` must be {what}")
        if path is not None:
            require_plain(path)
            require_writable(path)
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise ValueError(f"`--plot` must end in {', '.join(PICTURES)}, but '{plot}' was provided")
        if output is not None and output.resolve() == plot.resolve():
            raise ValueError(f"`-o` and `--plot` must be different files, but both are '{plot}'")
        from noslip.plots.trajectory import require_matplotlib

        require_matplotlib()


def _refuse_other_files(path: Path) -> None:
    """Refuse to put a run in the place of what is none, say of a script."""
    if path.is_file() and not path.is_symlink() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(4) != b"\x89HDF":
                raise ValueError(f"`-o {path}` must be a new file or a NetCDF file, but it is something else")


def refuse_input(output: Path | None, file: Path) -> None:
    """Refuse to replace what is read, under whatever name."""
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise ValueError(f"`-o {output}` must be another file than the one that is read")


def write_run(result: Trajectory, output: Path | None, plot: Path | None) -> None:
    """The run, its picture, and a line for each."""
    if output is not None:
        if output.suffix != STORE:
            result.save(output)
        typer.echo(f"wrote {output}")
    if plot is not None:
        with replacing(plot) as part:
            result.plot().savefig(part, dpi=150)
        typer.echo(f"wrote {plot}")
