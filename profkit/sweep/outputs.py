"""What a sweep leaves beside its journal: the guide's records, a run like any other, and reports for people."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from profkit.errors import MachineError
from profkit.hardware.machine import read_machine
from profkit.model import Gpu, SweepDocument
from profkit.reports.sweep_files import write_reports
from profkit.run import write_run
from profkit.standings.guide import FILE as RESULTS
from profkit.standings.guide import records
from profkit.sweep.as_run import run_of
from profkit.sweep.grid import Grid


def write_all(
    folder: Path, document: SweepDocument, grid: Grid, precision: float, name: str
) -> tuple[str, ...]:
    """Write benchmark_results.json, run.json and the reports, each whole or not at all; why a report is missing.

    Raises MachineError where the disk takes no more.
    """
    write_records(folder / RESULTS, document)
    command = ("profkit", "sweep", *grid.words())
    run = run_of(document, command, name, str(Path.cwd()), read_machine(), _gpus(document), precision)
    write_run(folder, run, final=False)
    return tuple(write_reports(folder, document))


def write_records(path: Path, document: SweepDocument) -> None:
    """The guide's list of records, whole or not at all. Raises MachineError where it cannot be written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(json.dumps(records(document), indent=1, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise MachineError(
            f"{path} cannot be written: {error.strerror}", "make room, and call it again"
        ) from error


def _gpus(document: SweepDocument) -> tuple[Gpu, ...]:
    """The devices that measured: what decides what the run may be compared with."""
    if not any(result.clock == "cuda-events" for result in document.results):
        return ()
    from profkit.hardware.gpu import read_gpus

    used = {result.device for result in document.results if result.device is not None}
    alike = [gpu for gpu in read_gpus() if gpu.name == document.device]
    return tuple(alike[: max(1, len(used))])
