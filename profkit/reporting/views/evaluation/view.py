"""An evaluation: how many operations are right and how much faster, what failed, every operation, where it is fast."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.analysis.evaluation.scores import (
    FAILED,
    EvaluationScores,
    OperationResult,
    operation_results,
    scores_of,
)
from profkit.core.formatting import plural, shorten
from profkit.core.types import EvaluationDocument, Verdict
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.footnotes import threshold_text
from profkit.reporting.view import (
    Block,
    Commands,
    Detail,
    Facts,
    Fold,
    Item,
    Items,
    Label,
    OnScreen,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    View,
    command,
    notes,
)
from profkit.reporting.views.evaluation.charts import MAP_LEGEND, fast_curve, fast_table, speedup_map
from profkit.reporting.views.evaluation.tables import (
    failed_tests_section,
    failures_section,
    operations_section,
    test_cases,
)
from profkit.reporting.views.evaluation.text import (
    can_be_replayed,
    conclusions,
    grouped_notes,
    head_line,
    measurement_facts,
    replay_line,
    speedup_text,
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
_FEW_VERDICTS = 24
_DRAWN_OPEN = 40  # rows of a map: a longer one opens at a click
_FAST_NOTE = (
    "Faster than p is an operation whose tests all pass and whose whole 95 % interval lies above p; above 1 only what "
    "is FASTER. The denominator are all operations with a test that counts."
)


def view(document: EvaluationDocument, folder: Path | None = None, verdicts: Sequence[Verdict] = ()) -> View:
    """The evaluation as blocks. `folder` is where it lies, for the lines to type; `verdicts`: by its targets."""
    operations = operation_results(document)
    scores = scores_of(document, operations)
    failed = any(one.status in FAILED for one in operations)
    label = Label(Status.PASS, "COMPLETE") if document.complete else Label(Status.UNKNOWN, "INTERRUPTED")
    if verdicts:
        worst = worst_first(verdicts)[0].verdict
        label = Label(STATUSES[worst], WORDS[worst])
    elif failed:
        label = Label(Status.FAIL, "FAIL")
    elif document.complete and document.results and not scores.counted_tests:
        label = Label(Status.UNKNOWN, "UNDECIDED")
    facts = conclusions(scores, operations)
    return View(
        title(document),
        (
            *_verdicts(verdicts),
            *_blocks(document, operations, scores, folder),
            test_cases(document, verdicts),
        ),
        label,
        (head_line(scores), state_line(document)),
        facts=(*facts, *((("Verdicts", count_verdicts(verdicts)),) if verdicts else ())),
    )


def _verdicts(verdicts: Sequence[Verdict]) -> Iterator[Section]:
    """The worst first; of an operation those alone that do not pass."""
    shown = [v for v in worst_first(verdicts) if v.scope.kind == "run" or v.verdict in ("fail", "unknown")]
    if not shown:
        return
    rows = [
        StatusRow(
            STATUSES[verdict.verdict],
            WORDS[verdict.verdict],
            (verdict.target,),
            verdict.reason,
            limit=threshold_text(verdict),
            place=verdict.scope.name or "",
        )
        for verdict in shown
    ]
    left = len(rows) - _FEW_VERDICTS
    more = (Paragraph(plural(left, "further verdict")),) if left > 0 else ()
    body = Detail((Statuses(tuple(rows)),), (Statuses(tuple(rows[:_FEW_VERDICTS])), *more))
    yield Section("Verdicts", (body,), anchor="verdicts")


def _blocks(
    document: EvaluationDocument,
    operations: tuple[OperationResult, ...],
    scores: EvaluationScores,
    folder: Path | None,
) -> Iterator[Block]:
    yield from failures_section(operations, folder, document)
    yield from operations_section(operations)
    yield from _charts(document, operations)
    yield from failed_tests_section(document)
    yield from _profiled(document, folder)
    yield from notes(grouped_notes(document))
    yield from _next_steps(document, operations, scores, folder)
    rows = measurement_facts(document)
    yield Section("How it was measured", (Facts(rows),), fold=Fold.OPEN, anchor="how")
    if folder is not None:
        files = [name for name in _FILES if (folder / name).is_file()]
        line = f"{folder}: {', '.join(files)}" if files else str(folder)
        yield OnScreen((Paragraph(""), Paragraph(command(line))), ())


def _charts(document: EvaluationDocument, operations: tuple[OperationResult, ...]) -> Iterator[Section]:
    curve, places = fast_curve(operations), speedup_map(document)
    if curve is not None:
        yield Section(
            "How many are faster",
            (Charts((curve,), _FAST_NOTE, repeats=True), fast_table(operations)),
            anchor="fast",
        )
    if places is not None:
        note = f"{MAP_LEGEND}. The number, and the shade: how many times as fast, or as slow. Point at a cell for more."
        many = len(places.rows) > _DRAWN_OPEN
        body = Detail((Charts((places,), note),), () if many else (places,), "Speed-ups")
        fold = Fold.FOLDED if many else Fold.OPEN
        yield Section("Where they are faster", (body,), places.description, fold, "map")


def _profiled(document: EvaluationDocument, folder: Path | None) -> Iterator[Section]:
    """Tests that have a run of their own, with the line that shows it."""
    items = [
        Item(
            Span(
                f"{result.test.operation}, {shorten(result.test.arguments, 120)}: {result.status}, "
                f"{speedup_text(result.speedup)}",
                link=f"{result.profile}/report.html",
            ),
            (
                *((f"bottleneck: {result.bottleneck}",) if result.bottleneck else ()),
                *((f"insight: {result.insight}",) if result.insight else ()),
                command(f"profkit report {shlex.quote(str((folder or Path()) / result.profile))}"),
            ),
        )
        for result in document.results
        if result.profile
    ]
    if items:
        yield Section(
            "Profiled", (Items(tuple(items)),), "Why these take as long as they do.", anchor="profiled"
        )


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
    worst = min(
        (one.first_failure for one in operations if one.first_failure is not None),
        key=lambda result: FAILED.index(result.status),
        default=None,
    )
    if worst is not None and can_be_replayed(document):
        lines.append(replay_line(document, worst, folder))
    lines.append(f"profkit compare BASELINE {where}")
    if scores.geomean is not None:
        lines.append(f"profkit check {where} --targets targets.yaml")
    yield Section("Next", (Commands(tuple(lines)),), anchor="next")
