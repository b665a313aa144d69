"""Text from outside made harmless: control characters, escape codes, and marks that reorder a line."""

from __future__ import annotations

import unicodedata

# Bidirectional marks (they reorder what is read) and line separators are format characters, not controls.
_DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def harmless(text: str) -> str:
    """The text on one line with every control, format and surrogate character replaced by a visible one.

    >>> harmless("a\\x1b[31mb\\nc")
    'a�[31mb c'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if character in "\n\t\r":
        return " "
    return "�" if unicodedata.category(character) in _DANGEROUS else character
