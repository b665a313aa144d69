"""The clock was another one: seconds follow it, cycles do not."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import plural
from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became
from profkit.regression.compare.state import clock_of, in_cycles
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """Where some time is not the same in seconds and would be in cycles, and whether all of them would."""
    before, after = clock_of(view.baseline), clock_of(view.candidate)
    if before is None or after is None:
        return
    times = [c for c in view.changes if c.unit == "s" and c.word != "same"]
    left = [c for c in times if in_cycles(c, before, after) is None]
    if len(left) < len(times):
        part = after.hertz / before.hertz - 1
        rest = (
            f"of {plural(len(times), 'time')} {len(left)} changed in cycles too"
            if left
            else "in cycles nothing changed"
        )
        yield Cause(
            "clocks",
            f"The clock was {abs(100 * part):.1f} % {'lower' if part < 0 else 'higher'}; {rest}.",
            evidence=(became(f"clock of {before.of}", before.hertz, after.hertz, "Hz"),),
        )
