"""A run of unknown length: a coin rolls round on its rim, ever flatter and ever faster, until it lies flat.

The coin touches the table at (x, y) and rolls along (cos phi, sin phi) with the speed r psidot; theta is its
tilt, 0 when it lies flat. Turning costs the power c phidot^2. If the coin kept to steady turns, about a
centre at rest and with the rate (4 g / (r sin theta))^(1/2), its energy (3/2) m g r theta would fall by that
power, and theta as a square root that ends in a finite time:

    theta^2 = theta0^2 - 16 c t / (3 m r^2)

What happens below one degree, where air and table take part, is not in this model: an event ends it there.
"""

import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np

from noslip import Event, System, simulate
from noslip.integrators import RungeKutta4, SemiImplicitDLA

FLAT, METHOD = np.deg2rad(1.0), SemiImplicitDLA()
COIN = {"m": 0.4, "r": 0.0375, "g": 9.81, "c": 9.5e-6}
THETA = 0.5


def lagrangian(q, v, p):
    m, r, (theta, phi) = p["m"], p["r"], q[2:4]
    s, c = jnp.sin(theta), jnp.cos(theta)
    ahead = v[0] * jnp.cos(phi) + v[1] * jnp.sin(phi) - r * c * v[3]  # of the centre
    aside = -v[0] * jnp.sin(phi) + v[1] * jnp.cos(phi) - r * s * v[2]
    up = r * c * v[2]
    turn = (v[2] ** 2 + s**2 * v[3] ** 2 + 2 * (c * v[3] - v[4]) ** 2) * r**2 / 4
    return 0.5 * m * (ahead**2 + aside**2 + up**2 + turn) - m * p["g"] * r * s


def one_forms(q, p):
    return jnp.array(
        [[1.0, 0.0, 0.0, 0.0, -p["r"] * jnp.cos(q[3])], [0.0, 1.0, 0.0, 0.0, -p["r"] * jnp.sin(q[3])]]
    )


coin = System(
    lagrangian,
    one_forms=one_forms,
    force=lambda q, v, t, p: jnp.array([0.0, 0.0, 0.0, -p["c"] * v[3], 0.0]),
    coordinates=("x", "y", "theta", "phi", "psi"),
    angles=("phi", "psi"),
    parameters=COIN,
)
flat = Event(lambda q, v, p: q[2] - FLAT, direction=-1, terminal=True)


def steady_rate(theta):
    """With which it turns round when its centre rests."""
    return np.sqrt(4 * COIN["g"] / (COIN["r"] * np.sin(theta)))


def fall(step_size=5e-5, save_every=80, method=METHOD):
    """From a steady turn about a resting centre to one degree; nobody says how long."""
    rate = steady_rate(THETA)
    roll = rate * np.cos(THETA)
    q0 = [0.0, -COIN["r"] * np.cos(THETA), THETA, 0.0, 0.0]
    v0 = [COIN["r"] * roll, 0.0, 0.0, rate, roll]
    return simulate(coin, method, q0, v0, step_size=step_size, save_every=save_every, events={"flat": flat})


def law(theta):
    """The time at which the law above has this tilt."""
    return (THETA**2 - theta**2) * 3 * COIN["m"] * COIN["r"] ** 2 / (16 * COIN["c"])


def rim(theta, phi=0.5):
    """A coin about the origin as seen obliquely from above, in cm; where it touches the table comes first."""
    r, s = 100 * COIN["r"], np.linspace(-np.pi / 2, 3 * np.pi / 2, 181)
    ahead, aside = np.array([np.cos(phi), np.sin(phi), 0]), np.array([-np.sin(phi), np.cos(phi), 0])
    up = np.cos(theta) * aside + np.array([0, 0, np.sin(theta)])
    x, y, z = (r * (np.cos(s)[:, None] * ahead + np.sin(s)[:, None] * up + [0, 0, np.sin(theta)])).T
    return x, 0.35 * y + 0.94 * z


def picture(run, file):
    from matplotlib.figure import Figure

    from noslip.plots.trajectory import COLOURS

    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    left.fill(*rim(0.0), color="0.93", label="where it will lie")
    for k, tilt in enumerate((28, 20, 12, 1)):
        row = np.argmax(np.rad2deg(run.q[:, 2]) <= tilt + 1e-9)
        x, y = rim(run.q[row, 2])
        left.plot(x, y, color=COLOURS[0], alpha=0.4 + 0.2 * k, lw=1 + 0.5 * k, label=f"{tilt}°")
        left.plot(x[0], y[0], "o", color=COLOURS[1], ms=5)
    left.set(
        title="the coin, turned to one side, and where it touches", xlabel="cm", aspect="equal", yticks=[]
    )
    left.legend(loc="upper center", fontsize=8, ncols=3)
    left.set_ylim(top=6.6)
    right.plot(run.t, np.rad2deg(run.q[:, 2]), color=COLOURS[0], label="tilt, degrees")
    theta = np.linspace(THETA, 0, 300)
    right.plot(law(theta), np.rad2deg(theta), "--", color="black", lw=1, label="tilt in steady turns")
    right.plot(run.t, run.v[:, 3] / (2 * np.pi), color=COLOURS[1], label="turns per second")
    right.plot(run.t[-1], np.rad2deg(run.q[-1, 2]), "o", color=COLOURS[0], ms=6)
    right.annotate("event", (run.t[-1], 1.0), (run.t[-1] + 0.08, 0.6), color=COLOURS[0])
    right.set(title="until the event", xlabel="t, seconds", xlim=(-0.15, 3.5), ylim=(0, 42))
    right.legend(loc="upper left")
    figure.savefig(file, dpi=150)


def main(folder):
    run = fall()
    print(f"stopped by '{run.stopped_by}' at t = {run.t[-1]:.4f} s, after {run.info.steps} steps of 0.05 ms")
    print(f"tilt minus one degree there: {abs(run.q[-1, 2] - FLAT):.0e}")
    print(f"constraint at most {np.max(np.abs(run.constraint_residual)):.0e}")
    every = fall(save_every=1)
    power = COIN["c"] * every.v[:, 3] ** 2
    work = np.sum((power[1:] + power[:-1]) / 2 * np.diff(every.t))
    lost = run.energy[0] - run.energy[-1]
    print(
        f"energy {run.energy[0]:.4f} J, of which {lost:.4f} J are lost and {work:.4f} J are the work of drag"
    )
    print(f"steady turns would end at {law(FLAT):.2f} s")
    for h in (2e-4, 1e-4, 5e-5):
        print(f"SemiImplicitDLA, steps of {1e3 * h:.2f} ms: {fall(h, 10**6).t[-1]:.5f} s")
    print(f"RungeKutta4, steps of 0.25 ms:     {fall(2.5e-4, 10**6, RungeKutta4()).t[-1]:.5f} s")
    folder.mkdir(parents=True, exist_ok=True)
    picture(run, folder / "coin.png")
    print("wrote", folder / "coin.png")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-output"))
