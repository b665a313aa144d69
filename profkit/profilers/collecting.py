"""How a recipe brings what its tool left to where the user wants it, or says why nothing was left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from profkit.core.errors import Fault, MachineError


def collect_one(
    left: Path,
    report: Path,
    *,
    tool: str,
    log: Path,
    explain: Callable[[str, int], Fault | None],
    remark: str = "",
) -> tuple[str, ...]:
    """Copy the file that `tool` left to `report`; nothing has to be remarked on it.

    Where it left none, what it printed to `log` (and `remark`, what else was seen) is explained. Raises MachineError
    with that reason; where the text is not known it does nothing, and the caller sees that there is no report.
    """
    if left.is_file():
        shutil.copyfile(left, report)
        return ()
    try:
        text = log.read_text("utf-8", "replace")
    except OSError:
        text = ""
    if (fault := explain(f"{text}\n{remark}", 0)) is not None:
        raise MachineError(f"{tool}: {fault.reason}", fault.fix)
    return ()
