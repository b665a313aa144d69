"""How a document of Instruments (`.trace`, a folder) becomes something that can be read: by xctrace, on a Mac."""

from __future__ import annotations

from pathlib import Path

from profkit.profilers.xctrace.export import export_argv
from profkit.profilers.xctrace.report import wanted_schemas


def conversion_argv(document: Path, output: Path) -> tuple[str, ...]:
    """The command that leaves the tables of `document` in the folder `output`."""
    return export_argv(document, output, wanted_schemas())
