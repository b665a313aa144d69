"""Words on a chart: made harmless, and measured well enough to keep them apart.

No font is known where a chart is made, so letters are taken to be as wide as in a wide one (Verdana, DejaVu Sans);
in a narrower one there is more room between them, and that is all.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from profkit.reporting.plain_text import harmless

FONT = 13.0  # in units of a chart: how large letters are where the screen is narrowest; everything is placed for it
LINE = 16.0  # from one line of text to the next
_NARROW, _WIDE = frozenset("iljtfr.,:;'|!()[]{}I/\\ "), frozenset("mwMW@%—…")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
LONGEST = 300  # characters of a name that hovers: more hides the page behind it


def clean(text: str) -> str:
    """The text on one line: control characters and what turns the direction of the text around it are made visible."""
    return " ".join(harmless(text).split())


def escaped(text: str) -> str:
    """The text as it may stand between tags and in attributes, of XML and of HTML."""
    return clean(text).translate(_ESCAPES)


def width(text: str, size: float = FONT) -> float:
    """How wide a line of text is at most, in the unit of `size`."""
    return size * sum(map(_advance, text))


@lru_cache(maxsize=1024)
def _advance(sign: str) -> float:
    if sign in _NARROW:
        return 0.38
    if sign in _WIDE or unicodedata.east_asian_width(sign) in "WF":
        return 1.02
    if unicodedata.combining(sign):
        return 0.0
    return 0.72 if sign.isupper() else 0.62


def fitted(text: str, room: float, size: float = FONT) -> str:
    """The text as it fits into `room`, its middle left out where it is too long; nothing where no three letters fit."""
    text = clean(text)
    if width(text, size) <= room:
        return text
    head = tail = 0
    used = width("…", size)
    while head + tail < len(text):
        # Two from the front for one from the end: names begin with what they are, and end with what sets them apart.
        at = len(text) - 1 - tail if (head + tail) % 3 == 2 else head
        used += width(text[at], size)
        if used > room:
            break
        tail, head = (tail + 1, head) if (head + tail) % 3 == 2 else (tail, head + 1)
    return f"{text[:head]}…{text[len(text) - tail :]}" if head + tail >= 3 else ""


def wrapped(text: str, room: float, size: float = FONT) -> list[str]:
    """The text as lines that fit into `room`, broken at spaces; a longer word is shortened."""
    lines: list[str] = []
    for word in clean(text).split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and width(joined, size) <= room:
            lines[-1] = joined
        else:
            lines.append(fitted(word, room, size))
    return lines
