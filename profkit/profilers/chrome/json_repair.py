"""Repairs what profilers write that is not valid JSON: names not escaped, `inf` and `nan` as numbers.

Traces of torch.profiler have them: paths of Windows, source lines with quotes, bandwidths of copies that took
no time.
"""

from __future__ import annotations

import re

# Kineto writes each event with these keys in this order, so that the end of a name is known whatever stands in it.
_NAME_BEGINS = r'"cat"\s{0,8}:\s{0,8}"[^"]{0,64}"\s{0,8},\s{0,8}"name"\s{0,8}:\s{0,8}"'
_NAME_ENDS = r'"\s{0,8},\s{0,8}"pid"\s{0,8}:'
_NAMES = re.compile(f"(?P<begins>{_NAME_BEGINS})|(?P<ends>{_NAME_ENDS})")
# A pair that JSON knows, or a sign that needs a backslash before it.
_ESCAPES = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|["\\]')
# The same outside of names, where a quote ends a text. What the end of the text may have cut stays as it is.
_BACKSLASHES = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}|u?[0-9a-fA-F]{0,3}\Z)|\\')
_NO_NUMBERS = re.compile(
    r'(?<!\\)(":\s{0,8})[-+]?(?:inf(?:inity)?|nan(?:\(\w{1,8}\))?)(?=\s{0,8}[,}\]])', re.IGNORECASE
)


def repaired(text: str) -> str:
    r"""Return a piece of JSON with its names escaped, and with `inf` and `nan` written as NaN.

    Python's decoder knows NaN. What is valid stays as it is; the time is linear in the length, whatever the text
    holds.

    >>> print(repaired('{"cat": "x", "name": "f<"a">", "pid": 1, "GB/s": inf}'))
    {"cat": "x", "name": "f<\"a\">", "pid": 1, "GB/s": NaN}
    """
    text = _BACKSLASHES.sub(_doubled, _with_names_escaped(text))
    return _NO_NUMBERS.sub(r"\1NaN", text)


def _doubled(match: re.Match[str]) -> str:
    return match[0] if len(match[0]) > 1 else "\\" + match[0]


def _with_names_escaped(text: str) -> str:
    """Escape the text between the beginning of a name and the key behind it.

    Where another name begins in between, the first is left as it is.
    """
    pieces: list[str] = []
    done, begin = 0, -1
    for match in _NAMES.finditer(text):
        if match["begins"]:
            begin = match.end()
        elif begin >= 0:
            pieces += [text[done:begin], _ESCAPES.sub(_doubled, text[begin : match.start()])]
            done, begin = match.start(), -1
    return "".join([*pieces, text[done:]])
