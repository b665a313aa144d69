"""HTML of elements: text from outside is escaped on its way into it, as is data for a script: shown, never obeyed."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from urllib.parse import quote

from profkit.core.types import Json
from profkit.reporting.plain_text import without_control_characters

_VOID = ("input", "br")  # elements without an end
_OUTSIDE = re.compile(r"[<>&\u2028\u2029]")


class Html(str):
    """Finished HTML; any other string is text, and is escaped where it goes into an element."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str | None) -> Html:
    """One element. `class_` is written as class, `_` in names as `-`; an attribute that is None is left out.

    >>> element("a", "1 < 2", Html("<b>x</b>"), class_="n", href="#s1")
    '<a class="n" href="#s1">1 &lt; 2<b>x</b></a>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Html) else text(child) for child in children)
    return Html(f"<{name}{written}>" if name in _VOID else f"<{name}{written}>{inside}</{name}>")


def together(parts: Iterable[str]) -> Html:
    """Several pieces of HTML and text as one."""
    return Html("".join(part if isinstance(part, Html) else text(part) for part in parts))


def text(value: object) -> str:
    """Any value as HTML for an element or a quoted attribute: control and bidirectional characters made visible.

    >>> text('<b>"\\u202e')
    '&lt;b&gt;&quot;�'
    """
    return html.escape(without_control_characters(str(value)), quote=True)


def island(data: Json) -> str:
    """Plain data as JSON that may stand inside of a script element, whatever its texts hold.

    `<`, `>`, `&` and the line separators are escaped, so no text can end the element or open a comment in it.
    Raises ValueError for NaN and infinity, which JSON does not know.
    """
    body = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return _OUTSIDE.sub(lambda found: f"\\u{ord(found[0]):04x}", body)


def link(path: str) -> str:
    """A path relative to the page as a link: never another scheme, host or script, whatever the file is called.

    >>> link("artifacts/a b?.json"), link("javascript:alert(1)")
    ('./artifacts/a%20b%3F.json', './javascript%3Aalert%281%29')
    """
    try:
        return "./" + quote(path, safe="/", errors="surrogateescape")  # as the file is called on disk
    except UnicodeEncodeError:
        return "./" + quote(path, safe="/", errors="replace")
