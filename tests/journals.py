"""Journals as campaigns leave them, without anything being done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from profkit.core.codec import to_plain_data
from profkit.core.types import Attempt, CaseResult, SweepDocument, TestResult
from profkit.execution.journal import Journal, open_journal
from profkit.generation import request as generations
from profkit.generation.request import GenerationRequest
from profkit.kernels.evaluation import request as evaluations
from profkit.kernels.evaluation.request import EvaluationRequest
from profkit.kernels.sweep import request as sweeps
from profkit.kernels.sweep.request import SweepGrid, SweepRequest, TimingOptions

STARTED = "2026-01-01T00:00:00+00:00"
DEVICE = {
    "device": "a device",
    "versions": {"torch": "0"},
    "roofs": {"bandwidth": 1e10, "flops": 1e11},
}


def store_sweep(
    request: SweepRequest,
    results: Iterable[CaseResult],
    about: Mapping[str, Any] = DEVICE,
    started: str = STARTED,
) -> Path:
    """The journal of a sweep with these results; its path."""
    journal = open_journal(request.folder, sweeps.FORMAT, sweeps.header_of(request, started))
    journal.note(**about)
    for result in results:
        journal.settle(sweeps.case_id(result.point, result.implementation), result)
    journal.close()
    return journal.path


def store_sweep_document(
    folder: Path, document: SweepDocument, grid: SweepGrid, files: tuple[str, ...] = ()
) -> None:
    """The journal of a whole sweep of that grid."""
    about = {"device": document.device, "versions": document.versions, "roofs": to_plain_data(document.roofs)}
    request = SweepRequest(grid, folder, "cuda", files=files, timing=TimingOptions())
    store_sweep(request, document.results, about, document.started)


def store_evaluation(request: EvaluationRequest, results: Iterable[TestResult] = ()) -> Path:
    """The journal of an evaluation whose tests have these results; its path."""
    results = tuple(results)
    journal = open_journal(request.folder, evaluations.FORMAT, evaluations.header_of(request))
    if results:
        tests = [to_plain_data(result.test) for result in results]
        journal.note(device="a processor", versions={}, tests=tests)
    for result in results:
        journal.settle(result.test.id, result)
    journal.close()
    return journal.path


def open_generation(request: GenerationRequest, model: generations.AskedModel) -> Journal[Attempt]:
    """The journal of a generation, new or with another session."""
    header = generations.header_of(request, model)
    return open_journal(request.folder, generations.FORMAT, header)


def store_generation(
    request: GenerationRequest,
    model: generations.AskedModel,
    attempts: Mapping[str, Iterable[Attempt]],
    folders: Mapping[str, str],
) -> Path:
    """The journal of a generation with these attempts by operation; its path."""
    journal = open_generation(request, model)
    journal.note(device="a device", versions={"torch": "0"}, folders=dict(folders))
    for operation, made in attempts.items():
        for attempt in made:
            journal.settle(generations.attempt_id(operation, attempt.number), attempt)
    journal.close()
    return journal.path
