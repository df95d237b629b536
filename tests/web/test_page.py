"""What a page does beside plain runs: sections, clouds, inputs over time, a million steps, files, films."""

import base64
import functools
import io
import itertools
import json

import numpy as np
import pytest
from browsers import Opened, chromium, longest_task, needs_chromium
from pages import bits, made, row_of, run_python, same_run, saved, served
from PIL import Image
from scipy.optimize import brentq

from noslip import integrators, load, simulate
from noslip.systems import open_source
from noslip.web.page import page

OWN = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    spring = p["k"] * (q[0] ** 2 + 0.5 * q[1] ** 4) + 0.3 * jnp.cos(q[3])
    return 0.5 * ((1 + 0.2 * jnp.sin(q[1])) * jnp.dot(v[:3], v[:3]) + 0.7 * v[3] ** 2) - spring

def one_forms(q, p):
    return jnp.array([[-q[1], 0.3, 1.0, 0.1 * jnp.cos(q[3])]])

def force(q, v, t, p):
    return jnp.array([p["push"], 0.0, 0.0, p["twist"]])

system = System(
    lagrangian, one_forms=one_forms, force=force, coordinates=("x", "y", "z", "a"), angles=("a",),
    parameters={"k": 1.5, "push": 0.0, "twist": 0.0}, inputs={"push": 0.0, "twist": 0.0},
)

def typical_state():
    return [0.2, 0.5, -0.1, 0.3], [0.8, 0.6, 0.22 - 0.19 * jnp.cos(0.3), 1.9]
"""
METHOD = "RungeKutta4()"
pytestmark = needs_chromium


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        (folder / "mine.py").write_text(OWN)
        (folder / "page.html").write_text(page(made("mine.py:system", "RungeKutta4")), encoding="utf-8")
        yield (folder / "page.html").as_uri()


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@functools.cache
def own():
    source = open_source("mine.py:system")
    model = source.build({})
    start = source.start(model, {})
    return model, start.q, start.v


def simulated(steps, **how):
    model, q, v = own()
    return simulate(model, integrators.parse("RungeKutta4"), q, v, step_size=0.05, steps=steps, **how)


def drawn(opened, canvas):
    """Where the first method's colour is on a canvas: of each column with it its number and middle."""
    png = opened.page.locator(canvas).first.evaluate("x => x.toDataURL()").partition(",")[2]
    picture = np.asarray(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB"), int)
    blue = np.abs(picture - [0x00, 0x72, 0xB2]).max(axis=2) < 60
    columns = np.flatnonzero(blue.any(axis=0))
    return columns, np.array([np.flatnonzero(blue[:, k]).mean() for k in columns])


def crossings(opened):
    opened.page.wait_for_selector("body[data-crossed]", timeout=60_000)
    return json.loads(opened.page.evaluate(f"JSON.stringify(noslip.crossings('{METHOD}'))"))


def test_a_curve_over_time_is_that_of_the_run(address, browser):
    opened = Opened(browser, address + "#n=300")
    opened.page.locator("select[aria-label='what is plotted']").first.select_option("q:x")
    columns, heights = drawn(opened, ".u-wrap canvas")
    run = simulated(300)
    assert len(columns) > 200
    x = np.interp(np.linspace(0, run.t[-1], len(columns)), run.t, run.q[:, 0])
    assert len(columns) == columns[-1] - columns[0] + 1
    assert np.corrcoef(x, heights)[0, 1] < -0.999  # pixels are counted from above
    assert not opened.errors


def test_a_section_has_the_crossings_of_the_motion_between_its_steps(address, browser):
    found = crossings(Opened(browser, address + "#n=5000&section=q:x;0.1;1"))
    run = simulated(5000)
    model, _, _ = own()
    x = run.q[:, 0] - 0.1
    places = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    assert len(found) == len(places) > 50
    for k, state in list(zip(places, found, strict=True))[:: len(places) // 8]:
        t = brentq(lambda t: run.at([t], system=model).q[0, 0] - 0.1, run.t[k], run.t[k + 1], xtol=1e-13)
        there = run.at([t], system=model)
        wanted = [t, *there.q[0], *there.v[0]]
        made = [state["t"], *(state[f"{kind}:{name}"] for kind in "qv" for name in "xyza")]
        np.testing.assert_allclose(made, wanted, atol=1e-6)
        assert state["q:x"] == pytest.approx(0.1, abs=1e-12)


def test_a_section_of_an_angle_counts_every_turn(address, browser):
    found = crossings(Opened(browser, address + "#n=5000&section=q:a;1;0"))
    turns = np.floor((simulated(5000).q[:, 3] - 1) / (2 * np.pi))
    assert len(found) == np.count_nonzero(np.diff(turns)) > 5
    np.testing.assert_allclose([np.cos(x["q:a"] - 1) for x in found], 1, atol=1e-12)


def test_a_served_page_runs_in_the_browser_with_the_bits_of_simulate(address, browser):
    with served("mine.py:system", "RungeKutta4,ReferenceFlow") as server:
        opened = Opened(browser, server.address)
        opened.page.get_by_text("driven by the host").wait_for()
        (row,) = opened.rows().values()
        assert bits(row) == row_of(simulated(1000))
        assert not [url for url in opened.asked if not url.startswith((server.address, "blob:"))]


@pytest.fixture(scope="module")
def cloud(address, browser):
    opened = Opened(browser, address + "#n=451&cloud=1000,0.1")
    opened.page.wait_for_selector("body[data-gathered]", timeout=60_000)
    yield opened
    assert not opened.errors


def test_members_of_a_cloud_are_drawn_where_simulate_is_and_end_in_its_bits(cloud):
    model, _, _ = own()
    for k in (0, 500, 999):
        member = json.loads(cloud.page.evaluate(f"JSON.stringify(noslip.member({k}, 300 * 0.05))"))
        assert model.is_admissible(np.array(member["q0"]), np.array(member["v0"]))
        run = simulate(
            model, integrators.parse("RungeKutta4"), member["q0"], member["v0"], step_size=0.05, steps=451
        )
        assert bits({"q": member["q"], "v": member["v"]}) == bits({"q": run.q[-1], "v": run.v[-1]})
        there = np.float32([run.t[300], *run.q[300], *run.v[300]])
        assert member["state"] == there.tolist()
        assert member["point"] == there[1:4].tolist()


def test_members_of_a_cloud_are_as_many_as_asked_and_spread_as_wide_around_the_start(cloud):
    """A speed that the constraint leaves alone is spread as all are drawn; places are not moved."""
    everyone = "JSON.stringify(Array.from({ length: 1001 }, (_, k) => noslip.member(k)))"
    *members, beyond = json.loads(cloud.page.evaluate(everyone))
    assert beyond is None
    _, q, v = own()
    for name, start in (("q0", q), ("v0", v)):
        starts = np.array([member[name] for member in members])
        spread = np.std(starts, axis=0)
        assert len(np.unique(starts, axis=0)) == 1000
        np.testing.assert_allclose(np.mean(starts, axis=0), start, atol=0.03)
        np.testing.assert_allclose(spread, 0.1, rtol=0.4)
        assert np.min(np.abs(spread - 0.1)) < 0.007  # three deviations of a deviation of 1000 numbers


def test_inputs_are_curves_with_points_and_the_copied_python_prints_the_same_bits(address, browser):
    opened = Opened(browser, address + "#n=300")
    before = opened.rows()
    opened.after(lambda: opened.page.check("input[aria-label='push as a curve']"))
    field = opened.page.locator("input[aria-label='points of push, time:value']")
    opened.after(lambda: (field.fill("0:0 2.5:1.25 6:-0.5"), field.press("Enter")))
    held = opened.rows()
    opened.after(lambda: opened.page.select_option("select[aria-label='push between its points']", "linear"))
    assert before != held != opened.rows()
    opened.move("twist", 0.4)
    assert run_python(opened.python()) == {name: bits(row) for name, row in opened.rows().items()}
    opened.page.click("button[aria-label^='copy a link']")
    again = Opened(browser, opened.page.input_value("dialog textarea"))
    assert again.rows() == opened.rows()
    assert not opened.errors


def test_a_field_that_is_not_understood_says_so_also_while_it_has_the_focus(address, browser):
    opened = Opened(browser, address + "#n=300")
    opened.after(lambda: opened.page.check("input[aria-label='push as a curve']"))
    for label, wrong, right in (("points of push, time:value", "0:0 x:1", "0:0 1:1"), ("step", "a", "0.02")):
        field = opened.page.locator(f"input[aria-label='{label}']")
        field.fill(wrong)
        field.press("Enter")
        assert field.get_attribute("aria-invalid") == "true"
        assert field.evaluate("x => getComputedStyle(x).outlineColor") == "rgb(213, 94, 0)"
        opened.after(lambda field=field, right=right: (field.fill(right), field.press("Enter")))
        assert field.get_attribute("aria-invalid") == "false"


def test_a_slider_goes_where_its_field_says(address, browser):
    opened = Opened(browser, address + "#n=300")
    for label, value in (("steps", "1234"), ("step", "0.125")):
        field = opened.page.locator(f"input[aria-label='{label}']")
        opened.after(lambda field=field, value=value: (field.fill(value), field.press("Enter")))
        slider = opened.page.locator(f"input[aria-label='{label}, slider']")
        assert float(slider.input_value()) == pytest.approx(float(value))


def test_a_point_is_dragged_and_the_slider_writes_the_curve_from_the_time_that_is_shown(address, browser):
    opened = Opened(browser, address + "#n=300&curve0=hold 0:0 10:1&t=6")
    canvas = opened.page.locator("canvas.curve").first
    text = opened.page.locator("input[aria-label='points of push, time:value']")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    opened.after(lambda: canvas.click(position={"x": box["width"] / 2, "y": box["height"] / 4}))
    points = [tuple(map(float, x.split(":"))) for x in text.input_value().split()]
    assert [p[0] for p in points] == pytest.approx([0, 7.5, 10], abs=0.1)
    opened.move("push", -0.75)
    points = [tuple(map(float, x.split(":"))) for x in text.input_value().split()]
    assert points == [(0, 0), (6, -0.75)]
    assert run_python(opened.python()) == {name: bits(row) for name, row in opened.rows().items()}


def test_a_constant_input_has_the_bits_of_the_parameter(address, browser):
    opened = Opened(browser, address + "#n=300")
    opened.move("push", 0.7)
    assert "inputs" not in opened.python()
    assert run_python(opened.python()) == {name: bits(row) for name, row in opened.rows().items()}


def test_a_million_steps_leave_the_page_alive_and_end_in_the_bits_of_simulate(address, browser):
    opened = Opened(browser, address + "#n=300")
    field = opened.page.locator("input[aria-label='steps']")

    tried = []
    # again where the machine was busy: computed in the page it is 1459 ms
    for steps in ("1000000", "999999", "1000000"):
        run = functools.partial(
            opened.after, lambda n=steps: (field.fill(n), field.press("Enter"))
        )  # it is 1459 ms
        tried.append(longest_task(browser, opened, run))
        if steps == "1000000" and min(tried)[0] < 100:
            break
    assert 0 < min(tried)[0] < 100, f"a task of the page took (ms of the processor, ms in all) {tried}"
    row = opened.rows()[METHOD]
    assert bits(row) == row_of(simulated(1_000_000, save_every=250))


def test_a_run_is_saved_as_netcdf_that_load_opens_with_the_bits_of_simulate(address, browser, tmp_path):
    opened = Opened(browser, address + "#n=9000&curve0=linear 0:0 5:1 20:-0.2", accept_downloads=True)
    path = tmp_path / "run.nc"
    saved(opened, "NetCDF", "RungeKutta4").save_as(path)
    names = {}
    exec(opened.python().replace(")\n    print", ", save_every=3)\n    print"), names)
    same_run(load(path), names["run"])
    assert not opened.errors


def test_a_film_is_a_gif_that_others_read(address, browser):
    opened = Opened(browser, address + "#n=100", accept_downloads=True)
    with Image.open(saved(opened, "Film", "GIF").path()) as film:
        assert film.n_frames == 63
        frames = []
        for k in (0, 30, 62):
            film.seek(k)
            frames.append(np.asarray(film.convert("RGB"), int))
    assert all(np.abs(a - b).max() > 100 for a, b in itertools.pairwise(frames))
    assert np.median(frames[0]) > 250
    assert not opened.errors


@pytest.mark.slow
def test_a_film_is_a_video_where_the_browser_records(address, browser):
    opened = Opened(browser, address + "#n=20", accept_downloads=True)
    opened.page.click("button:has-text('Film')")
    kinds = opened.page.locator("dialog button").all_inner_texts()
    assert kinds[1] in ("MP4", "WEBM")
    opened.page.click("dialog button:has-text('Close')")
    film = saved(opened, "Film", kinds[1])
    data = film.path().read_bytes()
    assert data[4:8] == b"ftyp" if kinds[1] == "MP4" else data[:4] == b"\x1a\x45\xdf\xa3"
    assert len(data) > 2000


def test_a_page_opens_with_a_step_that_its_methods_can_take_and_leaves_the_reader_his(browser, tmp_path):
    stiff = OWN.replace('p["k"] * (q[0] ** 2', 'p["k"] * (1e4 * q[0] ** 2')
    (tmp_path / "stiff.py").write_text(stiff)
    path = tmp_path / "page.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        path.write_text(page(made("stiff.py:system", "RungeKutta4")), encoding="utf-8")
    opened = Opened(browser, path.as_uri())
    step = opened.page.input_value("input[aria-label='step']")
    assert float(step) in (0.0125, 0.00625)
    assert f"A step of 0.05 failed, so the step is {step}." in opened.page.inner_text("[role=status]")
    assert opened.rows()[METHOD]["t"] == pytest.approx(1000 * float(step))
    opened.move("step", 0.05)
    assert opened.page.input_value("input[aria-label='step']") == "0.05"
    assert "failed at step" in opened.page.inner_text("aside")
