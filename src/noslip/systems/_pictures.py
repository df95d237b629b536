"""How bodies look in the plane: curves of points (x, y), which `noslip animate` draws."""

from __future__ import annotations

import numpy as np

RAISE = 0.8  # how far up in the picture a unit of height is, seen from above at a slant


def placed(outline: np.ndarray, x: float, y: float, angle: float) -> np.ndarray:
    """An outline in the body's axes, turned and moved to its place."""
    c, s = np.cos(angle), np.sin(angle)
    return outline @ np.array([[c, s], [-s, c]]) + np.array([x, y])


def upright_disk(x: float, y: float, heading: float, spin: float, radius: float) -> tuple[np.ndarray, ...]:
    """The rim of a disk that stands on (x, y), and two of its diameters, which turn with it."""

    def points(angles: np.ndarray) -> np.ndarray:
        # a positive spin rolls forwards: the top moves along the heading
        ahead, up = radius * np.sin(angles + spin), radius * (1 + np.cos(angles + spin))
        return np.stack([x + ahead * np.cos(heading), y + ahead * np.sin(heading) + RAISE * up], axis=1)

    rim = points(np.linspace(0.0, 2 * np.pi, 49))
    return rim, points(np.array([0.0, np.pi])), points(np.array([0.5 * np.pi, 1.5 * np.pi]))
