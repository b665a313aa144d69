"""What is said of an evaluation: how many are correct, how much faster, what failed, what was skipped."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.evaluation.feedback import FAR, describe_excess
from profkit.analysis.evaluation.scores import FAILED, EvaluationScores, OperationResult, fast_p
from profkit.analysis.evaluation.speedups import combined_score
from profkit.core.formatting import (
    format_figures,
    format_utc_time,
    joined,
    plural,
    shorten,
)
from profkit.core.types import (
    UNDECIDED,
    EvaluationDocument,
    Fault,
    SpeedWord,
    TestResult,
    TestStatus,
)
from profkit.reporting.views.cases import format_duration, format_sharing, percent, ratio, speedup_text

WORDS: Mapping[SpeedWord, str] = {
    "FASTER": "faster",
    "SAME": "the same",
    "SLOWER": "slower",
    "AMBIGUOUS": "not decided",
}
_FAULTS: Mapping[Fault, str] = {
    "values": "wrong values",
    "not-finite": "NaN or infinity",
    "shape": "another shape",
    "dtype": "another dtype",
    "device": "another device",
    "stride": "another stride",
    "type": "another type",
    "count": "another number of outputs",
    "aliasing": "shares memory against its schema",
    "mutation": "changes its inputs against its schema",
    "raised": "raised",
}
_NUMBERS = re.compile(r"-?[0-9]+(?:[,.][0-9]+)*(?:e[+-]?[0-9]+)?(?:, -?[0-9]+)*")  # and places: 0, 3, 1


# ---------------------------------------------------------------- numbers


def error_text(share: float | None) -> str:
    """The largest error as a share of what rounding explains: `12.0 %`; `35.1 x` of what is wrong by that much."""
    if share is None or share != share:
        return "-" if share is None else "NaN"
    if share > FAR:
        return f"> {FAR:,.0f} x"
    return percent(share) if share <= 1 else ratio(share)


# ---------------------------------------------------------------- sentences


def head_line(scores: EvaluationScores) -> str:
    """`12 of 14 operations correct; 1.32 x (1.21-1.44, FASTER) as fast as PyTorch over 9 timed tests`."""
    line = f"{scores.correct_operations} of {plural(scores.counted_operations, 'operation')} correct"
    mean = scores.geomean
    if mean is None:
        if not scores.counted_operations:
            not_run = scores.statuses.get("not-run", 0)
            return (
                f"No test was decided; {plural(not_run, 'test')} not run"
                if not_run
                else "No test was decided"
            )
        return f"{line}; none was timed"
    return f"{line}; {speedup_text(mean)} as fast as PyTorch over {plural(mean.n, 'timed test')}"


def state_line(document: EvaluationDocument) -> str:
    """`5,096 tests in 82 s`, and how many are left of an evaluation that was interrupted."""
    left = document.planned - len(document.results)
    tests = f"{len(document.results):,} {'test' if len(document.results) == 1 else 'tests'}"
    line = f"{tests} in {format_duration(document.seconds)}" if document.seconds else tests
    if document.complete or left <= 0:
        return line if document.complete else f"{line}; interrupted"
    return f"{line}; interrupted, {left:,} left"


def conclusions(
    scores: EvaluationScores, operations: tuple[OperationResult, ...]
) -> tuple[tuple[str, str], ...]:
    """What to know before any table, as (name, sentence)."""
    facts = [("Correct", _correctness(scores))]
    if scores.geomean is not None:
        facts.append(("Speed", _speed(scores)))
        facts.append(("Operations", _words(scores, operations)))
    if (both := combined_score(scores.correctness_score, scores.geomean)) is not None:
        parts = f"{percent(scores.correctness_score)} of the operations x {speedup_text(scores.geomean)}"
        facts.append(("Combined", f"{format_figures(both)}: {parts}."))
    if scores.compiled is not None:
        facts.append(("torch.compile", f"{speedup_text(scores.compiled)} as fast as it."))
    if scores.model is not None:
        facts.append(("Whole model", _model(scores)))
    if scores.gap_closed is not None:
        share = percent(scores.gap_closed)
        facts.append(
            ("Bound", f"{share} of the gap from PyTorch to the hardware's bound is closed (median).")
        )
    facts.append(("Tests", _statuses(scores)))
    return tuple(facts)


def _correctness(scores: EvaluationScores) -> str:
    if not scores.counted_operations:
        return "not known: no test was decided."
    one = scores.counted_operations == 1
    operations = plural(scores.counted_operations, "operation")
    return (
        f"{scores.correct_operations} of {operations} {'passes all its' if one else 'pass all their'} tests "
        f"({percent(scores.correctness_score)}); "
        f"{scores.passed_tests:,} of {scores.counted_tests:,} tests pass, "
        f"{percent(scores.mean_pass_rate)} of an operation's on average."
    )


def _speed(scores: EvaluationScores) -> str:
    mean, whole = scores.geomean, scores.geomean_with_fallback
    assert mean is not None
    line = f"{speedup_text(mean)} as fast as PyTorch over {plural(mean.n, 'correct timed test')}"
    if whole is not None and whole.n > mean.n:
        line += f"; {speedup_text(whole)} over {whole.n} with PyTorch in place of what failed"
    return f"{line}. Geometric means."


def _words(scores: EvaluationScores, operations: tuple[OperationResult, ...]) -> str:
    counts = [f"{scores.words[word]} {text}" for word, text in WORDS.items() if scores.words.get(word, 0)]
    share = fast_p(operations, 1.0)
    fast = "" if share is None else f" {percent(share)} of all are correct and surely faster (fast_1)."
    return f"{joined(counts)}.{fast}"


def _model(scores: EvaluationScores) -> str:
    model = scores.model
    assert model is not None
    return (
        f"{speedup_text(model)} as fast by the trace's counts, an estimate: {percent(model.covered)} of "
        f"{model.all_calls:,} recorded calls of these operations have a time, and the kernels serve "
        f"{percent(model.kernel_share)} of that time."
    )


def _statuses(scores: EvaluationScores) -> str:
    counts = ", ".join(f"{count:,} {status}" for status, count in scores.statuses.items()) or "none"
    return f"{counts}."


def measurement_facts(document: EvaluationDocument) -> tuple[tuple[str, str], ...]:
    """Where, of what, by what."""
    versions = ", ".join(f"{name} {value}" for name, value in document.versions.items())
    verified = sum(result.verified for result in document.results)
    timed = any(result.speedup is not None and result.speedup.pairs > 1 for result in document.results)
    floor = f"{100 * document.floor:.3g} %"
    rows = [
        ("Started", format_utc_time(document.started)),
        ("Kernels", _kernels(document)),
        ("Suite", f"{document.suite}{', ' + document.dtype if document.dtype else ''}"),
        ("Device", document.device),
        ("Versions", versions),
        ("Command", shlex.join(document.command)),
    ]
    slots = {result.slot for result in document.results if result.speedup is not None}
    if len(slots) > 1 or document.serial:
        rows.append(("Workers", format_sharing(len(slots), "tests", serial=document.serial)))
    if timed:
        rows.append(
            (
                "Times",
                "Kernel and PyTorch in turns, each in a process of its own, by the judge's clock. SAME: the 95 % "
                f"interval lies within {floor} of 1. FASTER, SLOWER: it lies on one side of 1, the value beyond that. "
                "AMBIGUOUS: neither, or the machine was too busy to tell.",
            )
        )
    if verified:
        rows.append(("Verified", f"{verified:,} results of timed calls, chosen in secret."))
    return tuple((name, text) for name, text in rows if text)


# ---------------------------------------------------------------- failures, skips, remarks


@dataclass(frozen=True)
class FailureGroup:
    """Tests of one operation that failed alike; `tests` of the operation's, the first of them is for replaying."""

    operation: str
    status: TestStatus
    reason: str
    results: tuple[TestResult, ...]
    tests: int


def failure_groups(operations: Iterable[OperationResult]) -> tuple[FailureGroup, ...]:
    """What failed, worst first, by operation and reason; reasons that differ in numbers alone are one."""
    groups = []
    for operation in operations:
        alike: dict[tuple[str, ...], list[TestResult]] = defaultdict(list)
        for result in operation.results:
            if result.status in FAILED:
                key = (result.status, result.fault or "", _NUMBERS.sub("#", failure_reason(result)))
                alike[key].append(result)
        groups += [
            FailureGroup(
                operation.operation,
                results[0].status,
                failure_reason(results[0]),
                tuple(results),
                operation.tests,
            )
            for results in alike.values()
        ]
    return tuple(sorted(groups, key=lambda group: FAILED.index(group.status)))


def failure_reason(result: TestResult) -> str:
    """Why it failed, in one line: the fault, the reason, how large the error is."""
    parts = [_FAULTS[result.fault]] if result.fault is not None else []
    parts += [result.reason or result.error_type] if result.reason or result.error_type else []
    line = ": ".join(parts) or result.status
    if result.fault == "values" and result.allowed_share is not None and result.allowed_share > 1:
        line += f" (the largest error is {describe_excess(result.allowed_share)})"
    return line


def title(document: EvaluationDocument) -> str:
    """`Evaluation of directory kernels on cpu`."""
    device = f" on {document.device}" if document.device else ""
    return f"Evaluation of {_kernels(document)}{device}"


def _kernels(document: EvaluationDocument) -> str:
    """Whose kernels they are: the name of their file or folder, where that is known."""
    if document.kernels:
        return document.kernels
    names = {"aten": "PyTorch's own kernels", "flag_gems": "FlagGems", "file": "kernels of a file"}
    return names.get(document.backend, f"{document.backend} kernels".strip())


def can_be_replayed(document: EvaluationDocument) -> bool:
    """Whether a command made it: a program that calls profkit.evaluation is run again itself."""
    return bool(document.command)


def replay_line(document: EvaluationDocument, result: TestResult, folder: Path | None) -> str:
    """The line that does the test once more, with the user's own code that runs then."""
    where = shlex.quote(str(folder)) if folder is not None else "FOLDER"
    own = document.backend in ("file", "directory") and document.kernels
    kernels = f" --kernels {shlex.quote(document.kernels)}" if own else ""
    return f"profkit evaluate --replay {result.test.id} {where}{kernels}{suite_option(document)}"


def suite_option(document: EvaluationDocument) -> str:
    """The option that names tests of the user's own; nothing for a suite of profkit's."""
    return f" --suite {shlex.quote(document.suite)}" if document.suite.endswith(".py") else ""


def grouped_notes(document: EvaluationDocument) -> tuple[str, ...]:
    """The evaluation's own notes, reasons for skipping, and remarks on tests, each once with its number."""
    lines = [*document.notes]
    skipped: dict[str, list[TestResult]] = defaultdict(list)
    remarks: dict[str, list[TestResult]] = defaultdict(list)
    for result in document.results:
        if result.status in UNDECIDED:
            skipped[_NUMBERS.sub("#", f"{result.status}: {result.reason}")].append(result)
        for remark in result.remarks:
            remarks[_NUMBERS.sub("#", remark)].append(result)
    for results in sorted(skipped.values(), key=len, reverse=True):
        reason = f": {results[0].reason}" if results[0].reason else ""
        what = results[0].status.replace("-", " ")
        lines.append(f"{plural(len(results), 'test')} {what}{reason} ({_operation_names(results)}).")
    for results in sorted(remarks.values(), key=len, reverse=True):
        alike = dict.fromkeys(
            remark
            for result in results
            for remark in result.remarks
            if remarks.get(_NUMBERS.sub("#", remark)) is results
        )
        example = ", for example" if len(alike) > 1 else ""
        lines.append(
            f"{plural(len(results), 'test')}{example}: {next(iter(alike))} ({_operation_names(results)})."
        )
    return tuple(shorten(line, 400) for line in lines)


def _operation_names(results: Iterable[TestResult], most: int = 4) -> str:
    names = list(dict.fromkeys(result.test.operation for result in results))
    more = [f"{len(names) - most} more"] if len(names) > most + 1 else []
    return joined([*names[: most if more else most + 1], *more])
