"""The request for an evaluation, from the options of a command line, and how it is stored and read again."""

from __future__ import annotations

import secrets
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.core import codec
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.files.regular import read_bounded
from profkit.core.run_folder import create_run_folder
from profkit.core.types import EvaluationDocument, EvaluationTest, Fact, TestResult
from profkit.execution import journal as journals
from profkit.execution.journal import JournalContents, JournalFormat, plain_request
from profkit.kernels.devices import LONGEST, choose_device, choose_device_elsewhere, split_list
from profkit.kernels.evaluation.sources.source import SourceRequest
from profkit.kernels.evaluation.suites.suite import is_file

if TYPE_CHECKING:  # a judge has no use for it
    from profkit.kernels.campaign import Code

CODE_FILE = "FILE.py"  # an argument, and no option
WAIT_POLICY = "OMP_WAIT_POLICY"  # how OpenMP's threads wait for each other: busily, or asleep
SEED_BITS = 63
ARGUMENT_SEED_BITS = 31
DTYPES = ("float32", "float16", "bfloat16", "float64")


@dataclass(frozen=True)
class PairOptions:
    """How long to measure: at most `budget` seconds a test, until the interval's half-width is `precision`.

    `precision` and `floor` are shares; within `floor` of 1 a speed-up is SAME.
    """

    budget: float = 5.0
    precision: float = 0.02
    floor: float = 0.05


@dataclass(frozen=True)
class JudgeSettings:
    """The settings with which a judge starts, as plain data.

    `seed` makes the arguments; `threads` 0 is torch's default. `suite_path` is the trace of the suite, or the
    Python file whose name the suite has.
    """

    suite: str = "smoke"
    suite_path: str = ""
    source: SourceRequest = field(default_factory=lambda: SourceRequest("aten"))
    operations: tuple[str, ...] = ()
    only: tuple[str, ...] = ()  # ids of tests; none: all
    dtype: str = ""
    device: str = "cpu"
    correctness_only: bool = False
    describe: bool = False  # the judge says what the operations are, for whoever writes kernels of them
    threads: int = 0
    timeout: float = 60.0
    seed: int = 0
    timing: PairOptions = field(default_factory=PairOptions)

    def code(self, file_option: str = CODE_FILE) -> tuple[Code, ...]:
        """Return the users' code that this runs, by the options that name it on the command line."""
        option = {"file": file_option, "directory": "--kernels"}.get(self.source.kind)
        kernels = [(option, path) for path in self.source.paths] if option is not None else []
        return (*kernels, *((("--suite", self.suite_path),) if is_file(self.suite) else ()))

    def seed_of(self, test: str) -> int:
        """Return the seed for the arguments of the test with that id."""
        return zlib.crc32(f"{self.seed} {test}".encode()) & ((1 << ARGUMENT_SEED_BITS) - 1)


@dataclass(frozen=True)
class EvaluationRequest:
    """An evaluation that can be run. `command` is how it was typed; `gpus` are the devices that share it."""

    settings: JudgeSettings
    folder: Path
    backend: str
    name: str = "evaluation"
    command: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()


def make_request(
    settings: JudgeSettings,
    output: Path,
    *,
    gpus: str = "",
    name: str = "evaluation",
    command: tuple[str, ...] = (),
    elsewhere: bool = False,
) -> EvaluationRequest:
    """Make a new evaluation from settings whose `device` is as typed, in a new folder below `output`.

    It gets a seed of its own. `gpus` are separated by commas; `elsewhere` means on the devices of other places.
    Raises UsageError for settings that make no sense, MachineError where there is no such device or the folder
    cannot be made.
    """
    _check(settings)
    numbers = split_list(gpus)
    if elsewhere:
        kind, chosen = choose_device_elsewhere(settings.device, numbers)
    else:
        kind, chosen = choose_device(settings.device, numbers, "this evaluation")
    device = "cuda:0" if kind == "cuda" else kind  # a judge sees one device alone
    settings = replace(settings, device=device, seed=secrets.randbits(SEED_BITS))
    folder = create_run_folder(output, name, kind, datetime.now())
    backend = settings.source.kind
    return EvaluationRequest(settings, folder, backend, name, command, gpus=chosen)


def note_started(logs: Path, judge: int, test: str) -> None:
    """Note that the kernel of the test runs from now on: if the judge ends, the kernel may have ended it."""
    with suppress(OSError):
        (logs / f"started-{judge}").write_text(test, encoding="ascii")


def was_started(logs: Path, judge: int, test: str) -> bool:
    """Return whether the kernel of the test ran when the judge ended."""
    with suppress(OSError, ValueError):
        return read_bounded(logs / f"started-{judge}").decode() == test
    return False


def _check(options: JudgeSettings) -> None:
    """Check the settings. Raises UsageError for values out of range, MachineError on other systems than Linux."""
    if sys.platform != "linux":
        raise MachineError(
            "kernels can be evaluated on Linux alone: elsewhere no process reads the memory of another",
            "profkit sweep --with FILE.py compares kernels of your own here",
        )
    if options.dtype and options.dtype not in DTYPES:
        raise UsageError(f"there is no dtype called {options.dtype!r} here", f"--dtype {','.join(DTYPES)}")
    usual = JudgeSettings()
    for option, value, maximum, default in (
        ("--budget", options.timing.budget, LONGEST, usual.timing.budget),
        ("--timeout", options.timeout, LONGEST, usual.timeout),
        ("--precision", options.timing.precision, 0.5, usual.timing.precision),
        ("--floor", options.timing.floor, 0.5, usual.timing.floor),
    ):
        if not 0 < value <= maximum:
            raise UsageError(
                f"{option} {value:g} is not above 0 and at most {maximum:,.12g}", f"{option} {default:g}"
            )
    if not 0 <= options.threads <= 4096:
        raise UsageError(f"--threads {options.threads} is not a number of threads", "--threads 1")


# ---------------------------------------------------------------- its journal

FILE = "tests.jsonl"
FORMAT = JournalFormat(
    "profkit.evaluation-journal/4", "evaluation", "profkit evaluate", FILE, "test", TestResult
)
_OF_A_PROGRAM = ("source", "function")  # their text stands in the journal


def header_of(request: EvaluationRequest) -> dict[str, Any]:
    """Return the header of a new evaluation's journal."""
    started = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return {"started": started, "request": plain_request(request)}


def read_document(folder: Path) -> EvaluationDocument:
    """Read what the evaluation in `folder` knows so far. Raises UnreadableReport if there is none."""
    contents = journals.read_journal(folder, FORMAT)
    try:
        request = journals.read_request(folder, FORMAT, EvaluationRequest, contents)
        return make_document(request, contents, contents.seconds)
    except UnreadableReport as error:
        raise UnreadableReport(f"cannot read {folder / FILE}: {error.message}", error.fix) from error


def find_result(folder: Path, test: str) -> TestResult:
    """Return the result of the only test whose id begins with `test`.

    Raises UnreadableReport, and UsageError if there is none or more than one.
    """
    results = read_document(folder).results
    matching = [result for result in results if result.test.id.startswith(test)]
    if len(matching) != 1:
        some = ", ".join(result.test.id for result in results[:3])
        message = f"the evaluation in {folder} has {len(matching) or 'no'} tests that begin with {test}"
        raise UsageError(message, f"one of {some} ...")
    return matching[0]


def read_request(folder: Path) -> EvaluationRequest:
    """Read the request of the evaluation in `folder`. Raises UnreadableReport where it holds none."""
    return journals.read_request(folder, FORMAT, EvaluationRequest, journals.read_journal(folder, FORMAT))


def require_code(
    request: EvaluationRequest,
    named: Sequence[Code],
    line: str,
    *,
    file_option: str = CODE_FILE,
    needed: bool = True,
) -> None:
    """Raise UsageError where code that the evaluation's folder names would run (`needed`) and is not `named`.

    `line` is what was typed so far; `file_option` names a file of kernels there.
    """
    from profkit.kernels.campaign import require_named

    if needed and request.settings.source.kind in _OF_A_PROGRAM:
        raise UsageError(
            f"the kernels of {request.folder} are functions of a program, and are not run from the folder",
            "the program that called profkit.evaluation",
        )
    require_named(request.settings.code(file_option), named, line, needed=needed)


def tests_of(about: Mapping[str, Any]) -> tuple[EvaluationTest, ...]:
    """Return the tests that a judge has listed, in their order. Raises UnreadableReport."""
    return codec.from_plain_data(tuple[EvaluationTest, ...], about.get("tests", []), "tests")


def make_document(
    request: EvaluationRequest, contents: JournalContents[TestResult], seconds: float
) -> EvaluationDocument:
    """Build the document of all that a journal knows: results in the order of the tests.

    Raises UnreadableReport.
    """
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
        notes=codec.from_plain_data(tuple[Fact, ...], about.get("notes", []), "notes"),
        planned=len(tests),
        complete=bool(tests) and len(results) == len(tests),
        seconds=seconds,
    )
