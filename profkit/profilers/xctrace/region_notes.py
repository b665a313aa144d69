"""What a recorded program noted of its regions, beside its exported tables: so that they are found in them later."""

from __future__ import annotations

import shutil
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.runtime.region.record import LARGEST, RegionRecord, decode_record

PATTERN = "region.*.json"


def leave_notes(scratch: Path, folder: Path) -> None:
    """Put what the processes of a recording noted to its exports."""
    for note in sorted(scratch.glob(PATTERN)):
        shutil.copyfile(note, folder / note.name)


def read_notes(folder: Path) -> tuple[RegionRecord, ...]:
    """Of each process that entered a region, what it noted. Raises UnreadableReport where a note is damaged."""
    found = []
    for path in sorted(folder.glob(PATTERN)):
        try:
            if path.stat().st_size > LARGEST:
                raise UnreadableReport(f"{path} is too large for a region record")
            record = decode_record(path.read_text(encoding="utf-8"), str(path))
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableReport(f"{path} cannot be read: {error}") from error
        if record.regions or record.benchmarks:
            found.append(record)
    return tuple(found)
