"""D'Alembert's principle in NumPy: what moves is given by the place and the rotation matrix of each body as
functions of q, and by the velocities that have to vanish. Nothing is taken from noslip but the acceleration
that is judged; derivatives along a motion are Cauchy's integrals over a circle of complex times.

A rigid body counts as its points: they add m a . dr + tr(A'' S dA^T) to the work of inertia in a virtual
displacement, S = tr(J) / 2 - J being the second moments of the mass.
"""

from dataclasses import dataclass, field

import numpy as np

NODES, RADIUS = 16, 0.004  # small for the rattleback, whose curvature changes tenfold within 0.02 of its tilt
CIRCLE = RADIUS * np.exp(2j * np.pi * np.arange(NODES) / NODES)


def derivatives(f):
    """f, f' and f'' at 0 of a function of the time that is analytic there."""
    values = np.array([f(t) for t in CIRCLE])
    terms = np.fft.fft(values, axis=0)[:3] / NODES
    return [terms[k] * np.prod(range(1, k + 1)) / RADIUS**k for k in range(3)]


@dataclass(frozen=True)
class Body:
    """`place(q)` of the mass centre in space, `turn(q)` from the principal axes to space; `rotor` is an
    angular momentum that is constant in the body."""

    mass: float
    place: object
    turn: object = lambda q: np.eye(3)
    inertia: object = (0.0, 0.0, 0.0)
    rotor: object = field(default_factory=lambda: np.zeros(3))

    @property
    def moments(self):
        J = np.asarray(self.inertia, float)
        J = np.diag(J) if J.ndim == 1 else J
        return np.trace(J) / 2 * np.eye(3) - J

    def velocity(self, q, dq, arm):
        """Of the point of the body that is now at `arm` from the mass centre, in space."""
        moved = derivatives(lambda t: self.place(q + t * dq))[1]
        return moved + derivatives(lambda t: self.turn(q + t * dq))[1] @ (self.turn(q).T @ arm)


def x_turn(s):
    c, s = np.cos(s), np.sin(s)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def y_turn(s):
    c, s = np.cos(s), np.sin(s)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def z_turn(s):
    c, s = np.cos(s), np.sin(s)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def quaternion_turn(u):
    a, x = u[0], u[1:]
    cross = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
    return np.eye(3) + (2 * a * cross + 2 * cross @ cross) / (u @ u)


def unbalanced(system, q, v, bodies, slip, *, gravity=0.0, potential=None, power=None, t=0.0):
    """What the acceleration of a system leaves over: the virtual work in each admissible displacement, the
    slip and its rate, relative to the sizes of their terms. `slip(q, dq, t)` is affine in dq."""
    q, v = np.asarray(q, float), np.asarray(v, float)
    a = np.asarray(system.acceleration(q, v, t))
    rest = slip(q, np.zeros_like(q), t)
    rows = np.real(np.array([slip(q, e, t) - rest for e in np.eye(len(q))]).T)
    _, sizes, basis = np.linalg.svd(rows)
    displacements = basis[np.sum(sizes > 1e-10 * sizes[0]) :]
    along = derivatives(lambda s: slip(q + v * s + a * s**2 / 2, v + a * s, t + s))[:2]
    left = [np.max(np.abs(along[0])) / np.max(np.abs(v)), np.max(np.abs(along[1])) / np.max(np.abs(a))]
    works = []
    for e in displacements:
        terms = [term for body in bodies for term in _terms(body, q, v, a, e, gravity)]
        if potential is not None:
            terms.append(derivatives(lambda s, e=e: potential(q + s * e))[1])
        if power is not None:
            terms.append(-power(q, e, t))
        works.append(np.real(terms))
    return max(*left, np.max(np.abs(np.sum(works, axis=1))) / np.max(np.abs(works)))


def _terms(body, q, v, a, e, gravity):
    """The virtual work of a body's inertia as it moves and turns, of its rotor and of its weight."""

    def curve(f):
        return derivatives(lambda s: f(q + v * s + a * s**2 / 2))

    place, (A, dA, ddA) = curve(body.place)[2], curve(body.turn)
    moved = derivatives(lambda s: body.place(q + s * e))[1]
    turned = derivatives(lambda s: body.turn(q + s * e))[1]
    angles = turned @ A.T
    angle = np.array([angles[2, 1], angles[0, 2], angles[1, 0]])
    yield body.mass * place @ moved
    yield np.trace(ddA @ body.moments @ turned.T)
    yield angle @ dA @ body.rotor
    yield body.mass * gravity * moved[2]
