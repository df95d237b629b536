"""A file appears whole or not at all, and nothing but a plain file is ever replaced."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import pytest

from noslip import files

ROOT = Path(__file__).parents[1]


def test_the_file_appears_at_the_end_of_the_block_alone_and_whole(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("before")
    with files.replacing(target) as part:
        part.write_text("after")
        assert target.read_text() == "before"
        assert (part.parent, part.suffix) == (tmp_path, ".txt")
    assert target.read_text() == "after"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("before")

    def broken() -> None:
        with files.replacing(target) as part:
            part.write_text("half")
            raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        broken()
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_name_beside_is_another_one_each_time(tmp_path: Path) -> None:
    names = {files.beside(tmp_path / "a.nc").name for _ in range(50)}
    assert len(names) == 50
    assert all(re.fullmatch(r"\.part-[0-9a-f]{16}\.nc", name) for name in names)


def test_a_link_put_under_the_name_beside_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    treasure, trap = tmp_path / "treasure", tmp_path / ".part-guessed"
    treasure.write_text("mine")
    trap.symlink_to(treasure)
    monkeypatch.setattr(files, "beside", lambda path: trap)
    with pytest.raises(FileExistsError):
        files.write_text(tmp_path / "a.txt", "theirs")
    assert treasure.read_text() == "mine"
    assert trap.is_symlink()


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_plain_file_is_refused_and_stays(kind: str, tmp_path: Path) -> None:
    target, other = tmp_path / "target", tmp_path / "other"
    other.write_text("kept")
    if kind == "folder":
        target.mkdir()
    elif kind == "link":
        target.symlink_to(other)
    else:
        os.mkfifo(target)
    before = os.lstat(target).st_mode
    with pytest.raises(ValueError, match=f"must be a new or a plain file, but it is a .*{kind}"):
        files.write_text(target, "text")
    assert os.lstat(target).st_mode == before
    assert other.read_text() == "kept"
    assert sorted(os.listdir(tmp_path)) == ["other", "target"]


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    plain.write_text("x")
    files.write_text(whole, "x")
    assert stat.S_IMODE(whole.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


def test_the_bytes_reach_the_disk_before_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened = []
    sync, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (happened.append("to disk"), sync(handle)))
    monkeypatch.setattr(Path, "replace", lambda a, b: (happened.append("renamed"), rename(a, b)))
    files.write_text(tmp_path / "a.txt", "text")
    assert happened[:2] == ["to disk", "renamed"]


def test_no_other_file_renames_by_itself() -> None:
    by_hand = re.compile(r'\.part[-"]|os\.(replace|rename)\(|mkstemp|NamedTemporaryFile|partial\.replace\(')
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("src", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if by_hand.search(path.read_text())
    ]
    assert found == ["src/noslip/files.py"]
