"""The doctor's checks: what was tried, what came of it, and the one line that fixes it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from profkit.core.codec import plain
from profkit.core.formatting import plural
from profkit.core.types import Check, CheckState
from profkit.reporting.screen import Screen

CHECKS_SCHEMA = "profkit.checks/1"
# Sign, word and style; the word carries the meaning without colour.
STATES: dict[CheckState, tuple[str, str, str]] = {
    "ok": ("✓", "OK", "green"),
    "limited": ("~", "LIMITED", "yellow"),
    "missing": ("✗", "MISSING", "red"),
    "refused": ("✗", "REFUSED", "bold red"),
}


def render(checks: Sequence[Check], *, color: bool | None = None, width: int | None = None) -> str:
    """The checks in their order as text of at most `width` (80) columns; the fix below what needs one."""
    screen = Screen(color, width)
    names = max((len(check.name) for check in checks), default=0)
    for check in checks:
        sign, word, style = STATES[check.state]
        version = f" {check.version}" if check.version and check.version not in check.detail else ""
        screen.labelled(
            (f"{sign} {word}", style),
            (check.name.ljust(min(names, 16)), "bold"),
            f"{version}  {check.detail}",
            width=10,
            indent=0,
        )
        if check.fix:
            screen.labelled(("", ""), ("fix: ", "dim"), check.fix, width=10, indent=0)
    screen.blank()
    screen.line(_total(checks))
    return screen.text()


def render_json(checks: Sequence[Check]) -> str:
    """The checks as one JSON document: schema "profkit.checks/1" and a list."""
    body = {"schema": CHECKS_SCHEMA, "checks": plain(tuple(checks))}
    return json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _total(checks: Sequence[Check]) -> str:
    numbers = {state: sum(check.state == state for check in checks) for state in STATES}
    fixes = sum(check.fix is not None for check in checks)
    told = ", ".join(f"{number} {STATES[state][1]}" for state, number in numbers.items() if number)
    todo = f"; {plural(fixes, 'line')} above would change something" if fixes else ""
    return f"{told or 'nothing was checked'}{todo}."
