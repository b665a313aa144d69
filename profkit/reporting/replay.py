"""What every night of a series would have been: the nights on which something was said, and how often in all."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from profkit.core.codec import plain
from profkit.core.formatting import plural
from profkit.core.types import Json, MetricOutcome, Replay
from profkit.reporting.screen import Screen

SCHEMA = "profkit.replay/1"
# Codes of nights on which nothing begins: they are counted, and not listed one by one.
_USUAL = ("held", "new", "standing", "seen-before", "returning", "perhaps-better", "not-valid", "moved")
_STYLES = {"regressed": "red", "invalid": "yellow", "ambiguous": "yellow", "improved": "green"}
MOST = 40  # nights that are listed of one series


def render(replays: Sequence[Replay], *, color: bool | None = None, width: int | None = None) -> str:
    """Each series with its sums, then every night on which a verdict was new."""
    screen = Screen(color, width)
    for number, one in enumerate(replays):
        if number:
            screen.blank()
        key = one.series.key
        scope = f" ({key.scope.kind} {key.scope.name})" if key.scope.name else ""
        screen.line((f"{key.workload} {key.metric}{scope}", "bold"))
        rule = f" by another rule ({', '.join(one.rule)})" if one.rule else ""
        screen.line(f"{plural(len(one.outcomes), 'night')}{rule}: {_sums(one.outcomes)}", hang=2)
        events = _events(one)
        for night, told in events[:MOST]:
            screen.line(
                f"{night} ", (told.outcome, _STYLES.get(told.outcome, "")), f": {told.reason}", hang=2
            )
        if len(events) > MOST:
            screen.line((f"{len(events) - MOST} more: --format json has all", "dim"))
    return screen.text()


def render_json(replays: Sequence[Replay], history: str) -> str:
    """Schema "profkit.replay/1": per series the outcome of every night, and how often there was each."""
    body: dict[str, Json] = {
        "schema": SCHEMA,
        "history": history,
        "series": [
            {
                "workload": one.series.key.workload,
                "backend": one.series.key.backend,
                "metric": one.series.key.metric,
                "scope": plain(one.series.key.scope),
                "rule": list(one.rule),
                "alarms": sum(_is_alarm(told) for told in one.outcomes),
                "outcomes": dict(Counter(told.outcome for told in one.outcomes)),
                "nights": [
                    {
                        "entry": point.entry,
                        "started": point.started,
                        "outcome": told.outcome,
                        "code": told.code,
                        "step": told.step,
                        "reason": told.reason,
                        "since": told.since,
                    }
                    for point, told in zip(one.series.points, one.outcomes, strict=True)
                ],
            }
            for one in replays
        ],
    }
    return json.dumps(body, indent=2, allow_nan=False) + "\n"


def _is_alarm(told: MetricOutcome) -> bool:
    return told.outcome == "regressed" and told.code != "standing"


def _sums(outcomes: Sequence[MetricOutcome]) -> str:
    """`2 regressions, 14 suspect nights, 7 new`; what stands is of the regressions and not counted again."""
    counts = Counter(told.code if told.code == "standing" else told.outcome for told in outcomes)
    names = {
        "regressed": ("regression", "regressions"),
        "standing": ("night on which one stands", "nights on which one stands"),
        "improved": ("improvement", "improvements"),
        "ambiguous": ("suspect night", "suspect nights"),
        "invalid": ("night that is not valid", "nights that are not valid"),
        "pass": ("quiet night", "quiet nights"),
        "new": ("new", "new"),
    }
    told = [plural(counts[word], *name) for word, name in names.items() if counts[word]]
    return ", ".join(told) if told else "nothing"


def _events(one: Replay) -> list[tuple[str, MetricOutcome]]:
    """Nights on which something new is said, and that did not say the same the night before."""
    found, before = [], ""
    for point, told in zip(one.series.points, one.outcomes, strict=True):
        if told.code not in _USUAL and not (told.code == before == "collapse"):
            found.append((point.started[:10], told))
        before = told.code
    return found
