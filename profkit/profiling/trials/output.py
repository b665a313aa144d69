"""Whether a program prints the same with a change as without: numbers within the digits that are printed.

What differs between runs without the change (times, addresses, the order of a set) is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.core.types import OutputWord

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.(\d+))?(?:[eE]([-+]?\d+))?")


def compare_outputs(plain: Sequence[str], changed: Sequence[str]) -> OutputWord:
    """Compare texts of runs without and with the change, at least one of each.

    `varies`: runs without it do not print the same words either, in any order of the lines.
    """
    # Most programs print the same text each time: taking megabytes of it apart would take longer than the runs.
    first = plain[0]
    others = [text for text in plain[1:] if text != first]
    deviating = [text for text in changed if text != first]
    if not others and not deviating:
        return "same"
    for arrange in (_as_printed, _sorted):
        known = [_split(arrange(text)) for text in (first, *others)]
        words, numbers = known[0]
        if any(other != words for other, _ in known[1:]):
            continue
        stable = [
            all(_equal(one[place], numbers[place]) for _, one in known[1:]) for place in range(len(numbers))
        ]
        tried = [_split(arrange(text)) for text in deviating]
        same = all(
            other == words
            and all(_equal(a, b) for a, b, fixed in zip(numbers, found, stable, strict=True) if fixed)
            for other, found in tried
        )
        return "same" if same else "different"
    return "varies"


def _as_printed(text: str) -> str:
    return text


def _sorted(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def _split(text: str) -> tuple[str, list[re.Match[str]]]:
    """The text with each number as `#`, and its numbers."""
    return _NUMBER.sub("#", text), list(_NUMBER.finditer(text))


def _equal(one: re.Match[str], other: re.Match[str]) -> bool:
    """Whether two numbers are the same up to one unit of the last digit that both have."""
    if one[0] == other[0]:
        return True
    if (one[1] is None and one[2] is None) or (other[1] is None and other[2] is None):
        return False  # a count is exact
    unit = max(10.0 ** (int(each[2] or 0) - len(each[1] or "")) for each in (one, other))
    return abs(float(one[0]) - float(other[0])) <= 1.001 * unit
