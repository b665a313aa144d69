"""An evaluation: how many operations are right and how much faster, what failed, every operation, where it is fast."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import floor, log10
from pathlib import Path

from profkit.analysis.evaluation.scores import (
    FAILED,
    EvaluationScores,
    OperationResult,
    counts,
    elements_of,
    fast_p,
    fast_p_curve,
    is_timed_well,
    operation_results,
    scores_of,
    surely_faster_than,
)
from profkit.analysis.evaluation.speedups import mean_speedup
from profkit.core.formatting import format_figures, plural, shorten
from profkit.core.types import UNDECIDED, EvaluationDocument, TestResult, TestStatus, Verdict, VerdictWord
from profkit.reporting.chart_blocks import Charts, WinnerCell, WinnerMap
from profkit.reporting.charts.series import step_curve
from profkit.reporting.columns import Column, data_table, sortable_table
from profkit.reporting.forges import Case, Cases, CaseState
from profkit.reporting.view import (
    Block,
    Commands,
    Detail,
    Facts,
    Label,
    OnScreen,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Style,
    Text,
    View,
    command,
    notes,
    table,
)
from profkit.reporting.views.cases import FAILED as FAILED_COLOUR
from profkit.reporting.views.cases import (
    FASTER,
    MOST_ROWS,
    SLOWER,
    complete_label,
    files_line,
    hundredfold,
    limited,
    map_section,
    percent,
    profiled_section,
    range_text,
    ratio,
    speedup_text,
    verdicts_section,
)
from profkit.reporting.views.evaluation.text import (
    FailureGroup,
    can_be_replayed,
    conclusions,
    error_text,
    failure_groups,
    failure_reason,
    grouped_notes,
    head_line,
    measurement_facts,
    replay_line,
    state_line,
    suite_option,
    title,
)
from profkit.reporting.views.run import STATUSES
from profkit.reporting.views.run_text import WORDS, count_verdicts, worst_first

_FILES = (
    "report.html",
    "full_results.json",
    "operator_summary.csv",
    "failed_tests.json",
    "OVERALL_SUMMARY.md",
)
_FEW_FAILURES, _FAILURES = 8, 200
_FEW_OPERATIONS = 20
_TESTS = 200  # failed ones in a page
_PLACES = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_ORDER = {"SLOWER": 0, "AMBIGUOUS": 1, "SAME": 2, "FASTER": 3}
SIGNS: Mapping[TestStatus, Status] = {
    "passed": Status.PASS,
    "skipped": Status.NONE,
    "not-run": Status.UNKNOWN,
    "lost": Status.UNKNOWN,
    **{status: Status.FAIL for status in FAILED if status != "lost"},
}
_FAST_NOTE = (
    "Faster than p is an operation whose tests all pass and whose whole 95 % interval lies above p; above 1 only what "
    "is FASTER. The denominator are all operations with a test that counts."
)
_MAP_LEGEND = "F faster than PyTorch, S slower, = the same, ? not decided, ✗ failed"
_MAP_NOTE = (
    f"{_MAP_LEGEND}. The number, and the shade: how many times as fast, or as slow. Point at a cell for more."
)


def view(document: EvaluationDocument, folder: Path | None = None, verdicts: Sequence[Verdict] = ()) -> View:
    """The evaluation as blocks. `folder` is where it lies, for the lines to type; `verdicts`: by its targets."""
    operations = operation_results(document)
    scores = scores_of(document, operations)
    label = complete_label(document.complete)
    if verdicts:
        worst = worst_first(verdicts)[0].verdict
        label = Label(STATUSES[worst], WORDS[worst])
    elif any(one.status in FAILED for one in operations):
        label = Label(Status.FAIL, "FAIL")
    elif document.complete and document.results and not scores.counted_tests:
        label = Label(Status.UNKNOWN, "UNDECIDED")
    facts = conclusions(scores, operations)
    return View(
        title(document),
        (
            *verdicts_section(verdicts),
            *_blocks(document, operations, scores, folder),
            _test_cases(document, verdicts),
        ),
        label,
        (head_line(scores), state_line(document)),
        facts=(*facts, *((("Verdicts", count_verdicts(verdicts)),) if verdicts else ())),
    )


def _blocks(
    document: EvaluationDocument,
    operations: tuple[OperationResult, ...],
    scores: EvaluationScores,
    folder: Path | None,
) -> Iterator[Block]:
    yield from _failures(operations, folder, document)
    yield from _operations(operations)
    yield from _faster_than(operations)
    yield from map_section("Where they are faster", _speedup_map(document), _MAP_NOTE)
    yield from _failed_tests(document)
    yield from profiled_section(list(map(_profiled, filter(_has_profile, document.results))), folder, _WHY)
    yield from notes(grouped_notes(document))
    yield from _next_steps(document, operations, scores, folder)
    yield Section("How it was measured", (Facts(measurement_facts(document)),), anchor="how")
    yield from files_line(folder, _FILES)


_WHY = "Why these take as long as they do."


def _has_profile(result: TestResult) -> bool:
    return bool(result.profile)


def _profiled(result: TestResult) -> tuple[str, Sequence[str], str]:
    test, speed = result.test, speedup_text(result.speedup)
    below = [f"bottleneck: {result.bottleneck}"] if result.bottleneck else []
    below += [f"insight: {result.insight}"] if result.insight else []
    words = f"{test.operation}, {shorten(test.arguments, 120)}: {result.status}, {speed}"
    return words, below, result.profile or ""


# ---------------------------------------------------------------- what failed


def _failures(
    operations: Sequence[OperationResult], folder: Path | None, document: EvaluationDocument
) -> Iterator[Section]:
    """Each operation that is not right, why, and the line that does one of its tests once more, where there is one."""
    groups = failure_groups(operations)
    if not groups:
        return

    def statuses(some: Sequence[FailureGroup]) -> Statuses:
        rows = tuple(_failure_row(group, folder, document) for group in some)
        return Statuses(rows, ("operation", "", "tests", ""), "status", "", "")

    number = sum(1 for one in operations if one.status in FAILED)
    tests = sum(len(group.results) for group in groups)
    headline = f"{plural(number, 'operation')}, {plural(tests, 'test')}; wrong results first"
    few, left = groups[:_FEW_FAILURES], len(groups) - _FEW_FAILURES
    rows = limited(statuses, groups, few, left, _FAILURES, "reason", "failed_tests.json")
    yield Section("Not right", (rows,), headline, anchor="failed")


def _failure_row(group: FailureGroup, folder: Path | None, document: EvaluationDocument) -> StatusRow:
    """The call that failed first, what its process printed before it crashed, and the line that does it once more."""
    first, below = group.results[0], list[Text]()
    if first.test.arguments:
        several = f"{plural(len(group.results), 'test')}, the first " if len(group.results) > 1 else ""
        below.append(f"{several}with {shorten(first.test.arguments, 160)}")
    below += [f"its last line: {shorten(first.last_line, 160)}"] if first.last_line else []
    below += [command(replay_line(document, first, folder))] if can_be_replayed(document) else []
    return StatusRow(
        SIGNS[group.status],
        group.status,
        (group.operation,),
        shorten(group.reason, 300),
        value=f"{len(group.results)} of {group.tests}",
        below=tuple(below),
    )


def _failed_tests(document: EvaluationDocument) -> Iterator[Section]:
    """Every failed test with its arguments; on a screen only where details are asked for."""
    failed = [result for result in document.results if result.status in FAILED]
    if not failed:
        return
    columns: tuple[Column[TestResult], ...] = (
        Column("Operation", lambda r: r.test.operation),
        Column("Test", lambda r: r.test.id),
        Column("Status", lambda r: Span(r.status, status=SIGNS[r.status])),
        Column("Arguments", lambda r: Span(shorten(r.test.arguments, 160), Style.CODE)),
        Column("Why", lambda r: shorten(failure_reason(r), 160)),
    )
    shown = sorted(failed, key=lambda result: FAILED.index(result.status))[:_TESTS]
    left = len(failed) - len(shown)
    note = f"{plural(left, 'further test')} in failed_tests.json, with what each raised." if left else ""
    body = Detail((data_table(columns, shown, note=note),), (), "Failed tests")
    headline = f"{plural(len(failed), 'test')} with their arguments"
    yield Section("Failed tests", (body,), headline, anchor="tests", repeats=True)


# ---------------------------------------------------------------- operations


def _operations(operations: Sequence[OperationResult]) -> Iterator[Section]:
    """A row for each operation: those that are not right first, then the slowest."""
    if not operations:
        return
    rows = sorted(operations, key=_order)
    decided = [
        one for one in rows if one.status != "skipped"
    ] or rows  # the notes say what was skipped, and why
    note = " ".join(words for has, words in _MEANINGS if any(has(one) is not None for one in rows))
    body = sortable_table(
        "Operations",
        _COLUMNS,
        rows,
        [f"{one.operation} {one.status} {one.speedup.word if one.speedup else ''}" for one in rows],
        note=f"Click a title to sort, a row to see all of it; type words to filter. {note}",
        hint="part of a name: add, incorrect, SLOWER",
        reference=(data_table(_COLUMNS, decided, note=note),),
    )
    brief = data_table(_COLUMNS, decided, screen=True, note=note, brief=_FEW_OPERATIONS)
    yield Section("Operations", (OnScreen((brief,), (body,)),), anchor="operations")


_COLUMNS: tuple[Column[OperationResult], ...] = (
    Column("Operation", lambda o: shorten(o.operation, 40)),
    Column("Status", lambda o: o.status, meaning="the worst of its tests", text=lambda o: _status(o)),
    Column(
        "Passed",
        lambda o: f"{o.passed} of {o.counted}" if o.counted else "",
        meaning="tests that passed, of those that count: run, and not skipped",
    ),
    Column(
        "Speed-up",
        lambda o: o.speedup.value if o.speedup else None,
        "x",
        "over PyTorch, geometric mean of its tests",
    ),
    Column("95 % interval", lambda o: range_text(o.speedup.low, o.speedup.high) if o.speedup else ""),
    Column("Word", lambda o: o.speedup.word if o.speedup else "", meaning="against PyTorch"),
    Column(
        "Of compiled", lambda o: speedup_text(o.compiled) if o.compiled else "", meaning="over torch.compile"
    ),
    Column(
        "Error",
        lambda o: (
            o.allowed_share if o.allowed_share is not None and abs(o.allowed_share) < float("inf") else None
        ),
        "x",
        "the largest, over what rounding explains: above 1 is wrong",
        text=lambda o: error_text(o.allowed_share),
    ),
    Column(
        "Bound", lambda o: hundredfold(o.bound_share), "%", "the hardware's least time over the measured one"
    ),
    Column(
        "Gap closed",
        lambda o: hundredfold(o.gap_closed),
        "%",
        "of the way from PyTorch to that bound",
        wide=True,
    ),
    Column("Own kernels", lambda o: hundredfold(o.own_share), "%", "of the device's time", wide=True),
    Column("Bottleneck", lambda o: o.bottleneck, meaning="of the slowest test that was profiled", wide=True),
    Column("Insight", lambda o: o.insight, meaning="what to change first, of the same test", wide=True),
)
_MEANINGS: tuple[tuple[Callable[[OperationResult], object], str], ...] = (
    (
        lambda o: o.speedup,
        "Speed-ups are geometric means over correct timed tests, with their 95 % interval.",
    ),
    (lambda o: o.allowed_share, "Error: the largest, over what rounding explains; above 1 is wrong."),
    (lambda o: o.bound_share, "Bound: the least time that the hardware allows over the measured one."),
)


def _status(operation: OperationResult) -> Text:
    return Span(operation.status, status=SIGNS[operation.status])


def _order(operation: OperationResult) -> tuple[int, int, float]:
    if operation.status in FAILED:
        return FAILED.index(operation.status) - len(FAILED), 0, 0.0
    if operation.status in UNDECIDED:
        return 2, 0, 0.0
    speedup = operation.speedup
    return (0, _ORDER[speedup.word], speedup.value) if speedup is not None else (1, 0, 0.0)


# ---------------------------------------------------------------- where they are faster


def _faster_than(operations: Sequence[OperationResult]) -> Iterator[Section]:
    """fast_p over p, and as numbers at usual places; nothing where no operation is correct and timed."""
    points, start = fast_p_curve(operations), fast_p(operations, 0.0)
    if not points or not start:
        return
    counted = [one for one in operations if one.counted]
    number = plural(len(counted), "operation")
    steps = []
    for point in points:
        names = [one.operation for one in counted if surely_faster_than(one) == point.p]
        which = f"; up to here {shorten(', '.join(names), 120)}" if names else ""
        words = f"more than {ratio(point.p)}: {percent(point.share)}, {round(point.share * len(counted))} of {number}"
        steps.append((point.p, point.share, words + which))
    share = percent(fast_p(operations, 1.0))
    description = (
        f"{percent(start)} of {number} are correct and timed; {share} are also surely faster than PyTorch."
    )
    curve = step_curve("Correct and surely more than p times as fast", description, "p", start, steps)
    row = ("share", *(percent(fast_p(operations, p)) for p in _PLACES))
    numbers = table(("p", *(format_figures(p, 2) for p in _PLACES)), [row], note=description)
    yield Section("How many are faster", (Charts((curve,), _FAST_NOTE, repeats=True), numbers), anchor="fast")


def _speedup_map(document: EvaluationDocument) -> WinnerMap | None:
    """Operations over sizes, and over dtypes where there are several; None where all would be one column."""
    tests = [result for result in document.results if result.test.timed and counts(result)]
    if not any(map(is_timed_well, tests)):
        return None
    dtypes = {result.test.dtype for result in tests}
    groups: dict[tuple[str, int], list[TestResult]] = defaultdict(list)
    for result in tests:
        if elements := elements_of(result.test.arguments):
            name = result.test.operation
            row = f"{name} {result.test.dtype}" if len(dtypes) > 1 else name
            groups[row, floor(log10(elements))].append(result)
    rows = list(dict.fromkeys(row for row, _ in groups))[:MOST_ROWS]
    columns = sorted({column for row, column in groups if row in rows})
    if len(columns) < 2 and len(dtypes) < 2:
        return None
    return WinnerMap(
        "Speed-up by operation and elements",
        f"{plural(len(rows), 'row')} by {plural(len(columns), 'size')}; a size is that of the largest tensor.",
        tuple(shorten(row, 36) for row in rows),
        tuple(map(_size, columns)),
        {
            (rows.index(row), columns.index(column)): _map_cell(row, column, own, document.floor)
            for (row, column), own in groups.items()
            if row in rows
        },
        f"{_MAP_LEGEND}; the number: how many times as fast, or as slow",
    )


def _map_cell(row: str, column: int, tests: Sequence[TestResult], limit: float) -> WinnerCell:
    failed = sum(result.status in FAILED for result in tests)
    timed = [result for result in tests if is_timed_well(result)]
    mean = mean_speedup(timed, limit)
    words = f"{row}, {_size(column)} to {_size(column + 1)} elements"
    words += f": {speedup_text(mean)} over {plural(len(timed), 'test')}" if mean is not None else ""
    if failed:
        return WinnerCell(
            "✗", FAILED_COLOUR, None, f"{words}; {failed} of {plural(len(tests), 'test')} failed"
        )
    if mean is None:
        return WinnerCell("?", None, None, f"{words}: not timed")
    if mean.word == "FASTER":
        return WinnerCell("F", FASTER, mean.value, words)
    if mean.word == "SLOWER":
        return WinnerCell("S", SLOWER, 1 / mean.value, words)
    return WinnerCell("=" if mean.word == "SAME" else "?", None, None, words)


def _size(power: int) -> str:
    """10 to the power: `1`, `10`, `1 k`, `100 M`."""
    prefix = ("", " k", " M", " G", " T")[min(4, power // 3)]
    return f"{10 ** (power - 3 * min(4, power // 3))}{prefix}"


# ---------------------------------------------------------------- for hands, and for machines


def _next_steps(
    document: EvaluationDocument,
    operations: tuple[OperationResult, ...],
    scores: EvaluationScores,
    folder: Path | None,
) -> Iterator[Section]:
    """Lines to type, the most useful first."""
    where = shlex.quote(str(folder)) if folder is not None else "FOLDER"
    lines = []
    if not document.complete:
        own = document.backend in ("file", "directory") and document.kernels
        option = "--kernels " if document.backend == "directory" else ""
        kernels = f" {option}{shlex.quote(document.kernels)}" if own else ""
        lines.append(f"profkit evaluate --resume {where}{kernels}{suite_option(document)}")
    failures = [one.first_failure for one in operations if one.first_failure is not None]
    worst = min(failures, key=lambda result: FAILED.index(result.status), default=None)
    if worst is not None and can_be_replayed(document):
        lines.append(replay_line(document, worst, folder))
    lines.append(f"profkit compare BASELINE {where}")
    if scores.geomean is not None:
        lines.append(f"profkit check {where} --targets targets.yaml")
    yield Section("Next", (Commands(tuple(lines)),), anchor="next")


_CASE_STATES: Mapping[TestStatus, CaseState] = {
    "passed": "passed",
    "skipped": "skipped",
    "not-run": "unknown",
    "incorrect": "failure",
    "cheat": "failure",
    "lost": "unknown",
}  # all else is an error
_VERDICT_STATES: Mapping[VerdictWord, CaseState] = {
    "pass": "passed",
    "fail": "failure",
    "unknown": "unknown",
    "not-applicable": "skipped",
}


def _test_cases(document: EvaluationDocument, verdicts: Sequence[Verdict]) -> Cases:
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
