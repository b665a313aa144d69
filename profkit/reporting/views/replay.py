"""The past decided again: a series night by night, and many nights one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from profkit.core.formatting import plural
from profkit.core.types import MetricOutcome, Night, Replay, WorkloadOutcome
from profkit.reporting.view import Block, Items, Paragraph, Section, Span, Statuses, StatusRow, View, soft
from profkit.reporting.views.night_text import OUTCOMES, QUIET, word_of

_MOST = 40  # nights that are listed of one series
# Codes of nights on which nothing begins: they are counted, and not listed one by one.
_USUAL = ("held", "new", "standing", "seen-before", "returning", "perhaps-better", "not-valid", "moved")


def view(replays: Sequence[Replay]) -> View:
    """Each series with its sums and every night on which something new is said."""
    blocks = []
    for replay in replays:
        key = replay.series.key
        scope = f" ({key.scope.kind} {key.scope.name})" if key.scope.name else ""
        rule = f" by another rule ({', '.join(replay.rule)})" if replay.rule else ""
        headline = f"{plural(len(replay.outcomes), 'night')}{rule}: {_sums(replay.outcomes)}"
        events = tuple(
            (f"{night} ", Span(o.outcome, status=OUTCOMES[o.outcome]), f": {o.reason}")
            for night, o in _events(replay)
        )
        inner: list[Block] = [Items(events[:_MOST])] if events else []
        left = len(events) - _MOST
        inner += [Paragraph(soft(f"{left} more: --format json has all"))] if left > 0 else []
        blocks.append(Section(f"{key.workload} {key.metric}{scope}", tuple(inner), headline))
    return View(f"{plural(len(replays), 'series', 'series')} decided again, night by night", tuple(blocks))


def _sums(outcomes: Sequence[MetricOutcome]) -> str:
    """`2 regressions, 14 quiet nights, 7 new`: how many nights of each kind."""
    counts = Counter(o.code if o.code == "standing" else o.outcome for o in outcomes)
    names = {
        "regressed": ("regression", "regressions"),
        "standing": ("night with an open regression", "nights with an open regression"),
        "improved": ("improvement", "improvements"),
        "ambiguous": ("night with a candidate regression", "nights with a candidate regression"),
        "invalid": ("night that is not valid", "nights that are not valid"),
        "pass": ("quiet night", "quiet nights"),
        "new": ("new", "new"),
    }
    return ", ".join(plural(counts[word], *name) for word, name in names.items() if counts[word]) or "nothing"


def _events(replay: Replay) -> list[tuple[str, MetricOutcome]]:
    """Nights on which something new is said, and that did not say the same the night before."""
    events, before = [], ""
    for point, outcome in zip(replay.series.points, replay.outcomes, strict=True):
        if outcome.code not in _USUAL and not (outcome.code == before == "collapse"):
            events.append((point.started[:10], outcome))
        before = outcome.code
    return events


# ---------------------------------------------------------------- many nights


def nights_view(nights: Sequence[Night]) -> View:
    """A line for each workload in each night in which it became another outcome; quiet nights are counted."""
    return View(f"{nights[0].name}: {plural(len(nights), 'night')}", tuple(_nights(nights)))


def _nights(nights: Sequence[Night]) -> Iterator[Block]:
    before: dict[str, tuple[str, str]] = {}
    quiet = 0
    for night in nights:
        now: dict[str, tuple[str, str]] = {
            w.name: (w.outcome, w.code if w.outcome == "regressed" else "") for w in night.workloads
        }
        moved = [w for w in night.workloads if before.get(w.name) != now[w.name]]
        moved = [
            w for w in moved if not (w.code == "standing" and before.get(w.name, ("",))[0] == "regressed")
        ]
        before = now
        notes = night.notes if night is not nights[-1] else ()  # those of the last night stand below it
        if not moved and not notes:
            quiet += 1
            continue
        yield from _quiet_nights(quiet)
        quiet = 0
        inner: list[Block] = [Items(notes)] if notes else []
        inner += [Statuses(tuple(_moved(moved)), ("workload", "", "", ""), "outcome")] if moved else []
        yield Section(night.id, tuple(inner))
    yield from _quiet_nights(quiet)


def _moved(workloads: Sequence[WorkloadOutcome]) -> Iterator[StatusRow]:
    """Workloads that became another outcome; what passes needs no reason, and shares a row."""
    for outcome in dict.fromkeys(w.outcome for w in workloads):
        alike = [w for w in workloads if w.outcome == outcome]
        if outcome in QUIET:
            yield StatusRow(OUTCOMES[outcome], word_of(alike[0]), tuple(w.name for w in alike), "")
            continue
        for workload in alike:
            yield StatusRow(OUTCOMES[outcome], word_of(workload), (workload.name,), workload.reason)


def _quiet_nights(count: int) -> Iterator[Block]:
    if count:
        yield Paragraph(soft(f"... {plural(count, 'night')} without anything new"))
