"""The page as one text: style, script and content in it, nothing loaded from elsewhere.

The script is made from the sources in `web` at the top of the checkout (`npm run build`) and lies here built,
so that nobody needs node to make a page. The page's policy lets it load nothing and run no other script; one
that is served may ask its own server.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from typing import Any

BUILT = Path(__file__).with_name("built")
HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<noscript>This page computes in the browser, by JavaScript and WebAssembly.</noscript>
<script type="application/json" id="content">{content}</script>
<script>{script}</script>
</body>
</html>
"""


def policy(script: str, served: bool) -> str:
    """What the page may do: run this very script and modules of WebAssembly, in a worker of its own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    asked = "'self'" if served else "'none'"
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{digest}' 'wasm-unsafe-eval'",
        "worker-src": "blob:",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "connect-src": asked,
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def page(content: dict[str, Any], served: bool = False) -> str:
    """The page of this content."""
    script = (BUILT / "page.js").read_text(encoding="utf-8")
    data = json.dumps(content, allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")
    return HEAD.format(
        policy=html.escape(policy(script, served)),
        title=html.escape(f"{content['system']['title']} - noslip"),
        style=(BUILT / "page.css").read_text(encoding="utf-8"),
        content=data,
        script=script,
    )
