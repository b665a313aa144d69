"""What an evaluation has stored: the request it began with, its tests, and the document that the outcomes make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import UnreadableReport, UsageError
from profkit.core.types import EvaluationDocument, EvaluationTest, TestResult
from profkit.execution import journal as journals
from profkit.execution.journal import JournalContents, JournalFormat, plain_request
from profkit.kernels.campaign import Code, require_named
from profkit.kernels.evaluation.request import CODE_FILE, EvaluationRequest

FILE = "tests.jsonl"
FORMAT = JournalFormat(
    "profkit.evaluation-journal/2", "evaluation", "profkit evaluate", FILE, "test", TestResult
)
_OF_A_PROGRAM = ("source", "function", "functions")  # their text stands in the journal


def header_of(request: EvaluationRequest) -> dict[str, Any]:
    """What the journal of a new evaluation says of it."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"started": started, "request": plain_request(request)}


def read_document(folder: Path) -> EvaluationDocument:
    """What the evaluation in `folder` knows so far. Raises UnreadableReport where there is none."""
    contents = journals.read_journal(folder, FORMAT)
    try:
        return make_document(_request_of(folder, contents), contents, contents.seconds)
    except UnreadableReport as error:
        raise UnreadableReport(f"cannot read {folder / FILE}: {error.message}", error.fix) from error


def read_request(folder: Path, *, again: bool = False) -> EvaluationRequest:
    """The evaluation that `folder` holds, as it was asked for. Raises UnreadableReport where it holds none."""
    return _request_of(folder, journals.read_journal(folder, FORMAT), again=again)


def _request_of(
    folder: Path, contents: JournalContents[TestResult], *, again: bool = False
) -> EvaluationRequest:
    return journals.read_request(folder, FORMAT, EvaluationRequest, contents, again=again)


def require_code(
    request: EvaluationRequest,
    named: Sequence[Code],
    line: str,
    *,
    file_option: str = CODE_FILE,
    needed: bool = True,
) -> None:
    """Raise UsageError where code that the folder of the evaluation names would run (`needed`) and is not `named`.

    `line` is what was typed so far; `file_option` names a file of kernels there.
    """
    if needed and request.settings.source.kind in _OF_A_PROGRAM:
        raise UsageError(
            f"the kernels of {request.folder} are functions of a program, and are not run from the folder",
            "the program that called profkit.evaluation",
        )
    require_named(request.settings.code(file_option), named, line, needed=needed)


def tests_of(about: Mapping[str, Any]) -> tuple[EvaluationTest, ...]:
    """The tests that a judge has listed, in their order. Raises UnreadableReport."""
    return codec.from_plain_data(tuple[EvaluationTest, ...], about.get("tests", []), "tests")


def make_document(
    request: EvaluationRequest, contents: JournalContents[TestResult], seconds: float
) -> EvaluationDocument:
    """All that a journal knows: results in the order of the tests. Raises UnreadableReport."""
    settings, about, tests = request.settings, contents.about, tests_of(contents.about)
    results = tuple(contents.outcomes[test.id] for test in tests if test.id in contents.outcomes)
    return EvaluationDocument(
        started=str(contents.header.get("started", "")),
        suite=settings.suite,
        backend=request.backend,
        device=str(about.get("device", "unknown")),
        device_type=settings.device,
        kernels=settings.source.names,
        results=results,
        name=request.name,
        command=request.command,
        dtype=settings.dtype,
        floor=settings.timing.floor,
        versions=codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        notes=codec.from_plain_data(tuple[str, ...], about.get("notes", []), "notes"),
        planned=len(tests),
        complete=bool(tests) and len(results) == len(tests),
        seconds=seconds,
        serial=request.serial,
    )
