"""Stability of steady motions against a number: the eigenvalues' real parts, and their frequencies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from noslip.plots.trajectory import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from noslip.analysis.linearize import Stability


def plot_stability(found: Stability, name: str = "value") -> Figure:
    """Real parts as dots, frequencies of oscillating modes as crosses; shaded where a motion is unstable."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.2), layout="constrained")
    panel = figure.subplots()
    x = np.repeat(found.values, found.eigenvalues.shape[1])
    real, imaginary = found.eigenvalues.real.ravel(), found.eigenvalues.imag.ravel()
    turning = imaginary > 1e-9 * (1 + np.abs(real))
    panel.plot(x, real, ".", color="#0072B2", markersize=4, label="real part")
    panel.plot(x[turning], imaginary[turning], "x", color="#D55E00", markersize=3, label="frequency")
    unstable = found.eigenvalues.real.max(axis=1) > 1e-9 * (1 + np.abs(found.eigenvalues).max(axis=1))
    low, high = panel.get_ylim()
    panel.fill_between(
        found.values, low, high, where=unstable.tolist(), color="#999999", alpha=0.25, label="unstable"
    )
    panel.set(xlabel=name, ylabel="eigenvalues", ylim=(low, high))
    panel.axhline(0.0, color="black", linewidth=0.8)
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)
    return figure
