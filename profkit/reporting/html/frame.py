"""The frame of every page: policy, styles, scripts, contents, theme; what stands in it are parts.

A page is one file and asks nothing of anybody: its policy (Content-Security-Policy) forbids every request, and lets
only those scripts and styles run whose hash it names. So even markup that slipped through could do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from profkit.core.codec import valid_text
from profkit.reporting.html.escape import island
from profkit.reporting.html.part import Part
from profkit.reporting.html.templates import asset, filled
from profkit.reporting.view import Footnote

STYLES = ("style.css",)
FIRST_SCRIPT = "theme.js"  # before anything is painted: a page in the wrong colours would flash
SCRIPTS = ("page.js",)


def page(
    title: str,
    parts: Sequence[Part],
    *,
    head: str = "",
    footnotes: Sequence[Footnote] = (),
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
) -> str:
    """A whole page: `title` as plain text, `head` as finished HTML above the parts, then the parts in their order.

    `styles` and `scripts` name further files of `assets/` that the parts need.
    """
    style = "\n".join(asset(name) for name in (*STYLES, *styles))
    first = asset(FIRST_SCRIPT)
    script = "\n".join(asset(name) for name in (*SCRIPTS, *scripts))
    made = filled(
        "page.html.j2",
        title=title,
        policy=_policy([style], [first, script]),
        style=style,
        first=first,
        script=script,
        head=head,
        parts=parts,
        islands=[(name, island(data)) for part in parts for name, data in part.data.items()],
        footnotes=footnotes,
    )
    return valid_text(made)


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    return "; ".join(
        [
            "default-src 'none'",
            f"style-src {' '.join(_hash(style) for style in styles)}",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
