"""Several workloads compared between two versions: one row for each, the worst first, and below it what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import format_figures, format_utc_time, plural
from profkit.core.types import ComparedSuite, ComparedWorkload, Comparison, ComparisonOutcome, SuiteOutcome
from profkit.reporting.forges import Annotation, Annotations, Case, Cases, CaseState
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    Facts,
    Fold,
    Item,
    Items,
    Label,
    Paragraph,
    Section,
    Span,
    Status,
    TableColumn,
    Text,
    View,
    joined,
    notes,
    soft,
    strong,
    table,
)
from profkit.reporting.views.comparison import paired
from profkit.reporting.views.comparison.comment import MOST_ROWS, causes, seen_share, versions_text
from profkit.reporting.views.comparison.machine import machine_blocks
from profkit.reporting.views.comparison.view import blocks
from profkit.reporting.views.comparison.words import (
    OUTCOME_WORDS,
    OUTCOMES,
    fact_text,
    leading_change,
    outcome_label,
    size_text,
    verdict_text,
)

_ENDINGS: dict[str, Label] = {
    "new": Label(Status.NEW, "NEW"),
    "elsewhere": Label(Status.NONE, "NOT HERE"),
    "failed": Label(Status.FAIL, "FAILED"),
    "refused": Label(Status.REFUSED, "REFUSED"),
    "machine": Label(Status.REFUSED, "NOT RUN"),
    "interrupted": Label(Status.NONE, "NOT REACHED"),
}
_COUNTED: dict[ComparisonOutcome, str] = {
    "regressed": "worse",
    "improved": "better",
    "same": "the same",
    "changed": "changed",
    "ambiguous": "not decided",
    "refused": "refused",
}
_COUNTED_ENDINGS = {"machine": "not run", "elsewhere": "not for this machine", "interrupted": "not reached"}
_QUIET: tuple[ComparisonOutcome, ...] = ("same",)
_LAST_WORDS = 6  # lines that a workload that failed said last
_BROKEN = ("failed", "refused", "machine")


def view(suite: ComparedSuite) -> View:
    """The suite as blocks: the table, then each workload that is not the same, then the others folded."""
    compared = _compared(suite)
    loud = [(name, one) for name, one in compared if one.outcome not in _QUIET]
    quiet = [(name, one) for name, one in compared if one.outcome in _QUIET]
    body: list[Block] = [workloads_table(suite, len(suite.workloads)), *_without(suite)]
    body += [_workload(name, one) for name, one in loud]
    inner = tuple(_workload(name, one, Fold.FOLDED) for name, one in quiet)
    body += [Detail(inner)] if inner else []
    body += notes([paired.TRUST]) if compared else ()
    return View(
        f"comparison of {suite.name}",
        (*body, *_machine(suite)),
        label_of(suite.outcome),
        (headline(suite),),
        tuple(_facts(suite)),
        warning=_warning(suite),
    )


def comment(suite: ComparedSuite) -> View:
    """The suite in short: at most ten workloads, why the worst are worse, and all else folded."""
    compared = _compared(suite)
    body: list[Block] = [workloads_table(suite, MOST_ROWS), *_without(suite)]
    for name, one in [(n, c) for n, c in compared if c.outcome == "regressed"][:3]:
        body += causes(one, f"Why {name} is worse")
    for name, one in compared:
        if one.outcome not in _QUIET:
            body.append(Detail(tuple(_whole(one)), title=f"{name}: {verdict_text(one)}"))
    rest = tuple(_workload(name, one) for name, one in compared if one.outcome in _QUIET)
    body += (
        [Detail(rest, title=f"The same: {', '.join(n for n, c in compared if c.outcome in _QUIET)}")]
        if rest
        else []
    )
    versions = versions_text(compared[0][1]).partition(";")[0] if compared else ""
    lines = (f"{versions}; {_took(suite)}" if versions else _took(suite),)
    return View(
        headline(suite), (*body, *_machine(suite)), label_of(suite.outcome), lines, warning=_warning(suite)
    )


def label_of(outcome: SuiteOutcome) -> Label:
    """`✗ WORSE`, `✗ FAILED`."""
    if outcome == "failed" or outcome == "new":
        return _ENDINGS[outcome]
    return Label(OUTCOMES[outcome], OUTCOME_WORDS[outcome])


def headline(suite: ComparedSuite) -> str:
    """`parse: time.median +12.3 % [+9.8, +14.9]; 1 worse, 3 the same`: the worst, and how many became what."""
    words = [
        _COUNTED[w.comparison.outcome]
        if w.comparison is not None
        else _COUNTED_ENDINGS.get(w.ending, w.ending)
        for w in suite.workloads
    ]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    first = suite.workloads[0] if suite.workloads else None
    if first is None or (first.comparison is not None and first.comparison.outcome in _QUIET):
        return counts or "no workload was compared"
    said = verdict_text(first.comparison) if first.comparison is not None else first.reason.split("\n")[0]
    return f"{first.name}: {said}" if len(words) == 1 else f"{first.name}: {said} ({counts})"


def workloads_table(suite: ComparedSuite, most: int) -> DataTable:
    """A row for each workload."""
    columns = (
        TableColumn("workload"),
        TableColumn(""),
        TableColumn("change of the time", numeric=True),
        TableColumn("would be seen", numeric=True),
        TableColumn("pairs", numeric=True),
    )
    rows = [_row(workload) for workload in suite.workloads[:most]]
    return table(columns, rows, left=max(0, len(suite.workloads) - most))


def _row(workload: ComparedWorkload) -> tuple[Text, ...]:
    comparison = workload.comparison
    if comparison is None:
        return (workload.name, _ENDINGS[workload.ending].span, "-", "-", "-")
    change = leading_change(comparison)
    pairs = str(comparison.pairing.pairs) if comparison.pairing is not None else "-"
    label = outcome_label(comparison)
    what: Text = label.span
    if change is None or not change.metric.startswith("time."):
        what = joined(label.span, f" {change.metric}" if change is not None else "")
        change = next((c for c in comparison.changes if c.metric.startswith("time.")), None)
    elif change.scope.name:
        what = joined(label.span, f" in {change.scope.name}")
    if change is None:
        return (workload.name, what, "-", "-", pairs)
    return (workload.name, what, size_text(change), seen_share(change), pairs)


def _without(suite: ComparedSuite) -> Iterator[Block]:
    """Why there is no comparison of a workload, and what would change that."""
    items = []
    for workload in suite.workloads:
        if workload.comparison is None and workload.reason:
            first, *others = workload.reason.split("\n")
            below: list[Text] = [soft(line) for line in others[-_LAST_WORDS:] if line.strip()]
            below += [joined(soft("fix: "), workload.fix)] if workload.fix else []
            items.append(Item((strong(workload.name), f": {first}"), tuple(below)))
    if items:
        yield Items(tuple(items))


def _compared(suite: ComparedSuite) -> list[tuple[str, Comparison]]:
    return [(w.name, w.comparison) for w in suite.workloads if w.comparison is not None]


def _workload(name: str, comparison: Comparison, fold: Fold = Fold.OPEN) -> Section:
    title = (outcome_label(comparison).span, f": {name}")
    return Section(title, tuple(_whole(comparison)), verdict_text(comparison, values=True), fold)


def _whole(comparison: Comparison) -> Iterator[Block]:
    if comparison.pairing is not None:
        yield Facts(tuple(paired.facts(comparison.pairing)))
    if comparison.fix:
        yield Paragraph(joined(soft("fix: "), fact_text(comparison.fix)))
    yield from blocks(comparison, trust=False)


def _facts(suite: ComparedSuite) -> Iterator[tuple[str, Text]]:
    compared = _compared(suite)
    if compared:
        yield "baseline", compared[0][1].baseline.name
        yield "candidate", compared[0][1].candidate.name
    yield "started", format_utc_time(suite.started)
    yield "took", _took(suite)


def _took(suite: ComparedSuite) -> str:
    return f"{plural(len(suite.workloads), 'workload')} in {format_figures(suite.seconds, 2)} s"


def _warning(suite: ComparedSuite) -> Text:
    return Span("Interrupted: what was finished is shown.") if suite.interrupted else ""


def _machine(suite: ComparedSuite) -> Iterator[Block]:
    """The test cases and annotations of all, with those of workloads that could not be compared."""
    others = [w for w in suite.workloads if w.comparison is None]
    for workload in others:
        state: CaseState = "error" if workload.ending in _BROKEN else "skipped"
        fix = f"\nfix: {workload.fix}" if workload.fix else ""
        first = workload.reason.split("\n")[0]
        case = Case(
            f"{suite.name}.{workload.name}",
            "result",
            state,
            first,
            workload.reason + fix,
            kind=workload.ending,
        )
        yield Cases(workload.name, (case,), suite.started, 0.0, (("outcome", workload.ending),))
    yield from machine_blocks(suite.name, _compared(suite))
    yield Annotations(tuple(_broken(others)))


def _broken(workloads: Sequence[ComparedWorkload]) -> Iterator[Annotation]:
    for workload in workloads:
        if workload.ending in _BROKEN:
            fix = f"\nfix: {workload.fix}" if workload.fix else ""
            word = _ENDINGS[workload.ending].word.lower()
            yield Annotation("error", f"{workload.name}: {word}", workload.reason + fix)
