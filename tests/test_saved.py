"""`noslip.rerun`: saved runs of the catalogue and of users, whose code runs only when it is given."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import noslip
from noslip.integrators import Composition, SemiImplicitDLA, VelocityNonholonomic
from noslip.systems import chaplygin_sleigh, gearbox, open_source

OWN = """
from dataclasses import dataclass
from pathlib import Path
import jax.numpy as jnp
from noslip import System
from noslip.integrators import VelocityNonholonomic

Path("was_run").touch()

def lagrangian(q, v, p):
    return 0.5 * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 2)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.0, 1.0]])

def robot(k: float = 1.0):
    return System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": k})

@dataclass(frozen=True)
class Own(VelocityNonholonomic):
    beta: float = 0.25

@dataclass(frozen=True)
class RungeKutta4(VelocityNonholonomic):
    pass
"""
STATE = [0.2, 0.5, -0.1], [0.8, 0.6, 0.4]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(OWN)
    return tmp_path


def save(integrator: str, name: str = "a.nc") -> noslip.Trajectory:
    """A run of the user's own system, as `noslip run` saves it; the marks of its making are removed."""
    source = open_source("mine.py:robot")
    method = noslip.integrators.parse(integrator)
    run = noslip.simulate(source.build({"k": 2.0}), method, *STATE, step_size=0.1, steps=12, save_every=5)
    run = run.with_source("mine.py:robot", {"k": 2.0})
    run.save(name)
    Path("mine.py").write_text(OWN + "\n# another text, so that it would be run again\n")
    Path("was_run").unlink()
    return run


def test_a_run_of_the_catalogue_needs_nothing() -> None:
    run = noslip.simulate(
        gearbox.system(), SemiImplicitDLA(), *gearbox.typical_state(), step_size=0.1, steps=7
    )
    run.save("a.nc")
    again = noslip.rerun("a.nc")
    assert again.identical
    assert not again.differences
    assert again.possible_reason == ""
    assert again.run == run == again.saved


def test_code_that_a_saved_run_names_is_not_run() -> None:
    save("mine.py:Own(rho=None)")
    with pytest.raises(ValueError, match="is not run unasked") as refused:
        noslip.rerun("a.nc")
    for words in (
        "names mine.py:robot and mine.py:Own",
        "`noslip rerun a.nc --system mine.py:robot --integrator mine.py:Own`",
        "noslip.rerun('a.nc', system='mine.py:robot', integrator='mine.py:Own')",
    ):
        assert words in str(refused.value)
    assert not Path("was_run").exists()


def test_what_the_refusal_advises_repeats_the_run() -> None:
    for text in ("mine.py:Own(beta=0.75)", "Composition(base=mine.py:Own(beta=0.5))", "RungeKutta4"):
        run = save(text)
        with pytest.raises(ValueError, match="is not run unasked") as refused:
            noslip.rerun("a.nc")
        advice = str(refused.value).rpartition(" or ")[2]
        again = eval(advice, {"noslip": noslip})
        assert again.identical
        assert again.run == run
        Path("mine.py").write_text(OWN)


def test_the_system_may_be_a_name_a_maker_or_an_object() -> None:
    run = save("RungeKutta4")
    source = open_source("mine.py:robot")
    given = ("mine.py:robot", source.maker, source.build({}), source.build({"k": 2.0}))
    for system in given:
        again = noslip.rerun("a.nc", system=system)
        assert again.identical
        assert again.run.info.parameters == {"k": 2.0}
        assert again.run == run


def test_the_integrator_may_be_a_text_a_class_or_an_object() -> None:
    save("mine.py:Own(beta=0.75)")
    Own = noslip.integrators.find("mine.py:Own")
    for method in ("mine.py:Own", "mine.py:Own(beta=0.75)", Own, Own(beta=0.75)):
        assert noslip.rerun("a.nc", system="mine.py:robot", integrator=method).identical


def test_one_that_is_missing_is_asked_for_beside_the_one_that_was_given() -> None:
    save("mine.py:Own()")
    with pytest.raises(ValueError, match=r"names mine\.py:Own") as refused:
        noslip.rerun("a.nc", system="mine.py:robot")
    assert "`noslip rerun a.nc --system mine.py:robot --integrator mine.py:Own`" in str(refused.value)
    with pytest.raises(ValueError, match=r"noslip.rerun\('a.nc', system=..., integrator='mine.py:Own'\)"):
        noslip.rerun("a.nc", system=open_source("mine.py:robot").maker)


def test_a_class_of_a_user_is_not_taken_for_one_of_noslip_with_the_same_name() -> None:
    run = save("mine.py:RungeKutta4()")
    assert (run.info.integrator, run.info.integrator_source) == ("RungeKutta4", "mine.py:RungeKutta4")
    with pytest.raises(ValueError, match=r"--integrator mine\.py:RungeKutta4"):
        noslip.rerun("a.nc", system="mine.py:robot")


@dataclass(frozen=True)
class Local(VelocityNonholonomic):
    """A method that no file of a name holds for noslip, such as one of a notebook."""


def test_a_class_of_a_notebook_is_asked_for_by_its_name() -> None:
    system = chaplygin_sleigh.system()
    run = noslip.simulate(system, Local(), *chaplygin_sleigh.typical_state(), step_size=0.1, steps=3)
    assert run.info.integrator_source == f"{__name__}:Local"
    run.save("a.nc")
    with pytest.raises(ValueError, match=r"names FILE\.py:Local"):
        noslip.rerun("a.nc")
    assert noslip.rerun("a.nc", integrator=Local).identical
    composed = Composition(Local())
    noslip.simulate(system, composed, *chaplygin_sleigh.typical_state(), step_size=0.1, steps=3).save("b.nc")
    with pytest.raises(ValueError, match=r"base=test_saved:Local"):
        noslip.rerun("b.nc")
    assert noslip.rerun("b.nc", integrator=composed).identical


def test_a_system_of_a_package_that_is_gone_is_asked_for() -> None:
    run = save("RungeKutta4")
    run.with_source("robot_of_a_package", {"k": 2.0}).save("a.nc")
    with pytest.raises(ValueError, match=r"names robot_of_a_package, .* --system FILE\.py:NAME"):
        noslip.rerun("a.nc")
    assert noslip.rerun("a.nc", system="mine.py:robot").identical


def test_another_method_or_system_is_named_as_a_possible_reason() -> None:
    save("VelocityNonholonomic(beta=0.3)")
    again = noslip.rerun("a.nc", system="mine.py:robot", integrator="VelocityNonholonomic(beta=0.4)")
    assert not again.identical
    assert "beta=0.3" in again.possible_reason
    assert "beta=0.4" in again.possible_reason
    assert "q" in again.differences
    run = noslip.load("a.nc")
    replace(run, q=run.q + 1e-9).save("b.nc")
    again = noslip.rerun("b.nc", system="mine.py:robot")
    assert again.differences == {"q": "1.0e-09"}
    assert "or mine.py:robot has changed since" in again.possible_reason


def test_a_file_of_0_1_has_no_source_of_its_integrator_and_loads() -> None:
    run = noslip.simulate(
        gearbox.system(), VelocityNonholonomic(), *gearbox.typical_state(), step_size=0.1, steps=3
    )
    data = run.to_xarray()
    info = json.loads(data.attrs["noslip"])
    del info["integrator_source"]
    data.attrs["noslip"] = json.dumps(info)
    data.to_netcdf("old.nc", engine="h5netcdf")
    assert noslip.load("old.nc") == run
    assert noslip.rerun("old.nc").identical


def test_what_is_no_system_or_integrator_is_refused() -> None:
    save("RungeKutta4")
    with pytest.raises(TypeError, match="a system must be a System, a function that makes one, or a name"):
        noslip.rerun("a.nc", system=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'int' must be a class derived from"):
        noslip.rerun("a.nc", system="mine.py:robot", integrator=int)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="unknown parameter 'k'"):
        noslip.rerun("a.nc", system="gearbox")
