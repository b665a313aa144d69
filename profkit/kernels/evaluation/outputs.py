"""The files of an evaluation beside its journal: its document, BackendBench's files, a run, reports.

The run makes it available to targets, histories and nightly runs. The keys of full_results.json,
operator_summary.csv and failed_tests.json are BackendBench's, followed by the interval and word of each
speed-up. They hold what they say: milliseconds where a key ends in `_ms`, null where there is no number, a
row for each test that counts, including crashes.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any

from profkit.analysis.evaluation.scores import (
    FAILED,
    EvaluationScores,
    MeanSpeedup,
    OperationResult,
    combined_score,
    counts,
    fast_p,
    operation_results,
    scores_of,
)
from profkit.core.codec import to_plain_data
from profkit.core.errors import writing
from profkit.core.files.safe_folder import write_whole
from profkit.core.formatting import plural, table_cell
from profkit.core.run_folder import write_run
from profkit.core.statistics import geometric_mean
from profkit.core.types import (
    RUN,
    BackendName,
    EvaluationDocument,
    Fact,
    Gpu,
    Machine,
    Reading,
    RunDocument,
    Scope,
    Source,
    Speedup,
    TestResult,
    Workload,
)
from profkit.hardware.machine import read_machine
from profkit.kernels.campaign import working_directory
from profkit.kernels.evaluation.document import FILE, evaluation_text
from profkit.reporting.facts import fact_text
from profkit.runtime.passes.shown_command import shown_line


def evaluation_as_run(
    document: EvaluationDocument,
    folder: str = "",
    machine: Machine | None = None,
    gpus: tuple[Gpu, ...] = (),
) -> RunDocument:
    """Return the evaluation as a run.

    Its command names what was tested and not whose kernels, since runs of other kernels are compared with it.
    `machine` and `gpus` are those that measured, where that is known.
    """
    operations = operation_results(document)
    scores = scores_of(document, operations)
    dtype = ("--dtype", document.dtype) if document.dtype else ()
    command = ("profkit", "evaluate", "--suite", document.suite, "--device", document.device, *dtype)
    return RunDocument(
        name=document.name,
        backend=_backend(document),
        state="complete" if document.complete else "interrupted",
        workload=Workload(command, document.name, folder),
        started=document.started,
        machine=machine,
        gpus=gpus,
        readings=(
            *_whole(scores, operations),
            *(reading for operation in operations for reading in _of_operation(operation)),
        ),
        packages=dict(document.versions),
    )


def _backend(document: EvaluationDocument) -> BackendName:
    """Return the name of the backend by the device's type."""
    kind = (document.device_type or document.device).partition(":")[0]
    return "cuda" if kind == "cuda" else "mps" if kind == "mps" else "cpu"


def _whole(scores: EvaluationScores, operations: tuple[OperationResult, ...]) -> Iterator[Reading]:
    """Yield the readings of the whole run."""
    failed = [operation for operation in operations if operation.status in FAILED]
    number = scores.counted_tests - scores.passed_tests
    fact = None
    if failed:
        first = min(failed, key=lambda operation: FAILED.index(operation.status))
        reason = first.first_failure.reason if first.first_failure is not None else None
        fact = Fact.of("first-fault", *filter(None, [reason]), name=first.operation, state=first.status)
    formula = "tests that count and did not pass"
    if scores.counted_tests or not scores.tests:
        yield _reading("tests.failed", float(number), "count", formula, reason=fact)
    else:
        source = Source("profkit", formula=formula)
        yield Reading("tests.failed", None, "count", "unavailable", RUN, source, Fact("no-test-decided"))
    counted = plural(scores.counted_operations, "operation")
    yield from _share("operations.correct", scores.correctness_score, f"of {counted}, all tests passed")
    tested = plural(sum(operation.pass_rate is not None for operation in operations), "operation")
    yield from _share("tests.passed", scores.mean_pass_rate, f"mean over {tested} of their tests' share")
    yield from _speedup("speedup.geometric_mean", scores.geomean, RUN)
    fallback = scores.geomean_with_fallback
    if fallback is not None:
        formula = f"geometric mean of {plural(fallback.n, 'timed test')}, 1 for each that failed"
        yield _reading(
            "speedup.fallback", fallback.value, "x", formula, reason=Fact.of("speed", word=fallback.word)
        )
    yield from _share("operations.faster", fast_p(operations, 1.0), f"of {counted}: fast_1")


def _of_operation(result: OperationResult) -> Iterator[Reading]:
    """Yield the readings of an operation."""
    if result.pass_rate is None:
        return
    scope = Scope("region", result.operation)
    yield _reading("tests.passed", 100 * result.pass_rate, "%", f"{result.passed} of {result.counted}", scope)
    yield from _speedup("speedup", result.speedup, scope)


def _speedup(metric: str, mean: MeanSpeedup | None, scope: Scope) -> Iterator[Reading]:
    """Yield the readings of a mean speed-up."""
    if mean is None:
        return
    formula = f"geometric mean of {plural(mean.n, 'correct timed test')}"
    yield _reading(metric, mean.value, "x", formula, scope, Fact.of("speed", word=mean.word))
    if mean.low is not None:
        yield _reading("speedup.least", mean.low, "x", f"{formula}, begin of its 95 % interval", scope)


def _share(metric: str, share: float | None, formula: str) -> Iterator[Reading]:
    """Yield a share as a reading in percent, where it is known."""
    if share is not None:
        yield _reading(metric, 100 * share, "%", formula)


def _reading(
    metric: str, value: float, unit: str, formula: str, scope: Scope = RUN, reason: Fact | None = None
) -> Reading:
    """Return a measured reading."""
    return Reading(metric, value, unit, "measured", scope, Source("profkit", formula=formula), reason=reason)


def write_results(folder: Path, document: EvaluationDocument) -> tuple[str, ...]:
    """Write all files into `folder`, each whole or not at all; return a line for each report that is missing.

    Raises MachineError where the disk is full.
    """
    for name, text in {FILE: evaluation_text(document, folder), **field_files(document)}.items():
        again = f"make room, then: profkit evaluate --resume {shlex.quote(str(folder))}"
        with writing(folder / name, again):
            write_whole(folder / name, (text,), sync=name == FILE, private=name == FILE)
    write_run(folder, evaluation_as_run(document, working_directory(), read_machine()))
    from profkit.reporting.report_files import write_evaluation_reports

    return write_evaluation_reports(folder, document)


# ---------------------------------------------------------------- BackendBench's files

FULL_RESULTS, FAILED_TESTS = "full_results.json", "failed_tests.json"
OPERATOR_SUMMARY, OVERALL_SUMMARY = "operator_summary.csv", "OVERALL_SUMMARY.md"
_P = 1.0  # of perf@p, their default

Row = dict[str, Any]


def field_files(document: EvaluationDocument) -> Mapping[str, str]:
    """Return BackendBench's four files by name."""
    rows = result_rows(document)
    failed = [row for row in rows if not is_right(row)]
    operations = operation_results(document)
    return {
        FULL_RESULTS: _json(rows),
        FAILED_TESTS: _json(failed),
        OPERATOR_SUMMARY: _csv(rows, operations),
        OVERALL_SUMMARY: _summary(document, rows, operations),
    }


def result_rows(document: EvaluationDocument) -> list[Row]:
    """Return a row for the correctness of each test that counts, and one for its speed where it was to be timed."""
    results = [result for result in document.results if counts(result)]
    timed = any(result.speedup is not None for result in results)
    rows = [_correctness_row(result) for result in results]
    rows += [
        _performance_row(result)
        for result in results
        if result.speedup is not None or (timed and result.test.timed and result.status != "passed")
    ]
    return sorted(rows, key=lambda row: (row["op_name"], row["args"]))


def _correctness_row(result: TestResult) -> Row:
    """Return BackendBench's correctness row of a test."""
    return {
        "op_name": result.test.operation,
        "args": result.test.arguments,
        "is_correct": result.status == "passed",
        "error_msg": error_message(result),
        "error_type": result.error_type,
        "traceback": result.traceback,
        "max_abs_error": result.max_abs_error,
        "max_rel_error": result.max_rel_error,
        "test_type": "correctness",
    }


def _performance_row(result: TestResult) -> Row:
    """Return BackendBench's performance row of a test."""
    ran = result.status == "passed" and result.speedup is not None
    speedup = result.speedup if ran else None
    return {
        "op_name": result.test.operation,
        "args": result.test.arguments,
        "speedup": speedup.median if speedup is not None else None,
        "benchmark_time_ms": _milliseconds(result.seconds) if ran else None,
        "reference_time_ms": _milliseconds(result.reference_seconds),
        "error_msg": error_message(result),
        "successfully_ran": ran,
        "test_type": "performance",
        **_worth(speedup, "speedup"),
    }


def _worth(speedup: Speedup | MeanSpeedup | None, name: str) -> Row:
    """Return the interval and word of a speed-up, which BackendBench lacks."""
    return {f"{name}_{field}": getattr(speedup, field, None) for field in ("low", "high", "word")}


def _milliseconds(seconds: float | None) -> float | None:
    """Convert seconds to milliseconds."""
    return None if seconds is None else 1e3 * seconds


def error_message(result: TestResult) -> str:
    """Return the status and reason of a result; empty where it passed."""
    if result.status == "passed":
        return ""
    return f"{result.status}: {fact_text(result.reason)}" if result.reason else result.status


def is_right(row: Row) -> bool:
    """Return whether the row is of a test that passed."""
    return bool(row["is_correct"] if row["test_type"] == "correctness" else row["successfully_ran"])


def _json(rows: Sequence[Row]) -> str:
    """Return the rows as JSON text."""
    return json.dumps(to_plain_data(rows), indent=2, allow_nan=False) + "\n"


# ---------------------------------------------------------------- by operation


def operator_summaries(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each operation. None means not known; an error of 0 is known."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["op_name"]].append(row)
    return [_operator_summary(name, own) for name, own in groups.items()]


def _operator_summary(name: str, rows: Sequence[Row]) -> Row:
    """Return BackendBench's summary row of an operation."""
    correctness = [row for row in rows if row["test_type"] == "correctness"]
    performance = [row for row in rows if row["test_type"] == "performance"]
    right, ran = sum(map(is_right, correctness)), sum(map(is_right, performance))
    speedups = [s for row in performance if (s := row["speedup"]) is not None and isfinite(s)]
    return {
        "operator": name,
        "total_tests": len(rows),
        "correctness_tests": len(correctness),
        "performance_tests": len(performance),
        "passed_correctness_tests": right,
        "passed_performance_tests": ran,
        "failed_correctness_tests": len(correctness) - right,
        "failed_performance_tests": len(performance) - ran,
        "correctness_rate": right / len(correctness) if correctness else None,
        "avg_speedup": sum(speedups) / len(speedups) if speedups else None,
        "geomean_speedup": geometric_mean(speedups),
        "max_absolute_error": _largest(row["max_abs_error"] for row in correctness),
        "max_relative_error": _largest(row["max_rel_error"] for row in correctness),
    }


def _largest(errors: Iterable[float | None]) -> float | None:
    """Return the largest of the known errors; -inf is a record's mark for what was not compared."""
    return max((each for each in errors if each is not None and each > -inf), default=None)


def _csv(rows: Sequence[Row], operations: Sequence[OperationResult]) -> str:
    """Return BackendBench's columns as CSV, followed by the interval and word of the mean speed-up."""
    speedups = {operation.operation: operation.speedup for operation in operations}
    names = list(_operator_summary("", ()) | _worth(None, "speedup"))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: table_cell(value) if isinstance(value, str) else value for name, value in row.items()}
        | _worth(speedups.get(row["operator"]), "speedup")
        for row in operator_summaries(rows)
    )
    return text.getvalue()


# ---------------------------------------------------------------- the whole


def _summary(
    document: EvaluationDocument, rows: Sequence[Row], operations: tuple[OperationResult, ...]
) -> str:
    """Return OVERALL_SUMMARY.md: the command, three scores, the operations by their speed-up."""
    from profkit.reporting.views.kernels.cases import speedup_text

    speedups = {operation.operation: operation.speedup for operation in operations}
    scores = scores_of(document, operations)
    share, speedup = fast_p(operations, _P), speedup_text(scores.geomean)
    both = combined_score(scores.correctness_score, scores.geomean)
    combined = f"{_number(both)} = {_number(scores.correctness_score, 4)} x {speedup}"
    lines = [
        "# Run Summary",
        "",
        "## Command",
        "```bash",
        shown_line(document.command),
        "```",
        "",
        "## Results",
        "",
        "| Metric | Value |",
        "|--------|-------|",
        f"| Correctness Score | {_number(scores.correctness_score, 4)} |",
        f"| Performance Score (geomean speedup) | {speedup} |",
        f"| Combined Score (correctness x performance) | {combined} |",
        f"| Perf@{_P} Score | {_number(share, 4)} |",
        "",
        "### Operator Speedups vs Eager in Descending Order",
        "",
        "| Operator | Correctness Ratio | Speedup vs Eager | 95 % interval, word |",
        "|----------|-----------|----------------|----------------|",
    ]
    order = sorted(operator_summaries(rows), key=lambda row: -(row["geomean_speedup"] or 0.0))
    for row in order:
        mean = row["geomean_speedup"]
        shown = f"{mean:.4f}x" if mean is not None else "N/A"
        worth = speedup_text(speedups[row["operator"]])
        lines.append(f"| {row['operator']} | {_number(row['correctness_rate'], 4)} | {shown} | {worth} |")
    return "\n".join(lines) + "\n"


def _number(value: float | None, digits: int = 2) -> str:
    """Return a number with fixed digits, or N/A."""
    return "N/A" if value is None else f"{value:.{digits}f}"
