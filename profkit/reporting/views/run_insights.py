"""What to do: the insights of a run, the largest gain first, each with its evidence, place, change and bound."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import Gain, Insight, Place, TimeSplit
from profkit.reporting.view import (
    Fold,
    Item,
    Items,
    Section,
    Text,
    code,
    joined,
    soft,
    strong,
)

BRIEF = 5  # of them on a short screen


def insights_section(insights: Sequence[Insight]) -> Section | None:
    """A numbered list; None where nothing was found."""
    insights = [insight for insight in insights if insight.source == "profkit"]
    if not insights:
        return None
    title = "What to do first" if len(insights) > 1 else "What to do"
    items = tuple(_item(insight) for insight in insights)
    return Section(title, (Items(items, ordered=True, brief=BRIEF),), anchor="actions")


def _item(insight: Insight) -> Item:
    below: list[Text] = [joined(soft("why    "), f"{insight.evidence}.")]
    if (place := place_text(insight.where)) is not None:
        below.append(joined(soft("where  "), place))
    below.append(joined(soft("how    "), insight.change))
    if insight.gain is not None and insight.gain.bound:
        below.append(joined(soft("bound  "), f"{insight.gain.bound}."))
    return Item(joined(strong(insight.title), gain_text(insight)), tuple(below))


def time_split_text(split: TimeSplit | None) -> str | None:
    """`3.59 s: waiting 62 %, working 38 % on 1.0 thread; start-up 1.2 s`; None where nothing was looked at."""
    if split is None or split.waiting is None or split.wall <= 0:
        return None
    waiting, queued = split.waiting / split.wall, (split.queued or 0.0) / split.wall
    parts = [f"waiting {format_percent(100 * waiting)} %"] if waiting >= 0.005 else []
    if queued >= 0.02:
        parts.append(f"waiting for a free processor {format_percent(100 * queued)} % (other programs run)")
    if waiting + queued < 0.995:
        threads = f" with {split.threads:.1f} threads" if split.threads is not None else ""
        parts.append(f"working {format_percent(100 * (1 - waiting - queued))} %{threads}")
    start = f"; start-up {format_quantity(split.startup, 's')}" if split.startup is not None else ""
    if split.repeats and split.steady:
        step = format_quantity(split.steady / split.repeats, "s")
        start += f", then a step of {step} {split.repeats} times"
    return f"{format_quantity(split.wall, 's')}: {', '.join(parts)}{start}"


def gain_text(insight: Insight) -> Text:
    """` - at most 37 % of the GPU time`; nothing where no bound is known."""
    if insight.gain is None:
        return ""
    return f" - at most {format_percent(100 * insight.gain.at_most)} % of {insight.gain.of}"


def nsight_section(insights: Sequence[Insight]) -> Section | None:
    """What the rules of NVIDIA's Nsight Compute say in the same report, and where profkit disagrees."""
    items = tuple(
        Item(
            (
                strong(insight.title),
                f" - {format_percent(100 * insight.gain.at_most)} % of {insight.gain.of}",
            ),
            (f"{insight.evidence}.", *_objection(insight.gain)),
        )
        for insight in insights
        if insight.source == "nsight" and insight.gain is not None
    )
    if not items:
        return None
    headline = f"{plural(len(items), 'rule')} with an estimated speed-up. An estimate is no bound."
    return Section("What NVIDIA's rules say", (Items(items, brief=BRIEF),), headline, Fold.FOLDED)


def _objection(gain: Gain) -> tuple[Text, ...]:
    """What profkit says against an estimate."""
    objection = gain.bound.partition("; ")[2]
    return (strong(f"{objection}."),) if objection else ()


def place_text(place: Place) -> Text | None:
    """`at train.py:12 in step, aten::mm [64, 32] x [32, 8]`; None where only the kernel is known."""
    parts: list[Text] = []
    if place.file is not None:
        parts.append(joined("at ", code(place.file if place.line is None else f"{place.file}:{place.line}")))
    if place.function is not None:
        parts.append(joined("in ", code(place.function)))
    if place.operation is not None:
        parts.append(joined(", " if parts else "", code(place.operation)))
    return joined(*(piece for part in parts for piece in (part, " "))) if parts else None
