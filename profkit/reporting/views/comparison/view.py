"""A comparison of two runs, several workloads compared between two versions, and both in short for a reviewer.

A comment is read in ten seconds: the verdict, a short table, the cause; all else is folded. For CI there is a test case
for each comparison, and an annotation for what is not the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.core.formatting import format_figures, format_utc_time, plural
from profkit.core.types import (
    ComparedSuite,
    ComparedWorkload,
    Comparison,
    Side,
    SuiteOutcome,
)
from profkit.reporting.facts import fact_text
from profkit.reporting.forges import Annotation, AnnotationList, Case, CaseList
from profkit.reporting.view import (
    Block,
    CaseState,
    DataTable,
    Detail,
    FieldList,
    Fold,
    Item,
    ItemList,
    Label,
    Paragraph,
    Section,
    Status,
    TableColumn,
    Text,
    View,
    joined,
    plain_text,
    soft,
    strong,
    table,
)
from profkit.reporting.views.comparison.changes import (
    blamed_text,
    blocks,
    changes_table,
    pair_facts,
    seen_share,
)
from profkit.reporting.views.comparison.words import (
    LABELS,
    cause_text,
    leading_change,
    seen_text,
    size_text,
    verdict_text,
    why_text,
)

_COMMIT = 12  # digits of a commit
MAX_ROWS = 10  # of a comment's table
_MAX_CAUSES = 3
_LAST_WORDS = 6  # lines that a workload that failed said last
_ENDINGS: dict[str, Label] = {
    "new": Label(Status.NEW, "NEW"),
    "elsewhere": Label(Status.NONE, "NOT HERE"),
    "failed": Label(Status.FAIL, "FAILED"),
    "refused": Label(Status.REFUSED, "REFUSED"),
    "machine": Label(Status.REFUSED, "NOT RUN"),
    "interrupted": Label(Status.NONE, "NOT REACHED"),
}
_BROKEN = ("failed", "refused", "machine")

# ---------------------------------------------------------------- one comparison


def view(comparison: Comparison) -> View:
    """Return the comparison as blocks."""
    forced = "FORCED: these two must not be compared; what follows may mean nothing."
    pairing = comparison.pairing
    headline: list[Text] = [why_text(comparison)]
    if pairing is not None:
        headline = list(filter(None, [verdict_text(comparison, values=True), seen_text(comparison.changes)]))
    headline += [joined(soft("fix: "), fact_text(comparison.fix))] if comparison.fix else []
    names = dict.fromkeys((comparison.baseline.name, comparison.candidate.name))
    label = Label(LABELS[comparison.outcome].status, comparison.outcome.upper())
    sides = ("baseline", _side_line(comparison.baseline)), ("candidate", _side_line(comparison.candidate))
    return View(
        f"comparison of {' and '.join(names)}",
        (*blocks(comparison), *machine_blocks("compare", [("", comparison)])),
        LABELS[comparison.outcome] if pairing is not None else label,
        tuple(headline),
        (*sides, *(pair_facts(pairing) if pairing is not None else ())),
        warning=strong(forced, Status.FAIL) if comparison.forced else "",
    )


def _side_line(side: Side) -> str:
    """Return `step on cpu, 2026-11-20 13:37:20 UTC, commit a1b2c3d4e5f6 with changes`."""
    parts = [side.name if not side.path or side.path.endswith(side.name) else f"{side.name} ({side.path})"]
    parts += [side.backend] if side.backend else []
    if side.started:
        parts.append(format_utc_time(side.started))
    if side.commit and side.commit[:_COMMIT] not in side.name:
        parts.append(f"commit {side.commit[:_COMMIT]}{' with changes' if side.dirty else ''}")
    return ", ".join(parts)


def comment(comparison: Comparison) -> View:
    """Return the comparison in short, with all of it folded below."""
    whole = view(comparison)
    text = f"{comparison.baseline.name} -> {comparison.candidate.name}"
    if (pairing := comparison.pairing) is not None:
        text += f"; {plural(pairing.pairs, 'pair')} of runs in {format_figures(pairing.seconds, 2)} s"
    fix = joined(soft("fix: "), fact_text(comparison.fix)) if comparison.fix else ""
    return View(
        verdict_text(comparison),
        (
            _changes(comparison),
            *_causes(comparison, "Why"),
            Detail((FieldList(whole.facts), *blocks(comparison)), title="All that was compared"),
            *machine_blocks("compare", [("", comparison)]),
        ),
        LABELS[comparison.outcome],
        tuple(filter(None, (text, seen_text(comparison.changes), fix))),
        warning=whole.warning,
    )


def _changes(comparison: Comparison) -> DataTable:
    """Return what decides, the worst first, then what else changed."""
    role = "decides" if any(c.role == "decides" for c in comparison.changes) else "stands-in"
    deciding = [change for change in comparison.changes if change.role == role]
    others = [c for c in comparison.changes if c.role != role and c.word == "different"]
    return changes_table([*deciding, *others], MAX_ROWS)


def _causes(comparison: Comparison, heading: str) -> Sequence[Block]:
    """Return the likeliest lines and causes, where something is different."""
    lines = why_lines(comparison) if comparison.outcome not in ("same", "ambiguous") else []
    return (Section(heading, (ItemList(tuple(lines)),)),) if lines else ()


def why_lines(comparison: Comparison) -> list[str]:
    """Return the likeliest lines and causes, a sentence each, the best known first, and nothing twice."""
    blamed = comparison.blamed[:_MAX_CAUSES]
    blamed_texts = tuple(fact_text(line.why) for line in blamed)
    left = [text for text in map(cause_text, comparison.causes) if not text.startswith(blamed_texts)]
    return [plain_text(blamed_text(line)) for line in blamed] + left[:_MAX_CAUSES]


# ---------------------------------------------------------------- several workloads


def suite_view(suite: ComparedSuite, *, short: bool = False) -> View:
    """Return the suite as blocks: the table, then each workload, those that are the same folded.

    `short`: at most ten workloads, why the worst are worse, and all else folded.
    """
    compared = _compared(suite)
    workloads: tuple[Block, ...] = tuple(_workloads(compared))
    body: list[Block] = [_table(suite, MAX_ROWS if short else len(suite.workloads)), *_without(suite)]
    if short:
        for name, found in [(n, c) for n, c in compared if c.outcome == "regressed"][:_MAX_CAUSES]:
            body += _causes(found, f"Why {name} is worse")
        workloads = (Detail(workloads, title="All that was compared"),) if workloads else ()
    took = f"{plural(len(suite.workloads), 'workload')} in {format_figures(suite.seconds, 2)} s"
    facts = [("started", format_utc_time(suite.started)), ("took", took)]
    if compared:
        first = compared[0][1]
        facts[:0] = [("baseline", first.baseline.name), ("candidate", first.candidate.name)]
    return View(
        f"comparison of {suite.name}" if not short else headline(suite),
        (*body, *workloads, *_machine(suite)),
        label_of(suite.outcome),
        (headline(suite),) if not short else (),
        tuple(facts),
        warning="Interrupted: what was finished is shown." if suite.interrupted else "",
    )


def label_of(outcome: SuiteOutcome) -> Label:
    """Return `✗ WORSE`, `✗ FAILED`."""
    if outcome == "failed" or outcome == "new":
        return _ENDINGS[outcome]
    return LABELS[outcome]


def headline(suite: ComparedSuite) -> str:
    """Return `parse: time.median +12.3 % [+9.8, +14.9] (1 worse, 3 same)`: the worst, and how many became what."""
    words = [
        (LABELS[w.comparison.outcome].word if w.comparison is not None else _ENDINGS[w.ending].word).lower()
        for w in suite.workloads
    ]
    counts = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    first = suite.workloads[0] if suite.workloads else None
    if first is None or (first.comparison is not None and first.comparison.outcome == "same"):
        return counts or "no workload was compared"
    known = first.comparison
    said = fact_text(first.reason).partition("\n")[0] if known is None else verdict_text(known)
    return f"{first.name}: {said}" + (f" ({counts})" if len(words) > 1 else "")


def _table(suite: ComparedSuite, most: int) -> DataTable:
    """Return a row for each workload."""
    titles = ("workload", TableColumn(""), "change of the time", "would be seen", "pairs")
    rows = [_row(workload) for workload in suite.workloads[:most]]
    return table(titles, rows, left=max(0, len(suite.workloads) - most))


def _row(workload: ComparedWorkload) -> tuple[Text, ...]:
    comparison = workload.comparison
    if comparison is None:
        return (workload.name, _ENDINGS[workload.ending].span, "-", "-", "-")
    change = leading_change(comparison)
    pairs = str(comparison.pairing.pairs) if comparison.pairing is not None else "-"
    what: Text = LABELS[comparison.outcome].span
    if change is None or not change.metric.startswith("time."):
        what = joined(what, f" {change.metric}" if change is not None else "")
        change = next((c for c in comparison.changes if c.metric.startswith("time.")), None)
    elif change.scope.name and change.scope.name != workload.name:
        what = joined(what, f" in {change.scope.name}")
    if change is None:
        return (workload.name, what, "-", "-", pairs)
    return (workload.name, what, size_text(change), seen_share(change) or "-", pairs)


def _without(suite: ComparedSuite) -> Iterator[Block]:
    """Yield why there is no comparison of a workload, and what would change that."""
    items = []
    for workload in suite.workloads:
        if workload.comparison is None and workload.reason:
            first, *others = fact_text(workload.reason).split("\n")
            below: list[Text] = [soft(line) for line in others[-_LAST_WORDS:] if line.strip()]
            below += [joined(soft("fix: "), workload.fix)] if workload.fix else []
            items.append(Item((strong(workload.name), f": {first}"), tuple(below)))
    if items:
        yield ItemList(tuple(items))


def _compared(suite: ComparedSuite) -> list[tuple[str, Comparison]]:
    return [(w.name, w.comparison) for w in suite.workloads if w.comparison is not None]


def _workloads(compared: Sequence[tuple[str, Comparison]]) -> Iterator[Section]:
    """Yield each with all that was compared."""
    for name, comparison in compared:
        facts = pair_facts(comparison.pairing) if comparison.pairing is not None else []
        inside: list[Block] = [FieldList(tuple(facts))] if facts else []
        if comparison.fix:
            inside.append(Paragraph(joined(soft("fix: "), fact_text(comparison.fix))))
        title = (LABELS[comparison.outcome].span, f": {name}")
        fold = Fold.FOLDED if comparison.outcome == "same" else Fold.OPEN
        body = (*inside, *blocks(comparison))
        yield Section(title, body, verdict_text(comparison, values=True), fold)


# ---------------------------------------------------------------- for a CI system


def _machine(suite: ComparedSuite) -> Iterator[Block]:
    """Yield the test cases and annotations of all, with those of workloads that could not be compared."""
    broken = []
    for w in suite.workloads:
        if w.comparison is None:
            state: CaseState = "error" if w.ending in _BROKEN else "skipped"
            reason = fact_text(w.reason)
            first, whole = reason.split("\n")[0], reason + (f"\nfix: {w.fix}" if w.fix else "")
            case = Case(f"{suite.name}.{w.name}", "result", state, first, whole, kind=w.ending)
            yield CaseList(w.name, (case,), suite.started, 0.0, (("outcome", w.ending),))
            if state == "error":
                word = _ENDINGS[w.ending].word.lower()
                broken.append(Annotation("error", f"{w.name}: {word}", whole))
    yield from machine_blocks(suite.name, _compared(suite))
    yield AnnotationList(tuple(broken))


def machine_blocks(group: str, compared: Sequence[tuple[str, Comparison]]) -> Iterator[Block]:
    """Yield a suite of test cases for each named comparison, and all annotations."""
    for name, comparison in compared:
        yield _cases(group, name, comparison)
    yield AnnotationList(tuple(row for name, found in compared for row in _annotations(name, found)))


def _fix_line(comparison: Comparison) -> list[str]:
    return [f"fix: {fact_text(comparison.fix)}"] if comparison.fix else []


def _cases(group: str, name: str, comparison: Comparison) -> CaseList:
    """Return a suite of one case: what it came to."""
    whole = f"{group}.{name}" if name else group
    reason = why_text(comparison)
    output = "\n".join(filter(None, [reason, seen_text(comparison.changes), *why_lines(comparison)]))
    detail = "\n".join([output, *_fix_line(comparison)])
    state = LABELS[comparison.outcome].status.case
    case = Case(whole, "result", state, reason, detail, kind=comparison.outcome)
    baseline, candidate = comparison.baseline, comparison.candidate
    facts = (
        ("outcome", comparison.outcome),
        ("baseline", baseline.commit or baseline.name),
        ("candidate", candidate.commit or candidate.name),
    )
    seconds = comparison.pairing.seconds if comparison.pairing is not None else 0.0
    title = name or f"{baseline.name} and {candidate.name}"
    return CaseList(title, (case,), candidate.started, seconds, facts, output)


def _annotations(name: str, comparison: Comparison) -> Iterator[Annotation]:
    """Yield an annotation for what needs attention, at the most likely line if there is one."""
    label = LABELS[comparison.outcome]
    level = "warning" if comparison.outcome == "refused" else label.status.level
    if level is None:
        return
    word = label.word.lower()
    lines = [verdict_text(comparison), seen_text(comparison.changes), *why_lines(comparison)]
    lines += _fix_line(comparison)
    message = "\n".join(" ".join(line.split()) for line in lines if line)
    blamed = comparison.blamed if comparison.outcome == "regressed" else ()
    place = (blamed[0].path, blamed[0].line) if blamed else ("", 0)
    yield Annotation(level, f"{name}: {word}" if name else word, message, *place)
