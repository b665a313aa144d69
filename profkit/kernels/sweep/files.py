"""Files of users that register implementations: they run where cases are measured, and before that for their names."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from profkit.core.errors import UsageError
from profkit.core.files.regular import DOCUMENT_BYTES, check_regular
from profkit.kernels.operations.registry import implementations, registrations, unregister

_added: dict[Path, set[tuple[str, str]]] = {}  # by each file, in this process


def run_file(path: Path) -> None:
    """Run it; what lies beside it can be imported, as where Python itself runs it. Raises what it raises."""
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    check_regular(path, DOCUMENT_BYTES)
    with redirect_stdout(sys.stderr):  # a document may be what is printed here
        runpy.run_path(str(path))


def register_files(files: Iterable[Path]) -> tuple[str, ...]:
    """Run the files here; the names of what they add. Raises UsageError where one cannot be run, or adds none."""
    for file in (files := list(files)):  # a notebook runs them again and again
        unregister(_added.pop(file.resolve(), ()))
    before = set(implementations())
    for file in files:
        known = set(registrations())
        if not file.exists():
            raise UsageError(f"{file} is not there", "--with FILE.py")
        try:
            run_file(file)
        except UsageError:
            raise
        except (Exception, SystemExit) as error:
            line = next(iter(str(error).splitlines()), "")
            said = f"{type(error).__name__}: {line}"
            raise UsageError(f"{file} cannot be run: {said}", f"python {file}") from error
        finally:
            _added[file.resolve()] = set(registrations()) - known
        if not _added[file.resolve()]:
            raise UsageError(
                f"{file} registers no implementation",
                'from profkit.sweep import implementation; @implementation("GELU", "mine")',
            )
    return tuple(name for name in implementations() if name not in before)
