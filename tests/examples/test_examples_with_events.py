"""The coin ends where it lies flat, the puck keeps its energy; the pages show what the scripts print."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_page_shows(page: str, output: str) -> None:
    text = (ROOT / "docs" / "examples" / f"{page}.md").read_text()
    missing = [line for line in output.splitlines() if line not in text and not line.startswith("wrote")]
    assert not missing


def test_the_coin_ends_at_one_degree_on_its_constraint_and_turns_steadily_at_first() -> None:
    coin = script("05_coin_until_flat")
    run = coin.fall(2e-4, 20)
    assert run.stopped_by == "flat"
    assert abs(run.q[-1, 2] - coin.FLAT) < 1e-12
    assert np.max(np.abs(run.constraint_residual)) < 1e-14
    assert 2.5 < run.t[-1] < 3.5
    assert np.all(np.diff(run.q[:, 2]) < 0.005)
    still = coin.coin.with_parameters({"c": 0.0})
    q, v = run.q0, run.v0
    assert np.max(np.abs(still.acceleration(q, v)[2:])) < 1e-10 * np.max(np.abs(v)) ** 2
    height = coin.COIN["m"] * coin.COIN["g"] * coin.COIN["r"] * np.sin(coin.THETA)
    assert abs(still.energy(q, v) - 1.5 * height) < 1e-14


@pytest.mark.slow
def test_the_puck_stays_in_its_box_and_keeps_its_energy() -> None:
    puck = script("06_puck_in_a_box")
    run = puck.play(t_end=8.0)
    there, p = run.events["wall"], puck.SKATE.parameters
    assert len(there) >= 4
    for q, v in zip(there.q, there.v, strict=True):
        assert abs(float(jnp.min(puck.gaps(q, p)))) <= 1e-12
        _, after = puck.bounced(0.7)(q, v, p)
        assert np.max(np.abs(puck.SKATE.phi(q, after))) < 1e-14
        assert puck.SKATE.energy(q, after) < puck.SKATE.energy(q, v)
    assert min(float(jnp.min(puck.gaps(q, p))) for q in run.q) > 0
    assert np.max(np.abs(run.energy - run.energy[0])) < 1e-13
    assert np.max(np.abs(run.constraint_residual)) < 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "page", "image"),
    [
        ("05_coin_until_flat", "coin_until_flat", "coin.png"),
        ("06_puck_in_a_box", "puck_in_a_box", "puck.png"),
    ],
)
def test_the_pages_show_what_the_scripts_print(name, page, image, tmp_path, capsys) -> None:
    script(name).main(tmp_path)
    assert_page_shows(page, capsys.readouterr().out)
    assert (tmp_path / image).read_bytes().startswith(b"\x89PNG")
