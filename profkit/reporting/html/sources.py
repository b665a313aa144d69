"""Where each number comes from: a footnote for each way in which readings came about, shared by all of that way.

A number on the page is a link to its footnote. So a source is reached by mouse, keyboard and finger, without a script
too; the script shows the same footnote beside the number.
"""

from __future__ import annotations

from dataclasses import dataclass

from profkit.analysis.metrics import all_metrics
from profkit.core.formatting import percent, quantity
from profkit.core.types import Reading, Source, Verdict
from profkit.reporting.html.escape import text

# What stands beside a number that was not simply measured, so that colour is never the only carrier.
MARKS = {"simulated": "sim", "estimated": "est", "multiplexed": "mux"}


@dataclass(frozen=True)
class Footnote:
    """One way in which readings came about, in plain text; what is None is not known or does not apply."""

    metric: str
    title: str
    meaning: str | None
    quality: str
    tool: str
    counter: str | None = None
    formula: str | None = None
    artifact: str | None = None
    reason: str | None = None
    fix: str | None = None
    doubt: str | None = None

    @property
    def counters_alone(self) -> bool:
        """Whether the counters are to be named: a formula that holds them all has done so."""
        if self.counter is None or self.counter == self.formula:
            return self.counter is not None
        return not all(name in (self.formula or "") for name in self.counter.split(", "))


class Sources:
    """The footnotes of one page, in the order in which their numbers appear."""

    def __init__(self) -> None:
        self._numbers: dict[Footnote, int] = {}
        self._known = {one.name: one for one in all_metrics()}

    @property
    def footnotes(self) -> tuple[Footnote, ...]:
        """All that were asked for; the first has the id `s1`."""
        return tuple(self._numbers)

    def number(self, reading: Reading) -> int:
        """The footnote of this reading, counted from 1; it is `#s<number>` on the page."""
        known = self._known.get(reading.metric)
        quality: str = reading.quality
        if reading.quality == "multiplexed" and reading.share is not None:
            quality = f"multiplexed: counted {percent(100 * reading.share)} % of the time"
        note = Footnote(
            metric=reading.metric,
            title=known.title if known is not None else reading.metric,
            meaning=known.meaning if known is not None else None,
            quality=quality,
            tool=reading.source.tool,
            counter=reading.source.counter,
            formula=reading.source.formula,
            artifact=reading.source.artifact,
            reason=reading.reason,
            fix=reading.fix,
            doubt=reading.doubt,
        )
        return self._numbers.setdefault(note, len(self._numbers) + 1)

    def link(self, reading: Reading, told: str | None = None) -> str:
        """The reading as HTML: its value (or `told`), marked where it was not measured, linked to its footnote."""
        shown = told if told is not None else quantity(reading.value, reading.unit)
        if reading.value is None:
            shown = told if told is not None else "not known"
        mark = MARKS.get(reading.quality)
        behind = f' <small class="mark">{mark}</small>' if mark else ""
        doubted = ' <small class="mark doubt">doubted</small>' if reading.doubt else ""
        kind = f"n {reading.quality}"
        return f'<a class="{kind}" href="#s{self.number(reading)}">{text(shown)}{behind}{doubted}</a>'

    def of_verdict(self, verdict: Verdict) -> str:
        """The value of a verdict that no single reading holds: a mean or a sum over what it speaks of."""
        assert verdict.value is not None
        how = "sum" if verdict.unit == "count" else "mean by GPU time"
        made = Source("profkit", formula=f"{how} over the kernels that decide the verdict")
        return self.link(
            Reading(verdict.metric, verdict.value, verdict.unit, verdict.quality, verdict.scope, made)
        )
