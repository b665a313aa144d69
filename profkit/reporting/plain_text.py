"""Text from outside made harmless: control characters, escape codes, and marks that reorder a line."""

from __future__ import annotations

import os
import re
import unicodedata

# Bidirectional marks (they reorder what is read) and line separators are format characters, not controls.
_DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}

# What GitHub's runner takes for a command to itself: `::` behind any blanks (actions/runner, ActionCommand.cs), and the
# older `##[` anywhere in a line.
_COMMAND = re.compile(r"(?m)^[^\S\n]*(?=::)|#(?=#\[)")
# What stands for itself or in brackets at the end. Only xctrace's are longer than a line: paths into a document.
_TYPED = re.compile(r"(?:\((?=x[^()]*\)$)|^|(?<=: ))((?:xcrun )?xctrace export [^;]*?)\)?$")
_JOINER = "\N{WORD JOINER}"  # no width, and no blank to the runner


def without_control_characters(text: str) -> str:
    """The text on one line with every control, format and surrogate character replaced by a visible one.

    >>> harmless("a\\x1b[31mb\\nc")
    'a�[31mb c'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def disarm_commands(text: str) -> str:
    """The text as it is; in a step of GitHub Actions with no line in it that the runner would carry out.

    What a workload, a kernel or a file is called is in it, and `::add-mask::` and the like are carried out wherever
    they are printed.
    """
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return text
    return _COMMAND.sub(lambda match: match[0] + _JOINER, text)


def split_command(text: str) -> tuple[str, str | None]:
    """What is said, and the line to type behind it; None where there is none, or one that may be broken.

    >>> typed_apart("unavailable, the table was not exported (xctrace export --toc)")
    ('unavailable, the table was not exported', 'xctrace export --toc')
    """
    match = _TYPED.search(text)
    if match is None:
        return text, None
    return text[: match.start()].rstrip(), match[1]


def _visible(character: str) -> str:
    if character in "\n\t\r":
        return " "
    return "�" if unicodedata.category(character) in _DANGEROUS else character
