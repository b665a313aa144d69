"""An evaluation: how many operations are right and how much faster, what failed, and every operation."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from profkit.analysis.evaluation.scores import (
    FAILED,
    EvaluationScores,
    OperationResult,
    fast_p,
    operation_results,
    scores_of,
)
from profkit.core.formatting import format_duration, joined, plural, shorten
from profkit.core.types import UNDECIDED, EvaluationDocument, TestResult, TestStatus, Verdict
from profkit.reporting.columns import Column, data_table, sortable_table
from profkit.reporting.facts import fact_text, word_of
from profkit.reporting.feedback import FAR, describe_excess
from profkit.reporting.forges import Case, CaseList, verdict_case
from profkit.reporting.view import (
    Block,
    CaseState,
    Commands,
    Detail,
    FieldList,
    Label,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    command,
    notes,
)
from profkit.reporting.views.kernels.cases import (
    complete_label,
    counted_speeds,
    facts_of,
    files_line,
    hundredfold,
    limited,
    percent,
    profiled_section,
    range_text,
    ratio,
    speedup_text,
    verdicts_section,
)
from profkit.reporting.views.run_text import VERDICTS, count_verdicts, worst_first
from profkit.runtime.passes.shown_command import file_to_type

_FILES = ("report.html", "full_results.json", "operator_summary.csv", "OVERALL_SUMMARY.md")
_FEW_FAILURES, _FAILURES = 8, 200
_FEW_OPERATIONS = 20
_NAMED = 4  # operations in a note
_ORDER = {"SLOWER": 0, "AMBIGUOUS": 1, "SAME": 2, "FASTER": 3}
SIGNS: Mapping[TestStatus, Status] = {
    "passed": Status.PASS,
    "skipped": Status.NONE,
    "not-run": Status.UNKNOWN,
    "lost": Status.UNKNOWN,
    **{status: Status.FAIL for status in FAILED if status != "lost"},
}


def view(document: EvaluationDocument, folder: Path | None = None, verdicts: Sequence[Verdict] = ()) -> View:
    """Return the evaluation as blocks. `folder` is where it lies, for the lines to type; `verdicts`: by its targets."""
    operations = operation_results(document)
    scores = scores_of(document, operations)
    label = complete_label(document.complete)
    if verdicts:
        worst = worst_first(verdicts)[0].verdict
        label = VERDICTS[worst]
    elif any(operation.status in FAILED for operation in operations):
        label = Label(Status.FAIL, "FAIL")
    elif document.complete and document.results and not scores.counted_tests:
        label = Label(Status.UNKNOWN, "UNDECIDED")
    elif document.complete and scores.statuses.get("not-run"):
        label = Label(Status.UNKNOWN, "NOT ALL RUN")
    facts = _conclusions(scores, operations)
    return View(
        title(document),
        (
            *verdicts_section(verdicts),
            *_blocks(document, operations, scores, folder),
            _test_cases(document, verdicts),
        ),
        label,
        (head_line(scores), _state_line(document)),
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
    profiled = [
        (
            f"{result.test.operation}, {shorten(result.test.arguments, 120)}: {speedup_text(result.speedup)}",
            [f"bottleneck: {fact_text(result.bottleneck)}"] if result.bottleneck else [],
            result.profile,
        )
        for result in document.results
        if result.profile
    ]
    yield from profiled_section(profiled, folder, "Why these tests take so long.")
    yield from notes(_grouped_notes(document))
    yield from _next_steps(document, operations, scores, folder)
    yield Section("How it was measured", (FieldList(_measurement_facts(document)),), anchor="how")
    yield from files_line(folder, _FILES)


# ---------------------------------------------------------------- in words


def head_line(scores: EvaluationScores) -> str:
    """Return `12 of 14 operations correct; 1.32 x (1.21-1.44, FASTER) as fast as PyTorch over 9 timed tests`.

    All that were asked for are its denominator: what was skipped or not run is named.
    """
    not_run, skipped = scores.not_run_operations, scores.operations - scores.counted_operations
    if not scores.counted_tests:
        tests = scores.statuses.get("not-run", 0)
        return "No test was decided" + (f"; {plural(tests, 'test')} not run" if tests else "")
    line = f"{scores.correct_operations} of {plural(scores.operations, 'operation')} correct"
    line += f", {not_run} not run" if not_run else ""
    line += f", {skipped} skipped" if skipped else ""
    mean = scores.geomean
    if mean is None:
        return f"{line}; none was timed"
    return f"{line}; {speedup_text(mean)} as fast as PyTorch over {plural(mean.n, 'timed test')}"


def _state_line(document: EvaluationDocument) -> str:
    """Return `5,096 tests in 82 s`, and how many are left of an evaluation that was interrupted."""
    left = document.planned - len(document.results)
    tests = f"{len(document.results):,} {'test' if len(document.results) == 1 else 'tests'}"
    line = f"{tests} in {format_duration(document.seconds)}" if document.seconds else tests
    if document.complete or left <= 0:
        return line if document.complete else f"{line}; interrupted"
    return f"{line}; interrupted, {left:,} left"


def _conclusions(
    scores: EvaluationScores, operations: tuple[OperationResult, ...]
) -> tuple[tuple[str, str], ...]:
    """Return what to know before any table, as (name, sentence)."""
    facts = []
    if (mean := scores.geomean) is not None:
        whole = scores.geomean_with_fallback
        if whole is not None and whole.n > mean.n:
            speedup = f"{speedup_text(whole)} over {whole.n} with PyTorch in place of what failed"
            facts.append(("Speed", f"{speedup}. A geometric mean."))
        share = fast_p(operations, 1.0)
        fast = "" if share is None else f" {percent(share)} of all are correct and surely faster (fast_1)."
        facts.append(("Operations", f"{counted_speeds(scores.words)}.{fast}"))
    counts = ", ".join(f"{count:,} {status}" for status, count in scores.statuses.items()) or "none"
    facts.append(("Tests", f"{counts}."))
    return tuple(facts)


def _measurement_facts(document: EvaluationDocument) -> tuple[tuple[str, str], ...]:
    """Return where and how it was measured, and what."""
    timed = any(result.speedup is not None and result.speedup.pairs > 1 for result in document.results)
    how = (
        "Kernel and PyTorch in turns, each in a process of its own, by the judge's clock. SAME: the 95 % interval lies "
        f"within {100 * document.floor:.3g} % of 1. FASTER, SLOWER: it lies on one side of 1, the value beyond that. "
        "AMBIGUOUS: neither, or the machine was too busy to decide."
    )
    return facts_of(document, ("Kernels", _kernels(document)), ("Times", how if timed else ""))


def title(document: EvaluationDocument) -> str:
    """Return the title: `Evaluation of directory kernels on cpu`."""
    device = f" on {document.device}" if document.device else ""
    return f"Evaluation of {_kernels(document)}{device}"


def _kernels(document: EvaluationDocument) -> str:
    """Return whose kernels they are: the name of their file or folder, where that is known."""
    if document.kernels:
        return document.kernels
    names = {"aten": "PyTorch's own kernels", "flag_gems": "FlagGems", "file": "kernels of a file"}
    return names.get(document.backend, f"{document.backend} kernels".strip())


# ---------------------------------------------------------------- what failed


def _failure_groups(operations: Iterable[OperationResult]) -> list[tuple[OperationResult, list[TestResult]]]:
    """Return what failed, worst first, by operation and reason; reasons that differ in numbers and names alone
    are one.
    """
    groups = []
    for operation in operations:
        alike: dict[tuple[object, ...], list[TestResult]] = defaultdict(list)
        for result in operation.results:
            if result.status in FAILED:
                reason = result.reason.kind if result.reason is not None else result.error_type
                alike[result.status, result.fault, reason].append(result)
        groups += [(operation, results) for results in alike.values()]
    return sorted(groups, key=lambda group: FAILED.index(group[1][0].status))


def _failure_reason(result: TestResult) -> str:
    """Return why it failed, in one line: the fault, the reason, how large the error is."""
    parts = [word_of("fault", result.fault)] if result.fault is not None else []
    parts += filter(None, [fact_text(result.reason) or result.error_type])
    line = ": ".join(parts) or result.status
    if result.fault == "values" and result.allowed_share is not None and result.allowed_share > 1:
        line += f" (the largest error is {describe_excess(result.allowed_share)})"
    return line


def _failures(
    operations: Sequence[OperationResult], folder: Path | None, document: EvaluationDocument
) -> Iterator[Section]:
    """Yield each incorrect operation, why, and the command that repeats one of its tests, if there is one."""
    groups = _failure_groups(operations)
    if not groups:
        return

    def row(operation: OperationResult, results: Sequence[TestResult]) -> StatusRow:
        """Return a row with the first failed call, what its process printed last, and the command that repeats it."""
        first, below = results[0], list[Text]()
        if first.test.arguments:
            several = f"{plural(len(results), 'test')}, the first " if len(results) > 1 else ""
            below.append(f"{several}with {shorten(first.test.arguments, 160)}")
        below += [f"its last line: {shorten(first.last_line, 160)}"] if first.last_line else []
        below += [command(replay_line(document, first, folder))] if document.command else []
        return StatusRow(
            SIGNS[first.status],
            first.status,
            (operation.operation,),
            shorten(_failure_reason(first), 300),
            value=f"{len(results)} of {operation.tests}",
            below=tuple(below),
        )

    number = sum(1 for operation in operations if operation.status in FAILED)
    tests = sum(len(results) for _, results in groups)
    headline = f"{plural(number, 'operation')}, {plural(tests, 'test')}; wrong results first"
    rows = tuple(row(*group) for group in groups)
    whole = Statuses(rows, ("operation", "", "tests", ""), "status", "", "")
    body = limited(whole, rows[:_FEW_FAILURES], _FAILURES, "reason", "failed_tests.json")
    yield Section("Not right", (body,), headline, anchor="failed")


def replay_line(document: EvaluationDocument, result: TestResult, folder: Path | None) -> str:
    """Return the line that does the test once more, with the user's own code that runs then."""
    where = shlex.quote(str(folder)) if folder is not None else "FOLDER"
    return (
        f"profkit evaluate --replay {shlex.quote(result.test.id)} {where}{_own_files(document, '--kernels ')}"
    )


def _own_files(document: EvaluationDocument, option: str) -> str:
    """Return the words that name the user's own kernels and tests, which run then; nothing for those of profkit's."""
    own = document.backend in ("file", "directory") and document.kernels
    kernels = f" {option}{file_to_type(document.kernels, 'KERNELS')}" if own else ""
    tests = f" --suite {file_to_type(document.suite, 'FILE.py')}" if document.suite.endswith(".py") else ""
    return kernels + tests


def _grouped_notes(document: EvaluationDocument) -> tuple[str, ...]:
    """Return the evaluation's own notes, reasons for skipping, and remarks on tests, each once with its number."""
    groups: dict[object, list[tuple[str, TestResult]]] = defaultdict(list)
    for result in document.results:
        if result.status in UNDECIDED:
            reason = f": {fact_text(result.reason)}" if result.reason else ""
            text = f"{result.status.replace('-', ' ')}{reason}"
            groups[result.status, result.reason and result.reason.kind].append((text, result))
        for remark in result.remarks:
            groups[remark.kind].append((fact_text(remark), result))
    lines = [*map(fact_text, document.notes)]
    for group in sorted(groups.values(), key=len, reverse=True):
        names = list(dict.fromkeys(result.test.operation for _, result in group))
        more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
        lines.append(f"{plural(len(group), 'test')} {group[0][0]} ({joined([*names[:_NAMED], *more])}).")
    return tuple(shorten(line, 400) for line in lines)


# ---------------------------------------------------------------- operations


def _operations(operations: Sequence[OperationResult]) -> Iterator[Section]:
    """Yield a row for each operation: those that are not right first, then the slowest."""
    if not operations:
        return
    rows = sorted(operations, key=_order)
    # The notes say what was skipped, and why.
    decided = [row for row in rows if row.status != "skipped"] or rows
    body = sortable_table(
        "Operations",
        _COLUMNS,
        rows,
        [f"{row.operation} {row.status} {row.speedup.word if row.speedup else ''}" for row in rows],
        note=f"Click a title to sort, a row to see all of it; type words to filter. {_NOTE}",
        hint="part of a name: add, incorrect, SLOWER",
        reference=(data_table(_COLUMNS, decided, note=_NOTE),),
    )
    brief = data_table(_COLUMNS, decided, screen=True, note=_NOTE, brief=_FEW_OPERATIONS)
    yield Section("Operations", (Detail((body,), (brief,)),), anchor="operations")


_NOTE = (
    "Speed-ups are geometric means over correct timed tests. Error: the largest, over what rounding explains; above 1 "
    "is wrong."
)
_COLUMNS: tuple[Column[OperationResult], ...] = (
    Column("Operation", lambda o: shorten(o.operation, 40)),
    Column(
        "Status",
        lambda o: o.status,
        meaning="the worst of its tests",
        text=lambda o: Span(o.status, status=SIGNS[o.status]),
    ),
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
        "Error",
        lambda o: (
            o.allowed_share if o.allowed_share is not None and abs(o.allowed_share) < float("inf") else None
        ),
        "x",
        "the largest, over what rounding explains: above 1 is wrong",
        text=lambda o: _error_text(o.allowed_share),
    ),
    Column(
        "Bound", lambda o: hundredfold(o.bound_share), "%", "the hardware's least time over the measured one"
    ),
    Column("Own kernels", lambda o: hundredfold(o.own_share), "%", "of the device's time", wide=True),
    Column(
        "Bottleneck",
        lambda o: fact_text(o.bottleneck),
        meaning="of the slowest test that was profiled",
        wide=True,
    ),
    Column(
        "Insight", lambda o: fact_text(o.insight), meaning="what to change first, of the same test", wide=True
    ),
)


def _order(operation: OperationResult) -> tuple[int, int, float]:
    if operation.status in FAILED:
        return FAILED.index(operation.status) - len(FAILED), 0, 0.0
    if operation.status in UNDECIDED:
        return 2, 0, 0.0
    speedup = operation.speedup
    return (0, _ORDER[speedup.word], speedup.value) if speedup is not None else (1, 0, 0.0)


def _error_text(share: float | None) -> str:
    """Return the largest error as a share of what rounding explains: `12.0 %`; `35.1 x` of what is wrong by that
    much.
    """
    if share is None or share != share:
        return "-" if share is None else "NaN"
    if share > FAR:
        return f"> {FAR:,.0f} x"
    return percent(share) if share <= 1 else ratio(share)


# ---------------------------------------------------------------- for hands, and for machines


def _next_steps(
    document: EvaluationDocument,
    operations: tuple[OperationResult, ...],
    scores: EvaluationScores,
    folder: Path | None,
) -> Iterator[Section]:
    """Yield the commands to type next, the most useful first."""
    where = shlex.quote(str(folder)) if folder is not None else "FOLDER"
    lines = []
    if not document.complete:
        own = _own_files(document, "--kernels " if document.backend == "directory" else "")
        lines.append(f"profkit evaluate --resume {where}{own}")
    failures = [operation.first_failure for operation in operations if operation.first_failure is not None]
    worst = min(failures, key=lambda result: FAILED.index(result.status), default=None)
    if worst is not None and document.command:
        lines.append(replay_line(document, worst, folder))
    lines.append(f"profkit compare BASELINE {where}")
    if scores.geomean is not None:
        lines.append(f"profkit check {where} --targets targets.yaml")
    yield Section("Next", (Commands(tuple(lines)),), anchor="next")


def _test_cases(document: EvaluationDocument, verdicts: Sequence[Verdict]) -> CaseList:
    """Return the tests by operation, and verdicts of targets, as test cases."""
    cases = []
    for result in document.results:
        sign = SIGNS[result.status]
        wrong: CaseState = "failure" if result.status in ("incorrect", "cheat") else "error"
        cases.append(
            Case(
                f"profkit.{result.test.operation}",
                f"{result.test.id} {result.test.arguments}",
                wrong if sign is Status.FAIL else sign.case,
                "" if result.status == "passed" else _failure_reason(result),
                result.traceback,
                result.spent,
                result.status,
            )
        )
    cases += [verdict_case("profkit.targets", verdict) for verdict in verdicts]
    return CaseList(title(document), tuple(cases), document.started, document.seconds)
