"""A tool's error texts as a table: what each text means, and the line that fixes it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.profilers.profiler import RecordRequest


@dataclass(frozen=True)
class KnownFault:
    """What a text that `pattern` finds means; {0}, {1} in `reason` are the pattern's groups that matched."""

    pattern: re.Pattern[str]
    reason: str
    fix: str | None = None
    consequence: bool = False
    code: str | None = None


def known_fault(
    pattern: str, reason: str, fix: str | None = None, *, consequence: bool = False, code: str | None = None
) -> KnownFault:
    """A row of the table. Case does not matter: it differs between versions."""
    return KnownFault(re.compile(pattern, re.IGNORECASE), reason, fix, consequence, code)


def first_known(table: Iterable[KnownFault], text: str) -> Fault | None:
    """The fault of the first row whose pattern is found in `text`; None where there is none."""
    for row in table:
        if (match := row.pattern.search(text)) is not None:
            groups = [group for group in match.groups() if group]
            return Fault(row.reason.format(*(groups or [""])), row.fix, row.consequence, row.code)
    return None


def collect_file(
    request: RecordRequest,
    left: Path,
    tool: str,
    explain: Callable[[str, int], Fault | None],
    remark: str = "",
) -> tuple[str, ...]:
    """Copy the file that `tool` left to the report; there are no remarks on it.

    Where it left none, its log (and `remark`) is explained: raises MachineError with that reason. Where the text is not
    known nothing happens, and the caller sees that there is no report.
    """
    if left.is_file():
        shutil.copyfile(left, request.report)
        return ()
    log = request.scratch / "logs" / "record.log"
    text = log.read_text("utf-8", "replace") if log.is_file() else ""
    if (fault := explain(f"{text}\n{remark}", 0)) is not None:
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    return ()
