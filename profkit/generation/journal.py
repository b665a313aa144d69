"""The journal of a generation: what was asked for, every attempt as it came, and the document that is made of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, get_args

from profkit.analysis.generation import best_attempt
from profkit.core import codec
from profkit.core.codec import short_repr
from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.types import Attempt, GenerationDocument, GenerationLimits, OperationAttempts, StopReason
from profkit.execution import journal as files
from profkit.generation.request import GenerationRequest, check_at_once, check_word, read_until
from profkit.kernels.evaluation.request import JudgeSettings

FORMAT = files.JournalFormat("profkit.generation-journal/1", "generation", "profkit generate")
FILE = "attempts.jsonl"
_PLAIN = ("language", "until", "profile_depth", "at_once")  # of a request: texts and numbers


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


@dataclass
class GenerationContents:
    """What a journal holds. `folders`: by operation the name of its folder. `sessions`: the seconds of each call."""

    header: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)
    attempts: dict[str, list[Attempt]] = field(default_factory=dict)
    stopped: dict[str, tuple[StopReason, str]] = field(default_factory=dict)
    sessions: list[float] = field(default_factory=lambda: [0.0])


class GenerationJournal:
    """The journal of one generation, open to be added to by several threads."""

    def __init__(self, file: files.JournalFile, contents: GenerationContents) -> None:
        self.contents = contents
        self.changes = 0  # since it was opened
        self._file, self._lock, self._start = file, threading.Lock(), monotonic()

    def describe(self, about: Mapping[str, Any], folders: Mapping[str, str]) -> None:
        """Store what it runs on, and the operations. Raises MachineError where the disk takes no more."""
        self._append({"about": dict(about), "folders": dict(folders)})
        self.contents.about, self.contents.folders = dict(about), dict(folders)

    def add(self, operation: str, attempt: Attempt) -> None:
        """Store an attempt. Raises MachineError like `describe`."""
        self._append({"operation": operation, "attempt": codec.to_plain_data(attempt)})
        self.contents.attempts.setdefault(operation, []).append(attempt)

    def stop(self, operation: str, reason: StopReason, why: str = "") -> None:
        """Store why the operation has no further attempt. Raises MachineError like `describe`."""
        self._append({"operation": operation, "stopped": reason, "why": why})
        self.contents.stopped[operation] = (reason, why)

    def document(self) -> GenerationDocument:
        """All that is known now."""
        with self._lock:
            return make_document(self.contents, sum(self.contents.sessions) + monotonic() - self._start)

    def close(self) -> None:
        """Store how long this session took; no more is added."""
        try:
            self._append({"seconds": round(monotonic() - self._start, 3)})
        finally:
            self._file.close()

    def begin_session(self, request: GenerationRequest) -> None:
        """Another call goes on, maybe with other limits. Raises MachineError like `describe`."""
        limits = codec.to_plain_data(request.limits)
        self._append({"session": len(self.contents.sessions) + 1, "limits": limits})
        self.contents.header["limits"] = limits
        self.contents.sessions.append(0.0)
        self.contents.stopped.clear()

    def _append(self, entry: Mapping[str, Any]) -> None:
        with self._lock:
            self._file.append({**entry, "at": round(monotonic() - self._start, 3)})
            self.changes += 1


def create_journal(request: GenerationRequest, model: AskedModel, started: str) -> GenerationJournal:
    """A new journal. Raises MachineError where it cannot be made."""
    header = {
        "started": started,
        "name": request.name,
        "model": codec.to_plain_data(model),
        "settings": codec.to_plain_data(request.settings),
        "limits": codec.to_plain_data(request.limits),
        **{name: getattr(request, name) for name in _PLAIN},
        "gpus": list(request.gpus),
        "command": list(request.command),
    }
    return GenerationJournal(files.create(request.folder / FILE, FORMAT, header), GenerationContents(header))


def reopen_journal(request: GenerationRequest) -> GenerationJournal:
    """A journal that was begun before, with a new session by the limits of the request.

    Raises UnreadableReport, UsageError where another generation writes it now, MachineError where it cannot be written.
    """
    path = request.folder / FILE
    file, raw = files.reopen(path, FORMAT)
    try:
        journal = GenerationJournal(file, _contents(path, raw))
        journal.begin_session(request)
    except ProfkitError:
        file.close()
        raise
    return journal


def read_request(folder: Path) -> GenerationRequest:
    """The generation that `folder` holds, as it was asked for. Raises UnreadableReport where it holds none."""
    path = folder / FILE
    header = _contents(path, files.read(path, FORMAT)).header
    try:
        request = GenerationRequest(
            codec.from_plain_data(JudgeSettings, header.get("settings"), "settings"),
            folder,
            codec.from_plain_data(str, header.get("language"), "language"),
            read_until(header.get("until")),
            codec.from_plain_data(str, header.get("profile_depth"), "profile_depth"),
            codec.from_plain_data(int, header.get("at_once"), "at_once"),
            codec.from_plain_data(GenerationLimits, header.get("limits"), "limits"),
            codec.from_plain_data(tuple[str, ...], header.get("gpus", []), "gpus"),
            codec.from_plain_data(tuple[str, ...], header.get("command", []), "command"),
        )
        check_word("--language", request.language)
        check_word("--profile-depth", request.profile_depth)
        check_at_once(request.at_once)
        if not all(number.isascii() and number.isdigit() for number in request.gpus):
            raise UsageError(f"gpus {short_repr(' '.join(request.gpus))} are no numbers")
    except ProfkitError as error:
        raise UnreadableReport(
            f"{path}, line 1: {error.message}", "another --run-id begins a new one"
        ) from error
    return request


def read_document(folder: Path) -> GenerationDocument:
    """What the generation in `folder` knows so far. Raises UnreadableReport where there is none."""
    path = folder / FILE
    contents = _contents(path, files.read(path, FORMAT))
    return make_document(contents, sum(contents.sessions))


def read_model(folder: Path) -> AskedModel:
    """The model that was asked. Raises UnreadableReport."""
    path = folder / FILE
    return codec.from_plain_data(AskedModel, files.read(path, FORMAT).header.get("model"), "model")


def make_document(contents: GenerationContents, seconds: float) -> GenerationDocument:
    """The document of a journal: operations in the order of the suite."""
    header, about = contents.header, contents.about
    settings = codec.from_plain_data(JudgeSettings, header.get("settings"), "settings")
    model = codec.from_plain_data(AskedModel, header.get("model"), "model")
    operations = tuple(_operation(contents, name) for name in contents.folders)
    calls = [
        attempt.call for operation in operations for attempt in operation.attempts if not attempt.call.stored
    ]
    costs = [call.cost for call in calls if call.cost is not None]
    return GenerationDocument(
        started=str(header.get("started", "")),
        name=str(header.get("name", "")),
        provider=model.provider,
        model=model.model,
        server=model.server,
        suite=settings.suite,
        device=str(about.get("device", "unknown")),
        device_type=settings.device,
        language=str(header.get("language", "")),
        operations=operations,
        limits=codec.from_plain_data(GenerationLimits, header.get("limits", {}), "limits"),
        command=codec.from_plain_data(tuple[str, ...], header.get("command", []), "command"),
        dtype=settings.dtype,
        floor=settings.timing.floor,
        versions=codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        input_tokens=sum(max(0, call.input_tokens or 0) for call in calls),
        output_tokens=sum(max(0, call.output_tokens or 0) for call in calls),
        cost=sum(costs) if costs else None,
        seconds=seconds,
        complete=bool(operations)
        and all(operation.stopped not in ("", "interrupted") for operation in operations),
    )


def _operation(contents: GenerationContents, name: str) -> OperationAttempts:
    attempts = tuple(contents.attempts.get(name, ()))
    best = best_attempt(attempts)
    stopped, reason = contents.stopped.get(name, ("", ""))
    return OperationAttempts(
        name, contents.folders[name], attempts, best.number if best is not None else None, stopped, reason
    )


def _contents(path: Path, raw: files.JournalContents) -> GenerationContents:
    contents = GenerationContents(dict(raw.header))
    for number, body in raw.entries:
        try:
            _take(contents, body)
        except (ProfkitError, KeyError) as error:
            raise UnreadableReport(
                f"{path}, line {number}: {error}", f"delete line {number}: its attempt is made again"
            ) from error
    return contents


def _take(contents: GenerationContents, body: Mapping[str, Any]) -> None:
    if "attempt" in body:
        attempt = _checked_attempt(body["attempt"])
        attempts = contents.attempts.setdefault(str(body["operation"]), [])
        if attempt.number == len(attempts) + 1:  # one behind a line that was damaged is made again
            attempts.append(attempt)
    elif "stopped" in body:
        reasons: tuple[StopReason, ...] = get_args(StopReason)
        reason: StopReason = next((known for known in reasons if known == body["stopped"]), "failed")
        contents.stopped[str(body["operation"])] = (reason, str(body.get("why", "")))
    elif "folders" in body:
        contents.about = codec.from_plain_data(dict[str, Any], body["about"], "about")
        contents.folders = codec.from_plain_data(dict[str, str], body["folders"], "folders")
        for folder in contents.folders.values():
            _check_path(folder, depth=1)
    elif "session" in body:
        contents.sessions.append(0.0)
        contents.header["limits"] = body.get("limits")
        contents.stopped.clear()
    at = body.get("at")
    if codec.is_finite_number(at) and at >= 0:
        contents.sessions[-1] = max(contents.sessions[-1], float(at))


def _checked_attempt(data: object) -> Attempt:
    """An attempt whose files lie below the generation's folder."""
    attempt = codec.from_plain_data(Attempt, data, "attempt")
    for path in filter(None, (attempt.file, attempt.feedback, attempt.evaluation, attempt.profile)):
        _check_path(path)
    return attempt


def _check_path(path: str, *, depth: int | None = None) -> None:
    """Who changed a journal, by hand or by a kernel, decides neither what a prompt tells nor where files are written.

    `depth`: how many names it must have.
    """
    names = path.split("/")
    if any(name in ("", ".", "..") or not name.isprintable() or "\\" in name for name in names) or (
        depth is not None and len(names) != depth
    ):
        raise UnreadableReport(f"{short_repr(path)} is no path below the generation's folder")
