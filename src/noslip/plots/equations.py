"""Formulas as pictures inside a page: LaTeX set by matplotlib's mathtext, as SVG that needs nothing else."""

from __future__ import annotations

import html
import io
import re
import zlib

from noslip.plots.trajectory import require_matplotlib


def equation_svg(latex: str, size: float = 13.0) -> str:
    """One formula as an <svg> element, with its LaTeX as the text for those who cannot see it."""
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(0.1, 0.1))
    figure.text(0, 0, f"${latex}$".replace(r"\frac", r"\dfrac"), fontsize=size)
    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "noslip", "svg.fonttype": "path", "mathtext.fontset": "cm"}):
        figure.savefig(
            buffer,
            format="svg",
            bbox_inches="tight",
            pad_inches=0.03,
            transparent=True,
            metadata={"Date": None},
        )
    element = buffer.getvalue().partition("<svg")[2]
    said = html.escape(latex, quote=True)
    mark = zlib.crc32(latex.encode())
    # the names inside one picture must not meet those of the next on the same page
    unique = re.sub(r'(id="|href="#|url\(#)', lambda m: f"{m.group(1)}e{mark}-", element)
    return f'<svg role="img" aria-label="{said}"{unique}'.strip()
