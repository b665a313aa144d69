"""What an evaluation leaves beside its journal: its document, a run like any other, reports.

As a run it is known to targets, histories and nightlies.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from profkit.analysis.evaluation.scores import (
    FAILED,
    EvaluationScores,
    OperationResult,
    fast_p,
    operation_results,
    scores_of,
)
from profkit.analysis.evaluation.speedups import MeanSpeedup
from profkit.core.errors import MachineError
from profkit.core.files.whole import write_whole
from profkit.core.formatting import plural
from profkit.core.run_folder import write_run
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
    Workload,
)
from profkit.hardware.machine import read_machine
from profkit.kernels.campaign import working_directory
from profkit.kernels.evaluation.document import FILE, evaluation_text


def evaluation_as_run(
    document: EvaluationDocument,
    folder: str = "",
    machine: Machine | None = None,
    gpus: tuple[Gpu, ...] = (),
) -> RunDocument:
    """The run. Its command names what was tested and not whose kernels: other kernels are what is compared.

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
            *(reading for one in operations for reading in _of_operation(one)),
        ),
        packages=dict(document.versions),
        notes=document.notes,
    )


def _backend(document: EvaluationDocument) -> BackendName:
    kind = (document.device_type or document.device).partition(":")[0]
    return "cuda" if kind == "cuda" else "mps" if kind == "mps" else "cpu"


def _whole(scores: EvaluationScores, operations: tuple[OperationResult, ...]) -> Iterator[Reading]:
    failed = [one for one in operations if one.status in FAILED]
    number = scores.counted_tests - scores.passed_tests
    fact = None
    if failed:
        first = min(failed, key=lambda one: FAILED.index(one.status))
        said = first.first_failure.reason if first.first_failure is not None else ""
        fact = Fact.of("first-fault", name=first.operation, state=first.status, said=said or "")
    formula = "tests that count and did not pass"
    if scores.counted_tests or not scores.tests:
        yield _reading("tests.failed", float(number), "count", formula, reason=fact)
    else:
        source = Source("profkit", formula=formula)
        yield Reading("tests.failed", None, "count", "unavailable", RUN, source, Fact("no-test-decided"))
    counted = plural(scores.counted_operations, "operation")
    yield from _share("operations.correct", scores.correctness_score, f"of {counted}, all tests passed")
    yield from _share("tests.passed", scores.mean_pass_rate, f"mean over {counted} of their tests' share")
    yield from _speedup("speedup.geometric_mean", scores.geomean, RUN)
    fallback = scores.geomean_with_fallback
    if fallback is not None:
        formula = f"geometric mean of {plural(fallback.n, 'timed test')}, 1 for each that failed"
        yield _reading(
            "speedup.fallback", fallback.value, "x", formula, reason=Fact.of("speed", word=fallback.word)
        )
    if scores.model is not None:
        formula = f"of {scores.model.all_calls} recorded calls {100 * scores.model.covered:.3g} % have a time"
        yield _reading(
            "speedup.model", scores.model.value, "x", formula, reason=Fact.of("speed", word=scores.model.word)
        )
    yield from _share("operations.faster", fast_p(operations, 1.0), f"of {counted}: fast_1")


def _of_operation(one: OperationResult) -> Iterator[Reading]:
    if one.pass_rate is None:
        return
    scope = Scope("region", one.operation)
    yield _reading("tests.passed", 100 * one.pass_rate, "%", f"{one.passed} of {one.counted}", scope)
    yield from _speedup("speedup", one.speedup, scope)


def _speedup(metric: str, mean: MeanSpeedup | None, scope: Scope) -> Iterator[Reading]:
    if mean is None:
        return
    formula = f"geometric mean of {plural(mean.n, 'correct timed test')}"
    yield _reading(metric, mean.value, "x", formula, scope, Fact.of("speed", word=mean.word))
    if mean.low is not None:
        yield _reading("speedup.least", mean.low, "x", f"{formula}, begin of its 95 % interval", scope)


def _share(metric: str, share: float | None, formula: str) -> Iterator[Reading]:
    if share is not None:
        yield _reading(metric, 100 * share, "%", formula)


def _reading(
    metric: str, value: float, unit: str, formula: str, scope: Scope = RUN, reason: Fact | None = None
) -> Reading:
    return Reading(metric, value, unit, "measured", scope, Source("profkit", formula=formula), reason=reason)


def write_results(folder: Path, document: EvaluationDocument) -> tuple[str, ...]:
    """Write all files into `folder`, each whole or not at all; a line for each report that is not there.

    Raises MachineError where the disk takes no more.
    """
    try:
        write_whole(folder / FILE, (evaluation_text(document, folder),), sync=True)
    except OSError as error:
        again = f"make room, then: profkit evaluate --resume {shlex.quote(str(folder))}"
        raise MachineError(f"{folder / FILE} cannot be written: {error.strerror}", again) from error
    write_run(folder, evaluation_as_run(document, working_directory(), read_machine()))
    from profkit.reporting.report_files import write_evaluation_reports

    return write_evaluation_reports(folder, document)
