"""Every file of the catalogue, found by discovery, keeps the contract of a system."""

from types import ModuleType

import jax
import numpy as np
import pytest

from catalogue_by_size import LARGE
from noslip.systems import discover
from noslip.testing.systems import check_system

MODULES = discover()
every_system = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
# long, and held to equations of their own in test_driven_vehicles.py and test_by_dalembert.py
LONG = {"car_with_trailers", "differential_drive", "snakeboard"} | LARGE
LONGEST = {"whipple_bicycle"}  # XLA takes minutes for derivatives of its equations
SHORT = {"rattleback": 2.0}  # it rattles many times in a second


def when(name: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.all_pairs] if name in LONGEST else [pytest.mark.slow] if name in LONG else []


@pytest.mark.parametrize(
    "module",
    [pytest.param(x, marks=when(name), id=name) for name, x in MODULES.items()],
)
def test_physics_of_the_system(module: ModuleType) -> None:
    check_system(module, t_end=SHORT.get(module.__name__.rpartition(".")[2], 20.0))


@every_system
def test_two_calls_share_compiled_code(module: ModuleType) -> None:
    first, second = (jax.tree.structure(module.system()) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)


@every_system
def test_the_docstring_says_what_it_is(module: ModuleType) -> None:
    assert module.__doc__ is not None
    lines = module.__doc__.splitlines()
    assert lines[0].endswith((".", ":"))
    assert "oordinates" in module.__doc__


@every_system
def test_the_typical_state_is_generic(module: ModuleType) -> None:
    q, v = map(np.array, module.typical_state())
    if module.__name__.endswith("chaplygin_sleigh"):
        q[1] = 1.0  # CFHM's own start has y = 0, and nothing depends on y
    state = np.abs(np.concatenate([q, v]))
    assert state.min() > 1e-3
    assert len(np.unique(np.round(state, 12))) >= len(state) - 2  # the disk of radius 1 repeats its rate


def test_discovery_finds_the_whole_catalogue() -> None:
    expected = LARGE | {
        "appell_hamel",
        "car_with_trailers",
        "chaplygin_sleigh",
        "contact_oscillator",
        "differential_drive",
        "driven_knife_edge",
        "fbo_particle",
        "gearbox",
        "knife_edge",
        "nonholonomic_particle",
        "planimeter",
        "quartic",
        "rolling_disk",
        "rolling_disk_on_incline",
        "sinusoidal_particle",
        "snakeboard",
        "spherical_pendulum",
        "suslov",
        "turntable_ball",
        "two_wheeled_robot",
        "veselova",
    }
    assert expected <= set(MODULES)
    assert not any(name.startswith("_") for name in MODULES)
