"""What became worse as GitLab's code quality report: the part of Code Climate's format that GitLab reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from profkit.core.types import Json
from profkit.reporting.forges.regressions import Regression


def render(found: Sequence[Regression]) -> str:
    """A list with an entry for each regression that has a place: GitLab takes none without a file."""
    rows: list[Json] = [
        {
            "description": " ".join(one.message.split("\n")),
            "check_name": one.metric,
            "fingerprint": one.fingerprint,
            "severity": "major",
            "location": {"path": place.path, "lines": {"begin": place.line}},
        }
        for one in found
        for place in one.places[:1]
    ]
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"
