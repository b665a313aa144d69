"""The journal of an evaluation: its tests, the results as they came, and the document that is made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.core.types import EvaluationDocument, EvaluationTest, TestResult
from profkit.execution import journal as files
from profkit.kernels.evaluation.request import EvaluationRequest, JudgeSettings
from profkit.kernels.named_code import FILE as CODE_FILE
from profkit.kernels.named_code import Code, require_named

FORMAT = files.JournalFormat("profkit.evaluation-journal/1", "evaluation", "profkit evaluate")
FILE = "tests.jsonl"
_OF_A_PROGRAM = ("source", "function", "functions")  # their text stands in the journal


@dataclass
class EvaluationContents:
    """What a journal holds. `about`: the tests and what they run on. `sessions` are the seconds of each call."""

    header: dict[str, Any]
    about: dict[str, Any] = field(default_factory=dict)
    results: dict[str, TestResult] = field(default_factory=dict)
    sessions: list[float] = field(default_factory=lambda: [0.0])
    _listed: Any = field(default=None, repr=False)  # what `_tests` were read from
    _tests: tuple[EvaluationTest, ...] = field(default=(), repr=False)

    @property
    def tests(self) -> tuple[EvaluationTest, ...]:
        """All tests of the evaluation, in their order."""
        listed = self.about.get("tests", [])
        if listed is not self._listed:
            self._tests = codec.from_plain_data(tuple[EvaluationTest, ...], listed, "tests")
            self._listed = listed
        return self._tests


class EvaluationJournal:
    """The journal of one evaluation, open to be added to. A test that is added twice has its later result."""

    def __init__(self, file: files.JournalFile, contents: EvaluationContents) -> None:
        self.contents = contents
        self.seconds_before = sum(contents.sessions)
        self._file = file

    def add(self, result: TestResult, at: float) -> None:
        """Store a result, `at` seconds into this session. Raises MachineError where the disk takes no more."""
        self._file.append({"result": codec.to_plain_data(result), "at": round(at, 3)})
        self.contents.results[result.test.id] = result

    def describe(self, about: Mapping[str, Any]) -> None:
        """Store the tests, and what they run on. Raises MachineError like `add`."""
        self._file.append({"about": dict(about)})
        self.contents.about = dict(about)

    def begin_session(self) -> None:
        """Another call of the evaluation goes on with it. Raises MachineError like `add`."""
        self._file.append({"session": len(self.contents.sessions) + 1})

    def end_session(self, seconds: float) -> None:
        """Store how long this call took. Raises MachineError like `add`."""
        self._file.append({"at": round(seconds, 3)})

    def close(self) -> None:
        """No more is added."""
        self._file.close()


def create_journal(request: EvaluationRequest, started: str) -> EvaluationJournal:
    """A new journal. Raises MachineError where it cannot be made."""
    header = {
        "started": started,
        "name": request.name,
        "backend": request.backend,
        "command": list(request.command),
        "settings": codec.to_plain_data(request.settings),
        "gpus": list(request.gpus),
        "serial": request.serial,
    }
    path = request.folder / FILE
    return EvaluationJournal(files.create(path, FORMAT, header), EvaluationContents(header))


def reopen_journal(folder: Path) -> EvaluationJournal:
    """A journal that was begun before, with a new session.

    Raises UnreadableReport where it is none, UsageError where another evaluation writes it now, and MachineError where
    it cannot be written to.
    """
    path = folder / FILE
    file, raw = files.reopen(path, FORMAT)
    try:
        contents = _contents(path, raw)
    except ProfkitError:
        file.close()
        raise
    journal = EvaluationJournal(file, contents)
    journal.begin_session()
    return journal


def read_document(folder: Path) -> EvaluationDocument:
    """What the evaluation in `folder` knows so far. Raises UnreadableReport where there is none."""
    path = folder / FILE
    contents = _contents(path, files.read(path, FORMAT))
    return make_document(contents, sum(contents.sessions))


def read_request(folder: Path, *, again: bool = False) -> EvaluationRequest:
    """The evaluation that `folder` holds, as it was asked for. Raises UnreadableReport where it holds none."""
    path = folder / FILE
    header = files.read(path, FORMAT).header
    try:
        settings = codec.from_plain_data(JudgeSettings, header.get("settings"), "settings")
    except ProfkitError as error:
        raise UnreadableReport(
            f"{path}, line 1: {error.message}", "--output FOLDER begins a new one"
        ) from error
    command = codec.from_plain_data(tuple[str, ...], header.get("command", []), "command")
    return EvaluationRequest(
        settings,
        folder,
        str(header.get("backend", "")),
        str(header.get("name", "evaluation")),
        command,
        again,
        codec.from_plain_data(tuple[str, ...], header.get("gpus", []), "gpus"),
        header.get("serial") is True,
    )


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


def make_document(contents: EvaluationContents, seconds: float) -> EvaluationDocument:
    """The document of a journal: results in the order of the tests."""
    header, about = contents.header, contents.about
    settings = codec.from_plain_data(JudgeSettings, header.get("settings"), "settings")
    tests = contents.tests
    results = tuple(contents.results[test.id] for test in tests if test.id in contents.results)
    return EvaluationDocument(
        started=str(header.get("started", "")),
        suite=settings.suite,
        backend=str(header.get("backend", "")),
        device=str(about.get("device", "unknown")),
        device_type=settings.device,
        kernels=settings.source.names,
        results=results,
        name=str(header.get("name", "evaluation")),
        command=codec.from_plain_data(tuple[str, ...], header.get("command", []), "command"),
        dtype=settings.dtype,
        floor=settings.timing.floor,
        versions=codec.from_plain_data(dict[str, str], about.get("versions", {}), "versions"),
        notes=codec.from_plain_data(tuple[str, ...], about.get("notes", []), "notes"),
        planned=len(tests),
        complete=bool(tests) and len(results) == len(tests),
        seconds=seconds,
        serial=header.get("serial") is True,
    )


def _contents(path: Path, raw: files.JournalContents) -> EvaluationContents:
    contents = EvaluationContents(raw.header)
    for number, body in raw.entries:
        try:
            if "result" in body:
                result = codec.from_plain_data(TestResult, body["result"])
                contents.results[result.test.id] = result
            elif isinstance(body.get("about"), dict):
                contents.about = body["about"]
            elif "session" in body:
                contents.sessions.append(0.0)
        except ProfkitError as error:
            raise UnreadableReport(
                f"{path}, line {number}: {error.message}", f"delete line {number}: its test is done again"
            ) from error
        contents.sessions[-1] = max(contents.sessions[-1], _seconds(body.get("at")))
    return contents


def _seconds(value: object) -> float:
    with suppress(OverflowError):
        if isinstance(value, (int, float)) and 0 <= value < float("inf"):
            return float(value)
    return 0.0
