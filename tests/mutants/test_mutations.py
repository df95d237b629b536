"""The wrong formulas of `mutations.py` are still changes of the formulas that the files have."""

from pathlib import Path

import pytest
from mutations import ALL

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "noslip"
NO_FORMULAS = {"__init__", "_fields", "_texts", "base", "solve"}


@pytest.mark.parametrize("mutation", ALL, ids=[f"{i}-{m.name}" for i, m in enumerate(ALL)])
def test_it_changes_one_place(mutation):
    source = (ROOT / mutation.file).read_text()
    assert mutation.applied(source) != source
    compile(mutation.applied(source), mutation.file, "exec")
    assert mutation.tests
    for test in mutation.tests:
        assert (ROOT / test.split()[0].partition("::")[0]).exists()


def test_every_method_and_all_of_the_geometry_have_one():
    files = [*(PACKAGE / "integrators").glob("*.py"), *(PACKAGE / "geometry").glob("*.py")]
    wanted = {f for f in files if f.stem not in NO_FORMULAS} | {PACKAGE / "analysis" / "embedding.py"}
    assert wanted <= {ROOT / mutation.file for mutation in ALL}
    assert len(set(ALL)) == len(ALL) >= 30
