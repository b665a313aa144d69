"""A comparison as a reviewer reads it in ten seconds: the verdict, a short table, the cause; all else is folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import format_figures, format_quantity, plural
from profkit.core.types import Change, Comparison
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    Facts,
    Items,
    Section,
    Span,
    TableColumn,
    Text,
    View,
    joined,
    soft,
    table,
)
from profkit.reporting.views.comparison.machine import machine_blocks, why_lines
from profkit.reporting.views.comparison.view import blocks, view
from profkit.reporting.views.comparison.words import (
    fact_text,
    metric_name,
    outcome_label,
    seen_text,
    size_text,
    status_of,
    verdict_text,
)

MOST_ROWS = 10


def comment(comparison: Comparison) -> View:
    """The comparison in short, with all of it folded below."""
    whole = view(comparison)
    return View(
        verdict_text(comparison),
        (
            changes_table(comparison),
            *causes(comparison),
            Detail((Facts(whole.facts), *blocks(comparison)), title="All that was compared"),
            *machine_blocks("compare", [("", comparison)]),
        ),
        outcome_label(comparison),
        tuple(filter(None, (versions_text(comparison), seen_text(comparison.changes), *_fix(comparison)))),
        warning=whole.warning,
    )


def versions_text(comparison: Comparison) -> str:
    """`main (1a2b3c4d5e6f) -> the working tree; 13 pairs of runs in 5.9 s`."""
    text = f"{comparison.baseline.name} -> {comparison.candidate.name}"
    pairing = comparison.pairing
    if pairing is not None:
        text += f"; {plural(pairing.pairs, 'pair')} of runs in {format_figures(pairing.seconds, 2)} s"
    return text


def _fix(comparison: Comparison) -> Iterator[Text]:
    if comparison.fix:
        yield joined(soft("fix: "), fact_text(comparison.fix))


def changes_table(comparison: Comparison) -> DataTable:
    """What decides, the worst first, then what else changed: at most ten rows."""
    role = "decides" if any(c.role == "decides" for c in comparison.changes) else "stands-in"
    deciding = [change for change in comparison.changes if change.role == role]
    chosen = [*deciding, *(c for c in comparison.changes if c.role != role and c.word == "different")]
    titles = (
        TableColumn("metric"),
        *(TableColumn(name, numeric=True) for name in ("before", "after", "change")),
    )
    columns = (*titles, TableColumn("would be seen", numeric=True))
    return table(columns, [_row(c) for c in chosen[:MOST_ROWS]], left=max(0, len(chosen) - MOST_ROWS))


def _row(change: Change) -> tuple[Text, ...]:
    status = status_of(change)
    return (
        joined(Span(status.sign, status=status), f" {metric_name(change)}"),
        format_quantity(change.baseline.value, change.unit),
        format_quantity(change.candidate.value, change.unit),
        size_text(change),
        seen_share(change),
    )


def seen_share(change: Change) -> str:
    """The smallest change that would have been seen; a dash where that is not known."""
    if change.detectable is None or change.detectable > 1:
        return "-"
    return f"{format_figures(100 * change.detectable, 2)} %"


def causes(comparison: Comparison, heading: str = "Why") -> Sequence[Block]:
    """The likeliest lines and causes, where something is different."""
    lines = why_lines(comparison) if comparison.outcome not in ("same", "ambiguous") else []
    return (Section(heading, (Items(tuple(lines)),)),) if lines else ()
