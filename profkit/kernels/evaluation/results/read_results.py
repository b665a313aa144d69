"""Results of an evaluation, whoever made it: profkit's own, BackendBench's full_results.json, KernelBench's
eval_results.json.

The other two tell a speed-up without an interval: one pair of times. They are read as they are, NaN and Infinity too.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import Any

from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import EvaluationDocument, EvaluationTest, Fault, Speedup, TestResult, TestStatus
from profkit.kernels.evaluation.results.document import FILE, SCHEMA, evaluation_from_json, load_json
from profkit.kernels.evaluation.results.field_files import FULL_RESULTS

KERNELBENCH = "eval_results.json"
_FILES = (FILE, FULL_RESULTS, KERNELBENCH)  # in a folder, the first that is there
_HEAD = 1 << 16  # bytes
_DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "i64": "int64",
    "i32": "int32",
}
_FIRST_DTYPE = re.compile(r"T\(\[[0-9, ]*\], ([a-z]+[0-9]+)")


def is_evaluation(path: Path) -> bool:
    """True for a folder that holds one of the files, and for a file that begins like one; never raises."""
    file = _file_of(path)
    try:
        if file is None or not file.is_file():  # asked first, since opening a pipe would wait for its writer
            return False
        with open_regular(file) as opened:
            head = opened.read(_HEAD)
    except OSError:
        return False
    if head.lstrip()[:1] == b"[":
        return b'"op_name"' in head and b'"args"' in head
    return b'"profkit.evaluation/' in head[:200] or (b'"compiled"' in head and b'"correctness"' in head)


def read_evaluation(path: Path) -> EvaluationDocument:
    """The evaluation in a folder or a file. Raises UnreadableReport for what is none."""
    file = _file_of(path)
    if file is None:
        raise UnreadableReport(f"{path} holds no evaluation: none of {', '.join(_FILES)}")
    data = load_json(file)
    try:
        if isinstance(data, dict) and "schema" in data:
            return evaluation_from_json(data)
        name = file.parent.name if file.name in _FILES else file.stem
        made = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
        if isinstance(data, list) and all(isinstance(row, dict) and "op_name" in row for row in data):
            return replace(_read_backendbench(data), name=name, started=made)
        if isinstance(data, dict) and data:
            return replace(_read_kernelbench(data), name=name, started=made)
    except UnreadableReport as error:
        raise UnreadableReport(f"cannot read {file}: {error.message}", error.fix) from error
    raise UnreadableReport(f"cannot read {file}: neither {SCHEMA} nor results of BackendBench or KernelBench")


def _file_of(path: Path) -> Path | None:
    with contextlib.suppress(OSError):
        if path.is_dir():
            return next((path / name for name in _FILES if (path / name).is_file()), None)
    return path


def _document(
    suite: str, device: str, results: Sequence[TestResult], notes: tuple[str, ...]
) -> EvaluationDocument:
    return EvaluationDocument(
        "", suite, suite, device, tuple(results), planned=len(results), complete=True, notes=notes
    )


def _test_of(suite: str, operation: str, arguments: str, number: int, *, timed: bool) -> EvaluationTest:
    """`number` tells tests of the same arguments apart: there are several, with other values."""
    words = f"{suite}\n{operation}\n{arguments}\n{number}"
    id = hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:12]
    found = _FIRST_DTYPE.search(arguments)
    dtype = _DTYPES.get(found[1], found[1]) if found is not None else ""
    return EvaluationTest(id, suite, operation, dtype, arguments, timed=timed)


def _number(value: object) -> float | None:
    """A finite number, also as text; None for anything else."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        number = float(value)  # type: ignore[arg-type]
        return number if isfinite(number) and not isinstance(value, bool) else None
    return None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _bare_speedup(value: float | None) -> Speedup | None:
    return None if not value or value < 0 else Speedup(value, value, value, "AMBIGUOUS", pairs=1)


def _seconds(milliseconds: object) -> float | None:
    number = _number(milliseconds)
    return number / 1e3 if number is not None and number > 0 else None


# ---------------------------------------------------------------- BackendBench

_NOTE = (
    "Read from BackendBench's results: speed-ups have no interval; on a CPU its times in ms are seconds; its checks "
    "let 1e-2 pass in every dtype, and give kernel and reference the same tensors."
)
_OUT_OF_MEMORY = ("OutOfMemoryError", "MemoryError")


def _read_backendbench(rows: Sequence[Mapping[str, Any]]) -> EvaluationDocument:
    """A test for each correctness row; the k-th performance row of the same arguments is its time."""
    correctness: dict[tuple[str, str, int], Mapping[str, Any]] = {}
    performance: dict[tuple[str, str, int], Mapping[str, Any]] = {}
    counts: Counter[tuple[str, str, bool]] = Counter()
    for row in rows:
        operation, arguments = _text(row["op_name"]), _text(row.get("args"))
        is_time = row.get("test_type") == "performance"
        number = counts[operation, arguments, is_time]
        counts[operation, arguments, is_time] += 1
        (performance if is_time else correctness)[operation, arguments, number] = row
    results = []
    for key in dict.fromkeys([*correctness, *performance]):
        check, time = correctness.get(key), performance.get(key)
        if check is not None and time is None and "speedup" in check:  # until August 2025 one row told both
            time = check
        test = _test_of("BackendBench", *key, timed=time is not None)
        results.append(_backendbench_result(test, check, time))
    return _document("BackendBench", "", sorted(results, key=lambda r: r.test.operation), (_NOTE,))


def _backendbench_result(
    test: EvaluationTest, correctness: Mapping[str, Any] | None, performance: Mapping[str, Any] | None
) -> TestResult:
    times = _backendbench_times(performance) if performance is not None else {}
    row = correctness if correctness is not None else performance
    assert row is not None
    # Until August 2025 the keys were others, and the numbers texts.
    right = row.get("is_correct", row.get("correctness_score", row.get("successfully_ran")))
    kind, message = _text(row.get("error_type")), _text(row.get("error_msg", row.get("correctness_errors")))
    result = TestResult(
        test,
        "passed",
        max_abs_error=_number(row.get("max_abs_error", row.get("absolute_error"))),
        max_rel_error=_number(row.get("max_rel_error", row.get("relative_error"))),
    )
    if message.startswith("Skipped"):
        return replace(result, status="skipped", reason=message)
    if right and (performance is None or performance.get("successfully_ran", True)):
        return replace(result, **times)
    if right and performance is not None:  # correct, and failed where it was timed
        message = _text(performance.get("error_msg"))
    status: TestStatus = "out-of-memory" if kind in _OUT_OF_MEMORY else "incorrect"
    fault: Fault | None = "raised" if kind not in ("", "AssertionError", *_OUT_OF_MEMORY) else None
    if not kind and not message:
        fault = "values"
    return replace(
        result,
        status=status,
        fault=fault if status == "incorrect" else None,
        reason=": ".join(filter(None, (kind if fault == "raised" else "", _first_line(message)))),
        error_type=kind,
        traceback=_text(row.get("traceback")),
        reference_seconds=times.get("reference_seconds"),
    )


def _backendbench_times(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "speedup": _bare_speedup(_number(row.get("speedup"))),
        "seconds": _seconds(row.get("benchmark_time_ms", row.get("benchmark_time"))),
        "reference_seconds": _seconds(row.get("reference_time_ms")),
    }


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


# ---------------------------------------------------------------- KernelBench

_KERNELBENCH_NOTE = (
    "Read from KernelBench's results: times have no interval, and a speed-up only where the reference's time stands "
    "beside it."
)
# Which entry of the metadata says why, and what that is.
_ERRORS: tuple[tuple[str, Fault | None], ...] = (
    ("compilation_error", None),
    ("cuda_error", "raised"),
    ("runtime_error", "raised"),
    ("correctness_issue", "values"),
    ("error", None),
)


def _read_kernelbench(data: Mapping[str, Any]) -> EvaluationDocument:
    """An operation for each problem, and for each sample of it where there are several."""
    samples: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for problem, value in data.items():
        rows = value if isinstance(value, list) else [value]
        for row in rows:
            if not isinstance(row, dict) or "correctness" not in row or "compiled" not in row:
                raise UnreadableReport(f"problem {problem!r} has no compiled and correctness")
            samples[str(problem)].append(row)
    results = [
        _kernelbench_result(f"problem {problem}", row, len(rows) > 1, number)
        for problem, rows in samples.items()
        for number, row in enumerate(rows)
    ]
    metadata = [
        row["metadata"] for rows in samples.values() for row in rows if isinstance(row.get("metadata"), dict)
    ]
    device = next((_text(one["hardware"]) for one in metadata if one.get("hardware")), "")
    return _document("KernelBench", device, results, (_KERNELBENCH_NOTE,))


def _kernelbench_result(problem: str, row: Mapping[str, Any], several: bool, number: int) -> TestResult:
    sample = row.get("sample_id", number)
    test = _test_of(
        "KernelBench", f"{problem} sample {sample}" if several else problem, "", number, timed=True
    )
    metadata = row["metadata"] if isinstance(row.get("metadata"), dict) else {}
    own, reference = _seconds(row.get("runtime")), _seconds(row.get("ref_runtime"))
    if row["compiled"] and row["correctness"]:
        speedup = _bare_speedup(reference / own) if own and reference else None
        remarks = ("KernelBench calls the speed-up excessive",) if metadata.get("excessive_speedup") else ()
        return TestResult(
            test, "passed", speedup=speedup, seconds=own, reference_seconds=reference, remarks=remarks
        )
    name, fault = next(((key, fault) for key, fault in _ERRORS if metadata.get(key)), ("", None))
    kind = _text(metadata.get(f"{name}_name")).rpartition(".")[2]
    reason = ": ".join(filter(None, (kind, _first_line(_text(metadata.get(name))))))
    if not row["compiled"]:
        return TestResult(test, "load-error", reason, error_type=kind)
    return TestResult(
        test, "incorrect", reason, fault=fault or "values", error_type=kind, reference_seconds=reference
    )
