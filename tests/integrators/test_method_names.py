"""Methods by name: `from noslip.integrators import X`, what editors are told, files, packages, and texts.

`python tests/integrators/test_method_names.py` writes the lines for editors into the package's `__init__.py`;
`make format` then breaks the long ones.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from noslip import integrators
from noslip.integrators import find, make, parse, spelled, word_of
from noslip.integrators.base import Integrator

FILE = Path(integrators.__file__)
BLOCK = re.compile(r"(?<=writes these lines\n).*?(?=\n\n)", re.DOTALL)
OWN = """
from dataclasses import dataclass
from noslip.integrators import VelocityNonholonomic

@dataclass(frozen=True)
class Own(VelocityNonholonomic):
    beta: float = 0.5

class Loose(Own):
    pass

class Bare(VelocityNonholonomic.__mro__[-2]):
    pass

number = 3
"""


def lines_for_editors() -> list[str]:
    """One import for each class that a file of the package defines."""
    found = [cls for cls in integrators.discover().values() if cls.__module__.startswith("noslip.")]
    return sorted(f"from {cls.__module__} import {cls.__name__} as {cls.__name__}" for cls in found)


def test_editors_and_mypy_are_told_of_every_method() -> None:
    block = next(node for node in ast.parse(FILE.read_text()).body if isinstance(node, ast.If))
    assert [ast.unparse(line) for line in block.body] == lines_for_editors()


@pytest.mark.parametrize("name", integrators.discover())
def test_every_method_is_imported_by_its_name_and_listed(name: str) -> None:
    assert getattr(integrators, name) is integrators.discover()[name]
    assert name in dir(integrators)


def test_a_name_imports_the_one_file_that_is_needed() -> None:
    code = (
        "import sys\n"
        "from noslip.integrators import LagrangeDAlembertChaplygin, SemiImplicitDLA, RungeKutta4\n"
        "print([m for m in sys.modules if m.startswith('noslip.integrators.') and 'collocation' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_a_name_that_does_not_exist_is_an_ordinary_error() -> None:
    with pytest.raises(ImportError, match="cannot import name 'RungeKuta4'"):
        from noslip.integrators import RungeKuta4  # noqa: F401
    assert not hasattr(integrators, "nothing")
    from noslip.integrators import composition

    assert composition.Composition is integrators.Composition


# ---- a class in a file of the user ----------------------------------------------------------------


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    return tmp_path


@pytest.mark.usefixtures("mine")
def test_a_class_in_a_file_is_found_and_parsed_alone_and_inside_others() -> None:
    Own = find("mine.py:Own")
    assert find("mine.py:Own") is Own  # the file was run once
    assert parse("mine.py:Own") == Own()
    assert parse("mine.py:Own(beta=1)") == Own(beta=1)
    assert parse("Composition(base=mine.py:Own(), scheme='kahan_li6')").base == Own()
    assert parse("Composition(mine.py:Own)").base == Own()
    assert make("mine.py:Own", {"beta": "0.25"}) == Own(beta=0.25)
    assert make("mine.py:Own(rho=None)", {"beta": "0.25"}) == Own(beta=0.25)
    assert make("DiscreteGradient(frame='householder')", {"gradient": "mean_value"}) == (
        integrators.DiscreteGradient("mean_value", "householder")
    )
    assert make("Composition", {"base": "mine.py:Own"}).base == Own()


def test_what_is_spelled_is_parsed_again(mine: Path) -> None:
    for folder in ("sub", "with space", "a,b(c)"):
        (mine / folder).mkdir()
        (mine / folder / "mine.py").write_text(OWN)
    for word in (
        "mine.py:Own",
        "sub/mine.py:Own",
        "./sub/../mine.py:Own",
        str(mine / "sub" / "mine.py") + ":Own",
    ):
        assert spelled(parse(f"Composition({word}(beta=0.5))")).startswith("Composition(base=")
        assert parse(spelled(parse(f"Composition({word}())"))) == parse(f"Composition({word}())")
    for folder in ("with space", "a,b(c)"):
        method = parse(f"Composition('{folder}/mine.py:Own'(beta=0.5))")
        assert word_of(type(method.base)) == f"{folder}/mine.py:Own"
        assert parse(spelled(method)) == method
    for cls in integrators.discover().values():
        for method in cls.variants():
            assert spelled(method) == repr(method)


def test_two_files_of_one_name_are_told_apart(mine: Path) -> None:
    (mine / "other").mkdir()
    (mine / "other" / "mine.py").write_text(OWN)
    one, two = find("mine.py:Own"), find("other/mine.py:Own")
    assert one is not two
    assert (word_of(one), word_of(two)) == ("mine.py:Own", "other/mine.py:Own")
    (mine / "mine.py").write_text(OWN.replace("0.5", "0.3"))
    assert find("mine.py:Own")().beta == 0.3  # a file that has changed is run again
    assert find("other/mine.py:Own") is two


REFUSED = {
    "Composition(**{'scheme': 'suzuki4'})": "must be written with each argument once and by its name",
    "DiscreteGradient(*['gonzalez'])": "must be a number, a text or another integrator, but '*['gonzalez']'",
    "Composition(base=5)": "`base` of Composition must be an integrator, but 5 was provided",
    "Composition(5)": "`base` of Composition must be an integrator, but 5 was provided",
    "VelocityNonholonomic(bet=1)": "unknown option of VelocityNonholonomic 'bet'; did you mean 'beta'?",
    "VelocityNonholonomic(beta=1 + x)": "but '1 + x' in 'VelocityNonholonomic(beta=1 + x)' is not",
    "VelocityNonholonomic(beta=[x for x in y])": "must be a number, a text or another integrator",
    "VelocityNonholonomic(beta=None)": "VelocityNonholonomic(beta=None) cannot be: ",
    "VelocityNonholonomic(beta=0.1, beta=0.2)": "must be written with each argument once",
    "RungeKutta4(1)": "RungeKutta4(1) cannot be: ",
    "VelocityNonholonomic.variants()": "must be written like DiscreteGradient()",
    "VelocityNonholonomic()()": "must be written like DiscreteGradient()",
    "VelocityNonholonomic(": "must be written like DiscreteGradient()",
    "": "must be written like DiscreteGradient()",
    "3": "must be written like DiscreteGradient()",
    "'mine.py:Own'": "must be written like DiscreteGradient()",
    "lambda x: x": "must be written like DiscreteGradient()",
    "mine.py:Ow": "unknown integrator in mine.py 'Ow'; did you mean 'Own'?",
    "mine.py:number": "a class derived from noslip.integrators.base.Integrator, but it is of type int",
    "mine.py:Bare()": "'mine.py:Bare' must be a frozen dataclass",
    "gone.py:Own()": "there is no file 'gone.py'",
    "__import__('os')": "unknown integrator '__import__'",
    "_file_0": "unknown integrator '_file_0'",
}


@pytest.mark.parametrize("text", REFUSED)
@pytest.mark.usefixtures("mine")
def test_a_text_that_is_no_method_gets_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(REFUSED[text])) as refused:
        parse(text)
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("mine")
def test_a_class_without_fields_of_its_own_is_a_method_too() -> None:
    assert parse("mine.py:Loose()").order == 2
    with pytest.raises(ValueError, match=r"must name an integrator in that file, as in mine\.py:Own"):
        find("mine.py")


# ---- a class of an installed package --------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with entry points, as an installer leaves it."""
    (tmp_path / "own_package.py").write_text(OWN)
    folder = tmp_path / "own_package-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[noslip.integrators]\nOwn = own_package:Own\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder / "entry_points.txt"
    sys.modules.pop("own_package", None)


@pytest.mark.usefixtures("package")
def test_a_class_of_an_installed_package_is_one_of_all() -> None:
    Own = find("Own")
    assert integrators.discover()["Own"] is Own
    assert getattr(integrators, "Own") is Own  # noqa: B009
    assert "Own" in dir(integrators)
    assert parse("Composition(Own(beta=0.5))").base == Own()
    assert word_of(Own) == "Own"
    assert spelled(Own()) == repr(Own())


def test_a_name_of_noslip_stays_that_of_noslip(package: Path) -> None:
    package.write_text("[noslip.integrators]\nRungeKutta4 = own_package:Own\n")
    assert find("RungeKutta4").__module__ == "noslip.integrators.runge_kutta4"
    assert integrators.discover()["RungeKutta4"] is integrators.RungeKutta4
    import own_package

    assert word_of(own_package.Own) == "own_package:Own"


def test_what_a_package_offers_wrongly_is_said(package: Path) -> None:
    package.write_text("[noslip.integrators]\nGone = own_package:Gone\nNumber = own_package:number\n")
    with pytest.raises(ImportError, match=r"'Gone' of own-package \(own_package:Gone\) could not be loaded"):
        find("Gone")
    with pytest.raises(ValueError, match="'Number' must be a class derived from"):
        find("Number")
    assert issubclass(find("RungeKutta4"), Integrator)
    with pytest.raises(ValueError, match="unknown integrator 'Gon'; did you mean 'Gone'"):
        find("Gon")


if __name__ == "__main__":
    FILE.write_text(BLOCK.sub("\n".join(f"    {line}" for line in lines_for_editors()), FILE.read_text(), 1))
