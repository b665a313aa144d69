"""Many texts that are much alike, as kernel names are, in few bytes: of each what the one before it has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profkit.core.types import Json


def packed(texts: Sequence[str | None]) -> Json:
    """`{"texts": [...], "at": [...]}`: `at` has the place of each text, -1 for None, without those at its end.

    Every distinct text once, in the order of their characters, as three values: how many characters of the one before
    it begins with, how many of it it ends with, and what stands between.
    """
    distinct = sorted({text for text in texts if text is not None})
    places = {text: number for number, text in enumerate(distinct)}
    told: list[Json] = []
    before = ""
    for text in distinct:
        begin, end = _shared(before, text)
        told += [begin, end, text[begin : len(text) - end]]
        before = text
    at: list[Json] = [-1 if text is None else places[text] for text in texts]
    return {"texts": told, "at": trimmed(at, -1)}


def trimmed(values: list[Json], absent: Json = None) -> list[Json]:
    """Without what is `absent` at the end: of 10,000 kernels the largest, which stand first, were counted."""
    last = next((n for n in range(len(values), 0, -1) if values[n - 1] != absent), 0)
    return values[:last]


def _shared(one: str, other: str) -> tuple[int, int]:
    """How many characters both begin with, and how many of the rest both end with.

    None where a script counts otherwise: to it a character beyond U+FFFF is two.
    """
    if not (one.isascii() and other.isascii()) and max(one + other) > "\uffff":
        return 0, 0
    begin = _largest(min(len(one), len(other)), lambda n: one[:n] == other[:n])
    room = min(len(one), len(other)) - begin
    return begin, _largest(room, lambda n: one[len(one) - n :] == other[len(other) - n :])


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to `most` for which it holds, of those from 0 on for which it holds."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if holds(middle):
            least = middle
        else:
            most = middle - 1
    return least
