"""Explains a tool's error texts by a table, its `faults.yaml`: what each means and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from profkit.core.errors import Fault, MachineError
from profkit.core.files.regular import read_bounded
from profkit.core.files.safe_folder import copy_into
from profkit.core.tables import load_yaml
from profkit.profilers.profiler import RecordRequest


@dataclass(frozen=True)
class KnownFault:
    """An error text that `pattern` finds, and what it means.

    {0}, {1} in `reason` are the pattern's groups that matched. `exits`: the row holds for these exit codes only;
    empty for any.
    """

    pattern: re.Pattern[str]
    reason: str
    fix: str | None = None
    consequence: bool = False
    code: str | None = None
    exits: Collection[int] = ()


@lru_cache(maxsize=16)
def load_faults(path: Path, **texts: str) -> tuple[KnownFault, ...]:
    """Load the rows of a `faults.yaml`.

    A pattern may be a list of alternatives; {name} in a fix is one of `texts`.
    """
    rows = []
    for row in load_yaml(path):
        pattern = row.pop("pattern", "")
        fix = row.pop("fix", None)
        either = re.compile(pattern if isinstance(pattern, str) else "|".join(pattern), re.IGNORECASE)
        rows.append(KnownFault(either, fix=None if fix is None else fix.format(**texts), **row))
    return tuple(rows)


def first_known(table: Iterable[KnownFault], text: str, returncode: int = 0) -> Fault | None:
    """Return the fault of the first row that fits `text` and the exit code; None where none fits."""
    for row in table:
        match = row.pattern.search(text) if not row.exits or returncode in row.exits else None
        if match is not None:
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
    """Copy the file that `tool` wrote to the report, and return no remarks.

    Where the tool wrote none, its log (and `remark`) is explained: raises MachineError with that reason. Where
    the text is not known nothing happens, and the caller sees that there is no report.
    """
    if left.is_file():
        copy_into(left, request.report)
        return ()
    log = request.scratch / "logs" / "record.log"
    text = read_bounded(log).decode(errors="replace") if log.is_file() else ""
    if (fault := explain(f"{text}\n{remark}", 0)) is not None:
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    return ()
