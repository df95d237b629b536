"""The documentation site: Sphinx with MyST, the PyData theme and KaTeX, nothing from elsewhere.

`make docs` stages the sources (docs/_site/stage.py) and builds them with this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_site"), str(HERE.parent / "src")]

from noslip.version import __version__  # noqa: E402
from prose import RST, typeset  # noqa: E402

project = "noslip"
author = "the authors of noslip"
version = release = __version__
html_title = f"noslip {version}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.katex",
]
exclude_patterns = ["measured", "studies/*.csv", "studies/*.json"]

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# docstrings are plain text with formulas in ASCII; `prose` sets them
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages have no pages here

html_math_renderer = "katex"
katex_css_path = "katex/katex.min.css"  # the script comes with sphinxcontrib-katex

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": f"noslip {version}"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "show_nav_level": 1,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "back_to_top_button": False,
}
html_sidebars = {"index": [], "examples/index": []}


def _typeset(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    lines[:] = typeset("\n".join(lines).strip(), RST).splitlines()


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _typeset)
