"""The verdicts of a run: each target with its value, threshold and mark in a line, and in sentences what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from profkit.analysis.targets.target import is_met
from profkit.backends import backend_named
from profkit.core.formatting import format_threshold
from profkit.core.types import Reading, RunDocument, Scope, Verdict
from profkit.reporting.facts import brief_reason, fact_text
from profkit.reporting.plain_text import reading_span, threshold_text, verdict_span
from profkit.reporting.view import (
    Block,
    DataTable,
    Fold,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Style,
    TableColumn,
    Text,
    soft,
)
from profkit.reporting.views.run_text import (
    OUTCOMES,
    VERDICTS,
    common_causes,
    count_verdicts,
    scope_name,
    worst_first,
)

_MOST_VERDICTS = 300  # on single functions or kernels, in a document


def targets_section(document: RunDocument) -> Section | None:
    """Return a line for each target on the run or its regions: value, threshold, mark, and why it is not judged.

    The order is that of the targets, so that each number stands at the same place in every run.
    """
    whole = [verdict for verdict in document.verdicts if verdict.scope.kind in ("run", "region")]
    if not whole:
        return None
    readings = _by_place(document)
    several = len({verdict.scope.name for verdict in whole if verdict.scope.kind == "region"}) > 1
    columns = (
        TableColumn("target"),
        TableColumn("value", numeric=True),
        TableColumn("threshold"),
        TableColumn("verdict", wraps=True),
    )
    rows = tuple(
        (
            _name(verdict, several=several),
            _value(verdict, readings) or "not known",
            _threshold(verdict),
            _outcome(verdict),
        )
        for verdict in whole
    )
    return Section("Targets", (DataTable(columns, rows),), anchor="targets")


def _name(verdict: Verdict, *, several: bool) -> Text:
    """Return the mark and the name of the target, with its region where there are several."""
    status = VERDICTS[verdict.verdict].status
    place = f" in {verdict.scope.name}" if several and verdict.scope.name else ""
    return (Span(f"{status.sign} ", Style.STRONG, status), verdict.target, soft(place))


def _threshold(verdict: Verdict) -> str:
    """Return `< 5 %`, and `> 2` of instructions per cycle: what is a ratio has its unit in the target's name."""
    limit = verdict.threshold
    if limit is None or "/" not in limit.unit:
        return threshold_text(verdict)
    return format_threshold(limit.operator, limit.value, "")


def _outcome(verdict: Verdict) -> Text:
    """Return `met`, `missed`, or `not judged: arithmetic-bound`; why a value beyond the threshold counts as met."""
    word = OUTCOMES[verdict.verdict]
    why = brief_reason(verdict.reason)
    limit = verdict.threshold
    if why and verdict.verdict in ("not-applicable", "unknown"):
        word = f"not judged: {why}"
    elif verdict.verdict == "pass" and limit is not None and verdict.value is not None:
        beyond = not is_met(verdict.value, limit.operator, limit.value)
        word = f"met: {why}" if beyond and why else word
    return Span(word, status=VERDICTS[verdict.verdict].status)


def verdict_sections(document: RunDocument) -> Iterator[Section]:
    """Verdicts on the run, then on its functions or kernels."""
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    inner = [v for v in document.verdicts if v.scope.kind not in ("run", "region")]
    readings = _by_place(document)
    blocks: list[Block] = []
    if whole:
        blocks.append(Statuses(tuple(_rows(whole, readings))))
    if inner:
        above = {verdict.target for verdict in whole if verdict.verdict in ("fail", "unknown")}
        told = [
            replace(row, below=()) if verdict.target in above else row
            for verdict in worst_first(inner)[:_MOST_VERDICTS]
            for row in (_row(verdict, readings),)
        ]
        left = len(inner) - len(told)
        more: tuple[Block, ...] = (Paragraph(soft(f"{left} more stand in run.json.")),) if left else ()
        title = f"In single {backend_named(document.backend).work}s"
        body = (Statuses(tuple(told)), *more)
        blocks.append(Section(title, body, count_verdicts(inner), Fold.FOLDED))
    if blocks:
        yield Section("Verdicts", tuple(blocks))


def _by_place(document: RunDocument) -> dict[tuple[str, Scope], Reading]:
    """Readings by metric and scope: those of summaries too, which were made of the others."""
    by_place: dict[tuple[str, Scope], Reading] = {}
    for reading in (*document.readings, *(r for s in document.summaries for r in s.readings)):
        key = (reading.metric, reading.scope)
        if key not in by_place or by_place[key].value is None:
            by_place[key] = reading
    return by_place


def _rows(verdicts: Sequence[Verdict], readings: Mapping[tuple[str, Scope], Reading]) -> Iterator[StatusRow]:
    """A row for each verdict, worst first; those that one cause left unknown share one."""
    several = len({verdict.scope.name for verdict in verdicts if verdict.scope.kind == "region"}) > 1
    causes = common_causes(verdicts)
    for verdict in worst_first(verdicts):
        same = causes.get(verdict.cause, []) if verdict.cause and verdict.verdict == "unknown" else []
        if not same:
            row = _row(verdict, readings)
            yield replace(row, place=verdict.scope.name or "") if several else row
        elif same[0] is verdict:
            names = tuple(dict.fromkeys(one.target for one in same))
            advice = tuple(dict.fromkeys(one.advice[0] for one in same if one.advice))
            yield StatusRow(
                Status.UNKNOWN, VERDICTS["unknown"].word, names, fact_text(verdict.cause), below=advice
            )


def _row(verdict: Verdict, readings: Mapping[tuple[str, Scope], Reading]) -> StatusRow:
    """With its threshold, and its number with its source: the reading that it was judged by, where one holds it."""
    word = verdict.verdict
    return StatusRow(
        VERDICTS[word].status,
        VERDICTS[word].word,
        (verdict.target,),
        fact_text(verdict.reason),
        _value(verdict, readings),
        threshold_text(verdict),
        scope_name(verdict.scope) if verdict.scope.kind not in ("run", "region") else "",
        verdict.advice if word in ("fail", "unknown") else (),
    )


def _value(verdict: Verdict, readings: Mapping[tuple[str, Scope], Reading]) -> Text:
    """Return the number that was judged, with the source of the reading that holds it; empty where there is none."""
    reading = readings.get((verdict.metric, verdict.scope))
    if reading is not None and (verdict.value is None or reading.value == verdict.value):
        return reading_span(reading)
    return verdict_span(verdict) if verdict.value is not None else ""
