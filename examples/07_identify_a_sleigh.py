"""What are the sleigh's inertia and its centre of mass, if all we have is a noisy film of it?

A camera sees the place and the heading of a Chaplygin sleigh at 40 times, each with errors of five
centimetres and of 0.05 radian. Least squares by Gauss and Newton finds the moment of inertia J, the distance
a of the centre of mass from the blade, and the unknown push (u, w) at the start. The Jacobian D comes through
the steps of the simulation, each implicit step with its exact derivative, and gives the confidence intervals
too: the covariance of the estimates is s^2 (D^T D)^{-1}. Two hundred films with fresh noise then show whether
95 % intervals hold what they promise.

Run it with a folder for the picture, `demo-output` by default.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from noslip import simulate
from noslip.integrators import LobattoSpark, ReferenceFlow
from noslip.systems import chaplygin_sleigh

NAMES = ("J", "a", "u", "w")
TRUTH = np.array([3.0, 0.7, -0.8, 0.5])  # the sleigh is pushed backwards, and turns around
GUESS = np.array([2.5, 0.8, -0.7, 0.45])
NOISE = 0.05
SLEIGH = chaplygin_sleigh.system(m=1.0)  # without forces the motion knows J / m and a only
HEADING = 0.3


def film(x):
    """(x, y, theta) at t = 0.4, 0.8, ..., 16, for the unknowns x = (J, a, u, w)."""
    run = simulate(SLEIGH, LobattoSpark(3), **start(x), step_size=0.1, steps=160, save_every=4)
    return run.q[1:]


def start(x):
    J, a, u, w = x
    v0 = jnp.array([u * np.cos(HEADING), u * np.sin(HEADING), w])
    return {"q0": np.array([0.0, 0.0, HEADING]), "v0": v0, "parameters": {"J": J, "a": a}}


jacobian = jax.jit(jax.jacfwd(film))


def fit(seen, x=GUESS, iterations=20):
    """Gauss-Newton: the estimates, their standard errors, and the number of iterations."""
    for done in range(1, iterations + 1):
        r = np.ravel(seen - film(x))
        D = np.reshape(np.asarray(jacobian(x)), (r.size, x.size))
        step = np.linalg.lstsq(D, r)[0]
        x = x + step
        if np.max(np.abs(step / x)) < 1e-9:
            s2 = r @ r / (r.size - x.size)
            return x, np.sqrt(np.diag(s2 * np.linalg.inv(D.T @ D))), done
    raise RuntimeError(f"Gauss-Newton did not converge: the last step was {step}")


def intervals(x, error, count, level=0.95):
    """Lower and upper ends, by Student's distribution."""
    wide = stats.t.ppf(0.5 + level / 2, count - x.size) * error
    return x - wide, x + wide


def true_film():
    """Along the exact flow: what the camera would see without noise owes nothing to our steps."""
    return simulate(SLEIGH, ReferenceFlow(), **start(TRUTH), step_size=0.4, steps=40).q[1:]


def noisy(rng, films=1):
    clean = true_film()
    return clean + NOISE * rng.standard_normal((films, *clean.shape))


def coverage(repeats, rng):
    """For each repeat and unknown the ends of its interval."""
    found = noisy(rng, repeats)
    return np.array([intervals(*fit(seen)[:2], seen.size) for seen in found])


def limits(repeats, level=0.95):
    """How many of so many true 95 % intervals cover, with a probability of 99.9 %."""
    return tuple(int(x) for x in stats.binom.interval(0.999, repeats, level))


def picture(seen, x, ends, file):
    from matplotlib.figure import Figure

    from noslip.plots.trajectory import COLOURS

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    path, many = figure.subplots(1, 2)
    for label, values, style in (("guess", GUESS, ":"), ("found", x, "-")):
        line = np.concatenate([np.zeros((1, 2)), np.asarray(film(values))[:, :2]])
        path.plot(*line.T, style, color=COLOURS[label == "guess"], label=label)
    path.plot(seen[:, 0], seen[:, 1], ".", color="black", ms=4, label="seen")
    path.set(xlabel="x", ylabel="y", title="the blade's path", aspect="equal", adjustable="datalim")
    path.legend()
    low, high = ends[:60, 0, 1], ends[:60, 1, 1]
    for k, (a, b) in enumerate(zip(low, high, strict=True)):
        misses = not a <= TRUTH[1] <= b
        style = {"color": COLOURS[1], "lw": 2.5} if misses else {"color": COLOURS[0], "lw": 1}
        many.plot([k, k], [a, b], **style)
    many.axhline(TRUTH[1], color="black", lw=0.8)
    many.set(xlabel="film", ylabel="a", title="95 % intervals of a; thick ones miss the truth")
    figure.savefig(file, dpi=150)


def main(folder, repeats=200):
    rng = np.random.default_rng(1)
    seen = noisy(rng)[0]
    x, error, iterations = fit(seen)
    low, high = intervals(x, error, seen.size)

    D = np.asarray(jacobian(TRUTH))
    eps = 1e-5 * np.eye(4)
    differences = np.stack([(film(TRUTH + e) - film(TRUTH - e)) / 2e-5 for e in eps], axis=-1)
    away = np.max(np.abs(D - differences)) / np.max(np.abs(D))
    print(f"the Jacobian differs from central differences by {away:.0e} of its size")
    print(f"Gauss-Newton took {iterations} iterations")
    for name, truth, found, a, b in zip(NAMES, TRUTH, x, low, high, strict=True):
        print(f"{name}: {found:8.4f}, 95 % interval [{a:.4f}, {b:.4f}], truth {truth}")

    ends = coverage(repeats, rng)
    covered = np.sum((ends[:, 0] <= TRUTH) & (ends[:, 1] >= TRUTH), axis=0)
    least, most = limits(repeats)
    print(f"of {repeats} films, intervals that hold the truth ({least} to {most} expected):")
    print("  " + ", ".join(f"{name} {n}" for name, n in zip(NAMES, covered, strict=True)))

    folder.mkdir(parents=True, exist_ok=True)
    picture(seen, x, ends, folder / "identify.png")
    print("wrote", folder / "identify.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
