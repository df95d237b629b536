"""A page from disk: it runs offline with the bits of `simulate`, and what leaves it leads back to them."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from browsers import Opened, chromium, needs_chromium
from pages import OTHERS, bits, made, run_python, runs, same_run, saved, simulated
from typer.testing import CliRunner

from noslip import load
from noslip.cli import app
from noslip.systems import open_source
from noslip.web.page import BUILT, page
from noslip.web.subjects import split


@pytest.fixture(scope="module")
def sleigh():
    return made("chaplygin_sleigh", "SemiImplicitDLA,RungeKutta4")


@pytest.fixture(scope="module")
def address(sleigh, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "sleigh.html"
    path.write_text(page(sleigh), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@needs_chromium
def test_a_page_from_disk_ends_in_the_bits_of_simulate_and_asks_for_nothing(sleigh, address, browser):
    opened = Opened(browser, address)
    assert {name: bits(row) for name, row in opened.rows().items()} == simulated(sleigh)
    assert not opened.errors
    assert [url for url in opened.asked if not url.startswith(("file:", "blob:"))] == []


@needs_chromium
def test_sliders_run_again_and_the_copied_python_prints_the_same_bits(address, browser):
    opened = Opened(browser, address)
    before = opened.rows()
    opened.move("m", 1.75)
    opened.move("dtheta/dt", -0.8)
    opened.move("step", 0.03)
    assert opened.rows() != before
    assert "'m': 1.75" in opened.python().replace('"', "'")
    assert run_python(opened.python()) == {name: bits(row) for name, row in opened.rows().items()}
    assert not opened.errors


@needs_chromium
def test_a_moved_speed_takes_the_others_along_the_constraint_and_held_ones_stay(sleigh, address, browser):
    opened = Opened(browser, address)
    field = opened.page.locator("input[aria-label='dx/dt']")
    before = field.input_value()
    opened.page.check("input[aria-label='keep dtheta/dt']")
    opened.move("dy/dt", 0.5)
    opened.changed(field, before)
    values = [float(opened.page.input_value(f"input[aria-label='d{x}/dt']")) for x in ("x", "y", "theta")]
    assert values[1:] == [0.5, sleigh["system"]["v"][2]]
    assert values[0] == float(field.input_value())
    model = open_source("chaplygin_sleigh").build({})
    assert model.is_admissible(np.array(sleigh["system"]["q"]), np.array(values))


@needs_chromium
def test_a_link_holds_the_whole_state(address, browser):
    opened = Opened(browser, address)
    opened.move("a", 0.625)
    opened.after(lambda: opened.page.click("label:has-text('RungeKutta4') input"))
    opened.page.select_option("section:nth-of-type(3) select", "lam:0")
    opened.page.click("button[aria-label^='copy a link']")
    link = opened.page.input_value("dialog textarea")
    again = Opened(browser, link)
    assert list(again.rows()) == ["SemiImplicitDLA()"]
    assert again.rows() == opened.rows()
    assert again.page.input_value("input[aria-label='a']") == "0.625"
    assert again.page.input_value("section:nth-of-type(3) select") == "lam:0"


@needs_chromium
def test_rows_and_pictures_can_be_saved(address, browser):
    opened = Opened(browser, address, accept_downloads=True)
    with opened.page.expect_download() as csv:
        opened.page.click("button:has-text('CSV')")
    lines = csv.value.path().read_text().splitlines()
    assert lines[0] == "method,t,x,y,theta,dx/dt,dy/dt,dtheta/dt,multiplier 0,energy"
    assert len(lines) == 1 + 2 * 1001
    last = lines[1001].split(",")
    assert last[0] == "SemiImplicitDLA()"
    assert [float(x) for x in last[2:5]] == opened.rows()["SemiImplicitDLA()"]["q"]
    with opened.page.expect_download() as png:
        opened.page.click("button:has-text('PNG')")
    assert png.value.path().read_bytes().startswith(b"\x89PNG")


@needs_chromium
@pytest.mark.slow
@pytest.mark.parametrize(("name", "texts"), OTHERS)
def test_pages_of_other_systems_end_in_the_bits_of_simulate(name, texts, browser, tmp_path):
    data = made(name, texts)
    (tmp_path / "page.html").write_text(page(data), encoding="utf-8")
    opened = Opened(browser, (tmp_path / "page.html").as_uri(), accept_downloads=True)
    assert {method: bits(row) for method, row in opened.rows().items()} == simulated(data)
    named = {method["text"]: method["name"] for method in data["methods"]}
    for method, wanted in runs(data).items():
        saved(opened, "NetCDF", named[method]).save_as(tmp_path / "run.nc")
        same_run(load(tmp_path / "run.nc"), wanted)


def test_the_command_writes_one_file_and_says_what_it_left_out(tmp_path):
    target = tmp_path / "page.html"
    given = ["export", "chaplygin_sleigh", "--integrators", "RungeKutta4,ReferenceFlow", "-o", str(target)]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert "left out ReferenceFlow(tolerance=None): it is driven by the host" in done.output
    text = target.read_text()
    assert "connect-src &#x27;none&#x27;" in text
    assert re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)[^"'$]*""", text.partition("<body>")[0]) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["export", "chaplygin_sleigh", "-o", "page.txt"], "must end in .html"),
        (["export", "chaplygin_sleigh", "--integrators", "Nobody", "-o", "page.html"], "Nobody"),
        (["export", "nowhere", "-o", "page.html"], "nowhere"),
        (
            ["export", "knife_edge", "--q0", "0,0,0", "--v0", "1,1,0.5", "-o", "page.html"],
            "`v0` must satisfy the constraint, but phi(q0, v0) = [",
        ),
        (
            ["export", "chaplygin_sleigh", "--integrators", "ReferenceFlow", "-o", "page.html"],
            "driven by the",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(given, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 2
    assert words in done.output
    assert list(tmp_path.iterdir()) == []


def test_names_cannot_leave_their_place_in_the_page(sleigh):
    hostile = {**sleigh, "system": {**sleigh["system"], "title": "</script><script>alert(1)</script>"}}
    text = page(hostile)
    assert "</script><script>alert" not in text
    assert "&lt;/script&gt;" in text
    assert "\\u003c/script>" in text


def test_the_built_script_is_made_from_the_sources():
    root = Path(__file__).parents[2] / "web"
    digest = hashlib.sha256()
    sources = [f"src/{path.name}" for path in sorted((root / "src").iterdir())]
    for name in ["build.mjs", "package-lock.json", *sources]:
        digest.update(f"{name}\n".encode() + (root / name).read_bytes())
    built = (BUILT / "sources.sha256").read_text().strip()
    assert built == digest.hexdigest(), "run `npm ci && npm run build` in the folder web"


def test_the_licence_of_what_is_bundled_is_in_the_bundle():
    script = (BUILT / "page.js").read_text()
    assert "uPlot" in script[:200]
    assert "Permission is hereby granted, free of charge" in script[:1500]


def test_methods_are_split_at_the_commas_between_them():
    text = "DiscreteGradient('mean_value', nodes=5), Composition(base=DiscreteGradient('a,b')),RungeKutta4"
    assert split(text) == [
        "DiscreteGradient('mean_value', nodes=5)",
        "Composition(base=DiscreteGradient('a,b'))",
        "RungeKutta4",
    ]
