"""The clock was another one: seconds follow it, cycles do not."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.compare.causes.words import became
from profkit.compare.state import clock_of, in_cycles
from profkit.compare.view import View
from profkit.model import Cause


def find(view: View) -> Iterator[Cause]:
    """Where some time is not the same in seconds, and would be in cycles."""
    before, after = clock_of(view.baseline), clock_of(view.candidate)
    if before is None or after is None:
        return
    if any(c.word != "same" and in_cycles(c, before, after) is not None for c in view.changes):
        part = after.hertz / before.hertz - 1
        yield Cause(
            "clocks",
            f"The clock was {abs(100 * part):.1f} % {'lower' if part < 0 else 'higher'}; in cycles nothing changed.",
            evidence=(became(f"clock of {before.of}", before.hertz, after.hertz, "Hz"),),
        )
