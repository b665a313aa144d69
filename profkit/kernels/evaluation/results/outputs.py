"""What an evaluation leaves beside its journal: its document, BackendBench's files, a run like any other, reports."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.run_folder import write_run
from profkit.core.types import EvaluationDocument
from profkit.core.whole_files import write_whole
from profkit.hardware.machine import read_machine
from profkit.kernels.evaluation.results.as_run import evaluation_as_run
from profkit.kernels.evaluation.results.document import FILE, evaluation_text
from profkit.kernels.evaluation.results.field_files import field_files


def write_results(folder: Path, document: EvaluationDocument) -> tuple[str, ...]:
    """Write all files into `folder`, each whole or not at all; a line for each report that is not there.

    Raises MachineError where the disk takes no more.
    """
    for name, text in {FILE: evaluation_text(document, folder), **field_files(document)}.items():
        try:
            write_whole(folder / name, (text,), sync=name == FILE)
        except OSError as error:
            again = f"make room, then: profkit evaluate --resume {shlex.quote(str(folder))}"
            raise MachineError(f"{folder / name} cannot be written: {error.strerror}", again) from error
    write_run(folder, evaluation_as_run(document, _working_directory(), read_machine()))
    from profkit.reporting.report_files import write_evaluation_reports

    return write_evaluation_reports(folder, document)


def _working_directory() -> str:
    with contextlib.suppress(OSError):  # a directory that is gone costs no results
        return str(Path.cwd())
    return ""
