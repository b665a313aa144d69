"""What a place is asked for, on its own side: profile, plan, record, diagnose. `elsewhere` is the other side."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.errors import ProfkitError, UsageError
from profkit.core.signals import defer_interrupts
from profkit.core.types import Json
from profkit.execution.places.files import RUN_PARTS
from profkit.execution.places.there import Home, serve
from profkit.profiling.doctor import diagnose
from profkit.profiling.profile import ProfileOptions, make_plan, profile_workload
from profkit.profiling.record import RecordOptions, record_report


def profile(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """`data` are ProfileOptions; the run's folder goes back, also that of a run that failed."""
    options = replace(from_plain_data(ProfileOptions, data), output=run / "out")

    def work(home: Home) -> Json:
        _check_python(options.command)
        try:
            _, folder = profile_workload(options, home, page=False)
        except ProfkitError as fault:
            if fault.run is not None:
                _send(home, fault.run, RUN_PARTS)
            raise
        _send(home, folder, RUN_PARTS)
        return None

    serve(requests, answers, work)


def plan(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """`data` are ProfileOptions; the result is the plan."""
    options = replace(from_plain_data(ProfileOptions, data), output=run / "out")
    serve(requests, answers, lambda _: to_plain_data(make_plan(options)))


def record(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """`data` are RecordOptions; the report goes back, which may be a folder, and what there is of it after a fault."""
    options = from_plain_data(RecordOptions, {**data, "report": run / "out" / data["report"]})

    def work(home: Home) -> Json:
        _check_python(options.command)
        try:
            record_report(options, home)
        finally:
            _send(home, run / "out", (data["report"],))
        return None

    serve(requests, answers, work)


def doctor(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """`data` is the backend's name; the result are the checks."""
    del run
    serve(requests, answers, lambda home: to_plain_data(diagnose(data, home)))


def _check_python(command: Sequence[str]) -> None:
    """Raises UsageError where the workload is for a `python` that this machine calls otherwise."""
    name = command[0] if command else ""
    if name in ("python", "python3") and shutil.which(name) is None:
        raise UsageError(
            f"there is no {name} on PATH; profkit was started by {sys.executable}",
            f"--on-python {shlex.quote(sys.executable)}, which is `python` for the workload, too",
        )


def _send(home: Home, folder: Path, parts: Collection[str]) -> None:
    with defer_interrupts():  # what was measured is not lost on its way
        home.begin("bring back", "what was measured")
        home.send_folder(folder, parts)
        home.end("whole")
