"""Files of users that register implementations: run in the sweep, so that a slip shows early, and in its workers."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from profkit.errors import UsageError
from profkit.operations.registry import forget, registered
from profkit.operations.registry import implementations as known_implementations

_added: dict[Path, set[tuple[str, str]]] = {}  # by each file, in this process


def run_file(path: Path) -> None:
    """Run it; what lies beside it can be imported, as where Python itself runs it. Raises what it raises."""
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        sys.path.append(beside)
    runpy.run_path(str(path))


def register(files: Sequence[Path]) -> tuple[str, ...]:
    """Run the files; the names of what they add. Raises UsageError where one cannot be run, or adds none."""
    for file in files:  # a notebook runs them again and again
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


def _cannot(file: Path, error: BaseException) -> UsageError:
    line = next(iter(str(error).splitlines()), "")
    at = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
    return UsageError(f"{file} cannot be run: {type(error).__name__}: {line}{at}", f"python {file}")
