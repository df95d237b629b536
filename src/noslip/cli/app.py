"""The command line: `noslip systems | integrators | run | rerun | report | animate | ensemble | reduce |
scoreboard | bench | study`.

Exit codes: 0 done; 2 bad input, nothing written; 3 a step could not be solved, the part before it is
kept; 4 a rerun differs from the saved run; 130 interrupted, what had been saved until then is kept.
Heavy modules are imported inside the commands, so that `--help` stays quick.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noslip.cli.bench import JsonFile, bench, check_json, write_json
from noslip.cli.ensemble import run_ensemble
from noslip.cli.inputs import (
    as_saved,
    initial_state,
    is_plain,
    listed,
    make_integrator,
    open_source,
    pairs,
)
from noslip.cli.pictures import method_of, pictures
from noslip.cli.reduce import reduce
from noslip.cli.show import (
    DIFFERENT,
    INTERRUPTED,
    NOT_SOLVED,
    console,
    one_sentence,
    print_table,
    stop,
)
from noslip.cli.study import study
from noslip.cli.work_precision import run_work_precision
from noslip.errors import Interrupted, SolveFailed
from noslip.files import replacing
from noslip.markdown import table
from noslip.version import __version__

if TYPE_CHECKING:
    from noslip.integrators.base import Integrator
    from noslip.system import System
    from noslip.trajectory import Trajectory

PICTURES = (".png", ".pdf", ".svg")

app = typer.Typer(
    help="Simulate mechanical systems with nonholonomic constraints, and see what each method preserves.",
    epilog="Exit codes: 0 done, 2 bad input, 3 a step not solved, 4 a rerun differs, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Entry point of the `noslip` command."""
    app(prog_name="noslip")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"noslip {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


app.add_typer(bench, name="bench")
app.add_typer(study, name="study")
app.add_typer(pictures)
app.command("ensemble")(run_ensemble)
app.command("work-precision")(run_work_precision)


# ---- what there is --------------------------------------------------------------------------------


@app.command("systems")
def list_systems() -> None:
    """List the mechanical systems of the catalogue."""
    from noslip.systems import discover

    rows = []
    for name, module in discover().items():
        defaults = {k: p.default for k, p in inspect.signature(module.system).parameters.items()}
        system = _outline(module.system, defaults)
        parameters = {k: v for k, v in defaults.items() if is_plain(v)}
        coordinates = ", ".join(f"{c} (angle)" if c in system.angles else c for c in system.coordinates)
        exact = "yes" if hasattr(module, "exact") else ""
        rows.append((name, coordinates, f"{system.m} {system.kind}", listed(parameters), exact))
    print_table(("system", "coordinates", "constraints", "parameters", "exact solution"), rows)


def _outline(maker: Callable[..., System], defaults: Mapping[str, Any]) -> System:
    """The system with abstract parameters, which spares the compilation of its checks."""
    import jax

    abstract = {k: v for k, v in defaults.items() if isinstance(v, float)}
    return jax.eval_shape(lambda p: maker(**p), abstract) if abstract else maker()


@app.command("integrators")
def list_integrators(
    markdown: Annotated[bool, typer.Option("--markdown", help="As a Markdown table.")] = False,
) -> None:
    """List the methods: parameters, order, what each preserves, and the source."""
    from noslip.integrators import discover

    head: tuple[str, ...] = ("integrator", "parameters", "order", "preserves", "reference", "what it is")
    rows = []
    for name, cls in discover().items():
        method = cls()
        what = (inspect.getdoc(cls) or "").partition("\n")[0]
        order = "exact" if getattr(method, "exact", False) else str(method.order)
        kept = ", ".join(sorted(method.preserves)) or "-"
        rows.append((name, listed(method.options()) or "-", order, kept, method.reference, what))
    if not markdown:
        print_table(head, rows)
        return
    quoted = [(f"`{name}`", "-" if o == "-" else f"`{o}`", *rest) for name, o, *rest in rows]
    typer.echo(table(head, quoted))


# ---- running --------------------------------------------------------------------------------------


@app.command()
def run(
    system: Annotated[str, typer.Argument(help="A catalogue name, or your own: my_system.py:particle")],
    integrator: Annotated[str, typer.Option("--integrator", "-i", help="See `noslip integrators`.")],
    step_size: Annotated[float, typer.Option(help="Step h > 0.")],
    t_end: Annotated[float | None, typer.Option(help="Final time, a whole number of steps after t0.")] = None,
    steps: Annotated[int | None, typer.Option(help="Number of steps, instead of --t-end.")] = None,
    t0: Annotated[float, typer.Option(help="Initial time.")] = 0.0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the system.")
    ] = None,
    q0: Annotated[str | None, typer.Option(help="Initial coordinates, a,b,c.")] = None,
    v0: Annotated[str | None, typer.Option(help="Initial velocities, a,b,c.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the integrator.")
    ] = None,
    save_every: Annotated[int, typer.Option(help="Save every K-th state.")] = 1,
    backend: Annotated[str, typer.Option(help="Where to compute.")] = "auto",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="NetCDF file to write.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .pdf or .svg.")] = None,
) -> None:
    """Simulate one system with one integrator."""
    with one_sentence():
        _check_targets(output, plot)
        source = open_source(system)
        arguments = source.arguments(pairs("--set", set_))
        model = source.build(arguments)
        method = make_integrator(integrator, pairs("--option", option))
        q, v = initial_state(source, model, arguments, q0, v0)
        _simulate(
            model, method, q, v, (system, arguments), output, plot,
            step_size=step_size, t_end=t_end, steps=steps, t0=t0, save_every=save_every, backend=backend,
        )  # fmt: skip


def _simulate(
    model: System,
    method: Integrator,
    q: Any,
    v: Any,
    origin: tuple[str, dict[str, Any]],
    output: Path | None,
    plot: Path | None,
    **how: Any,
) -> None:
    """Run, show the summary, write the files; also for a run that ended early."""
    from noslip.simulate import simulate

    code, message = 0, ""
    began = time.perf_counter()
    try:
        result = simulate(model, method, q, v, progress=console().is_terminal, **how)
    except (Interrupted, SolveFailed) as early:
        code = INTERRUPTED if isinstance(early, Interrupted) else NOT_SOLVED
        result, message = early.trajectory, str(early).partition("; `trajectory`")[0]
    seconds = time.perf_counter() - began
    result = result.with_source(*origin)
    _show(result, model, seconds)
    _write(result, output, plot)
    if code:
        kept = f"the part before is in {output}" if output else "give -o FILE to keep the part before"
        stop(f"{message}; {kept}", code)


@app.command()
def rerun(
    file: Annotated[Path, typer.Argument(help="A file written by `noslip run -o` or `Trajectory.save`.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the new run here.")] = None,
) -> None:
    """Repeat a saved run and compare it with the file, bit for bit."""
    with one_sentence():
        from noslip.trajectory import load

        _check_targets(output, None)
        if output is not None and output.resolve() == file.resolve():
            raise ValueError("`-o` must be another file than the one that is compared with")
        old = load(file)
        new = _repeat(old)
        _write(new, output, None)
        differences = _differences(old, new)
        if not differences:
            typer.echo(f"identical bit for bit: {len(old.t)} saved times up to t = {old.t[-1]:g}")
            return
        typer.echo("the new run differs from the saved one, at most by " + ", ".join(differences))
        typer.echo("possible reason: " + _reason(old, new))
    raise typer.Exit(DIFFERENT)


def _repeat(old: Trajectory) -> Trajectory:
    """The run described by `old.info`, up to where `old` goes."""
    import numpy as np

    from noslip.run.arguments import BACKENDS
    from noslip.simulate import simulate

    info, done = old.info, int(np.sum(old.report.steps))
    if not info.source:
        raise ValueError(
            "this run does not say where its system came from; run it by `noslip run FILE.py:NAME`"
        )
    source = open_source(info.source)
    arguments = {name: as_saved(value) for name, value in info.arguments.items()}
    parameters = {name: as_saved(value) for name, value in info.parameters.items()}
    model = source.build(arguments)
    if model.coordinates != info.coordinates or set(model.parameters) != set(parameters):
        raise ValueError(
            f"'{info.source}' with {listed(arguments) or 'its defaults'} has coordinates "
            f"{', '.join(model.coordinates)} and parameters {', '.join(model.parameters)}, but the saved run "
            f"has {', '.join(info.coordinates)} and {', '.join(parameters)}; it was built by other means"
        )
    method = method_of(info)
    new = simulate(
        model.with_parameters(parameters),
        method,
        old.q0,
        old.v0,
        step_size=info.step_size,
        steps=done if old.success else info.steps,  # an interrupted run is compared as far as it went
        t0=info.t0,
        save_every=info.save_every,
        backend=info.backend if info.backend in BACKENDS else "auto",
        progress=console().is_terminal,
        throw=False,
    )
    return new.with_source(info.source, arguments)


def _differences(old: Trajectory, new: Trajectory) -> list[str]:
    """Each array that is not the same bit for bit, with its largest difference."""
    import numpy as np

    found = []
    before, after = old.to_xarray(), new.to_xarray()
    for name in dict.fromkeys([*before.variables, *after.variables]):
        if name not in before.variables or name not in after.variables:
            found.append(f"{name}: only in one of them")
            continue
        x, y = before[name].values, after[name].values
        if x.shape != y.shape:
            found.append(f"{name}: shape {x.shape} before, {y.shape} now")
        elif x.tobytes() != y.tobytes() and x.dtype.kind in "fiu":
            found.append(f"{name}: {np.max(np.abs(x - y)):.1e}")
    return found


def _reason(old: Trajectory, new: Trajectory) -> str:
    then, now = dict(old.info.versions), dict(new.info.versions)
    then["backend"], now["backend"] = old.backend, new.backend
    changed = [f"{k} {then.get(k)} then, {now.get(k)} now" for k in now if then.get(k) != now.get(k)]
    own_file = f", or {old.info.source} has changed since" if ".py" in old.info.source else ""
    return (
        ", ".join(changed)
        or f"none in the file, all versions are the same; perhaps another machine{own_file}"
    )


# ---- showing and writing --------------------------------------------------------------------------


def _show(result: Trajectory, model: System, seconds: float) -> None:
    """The figures of a run in a small table."""
    import numpy as np

    from noslip.analysis.conservation import constraint_error, energy_error

    info, report = result.info, result.report
    change = np.max(np.abs(energy_error(result)))
    conserved = model.force is None and model.kind == "linear"
    rows = [
        ("steps", f"{int(np.sum(report.steps))} of {info.step_size:g}, {len(result.t)} saved"),
        ("time", f"{result.t[0]:g} to {result.t[-1]:g}"),
        ("energy error" if conserved else "energy change", f"{change:.1e} of |T| + |V|, at most"),
        ("constraint residual", f"{constraint_error(result):.1e} at most"),
    ]
    for name, values in result.first_integrals.items():
        moved = np.max(np.abs(values - values[0]))
        rows.append((f"first integral {name}", f"{values[0]:.6g}, changes by {moved:.1e} at most"))
    solves = f"{np.max(report.iterations)} iterations at most, last increment {np.max(report.increment):.1e}"
    rows.append(("solve", solves if np.max(report.iterations) else "no implicit equations"))
    rows += [("backend", result.backend), ("seconds", f"{seconds:.2f}, compilation included")]
    title = f"{info.integrator}({listed(info.options)}) on {info.source}"
    print_table(("", ""), rows, title=title, headless=True)


def _write(result: Trajectory, output: Path | None, plot: Path | None) -> None:
    if output is not None:
        result.save(output)
        typer.echo(f"wrote {output}")
    if plot is not None:
        with replacing(plot) as part:
            result.plot().savefig(part, dpi=150)
        typer.echo(f"wrote {plot}")


def _check_targets(output: Path | None, plot: Path | None) -> None:
    """Refuse, before anything is computed, files that could not be written afterwards."""
    for option, path in (("-o", output), ("--plot", plot)):
        if path is not None and (path.is_dir() or not path.parent.is_dir()):
            what = (
                "a file, but it is a folder"
                if path.is_dir()
                else f"in a folder that exists, not in '{path.parent}'"
            )
            raise ValueError(f"`{option} {path}` must be {what}")
    if plot is not None:
        if plot.suffix.lower() not in PICTURES:
            raise ValueError(f"`--plot` must end in {', '.join(PICTURES)}, but '{plot}' was provided")
        if output is not None and output.resolve() == plot.resolve():
            raise ValueError(f"`-o` and `--plot` must be different files, but both are '{plot}'")
        from noslip.plots.trajectory import require_matplotlib

        require_matplotlib()


# ---- judgement ------------------------------------------------------------------------------------


app.command()(reduce)


@app.command("scoreboard")
def show_scoreboard(
    system: Annotated[list[str] | None, typer.Option(help="A catalogue system; may be repeated.")] = None,
    integrator: Annotated[
        list[str] | None, typer.Option("--integrator", "-i", help="A method; may be repeated.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Steps of each run.")] = 2000,
    step_size: Annotated[float, typer.Option(help="Step h > 0.")] = 0.1,
    also: Annotated[
        list[str] | None, typer.Option(help="A method besides the defaults; may be repeated.")
    ] = None,
    json_file: JsonFile = None,
) -> None:
    """Measure what each method keeps on each system, as Markdown tables."""
    with one_sentence():
        from dataclasses import asdict

        from noslip import integrators, systems
        from noslip.analysis import scoreboard
        from noslip.bench.machine import versions

        check_json(json_file)
        for name in system or ():
            systems.find(name)
        chosen = [integrators.parse(text) for text in integrator or ()]
        methods = (chosen or scoreboard.defaults()) + [integrators.parse(text) for text in also or ()]
        names = tuple(system) if system else tuple(scoreboard.SYSTEMS)
        scores = scoreboard.scoreboard(methods, names, steps=steps, step_size=step_size)
        typer.echo(scoreboard.as_markdown(scores))
        setting = {"benchmark": "scoreboard", "step_size": step_size, "steps": steps, "versions": versions()}
        write_json({**setting, "rows": [asdict(score) for score in scores]}, json_file)
