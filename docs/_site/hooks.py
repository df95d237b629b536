"""What MkDocs does here beyond Markdown: pages made from the code, and mathematics set ahead of time.

Formulas between dollars become MathML when the site is built: a page needs no script and loads nothing.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
import generate

ARITHMATEX = re.compile(
    r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL
)  # what pymdownx.arithmatex leaves around a formula


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill in the parts of the table of contents that the code decides."""
    for entry in config.nav or []:
        for title, pages in entry.items():
            if pages == "generated":
                entry[title] = generate.contents(title)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, text in generate.pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(content: str, **_: Any) -> str:
    return ARITHMATEX.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    block = found.group(2) == "["
    made = convert(html.unescape(found.group(3)), display="block" if block else "inline")
    return f'<div class="formula">{made}</div>' if block else made
