"""One word for all of it, by the metrics that decide."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.kernel_names import short_name
from profkit.core.formatting import figures, plural, quantity
from profkit.core.types import Change, ComparisonOutcome, KernelChange
from profkit.regression.compare.decisions import FIX_LONGER, percent_text, signed_percent

_SHARE = 0.02  # of the GPU time: kernels that vanished or appeared and take less change nothing
COLLAPSE = 0.1  # of the time before: an improvement as large as that is doubted
_COURSES = {"worse": 0, "neither": 1, "better": 2}
_WORDS = {"different": 0, "ambiguous": 1, "same": 2}


def deciding_changes(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes that may make an outcome: those whose role it is, and where no time was sampled the stand-ins."""
    timed = any(c.role == "decides" and c.metric.startswith("time.") for c in changes)
    roles = ("decides",) if timed else ("decides", "stands-in")
    return tuple(c for c in changes if c.role in roles)


def outcome_of(
    changes: Sequence[Change], kernels: Sequence[KernelChange], *, asked: bool = False
) -> tuple[ComparisonOutcome, str, str | None]:
    """The outcome, one sentence that says it, and what would decide it where it is open.

    `regressed`: a metric that decides is DIFFERENT for the worse, whatever became better; or the time could be either,
    and a second witness speaks (see `_witness`). `ambiguous`: a time (or what stands in for it) could be either.
    `improved`: something better and nothing worse. `changed`: only what neither is
    good nor bad, or decides nothing. Else `same`. A time that fell to a tenth or less is no improvement yet, unless the
    metric was asked for by name: most often the work was not done.
    """
    outcome, reason = _outcome_and_reason(changes, kernels)
    if outcome == "improved" and not asked:
        fallen = [
            c for c in deciding_changes(changes) if c.word == "different" and c.unit == "s" and _collapsed(c)
        ]
        if fallen:
            name = fallen[0].metric
            doubt = f"{_title(fallen[0])} fell to {quantity(fallen[0].candidate.value, 's')} from "
            doubt += f"{quantity(fallen[0].baseline.value, 's')}: was the work done at all?"
            return "ambiguous", doubt, f"--metric {name} takes it for what it says"
    return (outcome, reason, _fix(changes)) if outcome == "ambiguous" else (outcome, reason, None)


def _fix(changes: Sequence[Change]) -> str:
    """What would decide what is open."""
    open_ones = _undecided(changes)
    fix = (open_ones[0].fix if open_ones else None) or FIX_LONGER
    return f"--metric instructions lets that count decide; or {fix}" if _risen_instructions(changes) else fix


def _undecided(changes: Sequence[Change]) -> list[Change]:
    """What leaves the outcome open, the largest change first."""
    found = [c for c in _primary(deciding_changes(changes)) if c.word == "ambiguous"]
    return sorted(found, key=lambda c: -abs(_size(c)))


def _risen_kernel_time(
    changes: Sequence[Change], open_ones: Sequence[Change]
) -> tuple[Change, Change] | None:
    """The kernels' time that rose, and the time that is open and points the same way.

    Two instruments, in two passes, then saw the same work take longer: the samples, that cannot tell by themselves,
    and the trace. Kernels alone prove nothing of the time, since more of them may overlap: a time whose own middle did
    not rise beyond its floor stays open. Never the other way: that something became better is not taken from half a
    proof.
    """
    rose = [c for c in changes if c.metric == "time.gpu" and c.word == "different" and c.course == "worse"]
    points = [c for c in open_ones if c.metric == "time.median" and c.ratio and c.ratio > 1 + c.floor]
    return (rose[0], points[0]) if rose and points else None


def _risen_instructions(changes: Sequence[Change]) -> Change | None:
    """Instructions that were counted exactly and rose: work, and no time, so it decides where it is asked to."""
    rose = (
        c for c in changes if c.metric == "instructions" and c.word == "different" and c.course == "worse"
    )
    return next((c for c in rose if c.tool == "valgrind" and c.role == "stands-in"), None)


def _outcome_and_reason(
    changes: Sequence[Change], kernels: Sequence[KernelChange]
) -> tuple[ComparisonOutcome, str]:
    decisive = deciding_changes(changes)
    worse = [c for c in worst_first(decisive) if c.word == "different" and c.course == "worse"]
    if worse:
        return (
            "regressed",
            f"{_sentence(worst_first(worse)[0])}{_and_more(len(worse) - 1, 'is worse', 'are worse')}.",
        )
    primary, open_ones = _primary(decisive), _undecided(changes)
    if (seen_twice := _risen_kernel_time(changes, open_ones)) is not None:
        kernels_, time = seen_twice
        said = (
            f"{_title(time)}, which alone leaves it open, points the same way ({signed_percent(_size(time))})"
        )
        return "regressed", f"{_sentence(kernels_)}; {said}."
    if open_ones:
        counted = _risen_instructions(changes)
        beside = f". {_sentence(counted)}, exactly" if counted is not None else ""
        return "ambiguous", f"Cannot decide {_title(open_ones[0])}: {open_ones[0].reason}{beside}."
    better = [c for c in worst_first(decisive)[::-1] if c.word == "different" and c.course == "better"]
    if better:
        return "improved", f"{_sentence(better[0])}{_and_more(len(better) - 1, 'is better', 'are better')}."
    if not primary:
        return _by_kernels(kernels)
    other = [c for c in changes if c.word == "different"]
    if other or any(k.word not in ("same", "ambiguous") and k.share >= _SHARE for k in kernels):
        seen = _detectable(primary)
        return "changed", f"{_titles(primary)} the same{seen}, but not everything is."
    return "same", f"No change: {_titles(primary)} the same{_detectable(primary)}."


def worst_first(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Different for the worse, largest first; what is open, what is better, and what is the same last."""
    return tuple(
        sorted(
            changes,
            key=lambda c: (
                _WORDS[c.word] if c.word != "different" else 0,
                _COURSES[c.course] if c.word == "different" else 0,
                c.role != "decides",
                -abs(_size(c)),
            ),
        )
    )


def _primary(decisive: Sequence[Change]) -> list[Change]:
    """What may leave the outcome open: the times that were sampled, else one kind of time, else one kind of work."""
    sampled = [c for c in decisive if c.metric == "time.median"]
    if sampled:
        return sampled
    for metric in (
        "time.geometric_mean",
        "time.total",
        "time.gpu",
        "time.kernel",
        "time.cpu",
        "cycles",
        "instructions",
    ):
        found = [c for c in decisive if c.metric == metric]
        if found:
            return found
    return list(decisive)


def _by_kernels(kernels: Sequence[KernelChange]) -> tuple[ComparisonOutcome, str]:
    # What has no shape is an encoder of Metal.
    what = "encoder" if kernels and not any(k.launch for k in kernels) else "kernel"
    slower = [k for k in kernels if k.word == "slower" and k.share >= _SHARE]
    faster = [k for k in kernels if k.word == "faster" and k.share >= _SHARE]
    other = [k for k in kernels if k.word in ("appeared", "vanished") and k.share >= _SHARE]
    if slower:
        return "regressed", f"{plural(len(slower), what)} became slower."
    if other:
        return "changed", f"{plural(len(other), what)} appeared or vanished."
    if faster:
        return "improved", f"{plural(len(faster), what)} became faster."
    unsure = [k for k in kernels if k.word == "ambiguous" and k.share >= _SHARE]
    doubt = next((why for k in unsure if (why := k.reason.partition("; but ")[2])), None)
    if doubt is not None:
        return "ambiguous", f"Cannot decide: {doubt}."
    if unsure:
        return "ambiguous", f"Cannot decide: {what}s differ by no more than one trace does from the next."
    return "same", f"No change: every {what} takes what it took."


def _collapsed(change: Change) -> bool:
    return change.ratio is not None and change.ratio <= COLLAPSE


def _size(change: Change) -> float:
    return (change.ratio - 1) if change.ratio is not None else float("inf")


def _sentence(change: Change) -> str:
    before, after = (quantity(side.value, change.unit) for side in (change.baseline, change.candidate))
    by = ""
    if change.ratio is not None:
        many = change.ratio >= 3
        by = (
            f" to {figures(change.ratio)} times as much"
            if many
            else f" by {signed_percent(change.ratio - 1)[1:]}"
        )
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
    seen = [c.detectable for c in primary if c.detectable is not None]
    return f" (a change of {percent_text(max(seen))} would have been seen)" if seen else ""


def _and_more(count: int, one: str, many: str) -> str:
    return f"; {count} more {one if count == 1 else many}" if count > 0 else ""
