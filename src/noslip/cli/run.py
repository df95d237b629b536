"""`noslip run`: one system with one integrator."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noslip.cli import options
from noslip.cli.show import INTERRUPTED, NOT_SOLVED, console, one_sentence, print_table, stop
from noslip.cli.targets import STORE, check_targets, write_run
from noslip.errors import Interrupted, SolveFailed
from noslip.files import require_netcdf_name
from noslip.texts import listed

if TYPE_CHECKING:
    from noslip.integrators.base import Integrator
    from noslip.system import System
    from noslip.trajectory import Trajectory

OUTPUT = "NetCDF file to write, or NAME.zarr, a folder that is filled while it runs and gone on with."


LONG = 60.0  # seconds; the error of longer runs is not estimated


def run(
    system: options.SystemName,
    integrator: options.IntegratorText,
    step_size: options.StepSize,
    t_end: options.FinalTime = None,
    steps: options.Steps = None,
    t0: options.InitialTime = 0.0,
    set_: options.Parameters = None,
    q0: Annotated[str | None, typer.Option(help="Initial coordinates, a,b,c.")] = None,
    v0: options.Velocities = None,
    option: options.Options = None,
    save_every: Annotated[int, typer.Option(help="Save every K-th state.")] = 1,
    backend: options.Backend = "auto",
    output: Annotated[Path | None, typer.Option("--output", "-o", help=OUTPUT)] = None,
    plot: Annotated[Path | None, typer.Option(help="Picture to write: .png, .pdf or .svg.")] = None,
) -> None:
    """Simulate one system with one integrator."""
    with one_sentence():
        check_targets(output, plot)
        if output is not None and output.suffix != STORE:
            require_netcdf_name(output)
        from noslip.integrators import make
        from noslip.systems import open_source

        source = open_source(system)
        arguments = source.arguments(options.pairs("--set", set_))
        model = source.build(arguments)
        method = make(integrator, options.pairs("--option", option))
        q, v = options.initial_state(source, model, arguments, q0, v0)
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
    from noslip.run.checkpoints import note
    from noslip.run.pacing import Interruption
    from noslip.simulate import simulate

    code, message = 0, ""
    began = time.perf_counter()
    store = output if output is not None and output.suffix == STORE else None
    try:
        result = simulate(model, method, q, v, progress=console().is_terminal, store=store, **how)
    except (Interrupted, SolveFailed) as early:
        code = INTERRUPTED if isinstance(early, Interrupted) else NOT_SOLVED
        result, message = early.trajectory, str(early).partition("; `trajectory`")[0]
        message = message.partition("; the same call")[0]
    seconds = time.perf_counter() - began
    result = result.with_source(*origin)
    estimate = "" if code or store is not None else _estimate(result, seconds)
    with Interruption():  # what is there now is written whatever comes
        if store is not None:
            note(store, **result.info.attributes())
        _show(result, model, seconds, estimate)
        write_run(result, output, plot)
    if code:
        kept = f"the part before is in {output}" if output else "give -o FILE to keep the part before"
        more = ", and the same command goes on" if store is not None and code == INTERRUPTED else ""
        stop(f"{message}; {kept}{more}", code)


def _estimate(result: Trajectory, seconds: float) -> str:
    """The estimated error of a run, in words."""
    import numpy as np

    from noslip.analysis.error_estimate import error_estimate

    if seconds > LONG:
        return "not estimated, which takes twice as long as the run"
    worst = float(np.max(error_estimate(result)))
    return (
        f"{worst:.1e} at most, by half the step" if np.isfinite(worst) else "half the step does not get there"
    )


def _show(result: Trajectory, model: System, seconds: float, estimate: str) -> None:
    """The figures of a run in a small table."""
    import numpy as np

    from noslip.analysis.conservation import constraint_error, energy_error, holonomic_error
    from noslip.analysis.thinning import thinned

    saved = len(result.t)
    result = thinned(result)
    info, report = result.info, result.report
    change = np.max(np.abs(energy_error(result)))
    conserved = model.force is None and model.kind == "linear"
    rows = [
        ("steps", f"{int(np.sum(report.steps))} of {info.step_size:g}, {saved} saved"),
        ("time", f"{result.t[0]:g} to {result.t[-1]:g}"),
        ("energy error" if conserved else "energy change", f"{change:.1e} of |T| + |V|, at most"),
        (
            "constraint residual",
            f"{constraint_error(result):.1e} at most" if model.rows else "no constraints",
        ),
    ]
    if model.k:
        rows.append(("holonomic residual", f"{holonomic_error(result):.1e} at most"))
    for name, values in result.first_integrals.items():
        moved = np.max(np.abs(values - values[0]))
        rows.append((f"first integral {name}", f"{values[0]:.6g}, changes by {moved:.1e} at most"))
    if estimate:
        rows.append(("estimated error of q", estimate))
    solves = f"{np.max(report.iterations)} iterations at most, last increment {np.max(report.increment):.1e}"
    rows.append(("solve", solves if np.max(report.iterations) else "no implicit equations"))
    rows += [("backend", result.backend), ("seconds", f"{seconds:.2f}, compilation included")]
    title = f"{info.integrator}({listed(info.options)}) on {info.source}"
    print_table(("", ""), rows, title=title, headless=True)
