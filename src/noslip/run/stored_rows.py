"""One trajectory on disk, read: complete, or while it grows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from noslip.errors import Damaged
from noslip.run.checked import array_of, open_checked, require_zarr
from noslip.run.checkpoints import Checkpoints, open_attributes
from noslip.run.columns import Column
from noslip.run.record import RunInfo

WHAT = "a trajectory"


@dataclass(frozen=True)
class StoredRows:
    """What a trajectory on disk holds: the record of the run, its columns, where it stands, and the sentence
    of a condition that ended it."""

    info: RunInfo
    columns: dict[str, Column | np.ndarray]
    finished: bool
    reached: int
    ended: str


def has_rows(path: str | Path) -> bool:
    """Whether the trajectory in that folder has any yet."""
    return Checkpoints(Path(path), open_checked(Path(path), "r")).read(0).written > 0


def read_rows(path: str | Path) -> StoredRows:
    """The trajectory in that folder, complete or not; columns are read from the disk when indexed."""
    require_zarr()
    attributes, folder = open_attributes(path, WHAT), Path(path)
    group = open_checked(folder, "r")
    there = Checkpoints(folder, group).read(0)  # before the columns, which may grow meanwhile
    if not there.written:
        raise ValueError(f"'{folder}' has no rows yet")
    info, columns = RunInfo.from_attributes(attributes), dict[str, Column | np.ndarray]()
    counts = {f"event_{name}": int(there.state[k]) for k, name in enumerate(info.events)}
    counts["time"] = there.written
    for name, dims in attributes["layout"]["columns"].items():
        array = array_of(group, name)
        columns[name] = Column(array, counts[dims[0]]) if dims[0] in counts else array[...]
        if dims[0] in counts and array.shape[0] < counts[dims[0]]:
            raise Damaged(f"'{folder}' is damaged: '{name}' has fewer rows than its checkpoint counts")
    return StoredRows(info, columns, there.finished, there.reached, attributes.get("ended", ""))
