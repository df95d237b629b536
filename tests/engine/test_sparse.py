"""Elimination with known places against LAPACK."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noslip.engine.backends import native
from noslip.engine.program import Dense, walk
from noslip.engine.translate import solves, sparse, translate
from noslip.engine.translate.builder import Builder
from noslip.numerics import linear

N = 40
rng = np.random.default_rng(5)


def banded(n: int, width: int) -> np.ndarray:
    """Symmetric positive definite, with its rows and columns in random order."""
    i = np.arange(n)
    a = np.where(abs(i[:, None] - i) <= width, rng.standard_normal((n, n)), 0.0)
    a, order = a @ a.T + np.eye(n), rng.permutation(n)
    return a[np.ix_(order, order)]


def saddle(n: int, m: int) -> np.ndarray:
    """[[A, B^T], [C, 0]] with a nearly symmetric A and a C near B, of rows that are coupled to their
    neighbours."""
    A = banded(n, 1) + 0.01 * np.diag(rng.standard_normal(n - 1), 1)
    B = np.zeros((m, n))
    for k in range(m):
        B[k, 2 * k : 2 * k + 4] = rng.standard_normal(min(4, n - 2 * k))
    return np.block([[A, -0.1 * B.T], [B * (1 + 0.01 * rng.standard_normal(B.shape)), np.zeros((m, m))]])


def compiled(solve, a: np.ndarray, y: np.ndarray):
    """What a program finds that knows the zeros of `a` and nothing else of it; and the program."""
    places = np.nonzero(a)
    program = translate(
        lambda _, given: solve(jnp.zeros(a.shape).at[places].set(given[0]), given[1]), (), (a[places], y)
    )
    out = np.empty(len(y) * max(1, y.size // len(y)))
    given = np.concatenate([a[places], y.ravel()])
    native.map_function(program, 1)(np.zeros(1), given, out, 1)
    return out.reshape(y.shape), program


def is_dense(program) -> bool:
    return any(isinstance(item, Dense) for item in walk(program.main))


def again(a, y, sizes=None):
    return linear.solver(a, jnp.ones(len(a)) if sizes is None else sizes)(y)


@pytest.mark.parametrize("scales", [0, 12])
def test_known_places_solve_what_lapack_solves_whatever_the_scales(scales):
    for a, solve in ((banded(N, 2), linear.spd_solve), (saddle(30, 10), again)):
        r, c = (10.0 ** rng.uniform(-scales, scales, len(a)) for _ in range(2))
        if solve is linear.spd_solve:
            c = r
        y = r * rng.standard_normal(len(a))
        sized = partial(again, sizes=1 / c) if solve is again else solve
        x, program = compiled(sized, r[:, None] * a * c, y)
        assert not is_dense(program)
        exact = np.linalg.solve(a, y / r) / c
        np.testing.assert_allclose(x * c, exact * c, rtol=1e-9, atol=1e-11 * abs(exact * c).max())


def test_several_right_sides_are_solved_at_once():
    a, y = banded(N, 1), rng.standard_normal((N, 3))
    x, program = compiled(linear.spd_solve, a, y)
    assert not is_dense(program)
    np.testing.assert_allclose(x, np.linalg.solve(a, y), rtol=1e-9, atol=1e-12)


def test_the_operations_of_a_chain_are_in_proportion_to_its_length():
    sizes = []
    for n in (40, 80):
        a = np.diag(np.full(n, 3.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
        sizes.append(compiled(linear.spd_solve, a, np.ones(n))[1].operations())
    assert sizes[1] < 2.1 * sizes[0]


@pytest.mark.parametrize("n", [2, 3, 5, 12, N])
def test_a_matrix_without_zeros_is_left_to_the_dense_routine(n):
    assert is_dense(compiled(again, rng.standard_normal((n, n)), np.ones(n))[1])


@pytest.mark.parametrize(("n", "m"), [(3, 1), (4, 2), (6, 3)])
def test_a_small_matrix_is_eliminated_by_its_known_places_too(n, m):
    """[[D, -B^T], [B, 0]] with a diagonal D, as of a skate or a disk."""
    a = np.block([[np.diag(rng.uniform(1, 2, n)), np.zeros((n, m))], [np.zeros((m, n + m))]])
    for k in range(m):
        a[n + k, [k, k + 1]] = rng.standard_normal(2)
        a[[k, k + 1], n + k] = -a[n + k, [k, k + 1]]
    y = rng.standard_normal(n + m)
    x, program = compiled(again, a, y)
    assert not is_dense(program)
    np.testing.assert_allclose(x, np.linalg.solve(a, y), rtol=1e-11)


@pytest.fixture
def unstable():
    """A matrix of condition 8 whose pivots in the order of its places are some 1e-14."""
    block = np.array([[1e-14, 1.0], [1.0, 1e-14]])
    a = np.kron(np.eye(N // 2), block)
    a[1:, :-1] += np.diag(np.where(np.arange(N - 1) % 2, 0.3, 0.0))
    assert np.linalg.cond(a) < 8
    return a


def test_an_inaccurate_elimination_is_seen_and_the_dense_routine_solves_instead(unstable):
    y = rng.standard_normal(N)
    x, program = compiled(linear.solve, unstable, y)
    assert is_dense(program)
    np.testing.assert_allclose(x, np.linalg.solve(unstable, y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("pivot", [1e-3, 1e-5])
def test_a_solution_that_counts_itself_has_all_its_digits(pivot):
    """Small pivots cost an elimination without exchanges as many digits as they have zeros in front."""
    block = np.array([[pivot, 1.0], [1.1, 2 * pivot]])
    a, y = np.kron(np.eye(N // 2), block), rng.standard_normal(N)
    x = compiled(linear.solve, a, y)[0]
    assert np.all(abs(y - a @ x) <= 2e-14 * (abs(y) + abs(a) @ abs(x)))


def test_a_diagonal_that_only_one_side_would_fill_is_left_to_the_dense_routine():
    """Unknown 15 is in equation 0 alone, and its own equation has unknown 1 alone; 14 the other way round."""
    a, y = np.diag(np.concatenate([np.arange(1.0, 15.0), np.zeros(2)])), rng.standard_normal(16)
    a[[14, 15, 1, 0], [0, 1, 14, 15]] = [2.0, 3.0, 4.0, 5.0]
    x, program = compiled(linear.solve, a, y)
    assert is_dense(program)
    np.testing.assert_allclose(x, np.linalg.solve(a, y), rtol=1e-12)


def test_an_inaccurate_elimination_gives_no_number_to_an_iteration(unstable, monkeypatch):
    y = rng.standard_normal(N)
    assert np.isnan(compiled(again, unstable, y)[0]).all()
    monkeypatch.setattr(sparse, "ACCURATE", 1e9)  # so it is the check that sees it
    x = compiled(again, unstable, y)[0]
    assert abs(unstable @ x - y).max() > 1e-6


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_gives_no_number_also_where_a_row_is_a_quotient(value):
    """y / inf is 0, and an iteration would think that nothing is left to do."""
    for place in (0, N // 2):
        a, y = np.diag(np.arange(1.0, N + 1)), rng.standard_normal(N)
        a[: N // 2, : N // 2] += np.eye(N // 2, k=1) + np.eye(N // 2, k=-1)
        a[-1 - place, -1 - place] = value
        assert np.isnan(compiled(again, a, y)[0]).all()


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_a_row_of_round_off_is_no_bad_elimination_for_an_iteration(size):
    """Where a single unknown is not zero, what cancels leaves 1e-16 in rows that do not contain it."""
    a, x = saddle(30, 10), np.zeros(40)
    x[12] = 0.7
    found, program = compiled(lambda a, y: again(a, y, jnp.full(40, size)), a, a @ x)
    assert not is_dense(program)
    np.testing.assert_allclose(found, x, atol=1e-14)


def test_an_unknown_without_a_pivot_waits_for_all_that_it_is_coupled_to():
    """The diagonal entry that eliminating x alone gives to the multiplier is sin^2(0) = 0."""
    m = 8
    a = np.eye(3 * m)
    for k in range(m):
        a[2 * m + k, 2 * m + k] = 0.0
        a[2 * m + k, [2 * k, 2 * k + 1]] = a[[2 * k, 2 * k + 1], 2 * m + k] = [1e-300, 1.0]
    y = rng.standard_normal(3 * m)
    x, program = compiled(again, a, y)
    assert not is_dense(program)
    np.testing.assert_allclose(x, np.linalg.solve(a, y), rtol=1e-12)


def test_a_pivot_that_is_always_zero_is_no_pivot():
    b = Builder()
    a = np.full((14, 14), b.const(0.0))
    a[np.arange(14), np.arange(14)[::-1]] = b.const(2.0)
    assert sparse.pivots(b, a) is None
    assert solves.known_solve(b, a, a[:, :1], a[0]) is None


def test_members_of_a_vmap_share_nothing_but_the_code():
    a, y = rng.standard_normal((3, 5, 5)), rng.standard_normal((3, 5))
    np.testing.assert_allclose(jax.vmap(again)(a, y), np.linalg.solve(a, y[..., None])[..., 0], rtol=1e-9)
