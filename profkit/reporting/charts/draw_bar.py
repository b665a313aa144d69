"""The bar of a step as inline SVG: lengths are shares of its width, so that it fills any screen, and letters stay."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.reporting.charts.draw import LONGEST, clean, fitted, hover, tag, width
from profkit.reporting.charts.step_bar import PartLook, StepBar, StepPart
from profkit.reporting.html.elements import Html, element, together

_FONT = 12.0  # pixels of the letters in a part
_ROOMS = {
    "narrow": 350.0,
    "broad": 700.0,
    "wide": 1000.0,
}  # pixels that the bar has at least where these letters show
_MARGIN = 10.0
_HALF = 0.5
_READABLE = 14  # characters: with fewer the place cannot be recognized
_SEEN = 0.03  # of the height: less is no difference that anybody sees
_KEYS: dict[PartLook, tuple[tuple[str, str], ...]] = {
    "limited": (
        ("need", "would be left at the hardware's limits"),
        ("limited", "is above them"),
        ("busy", "its busiest unit works on more than is needed"),
    ),
    "idle": (("idle", "idle or waiting"),),
    "unknown": (("unknown", "limit not known"),),
}


def draw_bar(bar: StepBar) -> Html | None:
    """Return the bar with its key; None where it has no parts."""
    whole = sum(part.share for part in bar.parts)
    if whole <= 0:
        return None
    drawn: list[Html] = []
    begin = 0.0
    for part in bar.parts:
        drawn.append(_part(part, begin / whole, part.share / whole, bar.anchor))
        begin += part.share
    hatch = tag(
        "pattern",
        tag("path", d="M-1 1L1-1M0 6L6 0M5 7L7 5"),
        id=f"{bar.anchor}-hatch",
        width="6",
        height="6",
        patternUnits="userSpaceOnUse",
    )
    picture = element("svg", element("defs", hatch), *drawn, role="group", aria_label=bar.title)
    return element("figure", picture, element("figcaption", *_key(bar)), class_="step-bar")


def _part(part: StepPart, begin: float, share: float, anchor: str) -> Html:
    """Return a link to the row of the table: its fill stands on the ground, so that filled areas are seconds."""
    hatched = f"url(#{anchor}-hatch)" if part.look == "unknown" else None
    body = [tag("rect", width="100%", height="100%", class_=part.look, fill=hatched)]
    if part.look == "limited":
        heights = {"busy": part.busy or 0.0, "need": part.needed}
        for kind, high in heights.items():
            top, tall = _percent(1 - min(1.0, high)), _percent(min(1.0, high))
            body += [tag("rect", y=top, width="100%", height=tall, class_=kind)] if high > 0 else []
        level = _percent(1 - min(1.0, part.needed))
        body.append(
            tag("line", x2="100%", y1=level, y2=level, class_="level")
        )  # pale areas are hard to tell apart
    body += [*_words(part, share), tag("rect", width="100%", height="100%", class_="edge")]
    inside = tag("svg", *body, x=_percent(begin), width=_percent(share), height="100%")
    href = f"#{anchor}-{part.row}" if part.row is not None else f"#{anchor}"
    return element("a", hover(part.hover), inside, href=href, aria_label=clean(part.hover)[:LONGEST])


def _words(part: StepPart, share: float) -> Iterator[Html]:
    """Yield its name and what it is, as far as they fit; one text for narrow screens and one for others."""
    for line, words in enumerate((part.name, part.what)):
        # In the larger of the two areas, so that the line between them goes through no word.
        below = part.look == "limited" and part.needed > _HALF
        at = {"x": "5", "y": "100%" if below else "0", "dy": f"{(-1.9 if below else 1.2) + 1.3 * line:.1f}em"}
        least = " ".join(words.split()[:2]) if line == 0 else ""  # `6 %`
        texts = {room: _in_room(words, least, share * wide - _MARGIN) for room, wide in _ROOMS.items()}
        if len(set(texts.values())) == 1:
            texts = {"": texts["narrow"]}
        yield together(
            tag("text", words, **at, class_=kind or None) for kind, words in texts.items() if words
        )


def _in_room(words: str, least: str, room: float) -> str:
    """Return the words, shortened as long as somebody can read them; else the least of them, where that fits."""
    short = fitted(words, room, _FONT)
    if len(short) >= min(_READABLE, len(clean(words))):
        return short
    return least if width(least, _FONT) <= room else ""


def _key(bar: StepBar) -> Iterator[Html]:
    """Yield what each look means, of those that occur."""
    for look, keys in _KEYS.items():
        for kind, words in keys if look in bar.looks else ():
            if kind != "busy" or any((part.busy or 0.0) > part.needed + _SEEN for part in bar.parts):
                yield element("span", element("i", class_=kind), words)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
