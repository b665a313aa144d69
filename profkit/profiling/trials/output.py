"""Compares what a program prints with and without a change: numbers within the digits that are printed.

Parts that differ between runs without the change (times, addresses, the order of a set) are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.core.types import OutputWord

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.(\d+))?(?:[eE]([-+]?\d+))?")


def compare_outputs(plain: Sequence[str], changed: Sequence[str]) -> OutputWord:
    """Compare texts of runs without and with the change, at least one of each.

    `varies`: runs without the change do not print the same words either, even if the order of lines is ignored.
    """
    # Most programs print the same text each time: taking megabytes of it apart would take longer than the runs.
    first = plain[0]
    other_plain = [text for text in plain[1:] if text != first]
    deviating = [text for text in changed if text != first]
    if not other_plain and not deviating:
        return "same"
    for arrange in (_as_printed, _sorted):
        plain_parts = [_split(arrange(text)) for text in (first, *other_plain)]
        words, numbers = plain_parts[0]
        if any(other_words != words for other_words, _ in plain_parts[1:]):
            continue
        stable = [
            all(_equal(other_numbers[place], numbers[place]) for _, other_numbers in plain_parts[1:])
            for place in range(len(numbers))
        ]
        changed_parts = [_split(arrange(text)) for text in deviating]
        is_same = all(
            changed_words == words
            and all(
                _equal(a, b) for a, b, fixed in zip(numbers, changed_numbers, stable, strict=True) if fixed
            )
            for changed_words, changed_numbers in changed_parts
        )
        return "same" if is_same else "different"
    return "varies"


def _as_printed(text: str) -> str:
    return text


def _sorted(text: str) -> str:
    return "\n".join(sorted(text.splitlines()))


def _split(text: str) -> tuple[str, list[re.Match[str]]]:
    """Return the text with each number as `#`, and its numbers."""
    return _NUMBER.sub("#", text), list(_NUMBER.finditer(text))


def _equal(first: re.Match[str], second: re.Match[str]) -> bool:
    """Return whether two numbers are the same up to one unit of the last digit that both have."""
    if first[0] == second[0]:
        return True
    if (first[1] is None and first[2] is None) or (second[1] is None and second[2] is None):
        return False  # a count is exact
    unit = max(10.0 ** (int(number[2] or 0) - len(number[1] or "")) for number in (first, second))
    return abs(float(first[0]) - float(second[0])) <= 1.001 * unit
