"""CFHM figure 2, top left: the order of five methods on the chaotic system.

Errors at t = 10 against the exact motion, from the typical state of the catalogue, whose energy is the
paper's 3.06 (the paper's own state is random and not printed). Beside the five methods of the figure
stand GONZALEZ-R, which finds its frame by Householder reflections, and the variant of remark 3.5, in
which the derivatives of that frame are differences: both keep the order. Remark 3.4 counts the unknowns
of a step; with rank m of D it says 3 n - m for (15) and n + m for (14). Ours needs fewer for (15), since
the multipliers are eliminated inside the step. What it says about the cost is measured as the number of
arithmetic operations in the program of a step, the loops of its solve counted once.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from noslip.analysis.order import slope
from noslip.integrators.base import Integrator
from noslip.integrators.discrete_gradient import DiscreteGradient
from noslip.integrators.full_space_discrete_gradient import FullSpaceDiscreteGradient
from noslip.integrators.reference_flow import ReferenceFlow
from noslip.plots.panels import Curve, Panel
from noslip.run.pairing import pairing_of
from noslip.simulate import simulate
from noslip.studies._base import Study, Track, exponent, judge, statement
from noslip.studies._quartic import METHODS
from noslip.studies._rules import EQUAL, LARGER, ZERO
from noslip.system import System
from noslip.systems import quartic

PAPER = "CFHM"
T_END = 10.0
GONZALEZ_R = DiscreteGradient(frame="householder")
DIFFERENCES = DiscreteGradient(frame="householder", frame_derivative="finite_difference")
RANK = 6  # of D, the paper's m
ALL = {**METHODS, "GONZALEZ-R": GONZALEZ_R, "GONZALEZ-R, differences": DIFFERENCES}
ROWS = {
    **{name: exponent(f"order of {name}", 2) for name in ALL},
    "(14)": statement("remark 3.4: unknowns of a step of (14), n + m", "13", EQUAL, 7 + RANK),
    "(15)": statement(
        "remark 3.4: unknowns of a step of (15), 3 n - m",
        "15",
        EQUAL,
        3 * 7 - RANK,
        reason="the multipliers are eliminated inside the step, so that only (q, p) is iterated",
    ),
    "cost of (15)": statement(
        "remark 3.4: operations of GONZALEZ-F over those of GONZALEZ",
        "(14) is cheaper",
        LARGER,
        reason="with the multipliers eliminated inside the step the two cost the same",
        spread=None,
    ),
    "cost of R": statement(
        "remark 3.4: operations of GONZALEZ-R over those of GONZALEZ", "a rise in cost", LARGER, spread=0.05
    ),
    "energy": statement("remark 3.5: energy error with differences", "preserved", ZERO, spread=None),
    "constraint": statement("remark 3.5: constraint with differences", "preserved", ZERO, spread=None),
}


def run(full: bool, track: Track) -> Study:
    steps = (160, 320, 640, 1280, 2560) if full else (320, 640, 1280)
    hs = T_END / np.array(steps)
    system, (q0, v0) = quartic.system(), quartic.typical_state()
    end = simulate(system, ReferenceFlow(), q0, v0, step_size=T_END, steps=1).q[-1]
    ours: dict[str, float] = {}
    curves = []
    for name, method in track(list(ALL.items()), "order of each method"):
        errors = []
        for n in steps:
            found = simulate(system, method, q0, v0, step_size=T_END / n, steps=n, save_every=n)
            errors.append(float(np.max(np.abs(found.q[-1] - end))))
        ours[name] = slope(hs, np.array(errors))
        curves.append(Curve(name, hs, errors, "marked"))
    last = simulate(system, DIFFERENCES, q0, v0, step_size=0.1, t_end=T_END)
    plain = operations(system, METHODS["GONZALEZ"])
    ours |= {
        "(14)": unknowns(system, METHODS["GONZALEZ"]),
        "(15)": unknowns(system, FullSpaceDiscreteGradient()),
        "cost of (15)": operations(system, FullSpaceDiscreteGradient()) / plain,
        "cost of R": operations(system, GONZALEZ_R) / plain,
        "energy": float(np.max(np.abs(last.energy / last.energy[0] - 1))),
        "constraint": float(np.max(np.abs(last.constraint_residual))),
    }
    guide = Curve("slope 2", hs[[0, -1]], 3e-1 * hs[[0, -1]] ** 2, "reference")
    return Study(
        {"n": 3, "t_end": T_END, "steps": steps, "q0": q0, "v0": v0},
        judge(ROWS, ours),
        (Panel("error at t = 10", "step h", "largest error of q", (*curves, guide), "xy"),),
    )


def operations(system: System, method: Integrator) -> int:
    """In the program of one step."""
    return int(pairing_of(system, method).programs.step.size())


def unknowns(system: System, method: Integrator) -> int:
    """How many numbers the solve of one step looks for."""

    def guess(q: jax.Array, v: jax.Array) -> object:
        state = method.init(system, q, v, jnp.zeros(()), jnp.array(0.1))
        return method.guess(system, state, jnp.array(0.1))

    q = jax.ShapeDtypeStruct((system.n,), float)
    return sum(int(np.prod(x.shape)) for x in jax.tree.leaves(jax.eval_shape(guess, q, q)))
