"""Any view as one self-contained HTML file: it opens offline, without a script too, and makes no request.

Its policy (Content-Security-Policy) forbids every request, and lets only those scripts and styles run whose hash it
names. So even markup that slipped through could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from pathlib import Path

from profkit.core.codec import valid_text
from profkit.reporting.html.blocks import PageBlocks
from profkit.reporting.html.elements import Html, filled, island, together
from profkit.reporting.view import View, plain_text

FOLDER = Path(__file__).parent
FIRST_SCRIPT = "theme.js"  # before anything is painted: a page in the wrong colours would flash


def render(view: View) -> str:
    """The view as HTML, as text for UTF-8."""
    blocks = PageBlocks()
    head, body = blocks.head(view), together(map(blocks.block, view.blocks))
    sources = blocks.sources()
    style, script = (
        "\n".join(filter(None, (asset(f"{name}.{kind}") for name in blocks.assets))) for kind in ("css", "js")
    )
    first = asset(FIRST_SCRIPT)
    made = filled(
        "view.html.j2",
        title=plain_text(view.title),
        styles=_hash(style),
        scripts=f"{_hash(first)} {_hash(script)}",
        style=Html(style),
        first=Html(first),
        script=Html(script),
        contents=blocks.sections,
        main=together((head, body, sources)),
        islands=[(name, Html(island(data))) for name, data in blocks.data.items()],
    )
    return valid_text(made)


@lru_cache
def asset(name: str) -> str:
    """A stylesheet or script of `assets/`, as it stands there; nothing where there is none of this name."""
    path = FOLDER / "assets" / name
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
