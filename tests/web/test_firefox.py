"""Firefox ends in the bits of `simulate` too, and has all parts of a page."""

import pytest
from firefox import firefox, needs_firefox
from pages import OTHERS, bits, made, run_python, simulated

from noslip.web.page import page

pytestmark = [needs_firefox, pytest.mark.slow]


def address(data, folder):
    path = folder / f"{data['system']['name']}.html"
    path.write_text(page(data), encoding="utf-8")
    return path.as_uri()


def test_a_page_from_disk_ends_in_the_bits_of_simulate_and_asks_for_nothing(tmp_path):
    data = made("chaplygin_sleigh", "SemiImplicitDLA,RungeKutta4")
    with firefox() as browser:
        browser.open(address(data, tmp_path))
        rows = browser.evaluate("noslip.lastRows()")
        form = browser.evaluate("document.querySelector('.status').textContent")
        link = browser.wait_for("location.hash")  # written a moment after the run
        shorter = link.lstrip("#").replace("n=1000", "n=400")
        browser.open(address(data, tmp_path) + "#" + shorter)
        browser.wait_for("window.noslip?.lastRows()['RungeKutta4()']?.t === 400 * 0.05")
        assert run_python(browser.evaluate("noslip.python()")) == {
            name: bits(row) for name, row in browser.evaluate("noslip.lastRows()").items()
        }
        asked = browser.asked
    assert {name: bits(row) for name, row in rows.items()} == simulated(data)
    assert "relaxed SIMD" in form
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:", "about:"))] == []


def test_pages_of_other_systems_end_in_the_bits_of_simulate(tmp_path):
    with firefox() as browser:
        for name, texts in OTHERS:
            data = made(name, texts)
            browser.open(address(data, tmp_path))
            rows = browser.evaluate("noslip.lastRows()")
            assert {method: bits(row) for method, row in rows.items()} == simulated(data)


def test_sections_and_clouds_come_and_inputs_move(tmp_path):
    data = made("roller_racer", "RungeKutta4")
    with firefox() as browser:
        where = "#n=500&section=q:phi;0;0&cloud=100,0.02&curve0=linear 0:0 5:0.5 10:-0.5"
        browser.open(address(data, tmp_path) + where.replace(" ", "%20"))
        browser.wait_for("document.body.dataset.crossed")
        browser.wait_for("document.body.dataset.gathered")
        assert len(browser.evaluate("noslip.crossings('RungeKutta4()')")) > 2
        assert len(browser.evaluate("noslip.member(99)")["q"]) == 4
        assert run_python(browser.evaluate("noslip.python()")) == {
            name: bits(row) for name, row in browser.evaluate("noslip.lastRows()").items()
        }
