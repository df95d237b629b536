"""`noslip reduce`: what symmetry makes of a system, and whether the result is Hamiltonian in another time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from noslip.cli import options
from noslip.cli.show import one_sentence, print_table
from noslip.errors import first_line

if TYPE_CHECKING:
    from jax import Array

    from noslip.geometry.groups import Group
    from noslip.system import System


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
        import numpy as np

        from noslip.engine.backends.numpy_rows import evaluate_anyhow
        from noslip.errors import NotHamiltonizable
        from noslip.geometry.chaplygin import reduction
        from noslip.geometry.hamiltonization import hamiltonize
        from noslip.systems import open_source

        source = open_source(system)
        arguments = source.arguments(options.pairs("--set", set_))
        model = source.build(arguments)
        q, v = (np.asarray(x, float) for x in options.initial_state(source, model, arguments, q0, v0))
        reduced = reduction(model, group, at=q)
        r, w = q[reduced.base_index], v[reduced.base_index]
        found = evaluate_anyhow(_reduced, reduced.group, model, r[None], w[None])
        connection, metric, reaction = (x[0] for x in found)

        def numbers(values: object) -> str:
            return np.array2string(np.asarray(values), precision=6, suppress_small=True).replace("\n", "")

        rows = [
            ("base coordinates r", ", ".join(reduced.base)),
            ("group", f"{reduced.group.name} of {', '.join(reduced.group.fibre)}"),
            ("connection A, xi = -A rdot", numbers(connection)),
            ("metric G of l_c", numbers(metric)),
            ("reaction F, FBO (5)", numbers(reaction)),
        ]
        try:
            made = hamiltonize(model, group, at=q)
        except NotHamiltonizable as reason:
            rows.append(("Hamiltonizable", f"no: {first_line(reason).removeprefix('not Hamiltonizable: ')}"))
        else:
            slope = evaluate_anyhow(_slope, reduced.group, model, r[None])[0]
            rows += [("Hamiltonizable", "yes"), ("d ln f", numbers(slope))]
            for name, factor in made.turn_factors(r).items():
                known = f"multiplied by {factor:.6g}" if np.isfinite(factor) else "with zeros or poles"
                rows.append((f"f after a turn of {name}", known))
            rows.append(("invariant measure", f"f^{len(reduced.base) - 1} dr dp"))
        print_table(("quantity", f"at q = {numbers(q)}"), rows)


def _reduced(group: Group, system: System, r: Array, w: Array) -> tuple[Array, Array, Array]:
    """Connection, metric and reaction."""
    from noslip.geometry.chaplygin import Reduction

    reduced = Reduction(system, group)
    return reduced.connection(r), reduced.metric(r), reduced.reaction(r, w)


def _slope(group: Group, system: System, r: Array) -> Array:
    """d ln f."""
    from noslip.geometry.chaplygin import Reduction
    from noslip.geometry.hamiltonization import Hamiltonization

    return Hamiltonization(Reduction(system, group)).omega(r)
