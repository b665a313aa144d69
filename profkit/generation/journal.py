"""What a generation has stored: its request, the model that was asked, and the document that its attempts make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

from profkit.analysis.generation import best_attempt
from profkit.core import codec
from profkit.core.codec import short_repr
from profkit.core.errors import ProfkitError, UnreadableReport
from profkit.core.types import Attempt, GenerationDocument, GenerationLimits, OperationAttempts, StopReason
from profkit.execution import journal as journals
from profkit.execution.journal import Journal, JournalContents, JournalFormat
from profkit.generation.request import GenerationRequest, check_request

FILE = "attempts.jsonl"
FORMAT = JournalFormat(
    "profkit.generation-journal/2", "generation", "profkit generate", FILE, "attempt", Attempt
)
_STOPPED = "stopped "  # before the operation: a note why it has no further attempt


@dataclass(frozen=True)
class AskedModel:
    """Which model is asked and how, without anything secret: enough to ask it again.

    `server`: host and port, for people. `base_url` is empty where it holds a name or password.
    """

    provider: str
    model: str
    server: str = ""
    base_url: str = ""
    key_env: str = ""
    command: str = ""
    answer_tokens: int = 16384
    temperature: float | None = None


def header_of(request: GenerationRequest, model: AskedModel) -> dict[str, Any]:
    """What the journal of a new generation says of it."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {
        "started": started,
        "request": journals.plain_request(request),
        "model": codec.to_plain_data(model),
    }


def attempts_of(contents: JournalContents[Attempt], operation: str) -> tuple[Attempt, ...]:
    """The attempts at an operation in their order; those behind one that is missing are made again."""
    found: list[Attempt] = []
    while (attempt := contents.outcomes.get(attempt_id(operation, number := len(found) + 1))) is not None:
        if attempt.number != number:
            break
        found.append(attempt)
    return tuple(found)


def attempt_id(operation: str, number: int) -> str:
    """The name of an attempt in the journal."""
    return f"{operation} {number}"


def note_session(journal: Journal[Attempt], limits: GenerationLimits) -> None:
    """A call begins, maybe with other limits: what had stopped may go on."""
    stops = dict.fromkeys(name for name in journal.contents.about if name.startswith(_STOPPED))
    journal.note(**stops, limits=codec.to_plain_data(limits))


def note_stop(journal: Journal[Attempt], operation: str, reason: StopReason, why: str = "") -> None:
    """The operation has no further attempt."""
    journal.note(**{_STOPPED + operation: [reason, why]})


def read_request(folder: Path) -> GenerationRequest:
    """The generation that `folder` holds, as it was asked for. Raises UnreadableReport where it holds none."""
    return _request_of(folder, _read(folder))


def read_model(folder: Path) -> AskedModel:
    """The model that was asked. Raises UnreadableReport."""
    return _model_of(_read(folder))


def read_document(folder: Path) -> GenerationDocument:
    """What the generation in `folder` knows so far. Raises UnreadableReport where there is none."""
    contents = _read(folder)
    return make_document(_request_of(folder, contents), contents, contents.seconds)


def _model_of(contents: JournalContents[Attempt]) -> AskedModel:
    return codec.from_plain_data(AskedModel, contents.header.get("model"), "model")


def _request_of(folder: Path, contents: JournalContents[Attempt]) -> GenerationRequest:
    request = journals.read_request(folder, FORMAT, GenerationRequest, contents)
    if (limits := contents.about.get("limits")) is not None:  # of the last call
        request = replace(request, limits=codec.from_plain_data(GenerationLimits, limits, "limits"))
    try:
        check_request(request)
    except ProfkitError as error:
        raise UnreadableReport(
            f"{folder / FILE}, line 1: {error.message}", "another --run-id begins a new one"
        ) from error
    return request


def make_document(
    request: GenerationRequest, contents: JournalContents[Attempt], seconds: float
) -> GenerationDocument:
    """All that a journal knows: operations in the order of the suite. Raises UnreadableReport."""
    about, settings, model = contents.about, request.settings, _model_of(contents)
    folders = codec.from_plain_data(dict[str, str], about.get("folders", {}), "folders")
    operations = tuple(_operation(contents, name, folder) for name, folder in folders.items())
    calls = [
        attempt.call for operation in operations for attempt in operation.attempts if not attempt.call.stored
    ]
    costs = [call.cost for call in calls if call.cost is not None]
    return GenerationDocument(
        started=str(contents.header.get("started", "")),
        name=request.name,
        provider=model.provider,
        model=model.model,
        server=model.server,
        suite=settings.suite,
        device=str(about.get("device", "unknown")),
        device_type=settings.device,
        language=request.language,
        operations=operations,
        limits=request.limits,
        command=request.command,
        dtype=settings.dtype,
        floor=settings.timing.floor,
        versions=codec.from_plain_data(dict[str, str], about.get("versions") or {}, "versions"),
        input_tokens=sum(max(0, call.input_tokens or 0) for call in calls),
        output_tokens=sum(max(0, call.output_tokens or 0) for call in calls),
        cost=sum(costs) if costs else None,
        seconds=seconds,
        complete=bool(operations)
        and all(operation.stopped not in ("", "interrupted") for operation in operations),
    )


def _operation(contents: JournalContents[Attempt], name: str, folder: str) -> OperationAttempts:
    attempts = attempts_of(contents, name)
    best = best_attempt(attempts)
    stopped, reason = _stop_of(contents.about, name)
    return OperationAttempts(
        name, folder, attempts, best.number if best is not None else None, stopped, reason
    )


def _stop_of(about: Mapping[str, Any], operation: str) -> tuple[StopReason, str]:
    match about.get(_STOPPED + operation):
        case [word, why]:
            reasons: tuple[StopReason, ...] = get_args(StopReason)
            return next((known for known in reasons if known == word), "failed"), str(why)
    return "", ""


def _read(folder: Path) -> JournalContents[Attempt]:
    """The journal. Who changed it, by hand or by a kernel, decides neither what a prompt tells nor what is written."""
    contents = journals.read_journal(folder, FORMAT)
    for attempt in contents.outcomes.values():
        for path in filter(None, (attempt.file, attempt.feedback, attempt.evaluation, attempt.profile)):
            _check_path(folder, path)
    for name in codec.from_plain_data(dict[str, str], contents.about.get("folders", {}), "folders").values():
        _check_path(folder, name, depth=1)
    return contents


def _check_path(folder: Path, path: str, *, depth: int | None = None) -> None:
    """Raises UnreadableReport for what is no path below the folder; `depth`: how many names it must have."""
    names = path.split("/")
    if any(name in ("", ".", "..") or not name.isprintable() or "\\" in name for name in names) or (
        depth is not None and len(names) != depth
    ):
        raise UnreadableReport(
            f"{folder / FILE}: {short_repr(path)} is no path below the generation's folder",
            "another --run-id begins a new one",
        )
