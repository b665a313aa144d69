"""Reading and writing of evaluation.json, schema 'profkit.evaluation/2': an evaluation with its scores."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, cast

from profkit.analysis.evaluation.scores import (
    EvaluationScores,
    MeanSpeedup,
    OperationResult,
    combined_score,
    fast_p,
    operation_results,
    scores_of,
)
from profkit.core.codec import (
    check_schema,
    from_plain_data,
    json_text,
    read_document,
    short_repr,
    to_plain_data,
)
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_start
from profkit.core.types import EvaluationDocument, EvaluationTest, Json, TestResult

SCHEMA = "profkit.evaluation/2"
FILE = "evaluation.json"
SIZE_LIMIT = 256 << 20  # bytes; 20,000 tests take 20 MB: more is no evaluation, and would fill memory
PLACES = (0.5, 1.0, 1.2, 1.5, 2.0)  # of p in fast_p
_TEST_FIELDS = tuple(field.name for field in fields(EvaluationTest))


def evaluation_text(document: EvaluationDocument, folder: Path | None = None) -> str:
    """Return the document as JSON text; `folder` is where its other files lie."""
    return json_text(evaluation_json(document, folder))


def evaluation_json(document: EvaluationDocument, folder: Path | None = None) -> dict[str, Json]:
    """Return the document as plain data: what was evaluated, its scores, its operations, its tests."""
    operations = operation_results(document)
    body = cast("dict[str, Json]", to_plain_data(replace(document, results=())))
    del body["results"]
    return {
        "schema": SCHEMA,
        **({"folder": str(folder)} if folder is not None else {}),
        **body,
        **_scores(scores_of(document, operations), operations),
        "operations": [_operation(result) for result in operations],
        "tests": [_test(result) for result in document.results],
    }


def _scores(scores: EvaluationScores, operations: Sequence[OperationResult]) -> dict[str, Json]:
    """Return the fields of the scores."""
    mean, whole = scores.geomean, scores.geomean_with_fallback
    return {
        "correctness_score": scores.correctness_score,
        "mean_pass_rate": scores.mean_pass_rate,
        "combined_score": combined_score(scores.correctness_score, scores.geomean),
        **mean_fields("geomean", mean),
        "n": mean.n if mean is not None else 0,
        **mean_fields("geomean_with_fallback", whole),
        "n_with_fallback": whole.n if whole is not None else 0,
        "fast_p": [{"p": p, "share": share} for p in PLACES if (share := fast_p(operations, p)) is not None],
        "statuses": to_plain_data(scores.statuses),
        "counted_operations": scores.counted_operations,
        "correct_operations": scores.correct_operations,
        "counted_tests": scores.counted_tests,
        "skipped_tests": scores.skipped_tests,
    }


def mean_fields(name: str, mean: MeanSpeedup | None) -> dict[str, Json]:
    """Return the fields of a mean speed-up: the value under `name`, its interval and its word."""
    return {
        name: mean.value if mean is not None else None,
        f"{name}_low": mean.low if mean is not None else None,
        f"{name}_high": mean.high if mean is not None else None,
        f"{name}_word": mean.word if mean is not None else None,
    }


def _operation(result: OperationResult) -> Json:
    """Return the object of an operation."""
    return {
        "operation": result.operation,
        "status": result.status,
        "tests": result.tests,
        "counted": result.counted,
        "passed": result.passed,
        "skipped": result.skipped,
        "not_run": result.not_run,
        "speedup": _mean(result.speedup),
        **{
            name: to_plain_data(getattr(result, name))
            for name in ("max_abs_error", "max_rel_error", "allowed_share", "bound_share")
        },
        "own_share": result.own_share,
        "bottleneck": to_plain_data(result.bottleneck),
        "insight": to_plain_data(result.insight),
        "first_failure": result.first_failure.test.id if result.first_failure is not None else None,
    }


def _mean(mean: MeanSpeedup | None) -> Json:
    """Return a mean speed-up as an object, or null."""
    if mean is None:
        return None
    return {"median": mean.value, "low": mean.low, "high": mean.high, "word": mean.word, "n": mean.n}


def _test(result: TestResult) -> Json:
    """Return the test and its result as one object."""
    body = cast("dict[str, Json]", to_plain_data(result))
    return {**cast("dict[str, Json]", body.pop("test")), **body}


# ---------------------------------------------------------------- reading


def is_evaluation(path: Path) -> bool:
    """Return whether a folder holds an evaluation, or a file begins like one; never raises."""
    with suppress(OSError):
        return b'"profkit.evaluation/' in read_start(path / FILE if path.is_dir() else path, 200)
    return False


def read_evaluation(path: Path) -> EvaluationDocument:
    """Read the evaluation in a folder or a file. Raises UnreadableReport if there is none."""
    return read_document(path / FILE if path.is_dir() else path, evaluation_from_json, SIZE_LIMIT)


def evaluation_from_json(data: object) -> EvaluationDocument:
    """Build the document from parsed JSON.

    Unknown fields are ignored, and so are the scores, which follow from the tests. Raises UnreadableReport with
    the place that does not fit.
    """
    data = check_schema(data, SCHEMA, "an evaluation")
    tests = data.get("tests")
    if not isinstance(tests, list):
        raise UnreadableReport(f"tests is {short_repr(tests)}, not a list")
    document = from_plain_data(EvaluationDocument, {**data, "results": []})
    return replace(document, results=tuple(_read_tests(tests)))


def _read_tests(tests: Sequence[Any]) -> list[TestResult]:
    """Build the results of all tests. Raises UnreadableReport with the place that does not fit."""
    results = []
    for number, body in enumerate(tests):
        place = f"tests[{number}]"
        if not isinstance(body, dict):
            raise UnreadableReport(f"{place} is {short_repr(body)}, not an object")
        # What a suite needs is any JSON, which the types cannot tell.
        test = {name: body[name] for name in _TEST_FIELDS if name in body and name != "source"}
        result = from_plain_data(TestResult, {**body, "test": test}, place)
        results.append(replace(result, test=replace(result.test, source=body.get("source"))))
    return results
