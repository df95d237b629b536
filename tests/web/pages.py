"""Pages of systems, and the rows that `simulate` and copied scripts end with, bit for bit."""

import contextlib
import io
import json
import re
import threading
from dataclasses import replace

import numpy as np

from noslip import integrators, simulate
from noslip.systems import open_source
from noslip.web.content import content
from noslip.web.server import Explorer, Server
from noslip.web.subjects import methods, subject

# pages whose last rows both browsers are held to, beside a sleigh
OTHERS = [
    ("gearbox", "DiscreteGradient,EnergyCollocation"),
    ("rolling_disk", "LobattoSpark,VelocityNonholonomic(beta=0.3)"),
    ("spherical_pendulum", "SemiImplicitDLA"),
]


def made(name, texts):
    source = open_source(name)
    model = source.build({})
    start = source.start(model, {})
    return content(subject(source, model, {}, start.q, start.v), methods(texts))


@contextlib.contextmanager
def served(name, texts):
    """A server of `noslip explore`."""
    source = open_source(name)
    model = source.build({})
    start = source.start(model, {})
    server = Server(Explorer(subject(source, model, {}, start.q, start.v), methods(texts)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def row_of(run):
    last = {"t": run.t[-1], "q": run.q[-1], "v": run.v[-1], "energy": run.energy[-1]}
    return {name: np.asarray(x, float).tobytes() for name, x in last.items()}


def bits(row):
    return {name: np.asarray(x, float).tobytes() for name, x in row.items()}


def runs(data):
    """What the page shows when it opens, by `simulate`."""
    system = data["system"]
    model = open_source(system["name"]).build({})
    how = {"step_size": system["step_size"], "steps": system["steps"]}
    return {
        method["text"]: simulate(model, integrators.parse(method["text"]), system["q"], system["v"], **how)
        for method in data["methods"]
    }


def simulated(data):
    """The last rows of those."""
    return {text: row_of(run) for text, run in runs(data).items()}


def run_python(text):
    """The rows that a copied script prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(text, {})
    rows = {}
    for line in out.getvalue().splitlines():
        method, rest = re.fullmatch(r"(\w+\(.*?\)) ([-\d].*)", line).groups()
        t, q, v, energy = re.fullmatch(r"(\S+) (\[.*?\]) (\[.*?\]) (\S+)", rest).groups()
        rows[method] = bits({"t": float(t), "q": json.loads(q), "v": json.loads(v), "energy": float(energy)})
    return rows


def saved(opened, opening, button):
    """What is saved when the buttons are pressed."""
    opened.page.click(f"button:has-text('{opening}')")
    with opened.page.expect_download(timeout=60_000) as download:
        opened.page.click(f"dialog button:has-text('{button}')")
    opened.page.keyboard.press("Escape")
    return download.value


def same_run(run, wanted):
    """A run that a page has saved is that of `simulate` in every bit of every column, and in its record."""
    columns = wanted.columns()
    assert list(run.columns()) == list(columns)
    for name, (dims, x) in columns.items():
        found = run.columns()[name]
        assert found[0] == dims, name
        assert (found[1].dtype, found[1].shape) == (np.asarray(x).dtype, np.shape(x)), name
        assert found[1].tobytes() == np.asarray(x).tobytes(), name
    assert replace(run.info, backend=wanted.backend) == wanted.info
