"""FBO section 5: its three methods on an example, measured as in the paper's figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import simpson

from noslip.analysis import midpoint_energy
from noslip.integrators.base import Integrator
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.poincare_hamiltonized_del import PoincareHamiltonizedDEL
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.plots.panels import Curve, Panel
from noslip.simulate import simulate
from noslip.studies._base import DeclaredRow, check, statement
from noslip.studies._rules import MAGNITUDE, ZERO
from noslip.trajectory import Trajectory


def _methods(start: str) -> dict[str, Integrator]:
    return {
        "RDLA": ReducedDLA(start=start),
        "HDEL": HamiltonizedDEL(start=start),
        "PTHDEL": PoincareHamiltonizedDEL(start=start),
    }


METHODS = _methods("taylor1")
"""As FBO names them, from q1 = q0 + h v0 like the figures (errata FBO 27)."""
FROM_LEGENDRE = _methods("legendre")
"""The same from the discrete Legendre transform, of order 2."""
PARTS = {"RDLA": "(a)", "HDEL": "(b)", "PTHDEL": "(c)"}
"""Of every figure with three."""
DIGITS = 10  # with which MAPLE calculates unless told otherwise
Floats = np.ndarray


@dataclass(frozen=True)
class Example:
    """A system of section 5, its initial state (of energy 1, where f is 1), its step and numbers of steps."""

    module: ModuleType
    q0: tuple[float, ...]
    v0: tuple[float, ...]
    h: float
    steps: Mapping[str, int]
    time_of_tau: Callable[[Floats], Floats]
    """t(tau) of the exact motion."""

    def inputs(self) -> dict[str, Any]:
        return {
            "q0": self.q0,
            "v0": self.v0,
            "h": self.h,
            "steps": self.steps,
            "epsilon": 0.5,
            "start": "q1 = q0 + h v0",
        }

    def simulate(self, method: Integrator, steps: int, save_every: int = 1) -> Trajectory:
        """From the initial state; a run that cannot be finished ends where it must."""
        return simulate(
            self.module.system(),
            method,
            self.q0,
            self.v0,
            step_size=self.h,
            steps=steps,
            save_every=save_every,
            throw=False,
        )

    def exact(self, t: Floats) -> Floats:
        """The exact motion, closed forms (53), (62), (65)."""
        return np.asarray(self.module.exact(t, self.q0, self.v0)[0])

    def multiplier(self, q: Floats) -> Floats:
        """f at the rows of q."""
        f = self.module.multiplier
        return np.asarray(jax.vmap(lambda x: f(x, self.module.system().parameters))(q))

    def tau(self, t_end: float) -> float:
        """The integral of f along the exact motion."""
        t = np.linspace(0.0, t_end, 2001)
        return float(simpson(self.multiplier(self.exact(t)), x=t))


@dataclass(frozen=True)
class Measured:
    """A run of one method: its distance from the exact motion, and what the discrete energies and constraint
    miss, one value per step."""

    run: Trajectory
    rmsd: Floats
    energy: Floats
    poincare: Floats
    constraint: Floats
    """With the exact group coordinate, as footnote 7 has it."""
    own_constraint: Floats
    """With that of the method."""
    rounded_constraint: Floats
    """The same with all coordinates at ten digits."""

    @property
    def middle(self) -> Floats:
        """The times between the nodes."""
        return (self.run.t[1:] + self.run.t[:-1]) / 2


def measure(example: Example, name: str, methods: Mapping[str, Integrator] = METHODS) -> Measured:
    """The run and the errors of `name`; HDEL is compared with the exact motion at the same tau."""
    system, method = example.module.system(), methods[name]
    run = example.simulate(method, example.steps[name])
    exact = example.exact(example.time_of_tau(run.tau) if method.own_time else run.t)
    fibre = np.array([coordinate in system.fibre for coordinate in system.coordinates])
    energy = midpoint_energy(system, method, run) - 1
    f = example.multiplier((run.q[1:] + run.q[:-1]) / 2)

    def discrete_constraint(q: Floats) -> Floats:
        """(14) with epsilon = 1/2, the group velocity having the coefficient 1."""
        middle = (q[1:] + q[:-1]) / 2
        mu = np.asarray(jax.vmap(lambda x: system.one_forms(x, system.parameters)[0])(middle))
        return np.sum(mu * np.diff(q, axis=0), axis=1) / mu[:, fibre][:, 0] / example.h

    return Measured(
        run,
        np.linalg.norm((run.q - exact)[:, ~fibre], axis=1),
        energy,
        f * energy,
        discrete_constraint(np.where(fibre, exact, run.q)),
        discrete_constraint(run.q),
        discrete_constraint(_rounded(run.q)),
    )


def _rounded(x: Floats) -> Floats:
    return np.vectorize(lambda value: float(f"{value:.{DIGITS - 1}e}"))(x)


def largest(x: ArrayLike) -> float:
    return float(np.max(np.abs(x)))


# ---- rows -------------------------------------------------------------------------------------------
def of_order(quantity: str, exponent: int, reason: str = "") -> DeclaredRow:
    """A row for "of order 10^k"."""
    return statement(quantity, f"order 1e{exponent}", MAGNITUDE, 10.0**exponent, reason=reason)


def constraint_rows(figure: int, letter: str, orders: Mapping[str, int]) -> dict[str, DeclaredRow]:
    """Of figures 3, 7 and 10: as footnote 7 says it was done, and with the method's own group coordinate."""
    rows = {}
    for name, k in orders.items():
        what = f"figure {figure} {PARTS[name]}, {name}"
        rows[f"{name} exact"] = of_order(
            f"{what}: largest discrete constraint, exact {letter}",
            k,
            f"the exact {letter} does not belong to the method's other coordinates, and misses by the error "
            "of the method (errata FBO 29)",
        )
        rows[f"{name} rounded"] = check(
            f"{what}: largest discrete constraint, own {letter} at ten digits",
            f"order 1e{k}",
            MAGNITUDE,
            10.0**k,
            reason="rounding to ten digits is of this kind of size, but not of this order (errata FBO 29)",
            spread=None,
        )
    rows["own"] = check(
        f"the same with the methods' own {letter}, largest of all", "zero by (14)", ZERO, spread=None
    )
    return rows


def constraints(found: Mapping[str, Measured]) -> dict[str, float]:
    """Our numbers for `constraint_rows`."""
    ours = {}
    for name, each in found.items():
        ours[f"{name} exact"] = largest(each.constraint)
        ours[f"{name} rounded"] = largest(each.rounded_constraint)
    return ours | {"own": max(largest(each.own_constraint) for each in found.values())}


# ---- panels -----------------------------------------------------------------------------------------
def panels(letter: str, found: Mapping[str, Measured], numbers: Mapping[str, int]) -> tuple[Panel, ...]:
    """The figures of an example in the order of the paper; `numbers` says which of them shows what."""
    pthdel = found["PTHDEL"]
    by = {
        "rmsd": (
            _compared(
                f"figure {numbers['rmsd']}: distance from the exact motion", "rmsd error", found, "rmsd"
            ),
        ),
        "energy": (
            _compared(f"figure {numbers['energy']} (a)-(c): energy", "|E - 1|", found, "energy"),
            Panel(
                f"figure {numbers['energy']} (d), PTHDEL: Poincare energy",
                "t",
                "f (E - 1)",
                (Curve("PTHDEL", pthdel.middle, pthdel.poincare),),
            ),
        ),
        "constraint": (
            Panel(
                f"figure {numbers['constraint']}: discrete constraint",
                "t",
                "absolute value",
                (
                    *(
                        Curve(f"{n}, exact {letter}", x.middle, np.abs(x.constraint))
                        for n, x in found.items()
                    ),
                    *(
                        Curve(
                            f"{n}, own {letter}, ten digits",
                            *_peaks(x.middle, x.rounded_constraint),
                            "points",
                        )
                        for n, x in found.items()
                    ),
                ),
                "y",
            ),
        ),
    }
    return tuple(panel for what in numbers for panel in by[what])


def _compared(title: str, y: str, found: Mapping[str, Measured], what: str) -> Panel:
    """The three methods, one curve each."""
    curves = []
    for name, each in found.items():
        values = np.abs(getattr(each, what))
        t = each.run.t if len(values) == len(each.run.t) else each.middle
        curves.append(Curve(name, t[values > 0], values[values > 0]))
    return Panel(title, "t", y, tuple(curves), "y")


def _peaks(t: Floats, x: Floats) -> tuple[Floats, Floats]:
    """The largest size in every four steps: rounding errors, some of which are zero by chance."""
    pieces = np.array_split(np.arange(len(x)), max(1, len(x) // 4))
    return np.array([np.mean(t[i]) for i in pieces]), np.array([largest(x[i]) for i in pieces])
