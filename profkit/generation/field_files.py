"""A generation in the files of the field, as BackendBench's generation of kernels leaves them.

For each operation `<op>_kernel_gen_summary.json` and `metadata.txt` in its folder, and for the whole
`OVERALL_SUMMARY.txt`. The kernels and their feedback lie there already. Keys are the field's; null
where there is no number. profkit's own are `kept` (which of several correct kernels an evaluation takes),
`speedup_low`, `speedup_high` and `speedup_word`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from profkit.analysis.generation import generation_scores, is_correct, kept_attempt
from profkit.core.codec import to_plain_data
from profkit.core.formatting import plural
from profkit.core.types import Attempt, AttemptStatus, GenerationDocument, OperationAttempts
from profkit.reporting.views.kernels.cases import speedup_text
from profkit.reporting.views.kernels.generation import (
    STOPPED,
    asked_model,
    head_line,
)

OVERALL_SUMMARY = "OVERALL_SUMMARY.txt"
_UNLOADED: tuple[AttemptStatus, ...] = ("load-error", "no-code", "no-answer")


def field_files(document: GenerationDocument) -> Mapping[str, str]:
    """The text of each file, by its path below the generation's folder."""
    files = {}
    for operation in document.operations:
        name = operation.folder
        files[f"{name}/{name}_kernel_gen_summary.json"] = _summary_rows(operation)
        files[f"{name}/metadata.txt"] = _metadata(document, operation)
    files[OVERALL_SUMMARY] = _overall_summary(document)
    return files


def _summary_rows(operation: OperationAttempts) -> str:
    kept = kept_attempt(operation)
    rows = [_summary_row(attempt, attempt is kept) for attempt in operation.attempts]
    return json.dumps(to_plain_data(rows), indent=2, allow_nan=False) + "\n"


def _summary_row(attempt: Attempt, kept: bool) -> dict[str, Any]:
    speedup = attempt.speedup
    return {
        "attempt": attempt.number,
        "kernel_file": PurePosixPath(attempt.file).name,
        "compilation_error": attempt.reason or attempt.status if attempt.status in _UNLOADED else None,
        "overall_speedup": speedup.median if speedup is not None else None,
        "correctness_score": attempt.passed / attempt.tests if attempt.tests else 0.0,
        "is_correct": is_correct(attempt),
        "kept": kept,
        **{f"speedup_{name}": getattr(speedup, name, None) for name in ("low", "high", "word")},
    }


def _kept_text(kept: Attempt | None) -> str:
    if kept is None:
        return "none is correct"
    return f"attempt {kept.number}, {PurePosixPath(kept.file).name}, {_speed_text(kept)}"


def _speed_text(attempt: Attempt) -> str:
    if attempt.speedup is None:
        return "not timed"
    return f"{speedup_text(attempt.speedup)} as fast as PyTorch"


def _metadata(document: GenerationDocument, operation: OperationAttempts) -> str:
    """Lines of `name: value`."""
    kept = kept_attempt(operation)
    facts = {
        "operation": operation.operation,
        "function": f"{operation.folder}_kernel_impl",
        "suite": document.suite,
        "dtype": document.dtype,
        "language": document.language,
        "device": document.device,
        "model": asked_model(document),
        "run": document.name,
        "started": document.started,
        **{f"version {name}": version for name, version in document.versions.items()},
        "attempts": len(operation.attempts),
        "kept": PurePosixPath(kept.file).name if kept is not None else "none",
        "stopped": operation.stopped or "not yet",
    }
    return "".join(f"{name}: {value}\n" for name, value in facts.items() if value not in ("", None))


def _overall_summary(document: GenerationDocument) -> str:
    """The whole in some lines, and one for each operation."""
    lines = [
        f"Generation: {document.name}",
        f"Model: {asked_model(document)}",
        f"Suite: {document.suite}{', ' + document.dtype if document.dtype else ''}",
        f"Device: {document.device}",
        f"Started: {document.started}",
        f"Complete: {'yes' if document.complete else 'no'}",
        "",
        f"{head_line(document, generation_scores(document))}.",
        "",
        "Operations:",
    ]
    width = max((len(operation.operation) for operation in document.operations), default=0)
    for operation in document.operations:
        kept = _kept_text(kept_attempt(operation))
        lines.append(
            f"  {operation.operation:<{width}}  {kept}; {plural(len(operation.attempts), 'attempt')}; "
            f"{STOPPED[operation.stopped]}"
        )
    lines += ["", *(f"Note: {note}" for note in document.notes)]
    return "\n".join(lines).rstrip() + "\n"
