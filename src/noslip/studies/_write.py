"""A study as files: NAME.json with everything, NAME.csv with the rows, NAME_curves.csv and NAME.png."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from noslip.files import replacing
from noslip.plots import panels
from noslip.run.record import jsonable, versions
from noslip.studies._base import DeclaredRow, Study, title

HEAD = ("study", "quantity", "kind", "paper", "ours", "rule", "verdict", "reason")


def as_json(module: ModuleType, study: Study, full: bool, seconds: float) -> dict[str, Any]:
    """Everything but the curves, which are in their own table."""
    return {
        "study": module.__name__.rpartition(".")[2],
        "paper": module.PAPER,
        "title": title(module),
        "full": full,
        "seconds": round(seconds, 1),
        "versions": versions(),
        "inputs": jsonable(dict(study.inputs)),
        "rows": [
            {**described(row.declared), "ours": row.ours, "verdict": row.verdict, "reason": row.reason}
            for row in study.rows
        ],
    }


def described(row: DeclaredRow) -> dict[str, str]:
    """What is known of a row before the study runs."""
    return {"quantity": row.quantity, "kind": row.kind, "paper": row.paper, "rule": row.rule.name}


def write(module: ModuleType, study: Study, folder: Path, full: bool, seconds: float) -> list[Path]:
    """Write the four files; each appears whole or not at all."""
    name = module.__name__.rpartition(".")[2]
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        (
            name,
            r.quantity,
            r.declared.kind,
            r.declared.paper,
            repr(r.ours),
            r.declared.rule.name,
            r.verdict,
            r.reason,
        )
        for r in study.rows
    ]
    curves = [(p, c, repr(x), repr(y)) for p, c, x, y in panels.table(study.panels)]
    document = json.dumps(as_json(module, study, full, seconds), indent=1, ensure_ascii=False) + "\n"
    figure = panels.draw(study.panels, title(module))
    return [
        _whole(folder / f"{name}.json", lambda path: path.write_text(document)),
        _whole(folder / f"{name}.csv", lambda path: path.write_text(_table(HEAD, rows))),
        _whole(
            folder / f"{name}_curves.csv",
            lambda path: path.write_text(_table(("panel", "curve", "x", "y"), curves)),
        ),
        _whole(folder / f"{name}.png", lambda path: figure.savefig(path, dpi=120, format="png")),
    ]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _whole(path: Path, write_to: Callable[[Path], object]) -> Path:
    with replacing(path) as part:
        write_to(part)
    return path
