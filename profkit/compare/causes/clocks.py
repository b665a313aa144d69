"""The clock was another one: seconds follow it, cycles do not."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.compare.causes.words import became
from profkit.compare.state import CLOCKS_APART, clock_of
from profkit.compare.view import View
from profkit.model import Cause


def find(view: View) -> Iterator[Cause]:
    """Where some time changed and the clocks lie more than 2 % apart in the direction that explains it."""
    before, after = clock_of(view.baseline), clock_of(view.candidate)
    if before is None or after is None or before.of != after.of:
        return
    part = after.hertz / before.hertz - 1
    times = [c.ratio for c in view.changes if c.unit == "s" and c.word != "same" and c.ratio is not None]
    if abs(part) <= CLOCKS_APART or not any((ratio > 1) == (part < 0) for ratio in times):
        return
    word = "lower" if part < 0 else "higher"
    yield Cause(
        "clocks",
        f"The clock was {abs(100 * part):.1f} % {word}.",
        evidence=(became(f"clock of {before.of}", before.hertz, after.hertz, "Hz"),),
    )
