"""The request of a generation, and what is stored of it: the request, the model, the attempts."""

from __future__ import annotations

import re
import secrets
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

from profkit.analysis.generation import best_attempt
from profkit.core import codec
from profkit.core.codec import short_repr
from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.types import (
    Attempt,
    Fact,
    GenerationDocument,
    GenerationLimits,
    OperationAttempts,
    StopReason,
)
from profkit.execution import journal as journals
from profkit.execution.journal import Journal, JournalContents, JournalFormat
from profkit.generation.prompt import LANGUAGES
from profkit.kernels.devices import choose_device
from profkit.kernels.evaluation.request import SEED_BITS, JudgeSettings

DEFAULT_FOLDER = Path("generated_kernels")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "--language": tuple(LANGUAGES),
    "--profile-depth": ("none", "gate", "standard", "full"),
}
MAX_AT_ONCE = 64
COMPARING_SECONDS = 2.0  # of timing a test: attempts are compared, and the last one is measured again
FILE = "attempts.jsonl"
FORMAT = JournalFormat(
    "profkit.generation-journal/5", "generation", "profkit generate", FILE, "attempt", Attempt
)
_STOPPED = "stopped "  # before the operation: a note why it has no further attempt
_NEW = "another --run-id begins a new one"


@dataclass(frozen=True)
class GenerationOptions:
    """The options of a new generation, as they were typed, beside those of its judge; empty for the default."""

    language: str = ""
    profile_depth: str = ""
    at_once: int = 4
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    output: Path = DEFAULT_FOLDER
    run_id: str = ""


@dataclass(frozen=True)
class GenerationRequest:
    """A generation that can be run. `settings` are those of the judge.

    `at_once`: operations that are worked on at the same time; the judge tests one of them.
    """

    settings: JudgeSettings
    folder: Path
    language: str
    profile_depth: str = "standard"
    at_once: int = 4
    limits: GenerationLimits = field(default_factory=GenerationLimits)
    command: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Return the run id."""
        return self.folder.name


@dataclass(frozen=True)
class AskedModel:
    """Which model is asked and how, without anything secret: enough to ask it again.

    `server`: host and port, for people. `base_url` is empty if it holds a name or password.
    """

    provider: str
    model: str
    server: str = ""
    base_url: str = ""
    key_env: str = ""
    command: str = ""
    answer_tokens: int = 16384


def make_request(
    settings: JudgeSettings, options: GenerationOptions, command: tuple[str, ...]
) -> GenerationRequest:
    """Make a new generation of settings whose `device` is as typed; its folder, below `output`, is not made yet.

    Raises UsageError for what makes no sense or a folder that exists, MachineError if there is no such device.
    """
    if options.run_id and not re.fullmatch(r"[\w][\w.+-]{0,99}", options.run_id):
        raise UsageError(
            f"--run-id {options.run_id!r} cannot be the name of a folder", "--run-id relu-triton-1"
        )
    kind, _ = choose_device(settings.device, (), "this generation")
    device = "cuda:0" if kind == "cuda" else kind
    request = GenerationRequest(
        replace(settings, device=device, describe=True, seed=secrets.randbits(SEED_BITS)),
        options.output / (options.run_id or f"run_{datetime.now():%Y%m%d_%H%M%S}"),
        options.language or _usual_language(kind),
        options.profile_depth or ("standard" if kind == "cuda" else "gate"),
        options.at_once,
        options.limits,
        command,
    )
    check_request(request)
    check_limits(request.limits)
    if (folder := request.folder).exists():
        raise UsageError(
            f"{folder} is there already",
            f"profkit generate --resume {shlex.quote(str(folder))}, or another --run-id",
        )
    return request


def check_request(request: GenerationRequest) -> None:
    """Raise UsageError for what makes no sense, from options or from somebody's folder."""
    values = request.language, request.profile_depth
    for (option, choices), value in zip(_WORDS.items(), values, strict=True):
        if value not in choices:
            raise UsageError(f"{option} {value!r} is none of {', '.join(choices)}", f"{option} {choices[-1]}")
    if not 1 <= request.at_once <= MAX_AT_ONCE:
        raise UsageError(f"--at-once {request.at_once} is not from 1 to {MAX_AT_ONCE}", "--at-once 4")


def check_limits(limits: GenerationLimits) -> None:
    """Raise UsageError for limits that make no sense."""
    if limits.attempts < 1:
        raise UsageError(f"--max-attempts {limits.attempts} leaves nothing to do", "--max-attempts 5")
    if limits.tokens is not None and limits.tokens < 1:
        raise UsageError(f"--max-tokens {limits.tokens} leaves nothing to do", "--max-tokens 200000")


def _usual_language(kind: str) -> str:
    """Return the default language: Triton on a GPU; on a processor C++ if it can be compiled, else PyTorch."""
    if kind == "cuda":
        return "triton"
    return "cpp" if shutil.which("g++") else "pytorch"


# ---------------------------------------------------------------- what is stored


def header_of(request: GenerationRequest, model: AskedModel) -> dict[str, Any]:
    """Return the journal header of a new generation."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {
        "started": started,
        "request": journals.plain_request(request),
        "model": codec.to_plain_data(model),
    }


def attempts_of(contents: JournalContents[Attempt], operation: str) -> tuple[Attempt, ...]:
    """Return the attempts at an operation in order, up to the first gap; later ones are made again."""
    attempts: list[Attempt] = []
    while (attempt := contents.outcomes.get(attempt_id(operation, number := len(attempts) + 1))) is not None:
        if attempt.number != number:
            break
        attempts.append(attempt)
    return tuple(attempts)


def attempt_id(operation: str, number: int) -> str:
    """Return the name of an attempt in the journal."""
    return f"{operation} {number}"


def note_session(journal: Journal[Attempt], limits: GenerationLimits) -> None:
    """Record that a call begins, maybe with other limits: operations that had stopped may continue."""
    stops = dict.fromkeys(name for name in journal.contents.about if name.startswith(_STOPPED))
    journal.note(**stops, limits=codec.to_plain_data(limits))


def note_stop(journal: Journal[Attempt], operation: str, reason: StopReason, why: Fact | None = None) -> None:
    """Record that the operation has no further attempt."""
    journal.note(**{_STOPPED + operation: [reason, codec.to_plain_data(why)]})


def read_generation(folder: Path) -> tuple[GenerationRequest, AskedModel, GenerationDocument]:
    """Read what `folder` holds: the request, the model, and what is known so far. Raises UnreadableReport."""
    contents = _read(folder)
    request = journals.read_request(folder, FORMAT, GenerationRequest, contents)
    if (limits := contents.about.get("limits")) is not None:  # of the last call
        request = replace(request, limits=codec.from_plain_data(GenerationLimits, limits, "limits"))
    try:
        check_request(request)
    except ProfkitError as error:
        raise UnreadableReport(f"{folder / FILE}, line 1: {error.message}", _NEW) from error
    return request, _model_of(contents), make_document(request, contents, contents.seconds)


def _model_of(contents: JournalContents[Attempt]) -> AskedModel:
    return codec.from_plain_data(AskedModel, contents.header.get("model"), "model")


def make_document(
    request: GenerationRequest, contents: JournalContents[Attempt], seconds: float
) -> GenerationDocument:
    """Build the document from a journal: operations in the order of the suite. Raises UnreadableReport."""
    about, settings, model = contents.about, request.settings, _model_of(contents)
    folders = codec.from_plain_data(dict[str, str], about.get("folders", {}), "folders")
    operations = tuple(_operation(contents, name, folder) for name, folder in folders.items())
    attempts = [attempt for operation in operations for attempt in operation.attempts]
    return GenerationDocument(
        started=str(contents.header.get("started", "")),
        name=request.name,
        provider=model.provider,
        model=model.model,
        server=model.server,
        suite=settings.suite,
        device=str(about.get("device", "unknown")),
        language=request.language,
        operations=operations,
        limits=request.limits,
        command=request.command,
        dtype=settings.dtype,
        floor=settings.timing.floor,
        versions=codec.from_plain_data(dict[str, str], about.get("versions") or {}, "versions"),
        input_tokens=sum(max(0, attempt.input_tokens or 0) for attempt in attempts),
        output_tokens=sum(max(0, attempt.output_tokens or 0) for attempt in attempts),
        seconds=seconds,
        complete=bool(operations)
        and all(operation.stopped not in ("", "interrupted") for operation in operations),
    )


def _operation(contents: JournalContents[Attempt], name: str, folder: str) -> OperationAttempts:
    attempts = attempts_of(contents, name)
    best = best_attempt(attempts)
    stopped: StopReason = ""
    reason: Fact | None = None
    match contents.about.get(_STOPPED + name):
        case [word, why]:
            stopped = word if word in get_args(StopReason) else "failed"
            reason = codec.from_plain_data(Fact, why, "stopped") if why else None
    number = best.number if best is not None else None
    return OperationAttempts(name, folder, attempts, number, stopped, reason)


def _read(folder: Path) -> JournalContents[Attempt]:
    """Read the journal and check its paths. Raises UnreadableReport.

    A user or a kernel may have changed it, and must not choose what a prompt contains or what is written.
    """
    contents = journals.read_journal(folder, FORMAT)
    for attempt in contents.outcomes.values():
        for path in filter(None, (attempt.file, attempt.feedback, attempt.evaluation, attempt.profile)):
            _check_path(folder, path)
    for name in codec.from_plain_data(dict[str, str], contents.about.get("folders", {}), "folders").values():
        _check_path(folder, name, depth=1)
    return contents


def _check_path(folder: Path, path: str, *, depth: int | None = None) -> None:
    """Raise UnreadableReport for anything but a path below the folder; `depth`: how many names it must have."""
    names = path.split("/")
    if any(name in ("", ".", "..") or not name.isprintable() or "\\" in name for name in names) or (
        depth is not None and len(names) != depth
    ):
        raise UnreadableReport(
            f"{folder / FILE}: {short_repr(path)} is no path below the generation's folder", _NEW
        )
