"""What SQLite complains of, in words and with the way out."""

from __future__ import annotations

import shlex
import sqlite3
from pathlib import Path

from profkit.core.errors import MachineError, ProfkitError, UnreadableReport

BUSY_SECONDS = 30.0  # how long one writer waits for the others before it gives up


def way_out(path: Path) -> str:
    """The line that brings over what is left."""
    name = shlex.quote(str(path))
    return f"profkit history rescue --history {name} --to {shlex.quote(f'{path}.rescued')}"


def damaged(path: Path, what: str) -> UnreadableReport:
    """The fault of a file that was a history and is not whole."""
    return UnreadableReport(f"the history {path} is damaged: {what}; it was left as it is", way_out(path))


def in_words(path: Path, error: sqlite3.Error) -> ProfkitError:
    """The fault behind an error of SQLite. By its text: Python 3.10 does not tell SQLite's codes."""
    said = str(error)
    where = shlex.quote(str(path.parent))
    if "locked" in said or "busy" in said:
        return MachineError(
            f"the history {path} was kept busy by another process for more than {BUSY_SECONDS:.0f} s",
            "try again when it is done",
        )
    if "full" in said:
        return MachineError(
            f"cannot write to the history {path}: the disk is full; what was stored before is whole",
            f"df -h {where}",
        )
    if "readonly" in said or "read-only" in said:
        return MachineError(
            f"cannot write to the history {path}: it, or its folder, is read-only",
            "--history FILE in a folder that you may write to",
        )
    if "unable to open" in said:
        return MachineError(
            f"cannot open the history {path}: no permission, or no space for its journal", f"ls -l {where}"
        )
    if "disk i/o" in said.lower():
        return MachineError(f"cannot use the history {path}: {said}", f"df -h {where}; ls -l {where}")
    return damaged(path, said.encode("ascii", "replace").decode())
