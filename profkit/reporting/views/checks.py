"""What the doctor tried, and what a scrubbed copy lacks."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import plural
from profkit.core.types import Check, CheckState
from profkit.profilers.redact import FileLeftOut, RemovedText
from profkit.reporting.view import Block, Items, Paragraph, Section, Status, Statuses, StatusRow, View

_STATES: dict[CheckState, Status] = {
    "ok": Status.PASS,
    "limited": Status.CHANGED,
    "missing": Status.FAIL,
    "refused": Status.FAIL,
}
_MOST_FILES = 12  # that are named


def view(checks: Sequence[Check]) -> View:
    """The checks in their order; the fix below what needs one."""
    rows = tuple(map(_row, checks))
    counts = {state: sum(check.state == state for check in checks) for state in _STATES}
    total = ", ".join(f"{number} {state.upper()}" for state, number in counts.items() if number)
    fixes = sum(check.fix is not None for check in checks)
    change = f"; {plural(fixes, 'fix', 'fixes')} below" if fixes else ""
    return View(
        f"{total or 'nothing was checked'}{change}.",
        (Statuses(rows, ("what", "", "", ""), "state", below_title="Fixes", below_word="fix: "),),
    )


def _row(check: Check) -> StatusRow:
    version = f"{check.version}  " if check.version and check.version not in check.detail else ""
    fix = (check.fix,) if check.fix else ()
    return StatusRow(
        _STATES[check.state], check.state.upper(), (check.name,), f"{version}{check.detail}", below=fix
    )


def scrubbed_view(output: str, removed: Sequence[RemovedText], left_out: Sequence[FileLeftOut]) -> View:
    """Kinds and counts of what was removed, never the things themselves; and what was left out."""
    kinds = [
        f"{entry.kind}: {entry.count}" + (f"; now e.g. {', '.join(entry.examples)}" if entry.examples else "")
        for entry in removed
    ]
    text = (
        "Look at it: what has no form of a secret, and is named nowhere as private, is not known to be one."
    )
    blocks: list[Block] = [Items(tuple(kinds or ["nothing private found"])), Paragraph(text)]
    if left_out:
        lines = [
            f"{entry.name}: {entry.reason}" + (f" ({entry.fix})" if entry.fix else "") for entry in left_out
        ]
        blocks.append(Section("Left out", (Items(tuple(lines), brief=_MOST_FILES),)))
    return View(f"Scrubbed copy: {output}", tuple(blocks))
