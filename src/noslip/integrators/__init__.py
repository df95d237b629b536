"""One file per method. A file is its own registration: `discover` finds every integrator here, and what
installed packages offer by entry points of the group "noslip.integrators".

`from noslip.integrators import DiscreteGradient` imports the one file that is needed. Where a method is named
by a text, `file.py:Class` stands for a class in a file of the user.
"""

import importlib
import pkgutil
from typing import TYPE_CHECKING

from noslip import names as _names
from noslip.errors import shown, unknown_name
from noslip.integrators._texts import is_method, make, parse, spelled, with_options, word_of
from noslip.integrators.base import Integrator

if TYPE_CHECKING:  # for editors and mypy; `python tests/integrators/test_method_names.py` writes these lines
    from noslip.integrators.composition import Composition as Composition
    from noslip.integrators.discrete_gradient import DiscreteGradient as DiscreteGradient
    from noslip.integrators.discrete_lagrange_dalembert import (
        DiscreteLagrangeDAlembert as DiscreteLagrangeDAlembert,
    )
    from noslip.integrators.energy_collocation import EnergyCollocation as EnergyCollocation
    from noslip.integrators.full_space_discrete_gradient import (
        FullSpaceDiscreteGradient as FullSpaceDiscreteGradient,
    )
    from noslip.integrators.generating_function import GeneratingFunction as GeneratingFunction
    from noslip.integrators.geometric_nonholonomic import GeometricNonholonomic as GeometricNonholonomic
    from noslip.integrators.hamiltonized_del import HamiltonizedDEL as HamiltonizedDEL
    from noslip.integrators.lagrange_dalembert_chaplygin import (
        LagrangeDAlembertChaplygin as LagrangeDAlembertChaplygin,
    )
    from noslip.integrators.lobatto_spark import LobattoSpark as LobattoSpark
    from noslip.integrators.poincare_hamiltonized_del import (
        PoincareHamiltonizedDEL as PoincareHamiltonizedDEL,
    )
    from noslip.integrators.projected import Projected as Projected
    from noslip.integrators.reduced_dla import ReducedDLA as ReducedDLA
    from noslip.integrators.reference_flow import ReferenceFlow as ReferenceFlow
    from noslip.integrators.runge_kutta4 import RungeKutta4 as RungeKutta4
    from noslip.integrators.semi_implicit_dla import SemiImplicitDLA as SemiImplicitDLA
    from noslip.integrators.variable_step import VariableStep as VariableStep
    from noslip.integrators.velocity_nonholonomic import VelocityNonholonomic as VelocityNonholonomic

__all__ = [
    "Integrator",
    "discover",
    "find",
    "is_method",
    "make",
    "parse",
    "spelled",
    "with_options",
    "word_of",
]
_GROUP = "noslip.integrators"


def discover() -> dict[str, type[Integrator]]:
    """All integrator classes of this package and of installed ones by name, in alphabetical order."""
    found = {name: find(name) for name in _names.installed(_GROUP)}
    for module in _modules():
        found |= _classes(module)
    return dict(sorted(found.items()))


def find(name: str) -> type[Integrator]:
    """The integrator class of that name, here or in an installed package, or `file.py:Class`. A file is
    run: give this only words that the user wrote."""
    if not isinstance(name, str):
        raise TypeError(f"an integrator must be named by a text, but {shown(name)} was provided")
    if _names.in_a_file(name):
        return is_method(name, _names.attribute(name, "integrator", Integrator)[1])
    if (found := _own(name)) is not None:
        return found
    installed = _names.installed(_GROUP)
    if name in installed:
        return is_method(name, _names.load(installed[name]))
    known = {key for module in _modules() for key in _classes(module)}
    raise ValueError(unknown_name("integrator", name, known | set(installed)))


def _modules() -> list[str]:
    return [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]


def _classes(module: str) -> dict[str, type[Integrator]]:
    """The integrators that a file of this package defines."""
    loaded = importlib.import_module(f"{__name__}.{module}")
    return {
        name: value
        for name, value in vars(loaded).items()
        if isinstance(value, type)
        and value.__module__ == loaded.__name__
        and issubclass(value, Integrator)
        and value is not Integrator
    }


def _own(name: str) -> type[Integrator] | None:
    """A class of this package, looked for first in the file that is called like it."""
    modules = _modules()
    modules.sort(key=lambda module: module.replace("_", "") != name.lower())
    return next((classes[name] for classes in map(_classes, modules) if name in classes), None)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> type[Integrator]:
        if name[0].isupper() and (name in _names.installed(_GROUP) or _own(name) is not None):
            return find(name)
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *discover()})
