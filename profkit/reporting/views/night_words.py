"""The sentences of a night's report: why each metric, each workload and the night came out so."""

from __future__ import annotations

import shlex

from profkit.core.formatting import format_figures, format_quantity, plural, shorten
from profkit.core.types import Fact, MetricOutcome, Night, NightPairs, WorkloadOutcome
from profkit.core.types.history import EXACTLY, FIRST, MISSED_TARGET, NOT_COMPARED, PAIRED, SAME_CODE
from profkit.reporting.charts.trend import short_machine
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import threshold_text
from profkit.reporting.views.comparison.words import size_text

BUSY = 0.05  # the share of the time of all pairs in which they waited for a processor that is worth a word
_SAID = 160  # characters of a program's last line
_UNMEASURED = ("not-measured", "nothing-gates", "not-valid")


def reason_of(metric: MetricOutcome, pairs: NightPairs | None = None) -> str:
    """Return why a metric has its outcome; `pairs` are the paired runs of its workload."""
    pairs = pairs if pairs is not None else NightPairs()
    if metric.code == NOT_COMPARED:
        return f"not compared: {fact_text(pairs.why)}"
    if metric.code == FIRST:
        return f"{fact_text(pairs.why)}: later nights will be compared with tonight's commit"
    if metric.code == SAME_CODE:
        if not metric.by_past:
            return fact_text(pairs.why)
        code = f"the code is that of the last good night ({(metric.good_commit or '')[:12]})"
        return f"{_by_past(metric, metric.by_past)}; {code}: the machine or a package changed"
    if metric.code in (PAIRED, EXACTLY):
        return _beside_base(metric, pairs)
    return _by_past(metric, metric.code)


def _beside_base(metric: MetricOutcome, pairs: NightPairs) -> str:
    """Return the change against the good commit, with the number of pairs, the doubts, and since when it lasts."""
    change, base, pairing = metric.change, (metric.good_commit or "")[:12], pairs.pairing
    size = size_text(change) if change is not None else "no interval"
    if metric.code == EXACTLY and metric.value is not None:
        by = metric.value - (metric.expected or 0.0)
        size = f"{100 * by / metric.expected:+.1f} %" if metric.expected else f"{by:+g} {metric.unit}"
    how = ", exact" if metric.code == EXACTLY else f" in {pairing.pairs if pairing else 0} pairs"
    text = f"{size} compared with {base}{how}"
    if metric.code == PAIRED and change is not None:
        text += "".join(f"; {fact_text(doubt)}" for doubt in change.doubts)
    if metric.nights > 1 and metric.since:
        text += f", since {metric.since[:10]}"
    if metric.step is not None and metric.step_since:
        text += f"; {100 * metric.step:+.1f} % more since {metric.step_since[:12]}"
    if metric.outcome == "ambiguous" and change is not None:
        text += f": whether it is more than {format_figures(100 * change.floor, 2)} % is not certain"
        waited = (pairing.waited if pairing is not None else None) or 0.0
        if waited >= BUSY:
            text += f"; other programs used the processors for {100 * waited:.0f} % of the time"
    return (
        f"{text}; compared with its past alone it is REGRESSED ({metric.by_past})" if metric.by_past else text
    )


def _by_past(metric: MetricOutcome, code: str) -> str:
    """Return the sentence for what a metric's past nights say, by the code of its outcome."""
    if code == "not-valid" and metric.reason is not None:
        return fact_text(metric.reason)
    value, unit = format_quantity(metric.value, metric.unit), metric.unit
    size = _size(metric.value, metric.expected, unit)  # "4.1 % above 1.02 ms"
    day = metric.since[:10] if metric.since else ""
    since = f" since {day}" + (f" ({metric.commit[:12]})" if metric.commit else "") if day else ""
    ends = [format_quantity(end, unit) for end in metric.band]
    limits = f"{ends[0]} to {ends[-1]}" if ends else ""
    nights = plural(metric.nights, "night")
    machines = [point.machine for point in metric.trend.series.points] if metric.trend is not None else []
    here = machines[-1] if machines else ""
    before = next((machine for machine in reversed(machines) if machine != here), "")
    said = {
        "value": value, "size": size, "since": since, "day": day, "limits": limits, "nights": nights,
        "night": str(metric.nights), "here": short_machine(here), "before": short_machine(before),
        "within": f", within {limits}" if limits else "",
    }  # fmt: skip
    return fact_text(Fact(f"night {code}", names=said))


def _size(value: float | None, expected: float | None, unit: str) -> str:
    """Return how far a value is from the expected one: `4.1 % above 1.02 ms`, in its unit where 0 is expected."""
    if expected is None or value is None:
        return "with nothing to compare it with"
    away = "above" if value >= expected else "below"
    far = (
        f"{format_figures(100 * abs(value / expected - 1), 2)} %"
        if expected
        else format_quantity(abs(value), unit)
    )
    return f"{far} {away} {format_quantity(expected, unit)}"


def workload_reason(workload: WorkloadOutcome, *, interrupted: bool = False) -> str:
    """Return why a workload has its outcome; `interrupted` says that the night was interrupted."""
    if workload.code == MISSED_TARGET:
        return missed_targets(workload)[0]
    deciding = next((m for m in workload.metrics if m.gates), None)
    if workload.ending == "done" and workload.code not in _UNMEASURED and deciding is not None:
        more = sum(m.gates and m.outcome == deciding.outcome for m in workload.metrics) - 1
        others = f" (and {more} more)" if more and deciding.outcome != "pass" else ""
        return f"{name_of(deciding)}: {reason_of(deciding, workload.pairs)}{others}"
    if workload.ending == "absent" and interrupted and workload.reason is None:
        return "the night was interrupted before it was measured"
    if deciding is not None and deciding.code == "not-measured":
        return f"{deciding.metric}: listed under gates, but not measured tonight"
    return fact_text(workload.reason or Fact(f"workload {workload.code}"))


def name_of(metric: MetricOutcome) -> str:
    """Return the metric's name, and its scope where that is not the whole run."""
    return f"{metric.metric} of {metric.scope.name}" if metric.scope.name else metric.metric


def missed_targets(workload: WorkloadOutcome) -> list[str]:
    """Return a line for each target that failed: its threshold and the reason."""
    return [
        f"target {v.target} ({threshold_text(v)}): {fact_text(v.reason)}"
        for v in workload.verdicts
        if v.verdict == "fail"
    ]


def short_reason(reason: str) -> str:
    """Return a reason as one line.

    That is its first line, followed by the last line that a program printed, shortened and in quotes.
    """
    first, *printed = [line.strip() for line in reason.splitlines() if line.strip()] or [""]
    return f'{first} "{shorten(printed[-1], _SAID)}"' if printed else " ".join(first.split())


def night_reason(night: Night) -> str:
    """Return one sentence for the night: its worst workload, and how many others have the same outcome.

    Where every workload passed, it is the smallest change that would have been detected everywhere.
    """
    if not night.workloads:
        return "no workload was measured"
    first = night.workloads[0]
    if first.outcome != "pass":
        alike = sum(w.outcome == first.outcome for w in night.workloads) - 1
        others = f"; and {plural(alike, 'other')}" if alike else ""
        reason = workload_reason(first, interrupted=night.interrupted)
        return f"{first.name}: {short_reason(reason)}{others}"
    gating = [(w, m) for w in night.workloads for m in w.metrics if m.gates]
    if gating and all(m.code == SAME_CODE for _, m in gating):
        return f"not compared: {reason_of(gating[0][1], gating[0][0].pairs)}"
    sizes = [m.detectable for _, m in gating if m.detectable is not None]
    seen = f"{format_figures(100 * max(sizes), 2)} %" if sizes else ""
    return "nothing regressed" + (
        f"; a change of {seen} would have been detected in every workload" if seen else ""
    )


def night_notes(night: Night) -> list[str]:
    """Return the notes of the night and of its workloads.

    A note that several workloads share is given once: `parse, small: ...`.
    """
    lines = [*map(fact_text, night.notes)]
    if night.interrupted:
        lines.append(f"to continue the night, repeat the command with --night {shlex.quote(night.id)}")
    names: dict[str, list[str]] = {}
    for workload in night.workloads:
        for note in workload_notes(workload):
            names.setdefault(note, []).append(workload.name)
    every = len(night.workloads)
    for note, whose in names.items():
        lines.append(f"{'all workloads' if 1 < len(whose) == every else ', '.join(whose)}: {note}")
    return lines


def workload_notes(workload: WorkloadOutcome) -> list[str]:
    """Return a workload's notes.

    They say why its single run does not count, and what its outcome leaves out about its pairs.
    """
    lines: list[str] = []
    pairs = workload.pairs
    if workload.ending == "done" and workload.reason and workload.outcome != "invalid":
        lines.append(f"{fact_text(workload.reason)}: only the alternating runs count")
    if pairs is None:
        return lines
    lines += map(fact_text, (*pairs.notes, *pairs.uncounted))
    is_said = any(m.gates and m.code in (NOT_COMPARED, SAME_CODE, FIRST) for m in workload.metrics)
    if pairs.why and not is_said:
        fix = f" (fix: {pairs.fix})" if pairs.fix else ""
        lines.append(f"not run in pairs: {fact_text(pairs.why)}{fix}")
    return lines
