"""`noslip explore`: a system as a page from this machine to its own browser."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.export import METHODS
from noslip.cli.show import one_sentence

SAVED = (".nc", ".zarr")


def explore(
    system: Annotated[str, typer.Argument(help=f"{options.OWN_SYSTEM}; or a saved run")] = "rolling_disk",
    integrators: Annotated[str | None, typer.Option("--integrators", help=METHODS)] = None,
    set_: options.Parameters = None,
    q0: Annotated[str | None, typer.Option(help="Initial coordinates, a,b,c.")] = None,
    v0: options.Velocities = None,
    port: Annotated[int, typer.Option(help="Port; 0 takes any.", min=0, max=65535)] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Run a system in your browser: sliders, methods side by side, live plots, the catalogue to search."""
    with one_sentence():
        from noslip.systems import open_source
        from noslip.web.server import Explorer, Server
        from noslip.web.subjects import given, methods, of_run, subject

        chosen = methods(integrators)
        if system.endswith(SAVED):
            if set_ or q0 or v0:
                raise ValueError(
                    f"'{system}' has its own parameters and state; --set, --q0, --v0 must not be given"
                )
            about, method = of_run(Path(system))
            chosen = [method, *(other for other in chosen if other != method)]
        else:
            source = open_source(system)
            arguments = source.arguments(options.pairs("--set", set_))
            model = source.build(arguments)
            q, v = options.initial_state(source, model, arguments, q0, v0)
            about = (given if q0 or v0 else subject)(source, model, arguments, q, v)
        explorer = Explorer(about, chosen)
        server = Server(explorer, port)
        typer.echo(f"{server.address}\nCtrl-C ends it.")
        threading.Thread(target=explorer.begin, daemon=True).start()
        if browser:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("ended")
        finally:
            server.server_close()
