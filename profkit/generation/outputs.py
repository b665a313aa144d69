"""What a generation leaves beside its kernels: its document, the field's files, reports."""

from __future__ import annotations

from pathlib import Path

from profkit.core.errors import MachineError
from profkit.core.types import GenerationDocument
from profkit.core.whole_files import write_whole
from profkit.generation.field_files import field_files
from profkit.kernels.generation_document import FILE, generation_text
from profkit.reporting.views.generation.text import resume_line


def write_generation(folder: Path, document: GenerationDocument) -> tuple[str, ...]:
    """Write all files into `folder`, each whole or not at all; a line for each report that is not there.

    Raises MachineError where the disk takes no more.
    """
    for name, text in {FILE: generation_text(document, folder), **field_files(document, folder)}.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, (text,), sync=name == FILE)
        except OSError as error:
            again = f"make room, then: {resume_line(folder)}"
            raise MachineError(f"{folder / name} cannot be written: {error.strerror}", again) from error
    from profkit.reporting.report_files import write_generation_reports

    return write_generation_reports(folder, document)
