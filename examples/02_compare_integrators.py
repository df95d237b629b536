"""Compare methods on a system whose motion is known: a disk that rolls down an incline.

Halving the step shows the order; the last column shows whether the disk still rolls without slipping.
"""

import numpy as np
from rich.console import Console
from rich.table import Table

from noslip import simulate
from noslip.integrators import DiscreteLagrangeDAlembert, RungeKutta4, VelocityNonholonomic
from noslip.systems import rolling_disk_on_incline as disk

METHODS = (
    VelocityNonholonomic(beta=0.5),
    VelocityNonholonomic(beta=0.0),
    DiscreteLagrangeDAlembert(beta=0.5),
    RungeKutta4(),
)
STEPS = (0.1, 0.05, 0.025)
T_END = 5.0

if __name__ == "__main__":
    table = Table(title=f"rolling disk on an incline: largest error of q and v until t = {T_END:g}")
    for heading in ("method", *(f"h = {h}" for h in STEPS), "order", "constraint"):
        table.add_column(heading, justify="left" if heading == "method" else "right")

    system = disk.system()
    q0, v0 = disk.typical_state()
    for method in METHODS:
        errors = []
        for h in STEPS:
            run = simulate(system, method, q0, v0, step_size=h, t_end=T_END)
            q, v, _ = disk.exact(run.t, q0, v0)
            errors.append(max(np.max(np.abs(run.q - q)), np.max(np.abs(run.v - v))))
        order = np.log2(errors[-2] / errors[-1])
        residual = np.max(np.abs(run.constraint_residual))
        table.add_row(str(method), *(f"{e:.1e}" for e in errors), f"{order:.2f}", f"{residual:.0e}")
    Console(width=110).print(table)
