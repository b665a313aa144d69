"""Tables of an evaluation: operations, and tests that failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.evaluation.scores import FAILED, OperationResult
from profkit.analysis.evaluation.speedups import MeanSpeedup
from profkit.core.formatting import plural, shorten
from profkit.core.types import UNDECIDED, EvaluationDocument, TestStatus, Verdict, VerdictWord
from profkit.reporting.chart_blocks import CellValue, SortableColumn, SortableTable
from profkit.reporting.forges.ci import Case, Cases, CaseState
from profkit.reporting.view import (
    Block,
    Detail,
    OnScreen,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Style,
    Text,
    command,
    table,
)
from profkit.reporting.views.evaluation.text import (
    WORDS,
    FailureGroup,
    can_be_replayed,
    error_text,
    failure_groups,
    failure_reason,
    interval_text,
    percent,
    ratio,
    replay_line,
    speedup_text,
    title,
)

_FEW_FAILURES, _FAILURES = 8, 200
_FEW_OPERATIONS = 20
_TESTS = 200  # failed ones in a page
_ORDER = {"SLOWER": 0, "AMBIGUOUS": 1, "SAME": 2, "FASTER": 3}
SIGNS: Mapping[TestStatus, Status] = {
    "passed": Status.PASS,
    "skipped": Status.NONE,
    "not-run": Status.UNKNOWN,
    "lost": Status.UNKNOWN,
    **{status: Status.FAIL for status in FAILED if status != "lost"},
}


# ---------------------------------------------------------------- what failed


def failures_section(
    operations: Sequence[OperationResult], folder: Path | None, document: EvaluationDocument
) -> Iterator[Section]:
    """Each operation that is not right, why, and the line that does one of its tests once more, where there is one."""
    groups = failure_groups(operations)
    if not groups:
        return
    number = sum(1 for one in operations if one.status in FAILED)
    tests = sum(len(group.results) for group in groups)
    headline = f"{plural(number, 'operation')}, {plural(tests, 'test')}; wrong results first"
    left = len(groups) - _FEW_FAILURES
    more = (Paragraph(f"{plural(left, 'further reason')} in report.html."),) if left > 0 else ()
    rest = len(groups) - _FAILURES
    beyond = (Paragraph(f"{plural(rest, 'further reason')} in failed_tests.json."),) if rest > 0 else ()
    rows = Detail(
        (_failure_rows(groups[:_FAILURES], folder, document), *beyond),
        (_failure_rows(groups[:_FEW_FAILURES], folder, document), *more),
    )
    yield Section("Not right", (rows,), headline, anchor="failed")


def _failure_rows(
    groups: Sequence[FailureGroup], folder: Path | None, document: EvaluationDocument
) -> Statuses:
    replay = can_be_replayed(document)
    rows = [
        StatusRow(
            SIGNS[group.status],
            group.status,
            (group.operation,),
            shorten(group.reason, 300),
            value=f"{len(group.results)} of {group.tests}",
            below=(
                *_arguments_of(group),
                *_last_line_of(group),
                *((command(replay_line(document, group.results[0], folder)),) if replay else ()),
            ),
        )
        for group in groups
    ]
    return Statuses(tuple(rows), ("operation", "", "tests", ""), "status", "", "")


def _arguments_of(group: FailureGroup) -> tuple[Text, ...]:
    """The call that failed first."""
    arguments = group.results[0].test.arguments
    if not arguments:
        return ()
    several = f"{plural(len(group.results), 'test')}, the first " if len(group.results) > 1 else ""
    return (f"{several}with {shorten(arguments, 160)}",)


def _last_line_of(group: FailureGroup) -> tuple[Text, ...]:
    """What the process of the first one printed before it crashed."""
    line = group.results[0].last_line
    return (f"its last line: {shorten(line, 160)}",) if line else ()


def failed_tests_section(document: EvaluationDocument) -> Iterator[Section]:
    """Every failed test with its arguments; on a screen only where details are asked for."""
    failed = [result for result in document.results if result.status in FAILED]
    if not failed:
        return
    shown = sorted(failed, key=lambda result: FAILED.index(result.status))[:_TESTS]
    rows: list[Sequence[Text]] = [
        (
            result.test.operation,
            result.test.id,
            Span(result.status, status=SIGNS[result.status]),
            Span(shorten(result.test.arguments, 160), Style.CODE),
            shorten(failure_reason(result), 160),
        )
        for result in shown
    ]
    titles = ("Operation", "Test", "Status", "Arguments", "Why")
    left = len(failed) - len(shown)
    note = f"{plural(left, 'further test')} in failed_tests.json, with what each raised." if left else ""
    body = table(titles, rows, words=len(titles), note=note)
    headline = f"{plural(len(failed), 'test')} with their arguments"
    yield Section(
        "Failed tests", (Detail((body,), (), "Failed tests"),), headline, anchor="tests", repeats=True
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


# ---------------------------------------------------------------- operations


@dataclass(frozen=True)
class _Column:
    title: str
    unit: str
    value: Callable[[OperationResult], CellValue]
    meaning: str = ""


def _field(mean: MeanSpeedup | None, name: str) -> CellValue:
    value: CellValue = None if mean is None else getattr(mean, name)
    return value


_COLUMNS = (
    _Column("Status", "text", lambda o: o.status, "the worst of its tests"),
    _Column("Passed", "n", lambda o: o.passed, "tests that count and passed"),
    _Column("Tests", "n", lambda o: o.counted, "those that count: run, and not skipped"),
    _Column(
        "Speed-up", "x", lambda o: _field(o.speedup, "value"), "over PyTorch, geometric mean of its tests"
    ),
    _Column("From", "x", lambda o: _field(o.speedup, "low"), "begin of the 95 % interval"),
    _Column("To", "x", lambda o: _field(o.speedup, "high"), "end of the 95 % interval"),
    _Column("Word", "text", lambda o: WORDS[o.speedup.word] if o.speedup else None, "against PyTorch"),
    _Column("Timed", "n", lambda o: _field(o.speedup, "n"), "tests behind the speed-up"),
    _Column("Of torch.compile", "x", lambda o: _field(o.compiled, "value"), "speed-up over torch.compile"),
    _Column(
        "Word of that",
        "text",
        lambda o: speedup_text(o.compiled) if o.compiled else None,
        "with its interval",
    ),
    _Column(
        "Error",
        "x",
        lambda o: _finite(o.allowed_share),
        "the largest, over what rounding explains: above 1 is wrong",
    ),
    _Column(
        "Bound", "%", lambda o: _percent(o.bound_share), "the hardware's least time over the measured one"
    ),
    _Column("Gap closed", "%", lambda o: _percent(o.gap_closed), "of the way from PyTorch to that bound"),
    _Column("Own kernels", "%", lambda o: _percent(o.own_share), "of the device's time"),
    _Column("Bottleneck", "text", lambda o: o.bottleneck, "of the slowest test that was profiled"),
    _Column("Insight", "text", lambda o: o.insight, "what to change first, of the same test"),
)


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def operations_section(operations: Sequence[OperationResult]) -> Iterator[Section]:
    """A row for each operation: those that are not right first, then the slowest."""
    if not operations:
        return
    rows = sorted(operations, key=_order)
    decided = [
        one for one in rows if one.status != "skipped"
    ] or rows  # the notes say what was skipped, and why
    columns = [c for c in _COLUMNS if c in _COLUMNS[:3] or any(c.value(one) is not None for one in rows)]
    values = {column: tuple(column.value(one) for one in rows) for column in columns}
    body = SortableTable(
        "Operations",
        (
            SortableColumn("Operation", "text", tuple(shorten(one.operation, 48) for one in rows)),
            *(SortableColumn(c.title, c.unit, values[c], c.meaning) for c in columns),
        ),
        tuple(f"{one.operation} {one.status} {one.speedup.word if one.speedup else ''}" for one in rows),
        note="Click a title to sort, a row to see all of it; type words to filter. "
        + _note(column.title for column in columns),
        hint="part of a name: add, incorrect, SLOWER",
        reference=(_operation_table(decided, wide=True),),
    )
    brief = OnScreen((_operation_table(decided, wide=False),), (body,))
    yield Section("Operations", (brief,), anchor="operations")


_MEANINGS = {
    "Speed-up": "Speed-ups are geometric means over correct timed tests, with their 95 % interval.",
    "Error": "Error: the largest, over what rounding explains; above 1 is wrong.",
    "Bound": "Bound: the least time that the hardware allows over the measured one.",
}


def _note(titles: Iterable[str]) -> str:
    return " ".join(_MEANINGS[title] for title in titles if title in _MEANINGS)


def _order(operation: OperationResult) -> tuple[int, int, float]:
    if operation.status in FAILED:
        return FAILED.index(operation.status) - len(FAILED), 0, 0.0
    if operation.status in UNDECIDED:
        return 2, 0, 0.0
    speedup = operation.speedup
    return (0, _ORDER[speedup.word], speedup.value) if speedup is not None else (1, 0, 0.0)


def _operation_table(operations: Sequence[OperationResult], *, wide: bool) -> Block:
    """As words; a screen of 80 columns has no room for all of them."""
    timed = any(one.speedup is not None for one in operations)
    errors = any(one.allowed_share is not None for one in operations)
    bound = any(one.bound_share is not None for one in operations)
    compiled = any(one.compiled is not None for one in operations)
    errors = errors and (wide or not compiled)  # a screen has no room for both
    limit = any(one.bottleneck for one in operations)
    insight = any(one.insight for one in operations)
    titles = ["Operation", "Status", "Passed"]
    titles += ["Speed-up", "95 % interval", "Word"] if timed else []
    titles += ["Of compiled"] if compiled else []
    titles += ["Error"] if errors else []
    titles += ["Bound"] if bound else []
    titles += ["Bottleneck"] if limit and wide else []
    titles += ["Insight"] if insight and wide else []
    rows = []
    for one in operations:
        speedup = one.speedup
        row: list[Text] = [
            shorten(one.operation, 48 if wide else 22),
            Span(one.status, status=SIGNS[one.status]),
            f"{one.passed} of {one.counted}" if one.counted else "-",
        ]
        if timed:
            row.append(ratio(speedup.value if speedup else None))
            row.append(interval_text(speedup.low, speedup.high) if speedup else "")
            row.append(speedup.word if speedup else "")
        row += [speedup_text(one.compiled)] if compiled else []
        row += [error_text(one.allowed_share)] if errors else []
        row += [percent(one.bound_share)] if bound else []
        row += [one.bottleneck or ""] if limit and wide else []
        row += [one.insight or ""] if insight and wide else []
        rows.append(row)
    return table(titles, rows, words=2, note=_note(titles), brief=None if wide else _FEW_OPERATIONS)


# ---------------------------------------------------------------- for machines

_CASE_STATES: Mapping[TestStatus, CaseState] = {
    "passed": "passed",
    "skipped": "skipped",
    "not-run": "unknown",
    "incorrect": "failure",
    "cheat": "failure",
    "lost": "unknown",
}  # all else is an error


def test_cases(document: EvaluationDocument, verdicts: Sequence[Verdict]) -> Cases:
    """The tests by operation, and verdicts of targets, as test cases."""
    cases = [
        Case(
            f"profkit.{result.test.operation}",
            f"{result.test.id} {result.test.arguments}",
            _CASE_STATES.get(result.status, "error"),
            "" if result.status == "passed" else failure_reason(result),
            result.traceback,
            result.spent,
            result.status,
        )
        for result in document.results
    ]
    cases += [
        Case(
            "profkit.targets",
            f"{v.target} {v.scope.name or ''}",
            _VERDICT_STATES[v.verdict],
            v.reason,
            kind=v.verdict,
        )
        for v in verdicts
    ]
    return Cases(title(document), tuple(cases), document.started, document.seconds)


_VERDICT_STATES: Mapping[VerdictWord, CaseState] = {
    "pass": "passed",
    "fail": "failure",
    "unknown": "unknown",
    "not-applicable": "skipped",
}
