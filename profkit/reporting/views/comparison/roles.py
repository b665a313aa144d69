"""Of a comparison: which kernel was renamed, and what became of the insights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.kernel_names import labels, short_name
from profkit.core.types import Comparison, Insight, InsightChange, InsightWord
from profkit.reporting.view import (
    Block,
    Item,
    Items,
    Section,
    Span,
    Status,
    Text,
    code,
    joined,
    soft,
    strong,
)
from profkit.reporting.views.comparison.words import fact_text
from profkit.reporting.views.run_insights import evidence_text

_INSIGHTS: dict[InsightWord, tuple[Status, str]] = {
    "fixed": (Status.BETTER, "fixed"),
    "new": (Status.FAIL, "new"),
    "remains": (Status.CHANGED, "still there"),
    "unknown": (Status.UNKNOWN, "cannot tell"),
}
_BRIEF = 6  # of a list on a short screen
_WIDTH = 44  # characters of a kernel's name


def paired_kernels(comparison: Comparison) -> Iterator[Block]:
    """Each kernel that has another name in the baseline, and is taken for the same."""
    pairs = [kernel for kernel in comparison.kernels if kernel.baseline_name is not None]
    if not pairs:
        return
    old = [(kernel.baseline_name or "", kernel.baseline_launch or "") for kernel in pairs]
    new = [(kernel.name, kernel.launch or "") for kernel in pairs]
    names = labels([*old, *new], _WIDTH)
    items = tuple(
        Item(
            joined(code(names[before]), " became ", code(names[after])),
            (soft("each is the only kernel of its run"),),
        )
        for kernel, before, after in zip(pairs, old, new, strict=True)
    )
    yield Section("Taken for one kernel", (Items(items, brief=_BRIEF),))


def compared_insights(changes: Sequence[InsightChange]) -> Iterator[Block]:
    """What was wrong in the baseline and is not now, what is wrong since, and what still is."""
    if not changes:
        return
    words = [change.word for change in changes]
    counts = (f"{words.count(word)} {title}" for word, (_, title) in _INSIGHTS.items() if word in words)
    items = tuple(_insight_item(change) for change in changes)
    yield Section(f"Insights: {', '.join(counts)}", (Items(items, brief=_BRIEF),))


def _insight_item(change: InsightChange) -> Item:
    status, title = _INSIGHTS[change.word]
    insight = change.candidate or change.baseline
    assert insight is not None
    sign = Span(f"{status.sign} {title}: ", status=status)
    below: list[Text] = [soft(f"{'was: ' if change.candidate is None else ''}{evidence_text(insight)}")]
    why = "; ".join(map(fact_text, change.why)) or _gain_change(change)
    below += [soft(why)] if why else []
    return Item(joined(sign, strong(insight.title), _place(insight)), tuple(below))


def _gain_change(change: InsightChange) -> str:
    """`at most 33 % of the GPU time, before 38 %`, of what is still there."""
    old, new = change.baseline, change.candidate
    if change.word != "remains" or new is None or new.gain is None:
        return ""
    text = f"at most {100 * new.gain.at_most:.0f} % of {new.gain.of}"
    known = old is not None and old.gain is not None
    return f"{text}, before {100 * old.gain.at_most:.0f} %" if known and old and old.gain else text


def _place(insight: Insight) -> Text:
    """The kernel, unless it stands before the evidence."""
    kernel = insight.where.kernel
    if kernel is None or insight.where.label is not None:
        return ""
    return joined(" in ", code(short_name(kernel, _WIDTH)))
