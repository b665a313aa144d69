"""What a sweep's folder has beside a run: its journal and the records of its cases, line by line and case by case."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

from profkit.analysis.ranking.ranking import FILE as RESULTS
from profkit.kernels.sweep.journal import FILE as JOURNAL
from profkit.kernels.sweep.journal import read_sweep
from profkit.kernels.sweep.workers import LOG
from profkit.profilers.redact import HOST, Redactor
from profkit.profiling.scrub.document import without
from profkit.reporting.sweep_files import write_reports

FILES = (JOURNAL, RESULTS)
OWN_LOG = LOG
PROFILES = "profiles"  # runs of single cases, each a folder like any run's


def is_sweep_folder(folder: Path) -> bool:
    """Whether a sweep left it."""
    return (folder / JOURNAL).is_file()


def learn_host(redactor: Redactor) -> None:
    """What this machine is called: a case that failed tells why in words of others."""
    redactor.learn(platform.node(), HOST)


def scrub_file(source: Path, target: Path, redactor: Redactor, names: frozenset[str]) -> None:
    """Copy the journal, or the records; what cannot be read of them is not copied.

    Raises ValueError where the records are no JSON.
    """

    def clean(value: Any) -> Any:
        return without(value, [], [], redactor, names)

    if source.name == RESULTS:
        records = clean(json.loads(source.read_text(encoding="utf-8")))
        target.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        return
    with source.open(encoding="utf-8", errors="replace") as lines, target.open("w", encoding="utf-8") as copy:
        for line in lines:
            try:
                body = json.loads(line)
            except ValueError:  # cut off: what follows is not read by anybody
                return
            copy.write(json.dumps(clean(body)) + "\n")


def write_views(folder: Path) -> None:
    """The reports of the scrubbed sweep."""
    write_reports(folder, read_sweep(folder))
