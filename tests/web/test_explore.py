"""The page from this machine: a user's own system, compiled on the spot; hostile requests get nothing."""

import http.client
import json

import numpy as np
import pytest
from pages import served
from typer.testing import CliRunner

from noslip import integrators, simulate
from noslip.cli import app
from noslip.systems import open_source
from noslip.web.subjects import of_run

OWN = """
import jax.numpy as jnp
from noslip import System

def lagrangian(q, v, p):
    return 0.5 * (1 + 0.2 * jnp.sin(q[1])) * jnp.dot(v, v) - p["k"] * (q[0] ** 2 + q[1] ** 4)

def one_forms(q, p):
    return jnp.array([[-q[1], 0.3, 1.0]])

system = System(lagrangian, one_forms=one_forms, coordinates=("x", "y", "z"), parameters={"k": 1.5})

def typical_state():
    return [0.2, 0.5, -0.1], [0.8, 0.6, 0.22]
"""


@pytest.fixture(scope="module")
def server():
    with served("chaplygin_sleigh", "RungeKutta4") as found:
        yield found


def asked(server, path, verb="GET", **headers):
    """Status and text of a request; a header with several values is sent several times."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest(verb, path, skip_host=True)
    for name, values in {"Host": f"127.0.0.1:{server.server_port}", **headers}.items():
        for value in values if isinstance(values, list) else [values]:
            connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer, text


def test_the_page_is_served_under_its_token_with_a_policy(server):
    answer, text = asked(server, f"/{server.token}/")
    assert answer.status == 200
    assert text.startswith("<!doctype html>")
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert server.server_address[0] == "127.0.0.1"


def test_the_first_page_is_made_before_it_is_asked_for_and_only_once(server, monkeypatch):
    server.explorer.begin()
    monkeypatch.setattr("noslip.web.server.content", None)
    assert asked(server, f"/{server.token}/")[0].status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": []},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": "http://evil.example", "Upgrade": "websocket", "Connection": "Upgrade"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_requests_of_others_get_nothing(server, headers):
    answer, text = asked(server, f"/{server.token}/", **headers)
    assert answer.status == 403
    assert text == ""


def test_two_hosts_are_one_too_many(server):
    good = f"127.0.0.1:{server.server_port}"
    assert asked(server, f"/{server.token}/", Host=[good, "evil.example"])[0].status == 403
    assert asked(server, f"/{server.token}/", Host=[good, good])[0].status == 403


@pytest.mark.parametrize(
    "path", ["/", "/page.html", "/wrong/", "//", "/wrong/method?method=RungeKutta4", "/%00/"]
)
def test_without_the_token_there_is_nothing(server, path):
    answer, text = asked(server, path)
    assert answer.status == 404
    assert text == ""
    assert asked(server, f"/{server.token}")[0].status == 404
    assert asked(server, f"/{server.token}/../../etc/passwd")[0].status == 404
    assert asked(server, f"/{server.token[:-1]}/")[0].status == 404
    assert asked(server, f"http://evil.example/{server.token}/")[0].status == 404
    assert asked(server, f"/?token={server.token}")[0].status == 404


def test_an_address_that_is_none_is_refused_without_a_traceback(server, capfd):
    for address in ("http://[", "//[/", f"http://[/{server.token}/"):
        answer, text = asked(server, address)
        assert (answer.status, text) == (404, ""), address
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT"])
def test_nothing_but_reading_is_possible(server, verb):
    assert asked(server, f"/{server.token}/", verb)[0].status == 501


def test_names_of_requests_open_no_files(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trap.py").write_text("open('sprung', 'w').close()\nsystem = Own = None\n")
    for query in ("system=trap.py:system", "system=..%2Ftrap", "system=os", "system=%3Cscript%3E", "system="):
        assert asked(server, f"/{server.token}/?{query}x")[0].status == 404, query
    for text in (
        "trap.py:Own",
        "'trap.py:Own'()",
        "__import__('os')",
        "Composition(base=trap.py:Own())",
        "R" * 60_000,
    ):
        answer, _ = asked(server, f"/{server.token}/method?method={text}".replace(" ", "%20"))
        assert answer.status == 400, text
    assert [path.name for path in tmp_path.iterdir()] == ["trap.py"]


def test_a_method_is_compiled_when_it_is_asked_for(server):
    answer, text = asked(server, f"/{server.token}/method?method=RungeKutta4")
    assert answer.status == 200
    assert json.loads(text)["text"] == "RungeKutta4()"
    answer, text = asked(server, f"/{server.token}/method?method=ReferenceFlow")
    assert (answer.status, text) == (400, "ReferenceFlow: it is driven by the host, not by steps of its own")


def test_a_saved_run_is_explored_from_its_own_state_with_its_own_method(tmp_path):
    model = open_source("chaplygin_sleigh").build({"a": 0.5})
    method = integrators.parse("RungeKutta4")
    v0 = model.project_velocity(np.array([0.1, 0.2, 0.3]), np.array([1.0, 0.0, 0.2]))
    run = simulate(model, method, [0.1, 0.2, 0.3], v0, step_size=0.02, steps=7)
    run.save(tmp_path / "run.nc")
    about, found = of_run(tmp_path / "run.nc")
    assert (found, about.step_size, about.steps, about.q.tolist()) == (method, 0.02, 7, [0.1, 0.2, 0.3])
    assert about.v.tobytes() == run.v0.tobytes()
    assert float(about.system.parameters["a"]) == 0.5


def test_a_saved_run_of_a_system_of_the_user_is_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OWN)
    source = open_source("mine.py:system")
    model = source.build({})
    start = source.start(model, {})
    simulate(model, integrators.parse("RungeKutta4"), start.q, start.v, step_size=0.1, steps=2).save("run.nc")
    done = CliRunner().invoke(app, ["explore", "run.nc", "--no-browser"])
    assert done.exit_code == 2
    assert len(done.output.strip().splitlines()) == 1
    done = CliRunner().invoke(app, ["explore", "run.nc", "--no-browser", "--q0", "1,2,3"])
    assert "must not be given" in done.output


def test_bad_systems_are_refused_before_anything_is_served():
    done = CliRunner().invoke(app, ["explore", "nowhere", "--no-browser"])
    assert done.exit_code == 2
    assert "nowhere" in done.output
