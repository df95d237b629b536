"""Groups as objects: what makes them groups, their texts, and Chaplygin systems that each of them reduces."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from noslip import System, integrators, load, rerun, simulate
from noslip.analysis import measured_order
from noslip.engine.backends.numpy_rows import evaluate_anyhow
from noslip.geometry import groups
from noslip.geometry.chaplygin import Reduction, reduction, refusal
from noslip.geometry.groups import Group, Planar, Product, Rotations, Translations
from noslip.geometry.hamiltonization import hamiltonize
from noslip.integrators.hamiltonized_del import HamiltonizedDEL
from noslip.integrators.reduced_dla import ReducedDLA
from noslip.systems import rolling_disk_on_incline
from noslip.testing.integrators import perturbed_case


@dataclass(frozen=True)
class Scalings(Group):
    """One's own: y -> exp(a) y + b, from its product and inverse alone."""

    fibre: tuple[str, ...]

    def multiply(self, g, f):
        return jnp.array([g[0] + f[0], g[1] + jnp.exp(g[0]) * f[1]])

    def inverse(self, g):
        return jnp.array([-g[0], -jnp.exp(-g[0]) * g[1]])


class NotAssociative(Scalings):
    def multiply(self, g, f):
        return jnp.array([g[0] + f[0], g[1] + jnp.exp(g[0] * f[0]) * f[1]])


class WrongConstants(Scalings):
    @property
    def structure_constants(self):
        return np.zeros((2, 2, 2))


class WrongStep(Scalings):
    def retract(self, xi):
        return xi


ALL = {
    "rotations": Rotations(("s0", "s1", "s2")),
    "translations": Translations(("s0", "s1")),
    "planar": Planar(("s0", "s1", "s2")),
    "product": Product(Scalings(("s0", "s1")), Translations(("s2",))),
    "own": Scalings(("s0", "s1")),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", ALL)
def test_it_is_a_group(name):
    assert max(groups.axiom_defects(ALL[name]).values()) < 1e-15
    assert groups.broken_axiom(ALL[name]) is None


@pytest.mark.parametrize(
    ("group", "what"),
    [
        (NotAssociative(("a", "b")), "NotAssociative must be a group, but .a b. c = a .b c. fails by"),
        (WrongConstants(("a", "b")), "but structure_constants fails by 1.0e"),
        (WrongStep(("a", "b")), r"but retract\(-xi\) = retract\(xi\)\^-1 fails by"),
        (Rotations(("a", "b")), "the rotations group needs 3 different coordinates"),
        (Product(Planar(("a", "b", "c")), Translations(("b",))), "needs 4 different coordinates"),
    ],
)
def test_what_is_no_group(group, what):
    coordinates = tuple("abcdef")[: group.dimension + 2]
    system = System(
        lambda q, v, p: 0.5 * jnp.dot(v, v),
        one_forms=lambda q, p: jnp.eye(group.dimension, len(coordinates)),
        coordinates=coordinates,
    )
    with pytest.raises(ValueError, match=what):
        reduction(system, group)


def test_the_rotations_are_those_of_scipy():
    """s = 4 tan(angle / 4) axis, also beyond half a turn."""

    def turned(s):
        size = np.linalg.norm(s)
        return Rotation.from_rotvec(4 * np.arctan(size / 4) * np.asarray(s) / size)

    a, b = np.array([[4.5, -2.0, 1.0], [0.3, 0.8, -1.1]])
    group = ALL["rotations"]
    product = (turned(a) * turned(b)).as_matrix()
    assert turned(a).magnitude() > np.pi / 2

    @jax.jit
    def both(a, b):
        return group.multiply(a, b), group.body_velocity(a, group.body_fields(a) @ b)

    multiplied, velocity = both(a, b)
    assert_allclose(turned(multiplied).as_matrix(), product, atol=1e-15)
    assert_allclose(velocity, b, atol=1e-14)


def test_a_group_has_a_text_and_a_text_a_group():
    pair = Product(Planar(("x", "y", "theta")), Translations(("z",)))
    text = "planar(x, y, theta) * translations(z)"
    assert groups.spelled(pair) == groups.spelled("planar( x,y, theta)*translations(z)") == text
    assert groups.parse(text) == pair
    assert groups.parse("rotations", ("a", "b", "c")) == Rotations(("a", "b", "c"))
    method = ReducedDLA(group=pair)
    assert method == ReducedDLA(group=text) == integrators.parse(integrators.spelled(method))
    own = ReducedDLA(group=ALL["own"])
    assert own == ReducedDLA(group=Scalings(("s0", "s1")))
    for wrong in ("so3", "planar * translations(z)", "planar(x"):
        with pytest.raises(
            ValueError, match="`group` must be one of translations, planar, rotations, or like"
        ):
            ReducedDLA(group=wrong)


def reduced_base(system, group):
    return Reduction(system, group).base_index


def both_motions(group, system, q, v):
    reduced = Reduction(system, group)
    r, w = q[reduced.base_index], v[reduced.base_index]
    full = system.acceleration(q, v)[reduced.base_index]
    return reduced.lift(q, w), reduced.acceleration(r, w), full, reduced.reaction(r, w)


# ---- a system for every group -------------------------------------------------------------------------
def made_for(group):
    """Of a group with two more coordinates: M depends on all of (r, s), m = dim G, and A is not linear."""
    m = group.dimension
    rng = np.random.default_rng(m)
    N, W, tilt = rng.normal(size=(m, 2)), rng.normal(size=(m, 2)), rng.normal(size=(m, m)) / 3

    def lagrangian(q, v, p):
        r, s, w = q[:2], q[2:], v[:2]
        xi = group.body_velocity(s, v[2:])
        inertia = jnp.eye(m) * (1.3 + jnp.sin(r[0]) / 3) + tilt @ tilt.T
        spin = xi + p["k"] * N @ w * jnp.cos(r[1])
        kinetic = (1 + r[1] ** 2 / 5) * w[0] ** 2 + 0.6 * w[0] * w[1] + 1.7 * w[1] ** 2
        return 0.5 * (kinetic + spin @ inertia @ spin) + jnp.cos(r[0] - 0.4 * r[1])

    def one_forms(q, p):
        r, s = q[:2], q[2:]
        A = W * jnp.sin(r[0] + jnp.arange(m)[:, None]) + 0.3 * N * r[1]
        inverse = jax.vmap(lambda e: group.body_velocity(s, e), out_axes=1)(jnp.eye(m))
        return jnp.concatenate([A, inverse], axis=1)

    names = ("a", "b", *(f"s{i}" for i in range(m)))
    system = System(lagrangian, one_forms=one_forms, coordinates=names, parameters={"k": 0.7})
    q, w = np.concatenate([[0.4, -0.6], 0.9 * rng.uniform(-1, 1, m)]), np.array([0.5, -0.4])
    A = np.asarray(system.mu(q, np.zeros(m + 2)))
    return system, q, np.concatenate([w, -np.linalg.solve(A[:, 2:], A[:, :2] @ w)])


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=() if x in ("rotations", "product") else pytest.mark.slow) for x in ALL]
)
def test_the_reduced_motion_is_that_of_the_full_system(name):
    """FBO (5)-(6) with the curvature of the group against Lagrange's equations with multipliers on Q."""
    system, q, v = made_for(ALL[name])
    assert refusal(system, ALL[name]) is None
    lifted, below, full, force = (
        x[0] for x in evaluate_anyhow(both_motions, ALL[name], system, np.array([q]), np.array([v]))
    )
    assert_allclose(lifted, v, atol=1e-14)
    assert_allclose(below, full, atol=1e-12)
    assert np.max(np.abs(force)) > 1e-3
    assert abs(force @ v[reduced_base(system, ALL[name])]) < 1e-13


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("forces", ["group", "curvature"])
@pytest.mark.parametrize("name", ALL)
def test_rdla_on_every_group(name, forces):
    """Order 2 on Q, (21) with (24)-(25) or (22)-(23), and the constraint."""
    system, q, v = made_for(ALL[name])
    method = ReducedDLA(epsilon=0.3, group=ALL[name], forces=forces)
    found = measured_order(system, method, q, v, t_end=1.0, steps=(20, 40, 80))
    assert_allclose(found.global_[:2], 2, atol=0.15)
    run = simulate(system, method, q, v, step_size=0.05, steps=20)
    assert np.max(np.abs(run.constraint_residual)) < 1e-13


# ---- another fibre of a known system ------------------------------------------------------------------
DOWN = Translations(("y", "phi"))


def test_a_disk_on_an_incline_is_chaplygin_with_fibre_y_phi():
    """Not with (x, y), along which the potential varies; f is cos(theta), as for the knife edge."""
    case = perturbed_case(rolling_disk_on_incline)
    with pytest.raises(ValueError, match="the Lagrangian must be invariant"):
        reduction(case.system)
    made = hamiltonize(case.system, DOWN)
    assert made.reduced.base == ("x", "theta")
    q, v = np.array([case.q0]), np.array([case.v0])
    _, below, full, _ = evaluate_anyhow(both_motions, DOWN, case.system, q, v)
    assert_allclose(below, full, atol=1e-14)
    assert_allclose(made.omega(case.q0[made.reduced.base_index]), [0, -np.tan(q[0, 2])], atol=1e-14)


@pytest.mark.thorough
@pytest.mark.parametrize("method", [ReducedDLA(group=DOWN), HamiltonizedDEL(group=DOWN)], ids=repr)
def test_the_methods_on_that_fibre(method, tmp_path):
    """Against the closed form, at order 2; a saved run knows its group."""
    case = perturbed_case(rolling_disk_on_incline)
    p = {name: float(case.system.parameters[name]) for name in ("m", "r", "I", "g", "alpha")}
    errors = []
    for steps in (20, 40):
        run = simulate(case.system, method, case.q0, case.v0, step_size=0.4 / steps, steps=steps)
        exact = rolling_disk_on_incline.exact(run.t, case.q0, case.v0, **p)[0]
        errors.append(np.max(np.abs(run.q - exact)))
    assert_allclose(np.log2(errors[0] / errors[1]), 2, atol=0.15)
    run.save(tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").info.options["group"] == "translations(y, phi)"
    assert rerun(tmp_path / "run.nc", system=case.system).identical
