"""Systems from SymPy's own methods: `LagrangesMethod` and `KanesMethod`.

Kane's method has speeds u with kinematic equations dq/dt = K(q) u + b, so u = (K^T K)^-1 K^T (dq/dt - b),
with K^-1 for as many speeds as coordinates. In these velocities the bodies have their kinetic energy T, and a
load f on a point or frame that moves with w the generalised force f . dw/d(dq/dt). With any V the motion is

    L = T - V,      force = load + dV/dq

so that a potential which the loads have is taken out of them, and their work is energy that methods know.
Velocity constraints that only repeat the derivatives of configuration constraints are left out. Lagrange's
equations need the velocities of bodies to be derivatives of positions: with dv = J dq and dW = W_k dq_k

    d_j J_k = d_k J_j,      d_j W_k - d_k W_j = W_j x W_k

so a method into whose velocities rolling is built in, without the coordinates that roll, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, Particle, ReferenceFrame, dynamicsymbols

from noslip.symbolic._exact import generic_rank, is_zero
from noslip.symbolic._system import SymbolicSystem, system

Substitution = Callable[[Any], Any]


def from_lagrange(
    method: LagrangesMethod,
    constants: Mapping[sp.Symbol, Any],
    *,
    angles: Sequence[sp.Expr | str] = (),
    first_integrals: Mapping[str, sp.Expr] | None = None,
    inputs: Mapping[sp.Symbol, float] | None = None,
    rotations: Sequence[str] = (),
) -> SymbolicSystem:
    """The system of SymPy's `LagrangesMethod`: its Lagrangian, its constraints of both kinds, its loads. The
    keywords are those of `symbolic.system`."""
    if not isinstance(method, LagrangesMethod):
        raise TypeError(f"`method` must be a LagrangesMethod, but {type(method).__name__} was provided")
    q, holonomic = list(method.q), list(method._hol_coneqs)
    force = None
    if method.forcelist:
        if method.inertial is None:
            raise ValueError("a LagrangesMethod with loads must have a `frame`, but it has none")
        force = _generalised(method.forcelist, method.inertial, q, lambda x: x)
    return system(
        method._L[0],
        q,
        list(method.coneqs)[len(holonomic) :],
        constants,
        holonomic_constraints=holonomic,
        force=force,
        angles=angles,
        first_integrals=first_integrals,
        inputs=inputs,
        rotations=rotations,
    )


def from_kane(
    method: KanesMethod,
    constants: Mapping[sp.Symbol, Any],
    *,
    potential: sp.Expr | None = None,
    angles: Sequence[sp.Expr | str] = (),
    first_integrals: Mapping[str, sp.Expr] | None = None,
    inputs: Mapping[sp.Symbol, float] | None = None,
    rotations: Sequence[str] = (),
) -> SymbolicSystem:
    """The system of SymPy's `KanesMethod`: the kinetic energy of its bodies, its loads and constraints.

    `potential` is what of the loads has one, by default the sum of the bodies' `potential_energy`; the motion
    is that of the loads whatever it is. The other keywords are those of `symbolic.system`; first integrals
    may contain the speeds of the method.
    """
    if not isinstance(method, KanesMethod):
        raise TypeError(f"`method` must be a KanesMethod, but {type(method).__name__} was provided")
    if not method.bodies:
        raise ValueError(
            "a KanesMethod must have `bodies`, or have been asked for its equations, but it has none"
        )
    if method._uaux:
        raise ValueError(f"a KanesMethod must have no auxiliary speeds, but it has {list(method._uaux)}")
    if len(method.u) > len(method.q):
        raise ValueError(
            "a KanesMethod must have no more speeds than coordinates, but it has "
            f"{len(method.u)} and {len(method.q)}"
        )
    q, frame, plain = list(method.q), method._inertial, _without_speeds(method)
    kinetic = sum((plain(body.kinetic_energy(frame)) for body in method.bodies), sp.Integer(0))
    V = (
        sum((body.potential_energy for body in method.bodies), sp.Integer(0))
        if potential is None
        else potential
    )
    V = plain(sp.sympify(V))
    loads = _generalised(method.loads or [], frame, q, plain)
    force = [x + V.diff(y) for x, y in zip(loads, q, strict=True)]
    holonomic = [plain(g) for g in method._f_h]
    given = first_integrals.items() if isinstance(first_integrals, Mapping) else ()
    made = system(
        kinetic - V,
        q,
        _not_repeated(holonomic, [plain(x) for x in _velocity_constraints(method)], q),
        constants,
        holonomic_constraints=holonomic,
        force=None if all(_vanishes(x, q) for x in force) else force,
        angles=angles,
        first_integrals={k: plain(x) for k, x in given} if given else first_integrals,
        inputs=inputs,
        rotations=rotations,
    )
    for body in method.bodies:
        _refuse_reduced(made, body, frame, plain)
    return made


def _without_speeds(method: KanesMethod) -> Substitution:
    """Puts velocities of coordinates in the place of the speeds of the method."""
    rates = method.kindiffdict()
    qd = [x.diff(dynamicsymbols._t) for x in method.q]
    right, u = sp.Matrix([rates[x] for x in qd]), sp.Matrix(method.u)
    K = right.jacobian(u)
    b = (right - K * u).applyfunc(sp.simplify)
    left = K.inv() if K.rows == K.cols else (K.T * K).applyfunc(sp.simplify).inv() * K.T
    speeds = (left * (sp.Matrix(qd) - b)).applyfunc(sp.simplify)
    rule = dict(zip(method.u, speeds, strict=True))
    return lambda x: sp.sympify(x).xreplace(rule)


def _velocity_constraints(method: KanesMethod) -> list[sp.Expr]:
    if not len(method._f_nh):
        return []
    return list(method._k_nh * sp.Matrix(method.u) + method._f_nh)


def _generalised(
    loads: Iterable[Any], frame: ReferenceFrame, q: list[sp.Expr], plain: Substitution
) -> list[sp.Expr]:
    """The loads on points and frames as forces along the coordinates."""
    qd, total = sp.Matrix([x.diff(dynamicsymbols._t) for x in q]), sp.zeros(1, len(q))
    for load in loads:
        place, vector = load[0], load[1]
        motion = place.ang_vel_in(frame) if isinstance(place, ReferenceFrame) else place.vel(frame)
        f = sp.Matrix(vector.to_matrix(frame)).applyfunc(plain)
        total += f.T * sp.Matrix(motion.to_matrix(frame)).applyfunc(plain).jacobian(qd)
    return list(total)


def _not_repeated(holonomic: list[sp.Expr], velocity: list[sp.Expr], q: list[sp.Expr]) -> list[sp.Expr]:
    """Of the velocity constraints those that, with the derivatives of the others, are independent."""
    if not holonomic:
        return velocity
    names, qd = _symbols(q), [x.diff(dynamicsymbols._t) for x in q]
    kept: list[sp.Expr] = []
    rows = sp.Matrix(holonomic).jacobian(q).xreplace(names)
    for phi in velocity:
        more = rows.col_join(sp.Matrix([phi]).jacobian(qd).xreplace(names))
        if generic_rank(more) == more.rows:
            rows, kept = more, [*kept, phi]
    return kept


def _refuse_reduced(made: SymbolicSystem, body: Any, frame: ReferenceFrame, plain: Substitution) -> None:
    """Where velocities of a body are no derivatives of its position, at a point drawn at random."""
    rng, q = np.random.default_rng(0), list(made.model.symbols.coordinates)
    at = rng.uniform(0.3, 0.9, len(q))
    for block in made.blocks:
        at[list(block)] /= np.linalg.norm(at[list(block)])
    along = np.eye(len(q)) - sum((np.outer(x, x) for x in _radial(made, at)), np.zeros((len(q), len(q))))
    centre = body.point if isinstance(body, Particle) else body.masscenter
    vectors = [centre.vel(frame)] + ([] if isinstance(body, Particle) else [body.frame.ang_vel_in(frame)])
    for k, vector in enumerate(vectors):
        J = _slopes(made, plain, sp.Matrix(vector.to_matrix(frame)))
        columns, change = map(np.asarray, jax.jit(lambda at, J=J: (J(at), jax.jacfwd(J)(at)))(at))
        columns, change = columns @ along, np.einsum("ijk,ja,kb->iab", change, along, along)
        turned = np.cross(columns.T[:, None], columns.T[None], axis=-1).transpose(2, 1, 0) if k else 0.0
        defect = change - change.transpose(0, 2, 1) - turned
        if not np.max(np.abs(defect)) <= 1e-9 * (1 + np.max(np.abs(change))):
            raise ValueError(
                f"the velocities of the body '{body.name}' must be derivatives of its position, but they are "
                "not: rolling, or the like, is built into them; make what rolls coordinates, and rolling "
                "velocity constraints"
            )


def _radial(made: SymbolicSystem, at: np.ndarray) -> list[np.ndarray]:
    """The directions of the quaternions themselves."""
    return [np.where(np.isin(np.arange(at.size), block), at, 0.0) for block in made.blocks]


def _slopes(made: SymbolicSystem, plain: Substitution, vector: sp.Matrix) -> Callable[[Any], Any]:
    """d vector / d velocities as a function of q, with the numbers of the system."""
    s = made.model.symbols
    qd = sp.Matrix([x.diff(s.time) for x in s.coordinates])
    J = vector.applyfunc(plain).jacobian(qd)
    values = {c: sp.Float(float(made.parameters[c.name])) for c in s.constants}
    J = J.xreplace(values).xreplace(_symbols(list(s.coordinates))).subs(s.time, 0)
    names = [_symbols(list(s.coordinates))[x] for x in s.coordinates]
    entries = sp.lambdify(names, list(J), modules="jax", cse=True)
    return lambda q: jnp.array(entries(*q), float).reshape(3, len(names))


def _symbols(q: list[sp.Expr]) -> dict[sp.Expr, sp.Symbol]:
    """Plain symbols for coordinates and velocities."""
    t = dynamicsymbols._t
    pairs = [(x.diff(t), sp.Symbol(f"v_{k}", real=True)) for k, x in enumerate(q)]
    return dict(pairs + [(x, sp.Symbol(f"q_{k}", real=True)) for k, x in enumerate(q)])


def _vanishes(x: sp.Expr, q: list[sp.Expr]) -> bool:
    return is_zero(x.xreplace(_symbols(q)))
