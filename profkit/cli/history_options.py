"""Options that the verbs of `profkit history` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history", help="The file (default: $PROFKIT_HISTORY, else reports/history.sqlite).", metavar="FILE"
    ),
]
WorkloadOption = Annotated[str | None, typer.Option("--workload", "-w", help="Only of this workload.")]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", help="From when on: 2026-11-01, or a span: 30d, 12w, 1y.", metavar="WHEN"),
]
CommitOption = Annotated[
    str | None, typer.Option("--commit", help="The git commit, where a file does not say it.", metavar="SHA")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say only what went wrong.")]


def begin(text: str | None) -> str | None:
    """What `--since` means, as ISO 8601 in UTC. Raises UsageError."""
    if text is None:
        return None
    from datetime import datetime, timezone

    from profkit.regression.times import iso_time, parse_since

    return iso_time(parse_since(text, datetime.now(timezone.utc)))
