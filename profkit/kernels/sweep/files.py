"""Files of users that register implementations.

They run where cases are measured, and once before that, to find out what they add: in a process of its own, since
one may print, crash, hang, or change what it finds.
"""

from __future__ import annotations

import runpy
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.files.regular import DOCUMENT_BYTES, check_regular
from profkit.core.files.temporary import TemporaryFolder
from profkit.core.types import Json
from profkit.execution.child import WorkerEnded
from profkit.execution.client import WorkerClient, WorkerCommand
from profkit.execution.job import Batch, Job
from profkit.execution.worker import SequentialHandler
from profkit.kernels.operations.registry import implementations as known_implementations
from profkit.kernels.operations.registry import register_names, registrations, unregister

START_SECONDS = 60.0
_lock = threading.Lock()
_added: dict[Path, set[tuple[str, str]]] = {}  # by each file, in this process


def run_file(path: Path) -> None:
    """Run it; what lies beside it can be imported, as where Python itself runs it. Raises what it raises."""
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    check_regular(path, DOCUMENT_BYTES)
    runpy.run_path(str(path))


def register_files(files: Iterable[Path]) -> tuple[str, ...]:
    """Run the files here; the names of what they add. Raises UsageError where one cannot be run, or adds none."""
    for file in (files := list(files)):  # a notebook runs them again and again
        unregister(_added.pop(file.resolve(), ()))
    before = set(known_implementations())
    for file in files:
        known = set(registrations())
        try:
            run_file(file)
        except UsageError:
            raise
        except FileNotFoundError as error:
            if Path(error.filename or "") == file or not file.exists():
                raise UsageError(f"{file} is not there", "--with FILE.py") from error
            raise _cannot_run(file, error) from error
        except (Exception, SystemExit) as error:
            raise _cannot_run(file, error) from error
        finally:
            _added[file.resolve()] = set(registrations()) - known
        if not _added[file.resolve()]:
            raise UsageError(
                f"{file} registers no implementation",
                'from profkit.sweep import implementation; @implementation("GELU", "mine")',
            )
    return tuple(name for name in known_implementations() if name not in before)


def inspect_files(files: Sequence[Path], timeout: float) -> tuple[str, ...]:
    """The names of what the files add, known here from now on; each has `timeout` seconds.

    Raises UsageError where one cannot be run, or adds none.
    """
    additions = [_registrations(file, timeout) for file in files]
    with _lock:  # two sweeps of one program may begin at once
        for file in files:
            unregister(_added.pop(file.resolve(), ()))
        before = set(known_implementations())
        for file, added in zip(files, additions, strict=True):
            register_names(added)
            _added[file.resolve()] = set(added)
        return tuple(name for name in known_implementations() if name not in before)


def run_and_list() -> SequentialHandler:
    """The handler of the process that runs a file."""
    return SequentialHandler(_list_registrations)


def _list_registrations(file: str) -> Json:
    try:
        register_files([Path(file)])
    except UsageError as error:
        return {"error": error.message, "fix": error.fix}
    return {"registered": [list(each) for each in registrations()]}


def _registrations(file: Path, timeout: float) -> list[tuple[str, str]]:
    """(operation, name) of what a process says that ran the file. Raises UsageError for how else it ended."""
    with TemporaryFolder() as folder:
        worker = WorkerClient(WorkerCommand(f"{__name__}:run_and_list", log=Path(folder, "log")))
        try:
            worker.open({}, START_SECONDS)
            *_, message = worker.run(Batch((Job("file", str(file)),)), timeout)
        except WorkerEnded as ended:
            raise UsageError(f"{file} cannot be run: {ended}", f"python {file}") from None
        finally:
            worker.close()
    value = message.get("value") or {"error": f"{file} cannot be run: {message.get('reason')}"}
    if "error" in value:
        raise UsageError(value["error"], value.get("fix"))
    return [(operation, name) for operation, name in value["registered"]]


def _cannot_run(file: Path, error: BaseException) -> UsageError:
    line = next(iter(str(error).splitlines()), "")
    at = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
    return UsageError(f"{file} cannot be run: {type(error).__name__}: {line}{at}", f"python {file}")
