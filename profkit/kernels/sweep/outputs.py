"""What a sweep leaves beside its journal: the guide's records, a run like any other, and reports for people."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from profkit.analysis.ranking.ranking import FILE as RESULTS
from profkit.analysis.ranking.ranking import guide_records
from profkit.core.errors import MachineError, UsageError
from profkit.core.run_folder import write_run
from profkit.core.types import Gpu, SweepDocument
from profkit.hardware.machine import read_machine
from profkit.kernels.sweep.as_run import run_of
from profkit.kernels.sweep.grid import Grid
from profkit.reporting.sweep_files import write_reports


def write_all(
    folder: Path, document: SweepDocument, grid: Grid, precision: float, name: str
) -> tuple[str, ...]:
    """Write benchmark_results.json, run.json and the reports, each whole or not at all; why a report is missing.

    Raises MachineError where the disk takes no more.
    """
    again = f"make room, then: profkit sweep --resume {folder}"
    write_records(folder / RESULTS, document, again)
    command = ("profkit", "sweep", *grid.words())
    run = run_of(document, command, name, _here(), read_machine(), _gpus(document), precision)
    write_run(folder, run, final=False)
    return tuple(write_reports(folder, document))


def _here() -> str:
    with contextlib.suppress(OSError):  # a directory that is gone costs no results
        return str(Path.cwd())
    return ""


def ask_place(path: Path) -> None:
    """Before hours go by: raises UsageError and MachineError where no records can be written to `path`."""
    if path.is_dir() or not path.name:
        raise UsageError(f"{path} is a folder", f"{path / RESULTS}")
    if not path.parent.is_dir():
        raise MachineError(f"{path} cannot be written: No such file or directory", f"mkdir -p {path.parent}")
    if not os.access(path if _is_stream(path) else path.parent, os.W_OK):
        raise MachineError(f"{path} cannot be written: no permission", f"ls -ld {path.parent}")


def _is_stream(path: Path) -> bool:
    """/dev/stdout, a pipe: written through, since it must not be replaced."""
    return path.exists() and not path.is_file()


def write_records(path: Path, document: SweepDocument, fix: str = "make room, and call it again") -> None:
    """The guide's list of records, whole or not at all. Raises MachineError where it cannot be written."""
    text = json.dumps(guide_records(document), indent=1, allow_nan=False) + "\n"
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}.tmp")
    try:
        if _is_stream(path):
            path.write_text(text, encoding="utf-8")
            return
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise MachineError(f"{path} cannot be written: {error.strerror}", fix) from error


def _gpus(document: SweepDocument) -> tuple[Gpu, ...]:
    """The devices that measured: what decides what the run may be compared with."""
    if not any(result.clock == "cuda-events" for result in document.results):
        return ()
    from profkit.hardware.gpu import read_gpus

    used = {result.device for result in document.results if result.device is not None}
    alike = [gpu for gpu in read_gpus() if gpu.name == document.device]
    return tuple(alike[: max(1, len(used))])
