"""The doctor: what this machine can measure, what is in the way, and the one line that fixes it.

It tries each instrument with a tiny measurement instead of looking for a file: a perf that is there may be
refused, a valgrind that is there may crash, a counter that is there may count nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from profkit.core.errors import ProfkitError, UsageError
from profkit.core.progress import Progress, Silent
from profkit.core.types import Check
from profkit.profiling.doctor.subjects import BACKENDS, Subject, subjects_for


def diagnose(backend: str = "all", progress: Progress | None = None) -> tuple[Check, ...]:
    """Look at everything one backend needs (`cpu`, `cuda`, `mps`), or at `all`; takes about ten seconds.

    A look that fails becomes a check that says so; it never stops the others. Raises UsageError for a backend
    there is not.
    """
    if backend not in ("all", "auto", *BACKENDS):
        raise UsageError(f"no backend is called {backend!r}; there are {', '.join(BACKENDS)} and all")
    told = progress or Silent()
    checks: list[Check] = []
    for subject in subjects_for(backend):
        start = time.monotonic()
        told.begin(subject.title)
        found = _look(subject)
        checks.extend(found)
        told.end(f"{_summary(found)} ({time.monotonic() - start:.1f} s)")
    return tuple(checks)


def blocked(backend: str, checks: Sequence[Check]) -> str | None:
    """Why this backend can profile nothing at all here, None where at least the time can be measured.

    The cpu backend times any workload without a tool, so only an output that cannot be written blocks it; the cuda
    backend needs a device, and what its tools cannot do only limits it.
    """
    missing = (
        c.detail for c in checks if c.name == f"{backend} backend" and c.state in ("missing", "refused")
    )
    refused = (c.detail for c in checks if c.name == "output folder" and c.state == "refused")
    return next(missing, None) or next(refused, None)


def _look(subject: Subject) -> tuple[Check, ...]:
    try:
        return tuple(subject.look())
    except ProfkitError as error:
        return (Check(subject.title, "refused", error.message, error.fix),)
    except ModuleNotFoundError as error:
        detail = f"{error.name} is not installed, and this look needs it"
        return (Check(subject.title, "refused", detail, f"pip install {error.name}"),)
    except Exception as error:
        # Whatever broke here, the user asked about the machine: the other answers must still come.
        return (Check(subject.title, "refused", f"this look failed: {type(error).__name__}: {error}"),)


def _summary(checks: Sequence[Check]) -> str:
    wrong = [check for check in checks if check.state != "ok"]
    return "good" if not wrong else ", ".join(f"{check.name}: {check.state}" for check in wrong)
