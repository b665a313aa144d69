"""What two versions that were run in turn have beside the rest: the interval over the pairs, the lines behind it."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import format_figures, plural
from profkit.core.types import BlamedLine, Comparison, Pairing
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.charts.series import interval_chart
from profkit.reporting.view import Block, Item, Items, Section, Text, code, joined, soft, strong
from profkit.reporting.views.comparison.words import fact_text, seen_text, verdict_text

# Of calling a time different that is the same, over all looks, as `regression/paired/interleave.py` has it.
ERROR = 0.02
TRUST = (
    f"Of times that did not change, at most {100 * ERROR:.0f} % would be called different, over all looks at the "
    "pairs."
)
_COMMIT = 7  # digits of a commit beside a line
_MOST_LINES = 6


def headline(comparison: Comparison) -> list[Text]:
    """The size of the change, from what to what, and how small a one would have been seen."""
    seen = seen_text(comparison.changes)
    return [verdict_text(comparison, values=True), *([seen] if seen else [])]


def facts(pairing: Pairing) -> list[tuple[str, Text]]:
    """How many pairs in which time, and what was taken out of their times."""
    pairs = f"{plural(pairing.pairs, 'pair')} in random order, "
    pairs += f"{format_figures(pairing.seconds, 2)} s of at most {format_figures(pairing.budget, 2)} s"
    if pairing.failed:
        pairs += f"; {pairing.failed} more failed and {'is' if pairing.failed == 1 else 'are'} left out"
    rows: list[tuple[str, Text]] = [("runs", pairs)]
    if pairing.waited is not None:
        share = format_figures(100 * pairing.waited, 2)
        rows.append(("taken out", f"waiting for a processor, {share} % of the time of the runs"))
    return rows


def interval(comparison: Comparison) -> Iterator[Block]:
    """How the interval closed over the pairs; nothing of fewer than two looks."""
    pairing = comparison.pairing
    times = [c for c in comparison.changes if c.metric.startswith("time.") and c.baseline.groups]
    if pairing is None or len(pairing.looks) < 2 or not times:
        return
    scopes = {change.scope for change in times}
    of = f"the widest of {len(scopes)} times" if len(scopes) > 1 else "of the time"
    chart = interval_chart(pairing.looks, times[0].floor)
    yield Section(f"The interval {of} over the pairs", (Charts((chart,)),))


def blamed(lines: tuple[BlamedLine, ...]) -> Iterator[Block]:
    """Changed lines in what became slower, the likeliest first."""
    if lines:
        items = tuple(Item(blamed_text(line), _shown(line)) for line in lines[:_MOST_LINES])
        left = len(lines) - _MOST_LINES
        title = "Changed lines in what became slower, the likeliest first" + (
            f" ({left} more as JSON)" if left > 0 else ""
        )
        yield Section(title, (Items(items),))


def _shown(line: BlamedLine) -> tuple[Text, ...]:
    """What the line says, or said."""
    if not line.text.strip():
        return ()
    return (joined("taken out: " if line.removed else "", code(line.text.strip())),)


def blamed_text(line: BlamedLine) -> Text:
    """`bench.py:12 in parse, commit 1a2b3c4 'Parse twice': own time +38 %`."""
    where = f"{line.path}:{line.line}" if line.line > 0 else line.path
    commit = f"commit {line.commit[:_COMMIT]}" if line.commit else "not committed"
    subject = f" '{line.subject}'" if line.subject and line.commit else ""
    inside = (" in ", code(line.function)) if line.function else ()
    return joined(strong(where), *inside, f", {commit}", soft(subject), f": {fact_text(line.why)}")


def trust_line(comparison: Comparison) -> str:
    """How often a time that did not change would be called different."""
    text = TRUST
    single = sum(1 for change in comparison.changes if not change.baseline.groups)
    if single:
        text += f" {plural(single, 'other metric')} {'is' if single == 1 else 'are'} from one run of each version."
    return text
