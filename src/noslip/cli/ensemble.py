"""The command `noslip ensemble`: many members into a Zarr folder, resumed by the same command."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noslip.cli import options
from noslip.cli.show import INTERRUPTED, NOT_SOLVED, console, one_sentence, print_table, stop
from noslip.errors import Interrupted, SolveFailed, unknown_name
from noslip.texts import listed

if TYPE_CHECKING:
    from noslip.ensembles import Ensemble
    from noslip.sampling import Region
    from noslip.system import System


def run_ensemble(
    system: options.SystemName,
    integrator: options.IntegratorText,
    step_size: options.StepSize,
    members: Annotated[int, typer.Option(help="Number of members.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Zarr folder, made or gone on with.")],
    t_end: options.FinalTime = None,
    steps: options.Steps = None,
    t0: options.InitialTime = 0.0,
    energy: Annotated[float | None, typer.Option(help="Random states of this energy.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Random velocities, normal on D_q.")] = None,
    ball: Annotated[float | None, typer.Option(help="Random positions this near to q0.")] = None,
    box: Annotated[str | None, typer.Option(help="Random positions within q0 +- a,b,c.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    vary: Annotated[
        list[str] | None, typer.Option(metavar="NAME=LOW:HIGH", help="Parameter, evenly over the members.")
    ] = None,
    set_: options.Parameters = None,
    q0: Annotated[str | None, typer.Option(help="Initial coordinates, or their centre, a,b,c.")] = None,
    v0: options.Velocities = None,
    option: options.Options = None,
    observe: Annotated[
        list[str] | None,
        typer.Option(help="energy, energy_error, constraint, a first integral or coordinate."),
    ] = None,
    save_every: Annotated[
        int | None, typer.Option(help="Save every K-th state, not only first and last.")
    ] = None,
    chunk: Annotated[int | None, typer.Option(help="Members that run, and are written, together.")] = None,
    backend: options.Backend = "auto",
    threads: Annotated[int | None, typer.Option(help="Threads of native code.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Dask scheduler.")] = None,
) -> None:
    """Simulate many members: random states, varied parameters. If interrupted, the same command goes on."""
    with one_sentence():
        from noslip.integrators import make
        from noslip.run.arguments import whole
        from noslip.systems import open_source

        source = open_source(system)
        arguments = source.arguments(options.pairs("--set", set_))
        model = source.build(arguments)
        method = make(integrator, options.pairs("--option", option))
        q, v = options.initial_state(source, model, arguments, q0, v0)
        varying = _varying(model, options.pairs("--vary", vary), whole("members", members, 1))
        if energy is None and temperature is None and not varying:
            raise ValueError("members must differ, so --energy, --temperature or --vary must be given")
        q, v = _states(model, q, v, members, energy, temperature, _region(model, q, ball, box), seed)
        result, seconds, early = _run(
            cluster, model, method, q, v,
            step_size=step_size, t_end=t_end, steps=steps, t0=t0, parameters=varying, save_every=save_every,
            observables=observe, backend=backend, threads=threads, store=output, chunk=chunk,
        )  # fmt: skip
        _show(result, seconds, f"{type(method).__name__}({listed(method.options())}) on {system}")
        if isinstance(early, Interrupted):
            stop(str(early).replace("the same call", "the same command"), INTERRUPTED)
        typer.echo(f"wrote {output}")
        if isinstance(early, SolveFailed):
            stop(str(early).partition("; `trajectory`")[0], NOT_SOLVED)


def _run(cluster: str | None, *what: Any, **how: Any) -> tuple[Ensemble, float, Exception | None]:
    """The ensemble, the seconds, and why it ended early if it did."""
    from contextlib import nullcontext

    from noslip.ensembles import ensemble
    from noslip.run.checkpoints import note
    from noslip.run.store import require_client

    began, early = time.perf_counter(), None
    client = nullcontext() if cluster is None else require_client()(cluster)
    with client as workers:
        try:
            result = ensemble(*what, cluster=workers, progress=console().is_terminal, **how)
        except (Interrupted, SolveFailed) as error:
            result, early = error.trajectory, error
    note(how["store"], command=shlex.join(["noslip", *sys.argv[1:]]))
    return result, time.perf_counter() - began, early  # type: ignore[return-value]


def _varying(model: System, texts: dict[str, str], members: int) -> dict[str, Any]:
    import numpy as np

    varying = {}
    for name, text in texts.items():
        if name not in model.parameters:
            raise ValueError(unknown_name("parameter", name, model.parameters))
        try:
            low, high = (float(part) for part in text.split(":"))
        except ValueError:
            raise ValueError(f"`--vary {name}` must be LOW:HIGH, but '{text}' was provided") from None
        varying[name] = np.linspace(low, high, members)
    return varying


def _region(model: System, q: Any, ball: float | None, box: str | None) -> Region | None:
    from noslip.sampling import Ball, Box

    if ball is not None and box is not None:
        raise ValueError("`--ball` and `--box` must not be given both, but they were")
    if ball is not None:
        return Ball(q, ball)
    if box is not None:
        width = options.vector("--box", box, model)
        return Box(q - width, q + width)
    return None


def _states(
    model: System,
    q: Any,
    v: Any,
    members: int,
    energy: float | None,
    temperature: float | None,
    region: Region | None,
    seed: int,
) -> tuple[Any, Any]:
    from noslip.sampling import on_constraint, on_energy_shell

    if energy is not None and temperature is not None:
        raise ValueError("`--energy` and `--temperature` must not be given both, but they were")
    if energy is None and temperature is None:
        if region is not None:
            raise ValueError("`--ball` and `--box` must come with --energy or --temperature")
        return q, v
    if region is None:
        raise ValueError("random states must lie somewhere, so --ball or --box must be given")
    if energy is not None:
        return on_energy_shell(model, energy, members, region=region, seed=seed)
    assert temperature is not None
    return on_constraint(model, members, region=region, seed=seed, temperature=temperature)


def _show(result: Ensemble, seconds: float, title: str) -> None:
    import numpy as np

    status, info = result.status, result.info
    rows = [
        (
            "members",
            f"{np.sum(status == 0)} done, {np.sum(status > 0)} failed, {np.sum(status < 0)} not run yet",
        ),
        ("steps", f"{info.steps} of {info.step_size:g}, {result.t.shape[-1]} saved"),
        ("backend", result.backend),
    ]
    done = status >= 0
    for name, kinds in result.statistics.items():
        parts = [
            f"{kind} {np.mean(x[done]):.4g} (largest {np.max(x[done]):.4g})" for kind, x in kinds.items()
        ]
        rows.append((f"{name}, over members", ", ".join(parts) if done.any() else "-"))
    rows.append(("seconds", f"{seconds:.2f}, compilation included"))
    print_table(("", ""), rows, title=title, headless=True)
