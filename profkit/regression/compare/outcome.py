"""One outcome for two runs, by the metrics that decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.analysis.kernel_names import short_name
from profkit.core.formatting import format_figures, format_quantity, plural
from profkit.core.types import Change, ComparisonOutcome, KernelChange
from profkit.regression.compare.decisions import FIX_LONGER, percent_text, signed_percent
from profkit.regression.compare.pairs import rule_of

_SHARE = 0.02  # of the GPU time: kernels that take less decide nothing
COLLAPSE = 0.1  # of the time before: an improvement as large as that is not believed
_COURSES = {"worse": 0, "neither": 1, "better": 2}
_WORDS = {"different": 0, "ambiguous": 1, "same": 2}
# The kinds of time and of work, the best first: the first that there is may leave the outcome open.
_PRIMARY = (
    "time.median", "time.geometric_mean", "time.total", "time.gpu", "time.kernel", "time.cpu", "cycles",
    "instructions",
)  # fmt: skip


def deciding_changes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes that may make an outcome: those whose role it is, and where no time was sampled the stand-ins."""
    timed = any(c.role == "decides" and c.metric.startswith("time.") for c in changes)
    roles = ("decides",) if timed else ("decides", "stands-in")
    return tuple(c for c in changes if c.role in roles)


def outcome_of(
    changes: Sequence[Change],
    kernels: Sequence[KernelChange],
    disturbed: Mapping[KernelChange, str],
    *,
    asked: bool = False,
) -> tuple[ComparisonOutcome, str, str | None]:
    """The outcome, one sentence that says it, and what would decide it where it is open.

    `regressed`: a metric that decides is DIFFERENT for the worse, whatever became better; or the time is open, and the
    kernels' time rose (`_risen_kernel_time`). `ambiguous`: a time (or what stands in for it) is open. `improved`:
    something better and nothing worse. `changed`: only what is neither good nor bad, or decides nothing. Else `same`.
    A time that fell to a tenth or less is no improvement yet, unless the metric was `asked` for by name: most often the
    work was not done. `disturbed`: of kernels whose change the state of the device may have made, why.
    """
    outcome, reason = _outcome_and_reason(changes, kernels, disturbed)
    if outcome == "improved" and not asked:
        fallen = [c for c in deciding_changes(changes) if c.word == "different" and c.unit == "s"]
        for change in fallen:
            if change.ratio is not None and change.ratio <= COLLAPSE:
                before, after = change.baseline.value, change.candidate.value
                sizes = f"fell to {format_quantity(after, 's')} from {format_quantity(before, 's')}"
                return (
                    "ambiguous",
                    f"{_title(change)} {sizes}: was the work done at all?",
                    f"--metric {change.metric} accepts the improvement",
                )
    return (outcome, reason, _fix_of_outcome(changes)) if outcome == "ambiguous" else (outcome, reason, None)


def worst_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Different for the worse, largest first; what is open, what is better, and what is the same last."""

    def order(change: Change) -> tuple[int, int, bool, float]:
        course = _COURSES[change.course] if change.word == "different" else 0
        return _WORDS[change.word], course, change.role != "decides", -abs(_size(change))

    return tuple(sorted(changes, key=order))


def _outcome_and_reason(
    changes: Sequence[Change], kernels: Sequence[KernelChange], disturbed: Mapping[KernelChange, str]
) -> tuple[ComparisonOutcome, str]:
    decisive = deciding_changes(changes)
    worse = [c for c in worst_first(decisive) if c.word == "different" and c.course == "worse"]
    if worse:
        return "regressed", f"{_sentence(worse[0])}{_and_more(len(worse) - 1, 'is worse', 'are worse')}."
    primary, undecided = _primary(decisive), _undecided(changes)
    risen = _risen_kernel_time(changes, undecided)
    if risen is not None:
        kernel_time, time = risen
        direction = f"changed in the same direction ({signed_percent(_size(time))})"
        more = f"{_title(time)} does not decide by itself, but {direction}"
        return "regressed", f"{_sentence(kernel_time)}; {more}."
    if undecided:
        counted = _risen_instructions(changes)
        beside = f". {_sentence(counted)}, exactly" if counted is not None else ""
        return "ambiguous", f"Cannot decide {_title(undecided[0])}: {undecided[0].reason}{beside}."
    better = [c for c in worst_first(decisive)[::-1] if c.word == "different" and c.course == "better"]
    if better:
        return "improved", f"{_sentence(better[0])}{_and_more(len(better) - 1, 'is better', 'are better')}."
    if not primary:
        return _by_kernels(kernels, disturbed)
    same = f"{_titles(primary)} the same{_detectable(primary)}"
    if any(c.word == "different" for c in changes) or any(
        k.word not in ("same", "ambiguous") and k.share >= _SHARE for k in kernels
    ):
        return "changed", f"{same}, but not everything is."
    return "same", f"No change: {same}."


def _by_kernels(
    kernels: Sequence[KernelChange], disturbed: Mapping[KernelChange, str]
) -> tuple[ComparisonOutcome, str]:
    # Work without a launch configuration is an encoder of Metal.
    what = "encoder" if kernels and not any(k.launch for k in kernels) else "kernel"
    words = [k.word for k in kernels if k.share >= _SHARE]
    replaced = words.count("appeared") + words.count("vanished")
    if "slower" in words:
        return "regressed", f"{plural(words.count('slower'), what)} became slower."
    if replaced:
        return "changed", f"{plural(replaced, what)} appeared or vanished."
    if "faster" in words:
        return "improved", f"{plural(words.count('faster'), what)} became faster."
    reason = next((disturbed[k] for k in kernels if k.share >= _SHARE and k in disturbed), None)
    if reason is not None:
        return "ambiguous", f"Cannot decide: {reason}."
    if "ambiguous" in words:
        return "ambiguous", f"Cannot decide: {what}s differ by no more than one trace does from the next."
    return "same", f"No change: every {what} takes the same time."


# ---------------------------------------------------------------- what decides, and what is open


def _primary(decisive: Sequence[Change]) -> list[Change]:
    """What may leave the outcome open: the times that were sampled, else one kind of time, else one kind of work."""
    for metric in _PRIMARY:
        metric_changes = [c for c in decisive if c.metric == metric]
        if metric_changes:
            return metric_changes
    return list(decisive)


def _undecided(changes: Sequence[Change]) -> list[Change]:
    """What leaves the outcome open, the largest change first."""
    primary = [c for c in _primary(deciding_changes(changes)) if c.word == "ambiguous"]
    return sorted(primary, key=lambda c: -abs(_size(c)))


def _fix_of_outcome(changes: Sequence[Change]) -> str:
    """What would decide what is open."""
    undecided = _undecided(changes)
    fix = (undecided[0].fix if undecided else None) or FIX_LONGER
    if _risen_instructions(changes):
        return f"--metric instructions lets that count decide; or {fix}"
    return fix


def _worse_changes(changes: Sequence[Change], metric: str) -> list[Change]:
    return [c for c in changes if c.metric == metric and c.word == "different" and c.course == "worse"]


def _risen_kernel_time(
    changes: Sequence[Change], undecided: Sequence[Change]
) -> tuple[Change, Change] | None:
    """The kernels' time that rose, and the time that is open and points the same way.

    Two instruments, in two passes, then saw the same work take longer: the samples, that cannot decide by themselves,
    and the trace. Kernels alone prove nothing of the time, since more of them may overlap: a time whose median did not
    rise beyond its floor stays open. Never the other way: an improvement is not taken from half a proof.
    """
    rose = _worse_changes(changes, "time.gpu")
    points = [c for c in undecided if c.metric == "time.median" and c.ratio and c.ratio > 1 + c.floor]
    return (rose[0], points[0]) if rose and points else None


def _risen_instructions(changes: Sequence[Change]) -> Change | None:
    """Instructions that were counted exactly and rose: work, and no time, so it decides where it is asked to."""
    rose = _worse_changes(changes, "instructions")
    return next((c for c in rose if c.role == "stands-in" and _is_exact(c)), None)


def _is_exact(change: Change) -> bool:
    rule = rule_of(change.metric, change.tool)
    return rule is not None and rule.exact


# ---------------------------------------------------------------- sentences


def _size(change: Change) -> float:
    return (change.ratio - 1) if change.ratio is not None else float("inf")


def _sentence(change: Change) -> str:
    before, after = (format_quantity(side.value, change.unit) for side in (change.baseline, change.candidate))
    by = ""
    if change.ratio is not None:
        by = f" by {signed_percent(change.ratio - 1)[1:]}"
        if change.ratio >= 3:
            by = f" to {format_figures(change.ratio)} times as much"
    verb = "rose" if change.candidate.value > change.baseline.value else "fell"
    word = {"worse": "Worse", "better": "Better", "neither": "Different"}[change.course]
    return f"{word}: {_title(change)} {verb}{by}, from {before} to {after}"


def _title(change: Change) -> str:
    name = change.scope.name
    if change.scope.kind == "run" or not name:
        return change.metric
    return f"{change.metric} of {short_name(name) if change.scope.kind == 'kernel' else name}"


def _titles(primary: Sequence[Change]) -> str:
    """`time.median of step is`, `time.kernel of gemm and 3 more are`."""
    more = len(primary) - 1
    return f"{_title(primary[0])} and {more} more are" if more else f"{_title(primary[0])} is"


def _detectable(primary: Sequence[Change]) -> str:
    sizes = [c.detectable for c in primary if c.detectable is not None]
    return f" (a change of {percent_text(max(sizes))} would have been seen)" if sizes else ""


def _and_more(count: int, singular: str, plural_text: str) -> str:
    return f"; {count} more {singular if count == 1 else plural_text}" if count > 0 else ""
