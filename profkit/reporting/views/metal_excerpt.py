"""One table of a recording of Metal, or its table of contents, without the others: what it tells, and no more.

All that it lacks is in JSON; on a screen the same absence, told for each metric, section and verdict, hides the rest.
"""

from __future__ import annotations

from dataclasses import replace

from profkit.backends import backend_named
from profkit.core.types import RunDocument, Summary

# How the notes of such exports begin.
CONTENTS, TABLE = "a table of contents alone", "one table alone"
NEEDED = (
    "for what it does not tell, export the other tables of the recording into one folder with it (docs/mps.md has the"
    " lines), and read that: profkit summarize FOLDER"
)
_UNTOLD = ": unavailable, "


def is_alone(document: RunDocument) -> bool:
    """Whether `document` was read from one such file."""
    encoders = backend_named(document.backend).work == "encoder"
    return encoders and any(note.startswith((CONTENTS, TABLE)) for note in document.notes)


def what_it_tells(document: RunDocument) -> RunDocument:
    """The same with what is known alone, and what else is needed in one note; any other document as it is."""
    if not is_alone(document):
        return document
    kept = [summary for summary in document.summaries if summary.concern == "gpu" or _has_rows(summary)]
    return replace(
        document,
        verdicts=tuple(verdict for verdict in document.verdicts if verdict.verdict != "unknown"),
        summaries=tuple(
            replace(summary, notes=tuple(note for note in summary.notes if _UNTOLD not in note))
            for summary in kept
        ),
        notes=(*document.notes, NEEDED),
    )


def _has_rows(summary: Summary) -> bool:
    return any(table.rows for table in summary.tables)
