"""What a page is made of: parts in order, what they are made from, and where each of their numbers comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.types import Json


@dataclass(frozen=True)
class Part:
    """One section of a page.

    `html` is finished: whatever came from outside went through `escape.text`. It holds no `style` attribute, no event
    handler, no link to anywhere but `#...` and files beside the page: the page's policy forbids the first two.
    Colours and sizes come from the classes of `style.css`, or in SVG from attributes (`width`, `d`, `class`).
    """

    id: str  # of the section, for links: letters, digits and dashes
    title: str
    html: str
    headline: str | None = None  # one sentence below the title, as plain text
    folded: bool = False  # opens at a click; always open in print
    data: Mapping[str, Json] = field(
        default_factory=dict
    )  # id of a script element -> what it holds, for scripts
