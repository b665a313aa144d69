"""One metric of two runs: DIFFERENT, SAME or AMBIGUOUS, by an interval and by what counts as a change.

DIFFERENT: the whole interval lies beyond the floor. SAME: the whole interval lies within it. AMBIGUOUS: neither. That
no difference was found is never taken for sameness.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.core.formatting import format_figures, format_quantity, signed
from profkit.core.inference import (
    Interval,
    Ratio,
    benjamini_hochberg,
    course_of,
    coverage_of_selected,
    decide,
    ratio_of,
    ratio_of_values,
)
from profkit.core.types import Change, ChangeWord, Course
from profkit.regression.compare.pairs import ChangeRule, MetricPair

FIX_LONGER = "profile both again with a larger --sampling, on a quiet machine"
FIX_PROCESSES = "profile both again with --depth full: several processes show how much they differ"
FIX_AUTOCORRELATED = (
    "profile both again with --depth full, which runs several processes; a GPU at its power limit also with its clock "
    "locked below that: nvidia-smi --lock-gpu-clocks"
)
LEAST_SAMPLES = 6  # independent ones of one process: fewer have no interval of 95 % (statistics.median_rank)
USELESS_RATIO = 10.0  # an interval from a tenth to ten times says nothing but that nothing is known


def decide_sampled(
    pair: MetricPair, ratio: Ratio | None, confidence: float, p: float | None, floor: float | None
) -> Change:
    """By the interval of the ratio of the medians at `confidence`; `p` is adjusted for how many were looked at."""
    counts = floor_of(pair, floor)
    if ratio is None:
        return replace(_build_change(pair, "ambiguous", _no_interval_reason(pair), counts), fix=FIX_LONGER)
    low, high = ratio.interval(confidence)
    word = decide(Interval(low, ratio.value, high), counts)
    by = f"{signed_percent(low - 1)} to {signed_percent(high - 1)}"
    if high > USELESS_RATIO * low:
        by = "the processes of a run differ too much to tell"
    detectable = (1 + counts) * (1 + ratio.detectable(confidence)) - 1
    reason = {
        "different": f"{by}: beyond the {percent_text(counts)} that counts",
        "same": f"{by}: within the {percent_text(counts)} that counts",
        "ambiguous": f"{by}: it may be more than the {percent_text(counts)} that counts, or less",
    }[word]
    if ratio.assumed:
        reason += "; one process each, so how much processes differ is assumed"
    if ratio.independent is not None:
        reason += (
            f"; neighbouring samples are correlated: they count as {ratio.independent:.0f} independent ones"
        )
    change = _build_change(pair, word, reason, counts, ratio.value, low, high, p, detectable)
    return replace(change, fix=_fix_of(ratio)) if word == "ambiguous" else change


def _no_interval_reason(pair: MetricPair) -> str:
    """Why samples give no interval."""
    sides = pair.baseline.groups, pair.candidate.groups
    if any(min(group) <= 0 for side in sides for group in side if group):
        return "a sample is 0 s, so there is no ratio"
    if any(len(side) > 1 for side in sides):
        return "no interval: all processes have the same median: the clock is too coarse"
    fewest = min((len(group) for side in sides for group in side), default=0)
    has = "too few are" if fewest >= LEAST_SAMPLES else f"there are {fewest}"
    return f"too few samples for an interval: one process needs {LEAST_SAMPLES} independent ones, and {has}"


def _fix_of(ratio: Ratio) -> str:
    """What would make the interval narrower: what it is widest by."""
    if ratio.independent is not None:
        return FIX_AUTOCORRELATED
    return FIX_PROCESSES if ratio.assumed and ratio.between >= ratio.within else FIX_LONGER


def decide_single(pair: MetricPair, floor: float | None) -> Change:
    """Of one value on each side: exact where the metric is, else by how far such values are known to differ.

    A value whose noise no rule gives is AMBIGUOUS, however large the change; equal ones are, too.
    """
    rule, before, after = pair.rule, pair.baseline.value, pair.candidate.value
    counts, ratio = floor_of(pair, floor), ratio_of_values(before, after)
    if before == after and (rule.exact or before == 0):
        detectable = counts if before else None  # of nothing no share says anything
        return _build_change(pair, "same", "equal", counts, ratio, ratio, ratio, None, detectable)
    if rule.repeat is None and rule.spread is None:
        return _build_change(
            pair, "ambiguous", "one value each, and how far such values differ is not known", counts, ratio
        )
    noise = max((rule.repeat or 0.0) * max(abs(before), abs(after)), rule.spread or 0.0)
    limit = max((rule.floor if floor is None else floor) * abs(before), rule.least)
    change = after - before
    word = decide(Interval(change - noise, change, change + noise), limit, around=0)
    reason = f"{_difference_of(pair)}; less than {difference_text(limit, pair.unit)} does not count"
    reason += (
        ", and it is exact"
        if rule.exact
        else f", and from run to run they differ by {_noise_text(rule, pair.unit)}"
    )
    low = high = ratio
    if ratio is not None and before > 0:
        low, high = max(0.0, (after - noise) / before), (after + noise) / before
    detectable = (limit + noise) / abs(before) if before else None
    return _build_change(pair, word, reason, counts, ratio, low, high, None, detectable)


def floor_of(pair: MetricPair, floor: float | None) -> float:
    """The relative change that counts: the rule's, or the one asked for, and never less than the absolute one."""
    size = min(abs(pair.baseline.value), abs(pair.candidate.value))
    asked = pair.rule.floor if floor is None else floor
    return max(asked, pair.rule.least / size) if size > 0 else asked


def signed_percent(part: float) -> str:
    """0.123 as `+12.3 %`; 2.4 as `+240 %`."""
    return f"{signed(100 * part)} %"


def difference_text(value: float, unit: str) -> str:
    """A difference in its unit; of two shares in % it is points, since `3 %` could be taken for a part of them."""
    return f"{format_figures(value)} points" if unit == "%" else format_quantity(value, unit)


def percent_text(part: float) -> str:
    """0.02 as `2 %`."""
    return f"{100 * part:.3g} %"


def _build_change(
    pair: MetricPair,
    word: ChangeWord,
    reason: str,
    floor: float,
    ratio: float | None = None,
    low: float | None = None,
    high: float | None = None,
    p: float | None = None,
    detectable: float | None = None,
) -> Change:
    if ratio is None:
        ratio = ratio_of_values(pair.baseline.value, pair.candidate.value)
    course: Course = "neither"
    if word == "different":
        course = course_of(pair.baseline.value, pair.candidate.value, pair.better)
    return Change(
        metric=pair.metric,
        unit=pair.unit,
        better=pair.better,
        baseline=pair.baseline,
        candidate=pair.candidate,
        word=word,
        course=course,
        reason=reason,
        scope=pair.scope,
        ratio=ratio,
        low=low,
        high=high,
        p=p,
        floor=floor,
        detectable=detectable,
        tool=pair.tool,
        role=pair.rule.role,
    )


def _difference_of(pair: MetricPair) -> str:
    before, after = pair.baseline.value, pair.candidate.value
    ratio = ratio_of_values(before, after)
    if ratio is not None and pair.unit != "%":
        return signed_percent(ratio - 1)
    sign = "+" if after >= before else "-"
    return f"{sign}{difference_text(abs(after - before), pair.unit)}"


def _noise_text(rule: ChangeRule, unit: str) -> str:
    return difference_text(rule.spread, unit) if rule.spread else percent_text(rule.repeat or 0.0)


# ---------------------------------------------------------------- many together

FALSE_SHARE = 0.05  # of what is called different, on average


def decide_pairs(pairs: Sequence[MetricPair], floor: float | None = None) -> tuple[Change, ...]:
    """One change for each pair, in their order. `floor` takes the place of every metric's own relative floor."""
    ratios = [
        ratio_of(p.baseline.groups, p.candidate.groups, p.between) if p.sampled else None for p in pairs
    ]
    sampled = [(pair, ratio) for pair, ratio in zip(pairs, ratios, strict=True) if pair.sampled]
    changes = iter(decide_ratios(sampled, floor))
    return tuple(next(changes) if pair.sampled else decide_single(pair, floor) for pair in pairs)


def decide_ratios(sampled: Sequence[tuple[MetricPair, Ratio | None]], floor: float | None) -> list[Change]:
    """The changes of sampled pairs, tested together: p is Benjamini and Hochberg's.

    The intervals of those that it picks out are as much wider as the picking asks for. What is DIFFERENT by itself and
    was not picked out is chance among so many.
    """
    adjusted = iter(benjamini_hochberg([ratio.p for _, ratio in sampled if ratio is not None]))
    ps = [None if ratio is None else next(adjusted) for _, ratio in sampled]
    tested = [p for p in ps if p is not None]
    wide = coverage_of_selected(sum(p <= FALSE_SHARE for p in tested), len(tested), FALSE_SHARE)
    changes = []
    for (pair, ratio), p in zip(sampled, ps, strict=True):
        picked = p is not None and p <= FALSE_SHARE
        change = decide_sampled(pair, ratio, wide if picked else 1 - FALSE_SHARE, p, floor)
        if change.word == "different" and not picked:
            change = decide_sampled(pair, ratio, wide, p, floor)
        changes.append(change)
    return changes


def tested_count(changes: Sequence[Change]) -> int:
    """How many of them were tested, and so had a chance to be called different by luck."""
    return sum(change.p is not None for change in changes)
