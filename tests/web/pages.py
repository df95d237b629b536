"""Pages of systems, and the rows that `simulate` and copied scripts end with, bit for bit."""

import contextlib
import io
import json
import re

import numpy as np

from noslip import integrators, simulate
from noslip.systems import open_source
from noslip.web.content import content
from noslip.web.subjects import methods, subject


def made(name, texts):
    source = open_source(name)
    model = source.build({})
    start = source.start(model, {})
    return content(subject(source, model, {}, start.q, start.v), methods(texts))


def row_of(run):
    last = {"t": run.t[-1], "q": run.q[-1], "v": run.v[-1], "energy": run.energy[-1]}
    return {name: np.asarray(x, float).tobytes() for name, x in last.items()}


def bits(row):
    return {name: np.asarray(x, float).tobytes() for name, x in row.items()}


def simulated(data):
    """What the page shows when it opens, by `simulate`."""
    system = data["system"]
    model = open_source(system["name"]).build({})
    how = {"step_size": system["step_size"], "steps": system["steps"]}
    return {
        method["text"]: row_of(
            simulate(model, integrators.parse(method["text"]), system["q"], system["v"], **how)
        )
        for method in data["methods"]
    }


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
