"""What a scrubbed copy lacks: kinds and counts, never the things themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Protocol

from profkit.profilers.redact import Removed
from profkit.reporting.screen import Screen

SCRUB_SCHEMA = "profkit.scrub/1"
MOST_NAMED = 12  # files by name on a terminal


class Left(Protocol):
    """A file that the copy does not have."""

    @property
    def name(self) -> str:
        """Its path in the run."""

    @property
    def reason(self) -> str:
        """Why."""

    @property
    def fix(self) -> str | None:
        """What would bring its content along."""


def render(
    output: str, removed: Sequence[Removed], left_out: Sequence[Left], *, width: int | None = None
) -> str:
    """The list as text."""
    screen = Screen(None, width)
    screen.line(("Scrubbed copy: ", "bold"), output)
    for one in removed:
        examples = f"; now e.g. {', '.join(one.examples)}" if one.examples else ""
        screen.line(f"- {one.kind}: {one.count}{examples}", indent=2, hang=2)
    if not removed:
        screen.line("nothing private was found in it", indent=2)
    if left_out:
        screen.blank()
        screen.line(("Left out", "bold"))
        for left in left_out[:MOST_NAMED]:
            fix = f" ({left.fix})" if left.fix else ""
            screen.line(f"- {left.name}: {left.reason}{fix}", indent=2, hang=2)
        if len(left_out) > MOST_NAMED:
            screen.line(f"and {len(left_out) - MOST_NAMED} more (--format json names all)", indent=2)
    return screen.text()


def render_json(source: str, output: str, removed: Sequence[Removed], left_out: Sequence[Left]) -> str:
    """The list as one JSON document: schema "profkit.scrub/1"."""
    body = {
        "schema": SCRUB_SCHEMA,
        "source": source,
        "output": output,
        "removed": [{"kind": r.kind, "count": r.count, "examples": list(r.examples)} for r in removed],
        "left_out": [{"name": left.name, "reason": left.reason, "fix": left.fix} for left in left_out],
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
