"""What to do: the insights of a run, the largest gain first, each with its evidence, place, change and bound."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from profkit.analysis.kernel_names import short_name
from profkit.analysis.summaries.kernels import kernel_rows
from profkit.core.formatting import format_percent, format_quantity, plural
from profkit.core.types import Gain, Insight, RunDocument, TimeSplit
from profkit.reporting.view import (
    Fold,
    Item,
    Items,
    Section,
    Text,
    between,
    code,
    joined,
    soft,
    strong,
)

BRIEF = 5  # of them on a short screen
_NAME = 44  # characters of a kernel's name
_NAMED = 3  # of the kernels that share an insight


@dataclass(frozen=True)
class JoinedInsight:
    """What one rule says of one or several kernels: the largest, and what is won with all of them."""

    insight: Insight
    others: tuple[Insight, ...] = ()

    @property
    def gain(self) -> Gain | None:
        """The most that can be won with all of them: shares of the time of different kernels."""
        gain = self.insight.gain
        if gain is None:
            return None
        total = sum(one.gain.at_most for one in (self.insight, *self.others) if one.gain is not None)
        return replace(gain, at_most=min(1.0, total))


def join_insights(insights: Sequence[Insight]) -> list[JoinedInsight]:
    """profkit's insights, the largest gain first; what a rule says of several kernels in one."""
    groups: dict[tuple[object, ...], list[Insight]] = {}
    for number, insight in enumerate(insights):
        if insight.source == "profkit":
            of_kernel = insight.where.kernel is not None and insight.where.function is None
            unit = insight.gain.of if insight.gain is not None else None
            key = (insight.rule, insight.title, unit) if of_kernel else (number,)
            groups.setdefault(key, []).append(insight)
    together = [JoinedInsight(same[0], tuple(same[1:])) for same in groups.values()]
    return sorted(together, key=lambda one: -(one.gain.at_most if one.gain is not None else 0.0))


def insight_items(document: RunDocument) -> Items | None:
    """A numbered list; None where nothing was found."""
    labels = {row.scope.name: row.brief for row in kernel_rows(document)}
    items = tuple(_item(one, labels, document.workload.folder) for one in join_insights(document.insights))
    return Items(items, ordered=True, brief=BRIEF) if items else None


def _item(one: JoinedInsight, labels: Mapping[str | None, str], folder: str) -> Item:
    insight = one.insight
    below: list[Text] = [joined(soft("why    "), f"{insight.evidence}.")]
    if one.others:
        below.append(joined(soft("also   "), _others_text(one.others, labels)))
    if (place := place_text(insight, labels, folder)) is not None:
        below.append(joined(soft("where  "), place))
    below.append(joined(soft("how    "), insight.change))
    if insight.gain is not None and insight.gain.bound:
        below.append(joined(soft("bound  "), f"{insight.gain.bound}."))
    share = one.gain.at_most if one.gain is not None else None
    return Item(joined(strong(insight.title), gain_text(one.gain)), tuple(below), share)


def _others_text(others: Sequence[Insight], labels: Mapping[str | None, str]) -> Text:
    """`sgemm_b (3.4 %), sgemm_c (1.2 %) and 2 more kernels`, each with the most that can be won."""
    named = [
        joined(
            code(labels.get(one.where.kernel) or short_name(one.where.kernel or "?", _NAME)),
            f" ({format_percent(100 * one.gain.at_most)} %)" if one.gain is not None else "",
        )
        for one in others[:_NAMED]
    ]
    left = len(others) - len(named)
    more = f" and {plural(left, 'more kernel', 'more kernels')}" if left else ""
    return joined(*between(", ", named), more)


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


def gain_text(gain: Gain | None) -> Text:
    """` - at most 37 % of the GPU time`; nothing where no bound is known."""
    return f" - at most {format_percent(100 * gain.at_most)} % of {gain.of}" if gain is not None else ""


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


def place_text(insight: Insight, labels: Mapping[str | None, str], folder: str = "") -> Text | None:
    """`at train.py:12 in step, aten::mm [64, 32] x [32, 8]`; None where all that is known stands in the evidence.

    Where no line is known the kernel is named, unless the evidence begins with it.
    """
    place = insight.where
    parts: list[Text] = []
    if place.file is not None:
        file = relative_path(place.file, folder)
        parts.append(joined("at ", code(file if place.line is None else f"{file}:{place.line}")))
    if place.function is not None:
        parts.append(joined("in ", code(place.function)))
    if place.operation is not None:
        parts.append(joined(", " if parts else "", code(place.operation)))
    if place.kernel is not None and place.line is None:
        label = labels.get(place.kernel) or short_name(place.kernel, _NAME)
        if not insight.evidence.startswith((label, place.kernel)):
            parts.append(joined("in the kernel ", code(label)))
    return joined(*between(" ", parts)) if parts else None


def relative_path(file: str, folder: str) -> str:
    """The file as seen from the workload's folder, or from the current one; as it is where it is in neither."""
    for base in (folder, os.getcwd()):
        if base and file.startswith(base.rstrip("/") + "/"):
            return file[len(base.rstrip("/")) + 1 :]
    return file
