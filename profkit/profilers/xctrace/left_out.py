"""The note beside exported tables that says which of them are not there although the document has them, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "left-out.json"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class LeftOut:
    """A table that the document lists and that was not exported."""

    schema: str
    reason: str
    fix: str | None = None


def write_left_out(folder: Path, left_out: Sequence[LeftOut]) -> None:
    """Note what an export into `folder` left out; nothing where all tables are there."""
    if left_out:
        text = json.dumps([asdict(one) for one in left_out], indent=1) + "\n"
        (folder / FILE).write_text(text, encoding="utf-8")


def read_left_out(folder: Path) -> tuple[LeftOut, ...]:
    """What an export into `folder` left out; nothing where there is no such note, or none that can be read."""
    try:
        with (folder / FILE).open(encoding="utf-8") as file:
            told = json.loads(file.read(_MOST_BYTES))
        return tuple(
            LeftOut(str(one["schema"]), str(one["reason"]), str(one["fix"]) if one.get("fix") else None)
            for one in told
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ()
