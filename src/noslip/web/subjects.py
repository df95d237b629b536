"""What a page is about: a system of the catalogue, of an installed package or of the user, with its state."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from noslip import integrators, names
from noslip.integrators.base import Integrator
from noslip.run.arguments import refuse_off
from noslip.saved import integrator_of, system_of
from noslip.system import System
from noslip.systems import Source, open_source
from noslip.trajectory import load
from noslip.web.content import Subject

USUAL = ("SemiImplicitDLA", "DiscreteGradient", "RungeKutta4")


def subject(
    source: Source, model: System, arguments: Mapping[str, Any], q: np.ndarray, v: np.ndarray
) -> Subject:
    """The model with the words by which Python makes it again."""
    given = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    if names.in_a_file(source.name):
        imported, made = "open_source", f"open_source({source.name!r}).build(dict({given}))"
    else:
        imported, made = source.name, f"{source.name}.system({given})"
    python = f"from noslip.systems import {imported}\n\nsystem = {made}"
    return Subject(source.name, _title(source), python, model, np.asarray(q, float), np.asarray(v, float))


def given(
    source: Source, model: System, arguments: Mapping[str, Any], q: np.ndarray, v: np.ndarray
) -> Subject:
    """The same with a state that a reader has given, which is refused off the constraints."""
    refuse_off(model.at(0.0) if model.moving else model, q, v)
    return subject(source, model, arguments, q, v)


def of_run(path: Path) -> tuple[Subject, Integrator]:
    """The system, state, step and length of a saved run, and its method."""
    run = load(path)
    info = run.info
    if info.events or run.inputs or run.t[0] != 0.0:
        raise ValueError(f"'{path}' must be a run from t = 0 without events and inputs to be explored")
    model = system_of(info, None)  # which refuses systems that are not in the catalogue
    about = subject(open_source(info.source), model, {}, run.q0, run.v0)
    steps = max(1, int(np.sum(run.report.steps)))
    return replace(about, step_size=float(info.step_size), steps=steps), integrator_of(info, None)


def _title(source: Source) -> str:
    """The first sentence of its module, or its name."""
    module = getattr(source.maker, "__module__", "")
    text = ""
    if module and not names.in_a_file(source.name):
        text = (importlib.import_module(module).__doc__ or "").strip().partition("\n")[0]
    head = text.partition(": ")[0].partition(". ")[0].rstrip(".")
    return head or source.name


def methods(text: str | None) -> list[Integrator]:
    """Those of a text with commas between, or the usual ones, each once."""
    parts = split(text) if text is not None else list(USUAL)
    found = [integrators.parse(part) for part in parts]
    return list(dict.fromkeys(found))


def split(text: str) -> list[str]:
    """At the commas that are in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        if letter == "," and not quote and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
