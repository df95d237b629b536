"""A page about one run: the system, its equations, what was preserved and how well, the solves, the plots.

The page is one file with nothing outside it: pictures and formulas are inside as SVG and PNG.
"""

from __future__ import annotations

import base64
import html
import io
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from noslip.analysis.conservation import (
    constraint_error,
    deformed_constraint_error,
    energy_drift,
    energy_error,
    first_integral_errors,
    holonomic_error,
)
from noslip.analysis.error_estimate import error_estimate
from noslip.analysis.thinning import thinned
from noslip.files import write_text
from noslip.integrators.base import VOCABULARY, Integrator
from noslip.plots.equations import equation_svg
from noslip.plots.portraits import plot_phase_portrait
from noslip.plots.stills import Picture, plot_scene
from noslip.plots.trajectory import plot_trajectory
from noslip.saved import UNASKED, needed
from noslip.symbolic import formulas
from noslip.system import System
from noslip.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.2rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 0.5rem 0; }
td, th { padding: 0.2rem 0.8rem 0.2rem 0; text-align: left; vertical-align: top; }
td, th { border-bottom: 1px solid #e5e5e5; }
img { max-width: 100%; height: auto; }
.equation { margin: 0.6rem 0; overflow-x: auto; }
.kept { color: #00674b; }
.broken { color: #a94300; }
footer { margin-top: 2rem; color: #666; font-size: 0.85rem; }
"""
LONG = 1e6  # steps
HELD = 1e-11  # below this a quantity counts as kept to round-off over a run of any length


def write_report(
    run: Trajectory,
    path: str | Path,
    system: System | None,
    method: Integrator | None,
    picture: Picture | None = None,
) -> None:
    """Write the page; where the system is not known (None) it has no equations, where the method is not, no
    promises. A `picture` is shown in place of the system's scene."""
    path = Path(path)
    if path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"'{path}' must be a file in a folder that exists")
    write_text(path, page(run, system, method, picture))


def page(
    run: Trajectory, system: System | None, method: Integrator | None, picture: Picture | None = None
) -> str:
    """The whole page as text."""
    info, sentence = run.info, _first_sentence(run)
    run = thinned(run)
    name = info.source or "a system of the user"
    heading = f"{info.integrator} on {name}"
    parts = [
        f"<h1>{_text(heading)}</h1>",
        f"<p>{_text(sentence)}</p>",
        "<h2>The system</h2>",
        _table(("", "value"), _system_rows(run, system)),
        _equations(run, system),
        "<h2>The method</h2>",
        _table(("", "value"), _method_rows(run, method)),
        "" if method else f"<p>{_text(left_out(run, 'integrator'))}</p>",
        "<h2>What was preserved, and how well</h2>",
        _table(("quantity", "promised", "measured", ""), _kept(run, system, method)),
        "<h2>How good it is</h2>",
        f"<p>{_text(_estimate(run, system, method))}</p>",
        "<h2>The implicit solves</h2>",
        _table(("", "value"), _solve_rows(run)),
        "<h2>Pictures</h2>",
        _picture(plot_scene(run, system, picture), "what moves, where it was, and the paths"),
        _picture(plot_trajectory(run), "path, energy, constraint residual and multipliers"),
        _picture(plot_phase_portrait(run), "velocity over position for each coordinate"),
        f"<footer>Written by noslip. {_text(_versions(run))}</footer>",
    ]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(heading)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>\n<body>\n{body}\n'
        "</body></html>\n"
    )


# ---- what is said ---------------------------------------------------------------------------------


def _first_sentence(run: Trajectory) -> str:
    steps = int(np.sum(run.report.steps))
    done = "" if run.success else f" It ended early: {run.report.worst.message}."
    return (
        f"{steps} steps of {run.info.step_size:g}, from t = {run.t[0]:g} to {run.t[-1]:g}, "
        f"{len(run.t)} states saved, computed by {run.backend}.{done}"
    )


def _system_rows(run: Trajectory, system: System | None) -> Iterable[tuple[str, str]]:
    info = run.info
    angles = dict.fromkeys(info.angles, " (angle)")
    yield "coordinates", ", ".join(name + angles.get(name, "") for name in info.coordinates)
    if system is not None:
        yield "constraints", system.constraints
    yield "parameters", ", ".join(f"{k} = {v}" for k, v in info.parameters.items()) or "none"
    yield "initial position", ", ".join(f"{x:.6g}" for x in run.q0)
    yield "initial velocity", ", ".join(f"{x:.6g}" for x in run.v0)


def left_out(run: Trajectory, what: str) -> str:
    """What the page lacks without the system or the integrator, why, and how to have it."""
    word = needed(run.info).get(what, "FILE.py:NAME")
    lacks, named = ("equations", run.info.source) if what == "system" else ("promises", word)
    why = f"the run names {named}, and {UNASKED}"
    if not named:
        why = "the file does not say where the system came from"
    return f"The {lacks} are left out: {why}; `noslip report FILE --{what} {shlex.quote(word)}` has them."


def _equations(run: Trajectory, system: System | None) -> str:
    if system is None:
        return f"<p>{_text(left_out(run, 'system'))}</p>"
    found = formulas(system)
    if found is None:
        return "<p>The functions of this system are too long, or use operations without a formula.</p>"
    lines = [f'<p class="equation">{equation_svg(line)}</p>' for line in found.latex()]
    right, with_reaction = "F", ""
    if system.rows:
        right, with_reaction = r"\mu^T \lambda + F", ", with the reaction along the constraint forms"
    motion = r"\frac{d}{dt}\frac{\partial L}{\partial v} - \frac{\partial L}{\partial q} = " + right
    lines += [f"<p>The motion obeys{with_reaction},</p>"]
    lines += [f'<p class="equation">{equation_svg(motion)}</p>']
    return "\n".join(lines)


def _method_rows(run: Trajectory, method: Integrator | None) -> Iterable[tuple[str, str]]:
    options = ", ".join(f"{k} = {v}" for k, v in run.info.options.items())
    yield "parameters", options or "none"
    if method is None:
        return
    good = (
        "round-off"
        if method.flow_tolerance == sys.float_info.epsilon
        else f"a tolerance of {method.flow_tolerance:g}"
    )
    yield "order", f"exact to {good}" if method.exact else str(method.order)
    yield "reference", method.reference


def _kept(
    run: Trajectory, system: System | None, method: Integrator | None
) -> Iterable[tuple[str, str, str, str]]:
    """Energy, constraint and each first integral: promised, measured, and a word of judgement."""
    preserves = method.preserves if method else frozenset()

    def row(what: str, word: str, size: float, unit: str) -> tuple[str, str, str, str]:
        verdict = "kept to round-off" if size < HELD else "not kept"
        promised = "-" if method is None else "yes" if word in preserves else "no"
        return what, promised, f"{size:.1e}{unit}", verdict

    conserved = system is None or (system.kind == "linear" and system.force is None)
    change = float(np.max(np.abs(energy_error(run))))
    if system is None and change >= HELD:
        yield "energy", "-", f"{change:.1e} of |T| + |V|", "changes; the system would say whether it should"
    elif conserved:
        yield row("energy", "energy", change, " of |T| + |V|")
    else:
        yield "energy", "-", f"{change:.1e} of |T| + |V|", "changes: forces, or constraints that do work"
    if run.multipliers.shape[1] or run.holonomic_residual.shape[1]:
        yield row("constraint phi(q, v) = 0", "constraint", constraint_error(run), "")
    if run.holonomic_residual.shape[1]:
        yield row("holonomic constraint g(q) = 0", "holonomic", holonomic_error(run), "")
    if (
        run.multipliers.shape[1]
        and method is not None
        and system is not None
        and "deformed_constraint" in preserves
    ):
        size = deformed_constraint_error(system, method, run)
        yield row("deformed constraint, JS (88)", "deformed_constraint", size, "")
    for name, error in first_integral_errors(run).items():
        yield row(f"first integral {name}", "first_integrals", float(np.max(np.abs(error))), " relative")
    if len(run.t) > 2 and conserved:
        slope = energy_drift(run)
        seen = (
            "a drift"
            if slope.significant and abs(slope.slope) * (run.t[-1] - run.t[0]) > HELD
            else "no drift"
        )
        yield "energy per unit of time", "-", f"{slope.slope:.1e} +- {slope.standard_error:.1e}", seen
    visible = {"energy", "constraint", "holonomic", "deformed_constraint", "first_integrals"}
    for word in sorted(preserves - visible):
        yield word, "yes", "not visible in one run", VOCABULARY[word]


def _estimate(run: Trajectory, system: System | None, method: Integrator | None) -> str:
    """The global error as half the step shows it."""
    if system is None or method is None or run.info.events or not run.success:
        return "The error was not estimated: this needs the system, the method and a run without failures."
    if run.info.steps > LONG:
        return f"The error was not estimated: the run has more than {LONG:.0e} steps."
    errors = error_estimate(run, system=system, integrator=method)
    worst, last = float(np.max(errors)), float(errors[-1])
    if not np.isfinite(worst):
        return "The error could not be estimated: half the step does not get there."
    return (
        f"The error of the coordinates is about {worst:.1e} at most and {last:.1e} at the end, estimated by "
        "a run with half the step."
    )


def _solve_rows(run: Trajectory) -> Iterable[tuple[str, str]]:
    report = run.report
    yield "outcome", report.worst.message
    if not np.max(report.iterations):
        yield "equations", "none: every step is explicit"
        return
    yield "iterations", f"{np.max(report.iterations)} at most in a step"
    yield "last increment", f"{np.max(report.increment):.1e} at most, relative to the unknowns"
    yield "residual", f"{np.max(report.residual):.1e} at most"
    if np.max(report.failed_step) >= 0:
        yield "first failed step", str(int(np.max(report.failed_step)))


def _versions(run: Trajectory) -> str:
    return ", ".join(f"{name} {value}" for name, value in run.info.versions.items())


# ---- how it is shown ------------------------------------------------------------------------------


def _text(value: object) -> str:
    return html.escape(str(value))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f"<th>{_text(x)}</th>" for x in head) if any(head[:1]) else ""
    lines = [f"<tr>{top}</tr>"] if top else []
    for row in rows:
        mark = {"kept to round-off": ' class="kept"', "not kept": ' class="broken"'}.get(row[-1], "")
        cells = "".join(f"<td>{_text(x)}</td>" for x in row[:-1])
        lines.append(f"<tr>{cells}<td{mark}>{_text(row[-1])}</td></tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _picture(figure: Figure, said: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<p><img alt="{_text(said)}" src="data:image/png;base64,{data}"></p>'
