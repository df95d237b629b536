"""What a mechanical system is: a Lagrangian L(q, v; p), constraints, parameters; all else is derived.

With M the mass matrix, a = dL/dv at v = 0, and phi(q, v) = 0 the constraints (phi = mu v, mu v + b,
or nonlinear with mu = dphi/dv, Chetaev's rule; or none, m = 0), the motion is JS (2), (22), (23):

    d/dt dL/dv - dL/dq = mu^T lam + force,      phi(q, v) = 0
    f   = dL/dq - (d2L/dv dq) v + force
    lam = -C^-1 (dphi/dq v + mu M^-1 f),        C = mu M^-1 mu^T
    acceleration = M^-1 (f + mu^T lam)

Where L or phi contain t, f has -d2L/dv dt as well, and dphi/dq v has dphi/dt beside it; see `system.time`.
With holonomic constraints g(q) = 0 the rows of dg/dq join those of mu; see `system.positions`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import ArrayLike

from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.errors import shown, unknown_name
from noslip.numerics.linear import orthogonal_rows, spd_solve
from noslip.numerics.tracing import Either
from noslip.system.captured import Captured
from noslip.system.derived import Parameters, Vector, constraints_by, derived, lagrangian_by, motion
from noslip.system.holonomic import Placed
from noslip.system.inputs import Signal, Steered
from noslip.system.time import TIME, Timed, timed, visible
from noslip.system.values import as_input, as_parameter
from noslip.system.words import Worded

MAPPINGS = ("first_integrals", "inputs")
Static = tuple[tuple[str, Any], ...]  # the fields by name, hashable


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False)
class System(Steered, Placed, Worded):
    """A Lagrangian system with linear, affine or nonlinear velocity constraints, or with none.

    At most one of `one_forms=mu(q, p)` of shape (m, n), the same with `drift=b(q, p)` of shape (m,), or
    `constraint=phi(q, v, p)` of shape (m,); beside them `holonomic=g(q, p)` of shape (k,). These,
    `lagrangian`, `frame` and first integrals may take t before p. `inputs` are parameters, with the values
    that they have where a run gives none. `scene` says what it looks like; see `noslip.scenes`, and the
    documentation for every argument. JAX sees a system as its parameters, so it can be an argument of jit,
    grad and vmap.
    """

    lagrangian: Callable[[Array, Array, Parameters], Array]
    _: KW_ONLY
    coordinates: tuple[str, ...]
    one_forms: Callable[[Array, Parameters], Array] | None = None
    drift: Callable[[Array, Parameters], Array] | None = None
    constraint: Callable[[Array, Array, Parameters], Array] | None = None
    parameters: Parameters = field(default_factory=dict)
    angles: tuple[str, ...] = ()
    force: Callable[[Array, Array, Array, Parameters], Array] | None = None
    frame: Callable[[Array, Parameters], Array] | None = None
    first_integrals: Mapping[str, Callable[[Array, Array, Parameters], Array]] = field(default_factory=dict)
    fibre: tuple[str, ...] | None = None
    multiplier: Callable[[Array, Parameters], Array] | None = None
    inputs: Mapping[str, float] = field(default_factory=dict)
    holonomic: Callable[[Array, Parameters], Array] | None = None
    rotations: tuple[str, ...] = ()
    scene: Callable[..., Any] | None = None
    signals: tuple[tuple[str, Signal], ...] = field(init=False, default=(), repr=False)
    m: int = field(init=False, default=0)
    k: int = field(init=False, default=0)
    captured: Captured = field(init=False, repr=False)
    orthogonal: bool = field(init=False, default=False, repr=False)

    def __post_init__(self) -> None:
        from noslip.system.checks import checked_structure

        assign = functools.partial(object.__setattr__, self)
        for name in ("coordinates", "angles", "fibre", "rotations"):
            value = getattr(self, name)
            if isinstance(value, str):
                raise TypeError(f"`{name}` must be a tuple of names, but the string '{value}' was provided")
            if not isinstance(value, Iterable | None):
                raise TypeError(f"`{name}` must be a tuple of names, but {shown(value)} was provided")
            assign(name, None if value is None else tuple(value))
        for name in ("parameters", "first_integrals", "inputs"):
            if not isinstance(getattr(self, name), Mapping):
                given = shown(getattr(self, name))
                raise TypeError(f"`{name}` must be a mapping of names, but {given} was provided")
        assign("inputs", {k: as_input(k, x) for k, x in self.inputs.items()})
        assign("parameters", {**self.inputs, **self.parameters})
        self._tell_time(assign)
        assign("parameters", {k: as_parameter(k, v) for k, v in self.parameters.items()})
        assign("captured", Captured(self._functions))
        for name, count in zip("mk", checked_structure(self), strict=True):
            assign(name, count)
        for name, function in self.made_homogeneous().items() if self.rotations else ():
            assign(name, function)
        assign("captured", Captured(self._functions))  # as it is after the functions have been traced

    def _tell_time(self, assign: Callable[[str, object], None]) -> None:
        """Which functions take t, by the number of their arguments; then time is among the parameters."""
        for name in ("lagrangian", "constraint"):
            assign(name, timed(getattr(self, name), 3))
        for name in ("one_forms", "drift", "frame", "holonomic"):
            assign(name, timed(getattr(self, name), 2))
        assign("first_integrals", {name: timed(f, 3) for name, f in self.first_integrals.items()})
        if any(isinstance(function, Timed) for function in self._functions.values()):
            assign("parameters", {TIME: 0.0} | dict(self.parameters))

    # ---- a pytree whose leaves are the parameters -------------------------------------------------
    def tree_flatten(self) -> tuple[tuple[dict[str, Either]], Static]:
        return (dict(self.parameters),), self._static

    @functools.cached_property
    def _static(self) -> Static:
        """All but the parameters, hashable."""
        return self.definition()

    def definition(self) -> Static:
        """What is said about it but for its parameters, hashable if the functions are."""
        static = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "parameters"}
        static |= {name: tuple(getattr(self, name).items()) for name in MAPPINGS}
        return tuple(static.items())

    @property
    def _functions(self) -> dict[str, Callable[..., Any]]:
        names = ("lagrangian", "one_forms", "drift", "constraint", "force", "frame", "multiplier",
                 "holonomic")  # fmt: skip
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        given |= {f"first_integrals['{name}']": f for name, f in self.first_integrals.items()}
        return given | {f"inputs['{name}']": f for name, f in self.signals}

    def refuse_changed(self) -> None:
        """Raise where a function reads a value that is no longer what it was when the system was made."""
        if name := self.captured.changed():
            raise ValueError(
                f"a function of the system reads {name}, which must stay as it was when the System was made, "
                "but it has changed; make a new System, or make it one of the `parameters`"
            )

    @functools.cached_property
    def remembered(self) -> dict[Hashable, Any]:
        """What others have worked out about this very system with these parameters; gone with it."""
        return {}

    def __getstate__(self) -> dict[str, object]:
        """For pickling: all but what can be worked out again."""
        again = ("remembered", "captured", "_static")
        return {name: value for name, value in vars(self).items() if name not in again}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        object.__setattr__(self, "captured", Captured(self._functions))

    @classmethod
    def tree_unflatten(cls, static: Static, children: tuple[dict[str, Either]]) -> Self:
        system = object.__new__(cls)
        for name, value in static:
            object.__setattr__(system, name, dict(value) if name in MAPPINGS else value)
        object.__setattr__(system, "parameters", children[0])
        system.__dict__["_static"] = static
        return system

    def with_parameters(self, parameters: Parameters) -> Self:
        """The same system with some parameters replaced."""
        for name in parameters:
            if name not in self.parameters:
                raise ValueError(unknown_name("parameter", name, visible(self.parameters)))
            shape, wanted = np.shape(parameters[name]), np.shape(self.parameters[name])
            if shape != wanted:
                raise ValueError(f"parameter '{name}' must have shape {wanted}, but {shape} was provided")
        values = dict(self.parameters) | {k: as_parameter(k, v) for k, v in parameters.items()}
        _, static = self.tree_flatten()
        return self.tree_unflatten(static, (values,))

    def with_signals(self, signals: Mapping[str, Signal]) -> Self:
        """The same system with some inputs as functions of t, for JAX."""
        key = ("signals", *signals.items())
        if key not in self.remembered:
            own = tuple((dict(self.signals) | dict(signals)).items())
            made = self.tree_unflatten(self._changed(signals=own), (dict(self.parameters),))
            captured = Captured(made._functions)
            static = made._changed(captured=captured)
            self.remembered[key] = self.tree_unflatten(static, (dict(self.parameters),))
        return self.remembered[key]

    def _changed(self, **changes: object) -> Static:
        """All but the parameters, with some of it changed."""
        return tuple((name, changes.get(name, value)) for name, value in self._static)

    def with_orthogonal_forms(self) -> Self:
        """The same motion with its one-forms made orthogonal wherever C = mu M^-1 mu^T is inverted, which
        squares their condition: for forms that are nearly parallel."""
        if "orthogonal" not in self.remembered:
            static = self._changed(orthogonal=True)
            self.remembered["orthogonal"] = self.tree_unflatten(static, (dict(self.parameters),))
        return self.remembered["orthogonal"]

    def without_first_integrals(self) -> Self:
        """The same motion with nothing declared about it."""
        return self.tree_unflatten(self._changed(first_integrals=()), (dict(self.parameters),))

    # ---- shapes and kinds -------------------------------------------------------------------------
    @functools.cached_property
    def n(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @functools.cached_property
    def kind(self) -> str:
        """Of the constraints: 'linear', 'affine' or 'nonlinear'; no constraints at all count as linear."""
        return "nonlinear" if self.constraint else "affine" if self.drift else "linear"

    @functools.cached_property
    def angle_mask(self) -> np.ndarray:
        """True where a coordinate is a declared angle."""
        return np.array([name in self.angles for name in self.coordinates])

    def index(self, name: str) -> int:
        """Position of a coordinate."""
        if name not in self.coordinates:
            raise ValueError(unknown_name("coordinate", name, self.coordinates))
        return self.coordinates.index(name)

    # ---- the Lagrangian and its derivatives -------------------------------------------------------
    @derived
    def dL_dq(self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """Derivative of the Lagrangian by the coordinates."""
        return lagrangian_by(self, "q", q, v)

    @derived
    def momentum(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """p = dL/dv."""
        return lagrangian_by(self, "v", q, v)

    @derived
    def mass_matrix(self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """M(q) = d2L/dv2."""
        return lagrangian_by(self, "vv", q, jnp.zeros_like(q))

    @derived
    def velocity(
        self, q: Vector, p: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """The velocity whose momentum is p."""
        return spd_solve(self.mass_matrix(q), p - self.momentum(q, jnp.zeros_like(q)))

    @derived
    def energy(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """E = v . dL/dv - L."""
        return jnp.dot(v, self.momentum(q, v)) - lagrangian_by(self, "", q, v)

    @derived
    def energy_scale(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """|T| + |V|, the size against which an energy error means something."""
        potential = -lagrangian_by(self, "", q, jnp.zeros_like(v))
        return jnp.abs(self.energy(q, v) - potential) + jnp.abs(potential)

    @derived
    def potential_force(self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """-dV/dq, where V(q) = -L(q, 0)."""
        return self.dL_dq(q, jnp.zeros_like(q))

    @derived
    def applied_force(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """The external force, zero where the system has none."""
        return jnp.zeros_like(q) if self.force is None else self.force(q, v, t, self.parameters)

    # ---- the constraints --------------------------------------------------------------------------
    @derived
    def phi(self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """Value of the constraints, then G v of the holonomic ones; zero on admissible states."""
        own = constraints_by(self, "", q, v)
        return jnp.concatenate([own, self.further_phi(q, v)]) if self.rows > self.m else own

    @derived
    def mu(self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """dphi/dv, shape (rows, n): the directions of the reaction, after m rows G = dg/dq. For linear
        constraints v is not used."""
        own = constraints_by(self, "v", q, v)
        return jnp.concatenate([own, self.further_forms(q)]) if self.rows > self.m else own

    @derived
    def constraint_size(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """The sizes of the terms that phi is the sum of: |mu| |v| + |phi(q, 0)|."""
        terms, rest = jnp.abs(self.mu(q, v)) @ jnp.abs(v), jnp.zeros_like(v)
        if self.constraint is None:
            return terms if self.drift is None else terms + jnp.abs(self.phi(q, rest))
        at_rest = jnp.abs(self.phi(q, rest))
        return terms + jnp.where(jnp.isfinite(at_rest), at_rest, 0.0)

    def is_admissible(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> bool:
        """Whether phi(q, v) is zero to 1e-9 of its own terms, or to what the rounding of q leaves of it."""
        from noslip.system.conditions import admissibility

        system = self if parameters is None else self.with_parameters(parameters)
        system = system if t is None else system.at(float(t))
        phi, allowed = evaluate_anyhow(
            admissibility, None, system, *(np.asarray(x, float)[None] for x in (q, v))
        )
        return bool(np.all(np.abs(phi) <= allowed))

    # ---- the motion -------------------------------------------------------------------------------
    @derived
    def multipliers(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """lam of JS (23), generalised to forces, drift and nonlinear constraints."""
        return motion(self, q, v, t)[0]

    @derived
    def acceleration(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """dv/dt, the vector field of JS (22)."""
        return motion(self, q, v, t)[1]

    @derived
    def power(self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None) -> Array:
        """dE/dt = lam^T mu v + force . v - dL/dt: of the reaction, the force, and what moves L."""
        reaction = self.mu(q, v).T @ self.multipliers(q, v, t)
        power = (reaction + self.applied_force(q, v, t)) @ v
        if not self.moving:
            return power
        return power - jax.grad(lambda s: self.lagrangian(q, v, self.at(s).parameters))(t)

    @derived
    def _projection(self, q: Vector, v: Vector) -> tuple[Array, Array]:
        """phi(q, v), and M^-1 mu^T C^-1, which turns it into the M-shortest correction of v."""
        mu, M = self.mu(q, v), self.mass_matrix(q)
        if self.orthogonal:
            unit, T = orthogonal_rows(mu)
            lift = spd_solve(M, unit.T)
            return self.phi(q, v), spd_solve(unit @ lift, lift.T).T @ T
        lift = spd_solve(M, mu.T)
        return self.phi(q, v), spd_solve(mu @ lift, lift.T).T

    @derived
    def project_velocity(
        self, q: Vector, v: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> Array:
        """The nearest velocity, in the kinetic metric, that satisfies linear or affine constraints.

        For nonlinear ones Newton steps along M^-1 mu^T lead to one nearby; look at `phi` of the result.
        """
        for _ in range(20 if self.kind == "nonlinear" else 2):  # the second removes round-off
            phi, correction = self._projection(q, v)
            v = v - correction @ phi
        return v

    def consistent_velocity(
        self,
        q: Vector,
        fixed: Mapping[str, ArrayLike],
        t: Vector = None,
        *,
        parameters: Parameters | None = None,
    ) -> np.ndarray:
        """The admissible velocity of least kinetic energy with the speeds in `fixed`: of a coordinate by its
        name, or of a function f(q, v, p) as {"name": (f, value)}. Says what cannot be."""
        from noslip.system.starts import consistent_velocity

        system = self if parameters is None else self.with_parameters(parameters)
        return consistent_velocity(system if t is None else system.at(float(t)), np.asarray(q, float), fixed)

    @derived
    def projectors(
        self, q: Vector, t: Vector = None, *, parameters: Parameters | None = None
    ) -> tuple[Array, Array]:
        """(P, Q) of LMS section 5: M-orthogonal projections of vectors onto D_q and its complement."""
        if self.kind == "nonlinear":
            raise ValueError("projectors(q) needs linear or affine constraints, but these are nonlinear")
        correction = self._projection(q, jnp.zeros_like(q))[1]
        Q = correction @ self.mu(q, jnp.zeros_like(q))
        return jnp.eye(self.n) - Q, Q
