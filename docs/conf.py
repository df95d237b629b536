"""The documentation site: Sphinx with MyST, the PyData theme and KaTeX, nothing from elsewhere.

`make docs` stages the sources (docs/_site/stage.py) and builds them with this file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

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
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}  # what it stands for fills half a page
python_maximum_signature_line_length = 88
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other packages have no pages here

html_math_renderer = "katex"
katex_css_path = "katex/katex.min.css"  # the script comes with sphinxcontrib-katex

katex_options = r'macros: {"\\phi": "\\varphi", "\\epsilon": "\\varepsilon"}'  # SymPy's letters as ours

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_use_index = False  # nothing is entered: the reference has its own list
html_show_sourcelink = False
html_context = {"default_mode": "auto"}  # else the theme complains on every page
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


def _signature(
    app: Any, what: str, name: str, value: Any, options: Any, signature: str, returned: str
) -> Any:
    """A default that a factory makes is not Python, and would keep Sphinx from reading the rest."""
    return (signature.replace("<factory>", "..."), returned) if "<factory>" in (signature or "") else None


class NumbersStayWhole(SphinxPostTransform):
    """Short cells of numbers, with a unit or not, get a class: they are not broken and stand in columns."""

    default_priority = 900

    def run(self) -> None:
        for entry in self.document.findall(nodes.entry):
            if re.fullmatch(r"[-+\d.e× /✓]+(?:[mun]?s)?", entry.astext()):
                entry["classes"].append("number")


def _simulations(app: Any, config: Any) -> None:
    """The pages that `noslip export` wrote beside the sources go into the site as they are."""
    folder = Path(app.srcdir).parent / "simulations"
    if folder.is_dir():
        config.html_extra_path = [str(folder)]


def setup(app: Any) -> None:
    app.connect("config-inited", _simulations)
    app.connect("autodoc-process-signature", _signature)
    app.add_post_transform(NumbersStayWhole)
    app.connect("autodoc-process-docstring", _typeset)
