"""Chromium by playwright, from the system's packages: a page that is open, and what it asked for."""

import contextlib
import importlib.util
import json
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None or importlib.util.find_spec("playwright") is None,
    reason="Chromium and the package playwright, which drives it, are not both installed",
)
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


@contextlib.contextmanager
def chromium():
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


class Opened:
    """A page in a browser, with the addresses that it asked for and what went wrong in it."""

    def __init__(self, browser, address, **context):
        self.context = browser.new_context(reduced_motion="reduce", **context)
        self.page = self.context.new_page()
        self.asked, self.errors = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: line.type == "error" and self.errors.append(line.text))
        self.page.goto(address)
        self.page.wait_for_selector("body[data-done]", timeout=60_000)

    def done(self):
        return int(self.page.get_attribute("body", "data-done"))

    def after(self, act):
        """What is done leads to a new run; wait for it."""
        before = self.done()
        act()
        for _ in range(3000):  # the page's policy evaluates no text, so a condition cannot wait inside it
            if self.done() > before:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError("no new run came")

    def changed(self, field, before):
        """Wait until a field shows something else: fields are written with the next picture."""
        for _ in range(500):
            if field.input_value() != before:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError("the field did not change")

    def move(self, name, value):
        """The slider of that name to a value."""
        script = "(x, value) => { x.value = value; x.dispatchEvent(new Event('input')); }"
        slider = self.page.locator(f"input[aria-label='{name}, slider']")
        self.after(lambda: slider.evaluate(script, value))

    def rows(self):
        """The last row of each method; text keeps the sign of zero and every bit."""
        return json.loads(self.page.evaluate("JSON.stringify(noslip.lastRows())"))

    def python(self):
        return self.page.evaluate("noslip.python()")


def longest_task(browser, opened, act):
    """The longest task of the page's own thread while something is done: milliseconds of the processor, since
    the machine may be busy elsewhere, and of the clock."""
    browser.start_tracing(page=opened.page, categories=["toplevel"])
    act()
    events = json.loads(browser.stop_tracing())["traceEvents"]
    threads = {(x["pid"], x["tid"]) for x in events if x.get("args", {}).get("name") == "CrRendererMain"}
    tasks = [x for x in events if (x["pid"], x["tid"]) in threads and x["name"].endswith("RunTask")]
    longest = max(tasks, key=lambda x: x.get("tdur", 0))
    return longest["tdur"] / 1000, longest["dur"] / 1000
