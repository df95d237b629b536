"""What every run on disk has: a folder that is made in one move and belongs to one call, and checkpoints.

A checkpoint is one file, put in place in one move after the rows that it counts: how many rows have been
written, the step reached, and the whole state there. So whatever a killed process left behind beyond its last
checkpoint is written again, with the same bits. Who goes on from a checkpoint puts a mark beside it, and
who finds another's mark there stops: a process that was thought dead does not write into the work of its
successor.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from noslip.engine.memory import Table
from noslip.errors import Damaged
from noslip.files import as_path, new_folder, require_folder, require_writable
from noslip.numerics.pytrees import PyTree
from noslip.run.checked import BY_ROWS, CHECKPOINT, Attributes, array_of, new_array, open_checked

if TYPE_CHECKING:
    import zarr

SECONDS_BETWEEN_CHECKPOINTS = 5.0
HEAD = 3  # words before the state: finished, rows written, step reached


class Checkpoint(NamedTuple):
    """Where a chunk of the members, or a trajectory, stands."""

    finished: bool
    written: int
    reached: int
    state: np.ndarray


class Checkpoints:
    """Of one run on disk, each by its number."""

    def __init__(self, folder: Path, group: zarr.Group):
        self.folder = folder
        self.words, self.marks = (array_of(group, name) for name in (CHECKPOINT, "resume/mark"))

    def __len__(self) -> int:
        return int(self.words.shape[0])

    def read(self, k: int) -> Checkpoint:
        finished, written, reached, *_ = (int(x) for x in self.words[k, :HEAD])
        return Checkpoint(bool(finished), written, reached, self.words[k, HEAD:])

    def write(self, k: int, finished: bool, written: int, reached: int, state: np.ndarray | None) -> None:
        """The state may be left out where nothing goes on."""
        words = np.zeros(self.words.shape[1], np.int64)
        words[:HEAD] = finished, written, reached
        if state is not None:
            words[HEAD : HEAD + len(state)] = state
        self.words[k] = words

    def take(self, k: int) -> int:
        """Make the work from this checkpoint on the caller's own."""
        if not (self.folder / f"{CHECKPOINT}/c/{k}/0").exists():
            self.read(k)  # a lost one is an error
            self.write(k, False, 0, 0, None)  # there is always one where there is a mark
        mark = secrets.randbits(62)
        self.marks[k] = mark
        return mark

    def require_mark(self, k: int, mark: int, what: str) -> None:
        if int(self.marks[k]) != mark:
            raise OSError(f"{what} was taken up by another process, so this one stops")


def new_checkpoints(resume: zarr.Group, count: int, width: int) -> None:
    """Room for so many, each with a state of `width` words."""
    new_array(resume, "checkpoint", BY_ROWS, shape=(count, HEAD + width), chunks=(1, HEAD + width),
              dtype="i8", fill_value=0, dimension_names=("member", "word"))  # fmt: skip
    new_array(resume, "mark", None, shape=(count,), chunks=(1,), dtype="i8", fill_value=0)


def state_words(tree: PyTree, members: int) -> np.ndarray:
    """Any state of all members, bit for bit: arrays (members, ...) of floats, whole numbers and truths."""
    leaves = jax.tree.leaves(tree)
    if strange := {str(x.dtype) for x in leaves if np.dtype(x.dtype).kind not in "fiub"}:
        raise ValueError(f"a state on disk must be floats and whole numbers, but this has {strange.pop()}")
    return _table(tree).pack(tree, members, 1).reshape(-1)


def state_of(words: np.ndarray, like: PyTree, members: int, room: int) -> PyTree:
    """The state again, by the shape of one like it; the words are those of `room` members."""
    table = _table(like)
    if len(words) != room * table.slots:
        raise ValueError(
            f"this run was begun by another version of noslip, whose states had {len(words) // room} words "
            f"where they have {table.slots} now; begin anew in another folder"
        )
    return table.unpack(words[: members * table.slots].reshape(members, table.slots, 1), members)


def _table(tree: PyTree) -> Table:
    return Table(jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), tree))


# ---- the folder -----------------------------------------------------------------------------------------


def begin_folder(
    folder: Path, make: Callable[[Path], None], call: dict[str, object], what: str
) -> Attributes:
    """Make the folder in one move, or see that the one that is there was made by this very call; what it
    says of itself."""
    require_folder(folder, f"{what} of noslip")
    if not folder.exists():
        require_writable(folder)
        try:
            with new_folder(folder) as part:
                make(part)
        except OSError:
            if not folder.is_dir():  # else another process was quicker with the same call
                raise
    attributes = attributes_of(folder)
    if "call" not in attributes:
        raise ValueError(f"'{folder}' must be a new folder or {what} of noslip, but it is something else")
    if (there := kind_of(attributes)) != what:
        raise ValueError(f"'{folder}' must be a new folder or {what} of noslip, but it is {there}")
    refuse_another_call(folder, what, attributes["call"], json.loads(json.dumps(call)))
    return attributes


def refuse_another_call(folder: Path, what: str, before: dict[str, object], now: dict[str, object]) -> None:
    """Refuse to go on with what would get other bits."""
    for k in dict.fromkeys([*before, *now]):
        if before.get(k) != now.get(k):
            raise ValueError(
                f"'{folder}' holds {what} of another call: {k} is {before.get(k)} there, but {now.get(k)} "
                "was provided; give another `store`, or delete that folder"
            )


def kind_of(attributes: Attributes) -> str:
    """What a folder holds, by what it says of itself."""
    return "an ensemble" if "members" in attributes["layout"] else "a trajectory"


def attributes_of(folder: Path) -> Attributes:
    """What the folder says of itself; nothing where it is none of Zarr's."""
    try:
        return dict(open_checked(folder, "r").attrs)
    except Damaged:
        raise
    except (FileNotFoundError, ValueError, KeyError, NotADirectoryError):
        return {}


def open_attributes(path: str | Path, what: str) -> Attributes:
    """What a run on disk says of itself; a sentence where it is none."""
    folder = as_path("path", path)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder '{folder}'")
    attributes = attributes_of(folder)
    if "layout" not in attributes:
        raise ValueError(f"'{folder}' was not written by noslip: it has no attribute 'layout'")
    if (there := kind_of(attributes)) != what:
        raise ValueError(f"'{folder}' must hold {what}, but it holds {there}")
    return attributes


def note(path: str | Path, **texts: object) -> None:
    """Keep remarks with a run on disk, such as the command that made it."""
    open_checked(Path(path), "r+").attrs.update(texts)
