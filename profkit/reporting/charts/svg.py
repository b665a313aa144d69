"""SVG by hand: tags with escaped text that fits, short numbers, and the frame that every chart has."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import isfinite
from zlib import crc32

from profkit.core.formatting import shorten
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.view import Footnote

FONT = 13.0  # in units of a chart: how large letters are where the screen is narrowest; everything is placed for it
LINE = 16.0  # from one line of text to the next
_NARROW, _WIDE = frozenset("iljtfr.,:;'|!()[]{}I/\\ "), frozenset("mwMW@%—…")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})
LONGEST = 300  # characters of a name that hovers: more hides the page behind it


def clean(text: str) -> str:
    """The text on one line: control characters and what turns the direction of the text around it are made visible."""
    return " ".join(without_control_characters(text).split())


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
    lengths = range(min(len(text) - 1, int(room / (0.38 * size)) + 1), 3, -1)
    return next((short for count in lengths if width(short := shorten(text, count), size) <= room), "")


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


WIDTH = 400.0  # of every chart, in its own units
LONGEST_TEXT = 1500  # characters of a chart's text alternative


Number = Callable[[Footnote | None], int]  # the place of a footnote on the page, counted from 1; 0 is none


def number(value: float) -> str:
    """A coordinate with at most one decimal. ValueError where it is none: a chart with NaN in it shows nothing."""
    if not isfinite(value):
        raise ValueError(f"{value} is no place on a chart")
    text = f"{value:.1f}"
    short = text[:-2] if text.endswith(".0") else text
    return "0" if short == "-0" else short


def tag(name: str, body: str = "", /, **attributes: float | str | None) -> str:
    """One element. `class_` is written as class, `_` in names as `-`; None is left out. `body` is markup already."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(v) if isinstance(v, str) else number(v)}"'
        for key, v in attributes.items()
        if v is not None
    )
    return f"<{name}{written}>{body}</{name}>" if body else f"<{name}{written}/>"


def hover(text: str) -> str:
    """What is shown while the pointer rests on an element, or the keyboard's focus does."""
    return f"<title>{escaped(shorten(text, LONGEST))}</title>"


def text(at: tuple[float, float], words: str, kind: str | None = None, hover_text: str | None = None) -> str:
    """Words whose baseline begins at `at`; `kind` names classes: `e` ends there, `m` has its middle there."""
    body = escaped(words) + (hover(hover_text) if hover_text else "")
    return tag("text", body, x=at[0], y=at[1], class_=kind)


def rect(x: float, y: float, w: float, h: float, kind: str, hover_text: str | None = None) -> str:
    """A rectangle; a negative size is none and is drawn as 0."""
    body = hover(hover_text) if hover_text else ""
    return tag("rect", body, x=x, y=y, width=max(0.0, w), height=max(0.0, h), class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str, hover_text: str | None = None) -> str:
    """A straight line as a path, which is the shortest way to write one."""
    body = hover(hover_text) if hover_text else ""
    return tag("path", body, d=f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}", class_=kind)


def curve(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> str:
    """A line through points, or the area inside of it."""
    body = " ".join(f"{number(x)} {number(y)}" for x, y in points)
    return tag("path", d=f"M{body}{'z' if closed else ''}", class_=kind)


def focusable(body: str, hover_text: str, source: int = 0) -> str:
    """A group that the keyboard reaches, with its hover text as its name; a link to the footnote `source`, if any."""
    if source:
        inner = hover(hover_text) + body
        label = shorten(hover_text, LONGEST)
        return tag("a", inner, href=f"#s{source}", data_source="", tabindex="0", aria_label=label)
    return tag(
        "g", hover(hover_text) + body, tabindex="0", role="img", aria_label=shorten(hover_text, LONGEST)
    )


def linked(words: str, source: int, tabindex: str | None = None) -> str:
    """Words that lead to the footnote `source`; 0 is none. `tabindex` -1 where a mark leads there too."""
    return tag("a", words, href=f"#s{source}", class_="n", tabindex=tabindex) if source else words


def frame(
    kind: str, height: float, title: str, description: str, body: Sequence[str], width: float = WIDTH
) -> str:
    """A chart: its name and its text alternative, and what is drawn. `kind` is a class for the style."""
    inner = "".join(body)
    name, words = escaped(shorten(title, LONGEST)), escaped(shorten(description, LONGEST_TEXT))
    mark = f"c{crc32(f'{kind}{name}{words}{inner}'.encode()):08x}"
    named = f'<title id="{mark}t">{name}</title><desc id="{mark}d">{words}</desc>'
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {number(width)} {number(height)}" role="group"'
        f' aria-labelledby="{mark}t {mark}d">{named}{inner}</svg>'
    )
