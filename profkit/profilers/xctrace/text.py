"""Text of an export as bytes, with its five entities and numbered characters, as it is meant."""

from __future__ import annotations

import re

_ENTITY = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(lt|gt|amp|quot|apos));")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


def text_of(raw: bytes) -> str:
    """A piece of XML text as it is meant."""
    text = raw.decode()
    return _ENTITY.sub(_meant, text) if "&" in text else text


def _meant(match: re.Match[str]) -> str:
    decimal, hexadecimal, name = match.groups()
    return _NAMED[name] if name else chr(int(decimal) if decimal else int(hexadecimal, 16))
