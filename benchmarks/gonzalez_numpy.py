"""CFHM's Gonzalez scheme for the quartic system as a careful researcher writes it: NumPy and scipy.optimize.

z = (x, w, z, xi, eta) with rho = (xi, eta), n = 3 or any; H, its gradient and Hessian, Pi of CFHM (8) and the
Jacobian of the step are written out by hand, and the guess is extrapolated from the last two increments:

    H = |xi|^2/2 + |eta|^2/2 - (w . eta)^2 / (2 (1 + |w|^2)) + |q|^2/2 + (z1^2 z2^2 + sum w^2 z^2)/2
    z' = z + h Pi(m) g,     g = dH(m) + (H(z') - H(z) - dH(m) . d) / |d|^2 d,     m = (z + z')/2, d = z' - z

`run` solves each step by scipy.optimize.root (MINPACK's hybrid Powell method with that Jacobian) unless told
otherwise: `by_newton` is Newton in NumPy, `by_fixed_point` iterates the equation, which is good at h = 0.05.
"""

import numpy as np
from scipy.optimize import root


def split(z):
    n = (len(z) - 1) // 4
    return z[0], z[1 : n + 1], z[n + 1 : 2 * n + 1], z[2 * n + 1 : 3 * n + 1], z[3 * n + 1 :]


def energy(z):
    x, w, s, xi, eta = split(z)
    a = w @ eta
    kinetic = xi @ xi + eta @ eta - a * a / (1 + w @ w)
    quartic = s[0] ** 2 * s[1] ** 2 + (w * s) @ (w * s)
    return 0.5 * (kinetic + x * x + w @ w + s @ s + quartic)


def gradient(z):
    _, w, s, _, eta = split(z)
    kappa = (w @ eta) / (1 + w @ w)
    g = z.copy()
    _, gw, gs, _, geta = split(g)
    gw += w * s * s - kappa * eta + kappa * kappa * w
    gs += w * w * s
    gs[0] += s[0] * s[1] ** 2
    gs[1] += s[0] ** 2 * s[1]
    geta -= kappa * w
    return g


def hessian(z):
    _, w, s, _, eta = split(z)
    n, D = len(w), 1 + w @ w
    kappa = (w @ eta) / D
    W, E = (slice(1 + k * n, 1 + (k + 1) * n) for k in (0, 3))
    i = np.arange(n)
    H = np.eye(len(z))
    b = eta - 2 * kappa * w
    H[W, W] -= np.outer(b, b) / D
    H[1 + i, 1 + i] += s * s + kappa * kappa
    H[1 + n + i, 1 + n + i] += w * w
    H[1 + n, 1 + n] += s[1] ** 2
    H[2 + n, 2 + n] += s[0] ** 2
    H[1 + n, 2 + n] += 2 * s[0] * s[1]
    H[2 + n, 1 + n] += 2 * s[0] * s[1]
    H[1 + i, 1 + n + i] = H[1 + n + i, 1 + i] = 2 * w * s
    H[E, E] -= np.outer(w, w) / D
    cross = -np.outer(b, w) / D
    cross[i, i] -= kappa
    H[W, E], H[E, W] = cross, cross.T
    return H


def apply_pi(m, g):
    """Pi(m) g."""
    _, w, _, _, eta = split(m)
    gx, gw, gs, gxi, geta = split(g)
    kappa = (w @ eta) / (1 + w @ w)
    return np.concatenate([[w @ geta], gxi, -geta, -gw - kappa * geta, gs - w * gx + kappa * gxi])


def pi_matrix(m):
    _, w, _, _, eta = split(m)
    n = len(w)
    kappa = (w @ eta) / (1 + w @ w)
    W, S, X, E = (slice(1 + k * n, 1 + (k + 1) * n) for k in range(4))
    P = np.zeros((len(m), len(m)))
    one = np.eye(n)
    P[0, E], P[E, 0] = w, -w
    P[W, X], P[X, W] = one, -one
    P[S, E], P[E, S] = -one, one
    P[X, E], P[E, X] = -kappa * one, kappa * one
    return P


def discrete_gradient(z, H0, new):
    d, m = new - z, 0.5 * (new + z)
    g, square = gradient(m), d @ d
    alpha = (energy(new) - H0 - g @ d) / square if square else 0.0
    return m, d, g, g + alpha * d, alpha, square


def residual(new, z, H0, h):
    m, d, _, g, _, _ = discrete_gradient(z, H0, new)
    return d - h * apply_pi(m, g)


def jacobian(new, z, H0, h):
    """Of `residual` by `new`."""
    m, d, plain, g, alpha, square = discrete_gradient(z, H0, new)
    half = 0.5 * hessian(m)
    slope = (gradient(new) - plain - half @ d - 2 * alpha * d) / square if square else np.zeros(len(z))
    dg = half + np.outer(d, slope)
    dg[np.diag_indices(len(z))] += alpha
    J = -h * (pi_matrix(m) @ dg)
    J[np.diag_indices(len(z))] += 1.0
    _, w, _, _, eta = split(m)
    n, D = len(w), 1 + w @ w
    kappa = (w @ eta) / D
    gx, _, _, gxi, geta = split(g)
    i = np.arange(n)
    dkappa = np.zeros(len(z))
    dkappa[1 : n + 1], dkappa[3 * n + 1 :] = (eta - 2 * kappa * w) / D, w / D
    J[0, 1 : n + 1] -= 0.5 * h * geta
    J[3 * n + 1 + i, 1 + i] += 0.5 * h * gx
    J[2 * n + 1 : 3 * n + 1] += 0.5 * h * np.outer(geta, dkappa)
    J[3 * n + 1 :] -= 0.5 * h * np.outer(gxi, dkappa)
    return J


def by_powell(guess, z, H0, h):
    solved = root(residual, guess, args=(z, H0, h), jac=jacobian, options={"xtol": 1e-14})
    return solved.x


def by_newton(new, z, H0, h):
    for _ in range(20):
        change = np.linalg.solve(jacobian(new, z, H0, h), residual(new, z, H0, h))
        new = new - change
        if np.max(np.abs(change)) < 1e-14 * (1 + np.max(np.abs(new))):
            break
    return new


def by_fixed_point(new, z, H0, h):
    for _ in range(100):
        m, _, _, g, _, _ = discrete_gradient(z, H0, new)
        before, new = new, z + h * apply_pi(m, g)
        if np.max(np.abs(new - before)) < 1e-15 * (1 + np.max(np.abs(new))):
            break
    return new


def run(z, h, steps, solve=by_powell):
    """The state after `steps` steps from z."""
    d = h * apply_pi(z, gradient(z))
    before = d
    for _ in range(steps):
        new = solve(z + 2 * d - before, z, energy(z), h)
        before, d, z = d, new - z, new
    return z
