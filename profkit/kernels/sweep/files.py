"""Files of users that register implementations. They run where cases are measured, and once before that, to be asked
what they add: in a process of its own, since one may print, crash, hang, or change what it finds.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from profkit.core.errors import MachineError, UsageError
from profkit.core.process import describe_status
from profkit.kernels.operations.registry import announce, forget, registered
from profkit.kernels.operations.registry import implementations as known_implementations
from profkit.kernels.sweep import leash

TAIL = 4096
_ROOT = str(Path(__file__).resolve().parents[3])
_BOOT = (
    "import sys; sys.path[:] = [path for path in sys.path if path] + [sys.argv[1]]; "
    "from profkit.kernels.sweep.files import answer; answer(sys.argv[2:])"
)
_lock = threading.Lock()
_added: dict[Path, set[tuple[str, str]]] = {}  # by each file, in this process


def run_file(path: Path) -> None:
    """Run it; what lies beside it can be imported, as where Python itself runs it. Raises what it raises."""
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    runpy.run_path(str(path))


def own_modules_last() -> None:
    """The working directory behind everything else: a file in it that is called torch.py is not torch."""
    with suppress(OSError):  # a directory that is gone
        here = str(Path.cwd())
        sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]


def register(files: Iterable[Path]) -> tuple[str, ...]:
    """Run the files here; the names of what they add. Raises UsageError where one cannot be run, or adds none."""
    for file in (files := list(files)):  # a notebook runs them again and again
        forget(_added.pop(file.resolve(), ()))
    before = set(known_implementations())
    for file in files:
        known = set(registered())
        try:
            run_file(file)
        except UsageError:
            raise
        except FileNotFoundError as error:
            if Path(error.filename or "") == file or not file.exists():
                raise UsageError(f"{file} is not there", "--with FILE.py") from error
            raise _cannot(file, error) from error
        except (Exception, SystemExit) as error:
            raise _cannot(file, error) from error
        finally:
            _added[file.resolve()] = set(registered()) - known
        if not _added[file.resolve()]:
            raise UsageError(
                f"{file} registers no implementation",
                'from profkit.sweep import implementation; @implementation("GELU", "mine")',
            )
    return tuple(name for name in known_implementations() if name not in before)


def look_into(files: Sequence[Path], timeout: float) -> tuple[str, ...]:
    """The names of what the files add, known here from now on; each has `timeout` seconds.

    Raises UsageError where one cannot be run, or adds none.
    """
    told = [
        [(str(operation), str(name)) for operation, name in _ask(one, timeout)["registered"]] for one in files
    ]
    with _lock:  # two sweeps of one program may begin at once
        for file in files:
            forget(_added.pop(file.resolve(), ()))
        before = set(known_implementations())
        for file, found in zip(files, told, strict=True):
            announce(found)
            _added[file.resolve()] = set(found)
        return tuple(name for name in known_implementations() if name not in before)


def _ask(file: Path, timeout: float) -> dict[str, Any]:
    """What a process says that ran the file. Raises UsageError for what it says instead, or how it ended."""
    fix = f"python {file}"
    try:
        with tempfile.TemporaryFile() as answers, tempfile.TemporaryFile() as words:
            argv = [sys.executable, "-c", _BOOT, _ROOT, str(os.getpid()), str(file)]
            child = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=answers, stderr=words, start_new_session=True
            )
            try:
                status = child.wait(timeout)
            except subprocess.TimeoutExpired:
                raise UsageError(f"{file} cannot be run: it took longer than {timeout:g} s", fix) from None
            finally:
                with suppress(OSError):
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()
            said, last = (_end_of(one) for one in (answers, words))
    except OSError as error:
        raise MachineError(f"{file} cannot be run in a process of its own: {error.strerror}") from error
    with suppress(ValueError):
        found = json.loads(said)
        if isinstance(found, dict) and "registered" in found:
            return found
        if isinstance(found, dict) and "error" in found:
            raise UsageError(str(found["error"]), found.get("fix"))
    line = last.strip().splitlines()[-1:]
    raise UsageError(
        f"{file} cannot be run: its process {describe_status(status)}{''.join(f': {w[:300]}' for w in line)}",
        fix,
    )


def _end_of(file: Any) -> str:
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(max(0, size - TAIL) if size > 1 << 20 else 0)
    text: bytes = file.read()
    return text.decode(errors="replace")


def answer(arguments: Sequence[str]) -> None:
    """In that process: run the file, and say on what was its standard output what it adds; its prints go elsewhere."""
    leash.end_with(int(arguments[0]))
    own_modules_last()
    answers = os.dup(1)
    os.dup2(2, 1)
    try:
        register([Path(arguments[1])])
        found: dict[str, object] = {"registered": list(registered())}
    except UsageError as error:
        found = {"error": error.message, "fix": error.fix}
    rest = (json.dumps(found) + "\n").encode()
    while rest:
        rest = rest[os.write(answers, rest) :]
    os._exit(0)  # a thread that it started keeps nobody waiting


def _cannot(file: Path, error: BaseException) -> UsageError:
    line = next(iter(str(error).splitlines()), "")
    at = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
    return UsageError(f"{file} cannot be run: {type(error).__name__}: {line}{at}", f"python {file}")
