"""`noslip systems`: the catalogue, and what installed packages add to it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from noslip.cli.show import one_sentence, print_table
from noslip.texts import listed

if TYPE_CHECKING:
    from noslip.system import System
    from noslip.systems import Source


def list_systems() -> None:
    """List the mechanical systems of the catalogue and of installed packages."""
    with one_sentence():
        from noslip.systems import names, open_source

        rows = []
        for source in map(open_source, names()):
            defaults = {k: p.default for k, p in inspect.signature(source.maker).parameters.items()}  # type: ignore[arg-type]
            system = _outline(source, defaults)
            parameters = {k: v for k, v in defaults.items() if _is_plain(v)}
            coordinates = ", ".join(f"{c} (angle)" if c in system.angles else c for c in system.coordinates)
            exact = "yes" if source.exact else ""
            constraints = system.constraints.replace(",", "")
            rows.append((source.name, coordinates, constraints, listed(parameters), exact))
        print_table(("system", "coordinates", "constraints", "parameters", "exact solution"), rows)


def _outline(source: Source, defaults: Mapping[str, Any]) -> System:
    """The system with abstract parameters, which spares the compilation of its checks."""
    import jax

    abstract = {k: v for k, v in defaults.items() if isinstance(v, float)}
    return jax.eval_shape(source.build, abstract) if abstract else source.build({})


def _is_plain(value: Any) -> bool:
    """Whether a default can be shown in a table."""
    return isinstance(value, (bool, int, float, str)) or getattr(value, "ndim", 0) > 0
