"""Firefox from the system's packages by WebDriver BiDi, which it speaks itself. Playwright drives only builds
of its own, and releases that are newer than the long-term one of Debian."""

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
needs_firefox = pytest.mark.skipif(
    FIREFOX is None or importlib.util.find_spec("tornado") is None,
    reason="Firefox and the package tornado, which talks to it, are not both installed",
)
LIMIT = 60  # seconds for any one thing
QUIET = """
user_pref("app.update.enabled", false);
user_pref("browser.safebrowsing.downloads.remote.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("services.settings.server", "data:,");
user_pref("toolkit.telemetry.enabled", false);
user_pref("ui.prefersReducedMotion", 1);
"""


class Firefox:
    """A browser with one page."""

    def __init__(self, address):
        self.loop, self.numbers, self.asked = asyncio.new_event_loop(), itertools.count(1), []
        self.socket = self.loop.run_until_complete(asyncio.wait_for(self._connected(address), LIMIT))
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["network.beforeRequestSent"])
        self.page = self.call("browsingContext.getTree")["contexts"][0]["context"]

    async def _connected(self, address):
        from tornado.websocket import websocket_connect

        return await websocket_connect(f"{address}/session", max_message_size=2**26)

    def call(self, method, **params):
        """Ask, and wait for the answer; what it tells meanwhile is noted."""
        return self.loop.run_until_complete(asyncio.wait_for(self._called(method, params), LIMIT))

    async def _called(self, method, params):
        number = next(self.numbers)
        await self.socket.write_message(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            told = json.loads(await self.socket.read_message())
            if told.get("method") == "network.beforeRequestSent":
                self.asked.append(told["params"]["request"]["url"])
            if told.get("id") == number:
                assert told["type"] == "success", told
                return told["result"]

    def open(self, address):
        self.call("browsingContext.navigate", context=self.page, url=address, wait="complete")
        self.wait_for("document.body.dataset.done")

    def evaluate(self, expression):
        """The value of an expression, as JSON carries it."""
        target = {"context": self.page}
        text = f"JSON.stringify({expression})"
        made = self.call("script.evaluate", expression=text, target=target, awaitPromise=True)
        assert made["type"] == "success", made
        return json.loads(made["result"].get("value", "null"))

    def wait_for(self, expression):
        for _ in range(300):
            if value := self.evaluate(expression):
                return value
            time.sleep(0.1)
        raise AssertionError(f"{expression} did not come true")

    def close(self):
        with contextlib.suppress(Exception):
            self.call("browser.close")
        self.socket.close()
        self.loop.run_until_complete(asyncio.sleep(0.1))
        self.loop.close()


@contextlib.contextmanager
def firefox():
    """A browser with a profile of its own, which goes with it. What it says goes to a file: a pipe that
    nobody reads fills up, and then it waits forever."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        (Path(folder) / "user.js").write_text(QUIET)
        command = [FIREFOX, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile", folder]
        said = Path(folder) / "said"
        with said.open("w") as file:
            process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            browser = Firefox(_address(process, said))
            yield browser
            browser.close()
        finally:
            _end(process)


def _address(process, said):
    """Where it listens, as it says when it has begun."""
    for _ in range(10 * LIMIT):
        if found := re.search(r"listening on (ws://\S+)\n", said.read_text(errors="replace")):
            return found[1]
        assert process.poll() is None, said.read_text(errors="replace")
        time.sleep(0.1)
    raise AssertionError(f"Firefox does not listen: {said.read_text(errors='replace')}")


def _end(process):
    """All of its processes, which may not end by themselves."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
