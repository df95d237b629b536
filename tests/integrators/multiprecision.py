"""The gearbox on D* in the paper's frame, written out by hand for mpmath numbers, with two of its methods.

A second formulation: nothing here is derived by JAX or shared with the package. Vectors are NumPy arrays of
mpmath numbers; the number of digits is that of the caller's `mpmath.workdps`. A number stands to the right of
a vector: on its left mpmath would first write the vector as text, for an error message that nobody sees.
"""

import functools

import mpmath
import numpy as np


def mp(values):
    """Floats, or anything that mpmath reads, as mpmath numbers."""
    return np.vectorize(mpmath.mpf, otypes=[object])(values)


def doubles(values):
    return np.vectorize(float, otypes=[float])(values)


def size(values):
    return max(abs(x) for x in np.ravel(values))


def product(A, B):
    """A @ B of matrices, in half the time."""
    return np.array([[mpmath.fdot(zip(row, column, strict=True)) for column in B.T] for row in A])


class Gear:
    """H = rho1^2 / (2 (1 + sin(q3)^2)) + rho2^2 / 2 + (q1^2 + q2^2) / 2 + sign cos(q3) - epsilon sin(2 q3)
    and Pi in the frame (-sin q3, 1, 0), (0, 0, 1); z = (q1, q2, q3, rho1, rho2)."""

    def __init__(self, sign, epsilon):
        self.sign, self.epsilon = mpmath.mpf(sign), mpmath.mpf(epsilon)

    def energy(self, z):
        q1, q2, q3, r1, r2 = z
        c, s = mpmath.cos_sin(q3)
        potential = (q1**2 + q2**2) / 2 + self.sign * c - 2 * self.epsilon * s * c
        return r1**2 / (1 + s**2) / 2 + r2**2 / 2 + potential

    def gradient(self, z):
        q1, q2, q3, r1, r2 = z
        c, s = mpmath.cos_sin(q3)
        y1 = r1 / (1 + s**2)
        force = -self.sign * s - 2 * self.epsilon * (c**2 - s**2)
        return np.array([q1, q2, -(y1**2) * s * c + force, y1, r2])

    def apply(self, z, g):
        """Pi g."""
        _, _, q3, r1, _ = z
        c, s = mpmath.cos_sin(q3)
        b = s * c * r1 / (1 + s**2)  # -[X1, X2] . p
        return np.array([-s * g[3], g[3], g[4], s * g[0] - g[1] + b * g[4], -g[2] - b * g[3]])

    def field(self, z):
        return self.apply(z, self.gradient(z))

    def flow(self, z, t, pieces):
        """The exact motion: the explicit midpoint rule extrapolated over each of the pieces (Gragg)."""
        for _ in range(pieces):
            z = extrapolated(self.field, z, t / pieces)
        return z


def extrapolated(f, z, t, columns=16):
    """z(t) of dz/dt = f(z), from 2, 4, .., 2 `columns` steps of the midpoint rule: of order 2 `columns`."""
    row = []
    for k in range(1, columns + 1):
        h = t / (2 * k)
        before, now = z, z + f(z) * h
        for _ in range(2 * k - 1):
            before, now = now, before + f(now) * (2 * h)
        new = [(before + now + f(now) * h) / 2]
        for j, old in enumerate(row, start=1):
            new.append(new[-1] + (new[-1] - old) / ((mpmath.mpf(k) / (k - j)) ** 2 - 1))
        row = new
    return row[-1]


def gonzalez(gear, z, d):
    """CFHM (12)."""
    g, square = gear.gradient(z + d / 2), d @ d
    if square == 0:
        return g
    return g + d * ((gear.energy(z + d) - gear.energy(z) - g @ d) / square)


def mean_value(gear, z, d):
    """CFHM (11), by Gauss's rule of 12 nodes."""
    c, b = gauss(12)
    return sum(gear.gradient(z + d * x) * w for x, w in zip(c, b, strict=True))


def coordinate_increment(gear, z, d):
    """CFHM (13), as printed; a coordinate that does not move has the partial derivative."""
    values, g = [gear.energy(z)], []
    for i in range(len(z)):
        before, after = (np.where(np.arange(len(z)) < k, z + d, z) for k in (i, i + 1))
        values.append(gear.energy(after))
        g.append((values[-1] - values[-2]) / d[i] if d[i] != 0 else gear.gradient(before)[i])
    return np.array(g)


def discrete_gradient_step(gear, gradient, z, h):
    """The increment d = h Pi(z + d / 2) gbar(z, z + d), CFHM (14)."""
    return fixed_point(lambda d: gear.apply(z + d / 2, gradient(gear, z, d)) * h, z * 0)


# ---- energy-preserving collocation (Cohen and Hairer) ---------------------------------------------------
def gauss(nodes):
    """Nodes and weights of Gauss's rule on [0, 1], in the digits of the moment."""
    return _gauss(nodes, mpmath.mp.prec)


@functools.cache
def _gauss(nodes, prec):
    c, b = [], []
    for x in mp(np.polynomial.legendre.leggauss(nodes)[0]):
        for _ in range(8):  # Newton, from 15 digits on
            P, before = mpmath.legendre(nodes, x), mpmath.legendre(nodes - 1, x)
            slope = nodes * (x * P - before) / (x * x - 1)
            x -= P / slope
        c.append((1 + x) / 2)
        b.append(1 / ((1 - x * x) * slope**2))
    return np.array(c), np.array(b)


def lagrange(nodes, j):
    """Coefficients of the Lagrange polynomial l_j, the constant one first."""
    coefficients = mp([1])
    for k, c in enumerate(nodes):
        if k != j:
            shifted = np.concatenate([mp([0]), coefficients]) - np.concatenate([coefficients, mp([0])]) * c
            coefficients = shifted / (nodes[j] - c)
    return coefficients


def fixed_point(F, x):
    """Iterate F until its increments are below eps^0.8; near rest the quotient in F is noisy beyond."""
    for _ in range(500):
        new = F(x)
        change, x = size(new - x), new
        if change <= mpmath.eps ** mpmath.mpf(0.8) * (1 + size(x)):
            return x
    raise AssertionError(f"the iteration in multiprecision still changes by {change}")


class Collocation:
    """s stages, the integrals by Gauss's rule of `nodes` points, the defect of the energy spread."""

    def __init__(self, stages, nodes):
        self.c, self.b = gauss(stages)
        tau, w = gauss(nodes)
        l = [lagrange(self.c, j) for j in range(stages)]

        def integral(p, x):
            return sum(a * x ** (k + 1) / (k + 1) for k, a in enumerate(p))

        def value(p, x):
            return sum(a * x**k for k, a in enumerate(p))

        self.A = np.array([[integral(p, c) for p in l] for c in self.c])
        self.between = np.array([[integral(p, x) for p in l] for x in tau])
        self.weights = np.array([[v * value(p, x) / b for x, v in zip(tau, w, strict=True)]
                                 for p, b in zip(l, self.b, strict=True)])  # fmt: skip

    def step(self, gear, z, h):
        """The increment z' - z."""
        energy = gear.energy(z)

        def F(x):  # x_j = h K_j
            G = product(self.weights, np.array([gear.gradient(u) for u in z + product(self.between, x)]))
            defect = gear.energy(z + self.b @ x) - energy - self.b @ np.sum(x * G, axis=1)
            G = G + x * (defect / (self.b @ np.sum(x * x, axis=1)))
            return np.array([gear.apply(u, g) for u, g in zip(z + product(self.A, x), G, strict=True)]) * h

        return self.b @ fixed_point(F, np.outer(mp(np.ones(len(self.b))), gear.field(z) * h))
