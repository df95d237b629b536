"""The page of a system from this machine to itself: compiled on the spot, read by nobody else.

It listens on the loopback address alone. An address begins with a token that nobody can guess; requests that
name another host, or come from a page of another origin, get nothing. Names are looked up in the catalogue
and among the methods, never opened as files; nothing is written but the cache of what is compiled.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from noslip import integrators, systems
from noslip.errors import first_line, shown, unknown_name
from noslip.integrators.base import Integrator
from noslip.web.content import CannotShow, Subject, content, method_data
from noslip.web.page import BUILT, page, policy
from noslip.web.subjects import subject

ADDRESS = "127.0.0.1"
LONGEST = 1000  # characters of a method in a request
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refused(Exception):
    """A request that is not answered, with its status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str = ""):
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


class Explorer:
    """What is served: the subject that was given, the catalogue, and the methods by their names."""

    def __init__(self, given: Subject, chosen: list[Integrator]):
        self.given, self.chosen = given, chosen
        self.subjects: dict[str, Subject] = {given.name: given}
        self.classes = integrators.discover()
        self.texts = {integrators.spelled(method): method for method in chosen}
        self.busy = threading.Lock()  # one compilation at a time
        self.pages: dict[str, str] = {}

    def begin(self) -> None:
        """Make the first page, while the browser is still starting."""
        with contextlib.suppress(Refused):  # the browser is told when it asks
            self.page(self.given.name)

    def page(self, name: str) -> str:
        """The page of a system with the first method that runs; it asks for the others itself."""
        with self.busy:
            if name not in self.pages:
                self.pages[name] = self._page(name)
            return self.pages[name]

    def _page(self, name: str) -> str:
        about, waiting = self._subject(name), list(self.chosen)
        reasons, made = [], None
        while waiting and made is None:
            try:
                made = content(about, [waiting.pop(0)])
            except ValueError as reason:
                reasons.append(first_line(reason))
        if made is None:
            raise Refused(HTTPStatus.BAD_REQUEST, "; ".join(reasons))
        known = sorted({self.given.name, *systems.names()})
        left = [integrators.spelled(method) for method in waiting]
        served = {"catalogue": known, "methods": list(self.classes), "waiting": left}
        return page({**made, "served": served}, served=True)

    def method(self, name: str, text: str) -> str:
        """A method on a system, as the page reads it."""
        if len(text) > LONGEST:
            sentence = f"a method must be written in at most {LONGEST} characters, but {len(text)} were sent"
            raise Refused(HTTPStatus.BAD_REQUEST, sentence)
        with self.busy:
            about = self._subject(name)
            try:
                method = self.texts.get(text) or integrators.parse(text, self._class)
                return json.dumps(method_data(about, method), allow_nan=False)
            except CannotShow as reason:
                raise Refused(HTTPStatus.BAD_REQUEST, f"{text}: {reason}") from None
            except (ValueError, TypeError) as error:
                raise Refused(HTTPStatus.BAD_REQUEST, first_line(error)) from None

    def _class(self, name: str) -> type[Integrator]:
        """Methods by name alone: no word of a request opens a file."""
        if name not in self.classes:
            raise ValueError(unknown_name("integrator", name, self.classes))
        return self.classes[name]

    def _subject(self, name: str) -> Subject:
        if name not in self.subjects:
            if name not in systems.names():
                raise Refused(HTTPStatus.NOT_FOUND, f"there is no system {shown(name)} in the catalogue")
            source = systems.open_source(name)
            model = source.build({})
            start = source.start(model, {})
            self.subjects[name] = subject(source, model, {}, start.q, start.v)
        return self.subjects[name]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    server_version, sys_version = "noslip", ""
    timeout = 30

    def do_GET(self) -> None:
        try:
            kind, text = self._answer()
            self._send(HTTPStatus.OK, kind, text)
        except Refused as refused:
            self._send(refused.status, "text/plain", refused.sentence)

    def _answer(self) -> tuple[str, str]:
        self._require_own()
        try:
            address = urlsplit(self.path)
        except ValueError:
            raise Refused(HTTPStatus.NOT_FOUND) from None
        token, slash, rest = address.path.removeprefix("/").partition("/")
        if address.netloc or not (
            slash and secrets.compare_digest(token.encode(), self.server.token.encode())
        ):
            raise Refused(HTTPStatus.NOT_FOUND)
        asked = {name: values[-1] for name, values in parse_qs(address.query).items()}
        explorer = self.server.explorer
        name = asked.get("system", explorer.given.name)
        if rest == "":
            return "text/html", explorer.page(name)
        if rest == "method":
            return "application/json", explorer.method(name, asked.get("method", ""))
        raise Refused(HTTPStatus.NOT_FOUND)

    def _require_own(self) -> None:
        """Refuse what a page of somebody else could have sent, under whatever name it found this machine."""
        hosts = [f"{name}:{self.server.server_port}" for name in (ADDRESS, "localhost")]
        host, origin = self.headers.get_all("Host", []), self.headers.get_all("Origin", [])
        site = self.headers.get("Sec-Fetch-Site", "none")
        own = len(host) == 1 and host[0] in hosts and all(x == f"http://{host[0]}" for x in origin)
        if not own or site not in ("none", "same-origin"):
            raise Refused(HTTPStatus.FORBIDDEN)

    def _send(self, status: HTTPStatus, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Security-Policy": self.server.policy}.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the token would be in it."""


class Server(ThreadingHTTPServer):
    """Serves an explorer under a new token; port 0 takes any that is free."""

    daemon_threads = True

    def __init__(self, explorer: Explorer, port: int = 0):
        super().__init__((ADDRESS, port), _Handler)
        self.explorer, self.token = explorer, secrets.token_urlsafe(24)
        script = (BUILT / "page.js").read_text(encoding="utf-8")
        self.policy = f"{policy(script, served=True)}; frame-ancestors 'none'"

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no error; what else happens is told by the exception itself."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
