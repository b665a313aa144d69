"""What is wrong with a page's markup, as a browser that forgives everything would not tell."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import html5lib

_REFERS = ("aria-labelledby", "aria-controls", "aria-describedby", "for")
_VOID = {"href": re.compile(r"#|\./|data:")}


def problems(made: str) -> list[str]:
    """Errors of parsing, ids that are there twice or not at all, handlers, styles and links that the policy forbids."""
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(made)
    found = [f"{code} at {place} {more}" for place, code, more in parser.errors]
    every: list[Any] = [one for one in tree.iter() if isinstance(one.tag, str)]
    ids = Counter(one.get("id") for one in every if one.get("id") is not None)
    found += [f"id {name} stands {number} times" for name, number in ids.items() if number > 1]
    for one in every:
        for name, value in one.attrib.items():
            if name == "style" or name.startswith("on"):
                found.append(f"{one.tag} has {name}={value!r}")
            if name in _REFERS:
                found += [f"{name} names {word}" for word in value.split() if word not in ids]
            if name == "href" and value.startswith("#") and value[1:] not in ids:
                found.append(f"{value} leads nowhere")
            if name in _VOID and not _VOID[name].match(value):
                found.append(f"{one.tag} {name} leads to {value}")
    return found
