"""`noslip reduce`: what symmetry makes of a system, and whether the result is Hamiltonian in another time."""

from __future__ import annotations

from typing import Annotated

import typer

from noslip.cli import options
from noslip.cli.show import one_sentence, print_table
from noslip.errors import first_line


def reduce(
    system: options.SystemName,
    group: Annotated[
        str,
        typer.Option(
            help="translations, planar (rigid motions of x, y, angle) or rotations; of other coordinates "
            "than the fibre: 'translations(y, phi)'; 'planar(x, y, theta) * translations(z)'."
        ),
    ] = "translations",
    set_: options.Parameters = None,
    q0: Annotated[str | None, typer.Option(help="Where to look, a,b,c.")] = None,
    v0: Annotated[str | None, typer.Option(help="The velocity there, a,b,c.")] = None,
) -> None:
    """Reduce a Chaplygin system by its group, and look for Chaplygin's multiplier."""
    with one_sentence():
        import jax.numpy as jnp
        import numpy as np

        from noslip.errors import NotHamiltonizable
        from noslip.geometry.chaplygin import reduction
        from noslip.geometry.hamiltonization import hamiltonize
        from noslip.systems import open_source

        source = open_source(system)
        arguments = source.arguments(options.pairs("--set", set_))
        model = source.build(arguments)
        q, v = (jnp.asarray(x) for x in options.initial_state(source, model, arguments, q0, v0))
        reduced = reduction(model, group, at=np.asarray(q))
        r, w = q[reduced.base_index], v[reduced.base_index]

        def numbers(values: object) -> str:
            return np.array2string(np.asarray(values), precision=6, suppress_small=True).replace("\n", "")

        rows = [
            ("base coordinates r", ", ".join(reduced.base)),
            ("group", f"{reduced.group.name} of {', '.join(reduced.group.fibre)}"),
            ("connection A, xi = -A rdot", numbers(reduced.connection(r))),
            ("metric G of l_c", numbers(reduced.metric(r))),
            ("reaction F, FBO (5)", numbers(reduced.reaction(r, w))),
        ]
        try:
            made = hamiltonize(model, group, at=np.asarray(q))
        except NotHamiltonizable as reason:
            rows.append(("Hamiltonizable", f"no: {first_line(reason).removeprefix('not Hamiltonizable: ')}"))
        else:
            rows += [("Hamiltonizable", "yes"), ("d ln f", numbers(made.omega(r)))]
            for name, factor in made.turn_factors(r).items():
                known = f"multiplied by {factor:.6g}" if np.isfinite(factor) else "with zeros or poles"
                rows.append((f"f after a turn of {name}", known))
            rows.append(("invariant measure", f"f^{len(reduced.base) - 1} dr dp"))
        print_table(("quantity", f"at q = {numbers(q)}"), rows)
