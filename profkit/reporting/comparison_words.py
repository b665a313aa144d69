"""What the reports of a comparison say alike: signs, sentences, rows of tables."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.comparability import all_fields
from profkit.analysis.kernel_names import labels
from profkit.analysis.metrics import all_metrics
from profkit.core.formatting import figures, moment, plural, quantity, work_word
from profkit.core.types import (
    Cause,
    Change,
    ChangeWord,
    Comparison,
    ComparisonOutcome,
    Course,
    Difference,
    FunctionChange,
    KernelChange,
    Sample,
    Side,
)

SIGNS: dict[ComparisonOutcome, str] = {
    "regressed": "✗",
    "refused": "!",
    "ambiguous": "?",
    "changed": "~",
    "improved": "▲",
    "same": "✓",
}
COURSES: dict[Course, str] = {"better": "▲", "worse": "✗", "neither": "~"}
_LISTED = 6  # items of a list, as of timed regions
_TIMES = 10.0  # a change as large as that is told as a factor
_COMMIT = 12  # digits of a commit
_SHARE = 0.005  # of the GPU time: kernels below it are counted, not listed
DOUBTS = ("neighbours", "state")  # kinds of causes that say how well it was measured, not why it changed
WORD_SIGNS: dict[ChangeWord, str] = {"different": "~", "same": "✓", "ambiguous": "?"}
OVER_SHAPES = "time.geometric_mean"
MOST_OVER_SHAPES = 40  # rows of the table that decides about two sweeps
MOST = 12  # rows of a table; the document has all


def title_of(change: Change) -> str:
    """`Time per iteration (step)`: the catalogue's title, and of what."""
    known = next((info.title for info in all_metrics() if info.name == change.metric), change.metric)
    return f"{known} ({change.scope.name})" if change.scope.kind == "region" and change.scope.name else known


def value_of(sample: Sample, unit: str) -> str:
    """The value; `293 µs`."""
    return quantity(sample.value, unit)


def relative(ratio: float | None) -> str:
    """`+9.8 %`, `2.4 x`; a dash where there is no ratio."""
    if ratio is None:
        return "-"
    part = ratio - 1
    if ratio >= _TIMES:
        return f"{figures(ratio)} x"
    size = abs(100 * part)
    text = f"{size:.2f}" if size < 1 else figures(size)
    return f"{'+' if part >= 0 else '-'}{text} %"


def interval_of(change: Change) -> str:
    """`+8.1 to +12 %`, `+2.9 to +3.4 pts`, `3.0 to 15 x`; a dash where the change has none."""
    low, high = change.low, change.high
    if low is None or high is None:
        return "-"
    if low == high:
        return "exact"
    if change.unit == "%":
        ends, unit = [(end - 1) * change.baseline.value for end in (low, high)], "pts"
    elif high >= _TIMES:
        return f"{figures(low, 2)} to {figures(high, 2)} x"
    else:
        ends, unit = [100 * (end - 1) for end in (low, high)], "%"
    return " to ".join(f"{'+' if end >= 0 else '-'}{figures(abs(end), 2)}" for end in ends) + f" {unit}"


def side_line(side: Side) -> str:
    """`step on cpu, 2026-11-20 13:37:20 UTC, commit a1b2c3d4e5f6 (changed)`."""
    parts = [side.name if not side.path or side.path.endswith(side.name) else f"{side.name} ({side.path})"]
    parts.append(side.backend)
    if side.started:
        parts.append(moment(side.started))
    if side.commit:
        parts.append(f"commit {side.commit[:_COMMIT]}{' with changes' if side.dirty else ''}")
    return ", ".join(parts)


def causes_told(comparison: Comparison) -> list[tuple[str, list[Cause]]]:
    """Causes below their headings: what explains a change, and what only disturbed the measuring."""
    why = [cause for cause in comparison.causes if cause.kind not in DOUBTS][:MOST]
    doubts = [cause for cause in comparison.causes if cause.kind in DOUBTS]
    headed = [("Why, as far as the counters show it", why), ("How well it was measured", doubts)]
    return [(heading, found) for heading, found in headed if found]


def different(comparison: Comparison) -> list[Change]:
    """What changed, worst first, but for what `over_shapes` has."""
    return [c for c in comparison.changes if c.word == "different" and c.metric != OVER_SHAPES]


def over_shapes(comparison: Comparison) -> list[Change]:
    """Of two sweeps each implementation of each operation over all shapes, worst first."""
    return [change for change in comparison.changes if change.metric == OVER_SHAPES]


def over_shapes_title(changes: Sequence[Change]) -> str:
    """What they are, and what is the same in all: `Over 112 shapes each, forward float32: geometric means`."""
    shapes, words = _alike(changes)
    return (
        f"Over {shapes + ' each' if shapes else 'all shapes'}{', ' + words if words else ''}: geometric means"
    )


def over_shapes_rows(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    """Which with a sign for its word, baseline, candidate, change, interval; without what the title says."""
    shapes, words = _alike(changes)
    rows: list[tuple[str, ...]] = []
    for c in changes:
        name = (c.scope.name or "").removesuffix(f", {shapes}" if shapes else "")
        name = name.removesuffix(f" {words}" if words and shapes else "")
        sign = COURSES[c.course] if c.word == "different" else WORD_SIGNS[c.word]
        values = value_of(c.baseline, c.unit), value_of(c.candidate, c.unit)
        rows.append((f"{sign} {name}", *values, _moved(c), interval_of(c)))
    return rows


def _alike(changes: Sequence[Change]) -> tuple[str, str]:
    """The number of shapes, and direction and dtype, where they are the same in all; else nothing."""
    parts = [(c.scope.name or "").rpartition(", ") for c in changes]
    shapes = {part[2] for part in parts}
    words = {" ".join(part[0].split(" ")[-2:]) for part in parts}
    one = next(iter(shapes)) if len(shapes) == 1 else ""
    return one, next(iter(words)) if one and len(words) == 1 else ""


def is_case(change: Change) -> bool:
    """Whether it is a single case of a sweep: there are thousands, and those that stand out are told."""
    return change.metric == "time.median" and change.role == "supports"


def cases_line(comparison: Comparison) -> str | None:
    """Of two sweeps how many single cases stand out, and from what change on one does."""
    cases = [change for change in comparison.changes if is_case(change)]
    if not cases:
        return None
    seen = sorted(change.detectable for change in cases if change.detectable is not None)
    words = [change.word for change in cases]
    told = f"{plural(len(cases), 'single case')}, which decide nothing: {words.count('different')} stand out"
    told += f", {words.count('same')} the same within {figures(100 * cases[0].floor, 2)} %"
    told += f", {words.count('ambiguous')} not decided"
    if seen:
        told += f"; a change of {figures(100 * seen[len(seen) // 2], 2)} % would show in half of them"
    return told


def change_rows(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    """Metric with a sign for its course, baseline, candidate, change, interval."""
    kernels = [(c.scope.name or "", c.scope.id or "") for c in changes if c.scope.kind == "kernel"]
    names = labels(kernels, 30) if kernels else {}
    rows: list[tuple[str, ...]] = []
    for change in changes:
        title = change.scope.name or "" if is_case(change) else title_of(change)
        if change.scope.kind == "kernel":
            title = f"{title}: {names[change.scope.name or '', change.scope.id or '']}"
        rows.append(
            (
                f"{COURSES[change.course]} {title}",
                value_of(change.baseline, change.unit),
                value_of(change.candidate, change.unit),
                _moved(change),
                interval_of(change),
            )
        )
    return rows


CHANGE_COLUMNS = ("metric", "baseline", "candidate", "change", "interval")


def _moved(change: Change) -> str:
    if change.unit == "%":
        distance = change.candidate.value - change.baseline.value
        return f"{'+' if distance >= 0 else '-'}{figures(abs(distance))} pts"
    return relative(change.ratio)


def open_lines(comparison: Comparison) -> list[str]:
    """What cannot be decided, a sentence each."""
    return [
        f"{title_of(change)}{_of_kernel(change)}: {change.reason}"
        for change in comparison.changes
        if change.word == "ambiguous" and not is_case(change) and change.metric != OVER_SHAPES
    ]


def _of_kernel(change: Change) -> str:
    if change.scope.kind != "kernel":
        return ""
    key = change.scope.name or "", change.scope.id or ""
    return f" of {labels([key], 40)[key]}"


def same_line(comparison: Comparison) -> str | None:
    """All that is the same in one line, each with the smallest change that would have been seen."""
    same = [c for c in comparison.changes if c.word == "same" and not is_case(c) and c.metric != OVER_SHAPES]
    if not same:
        return None
    run = [change for change in same if change.scope.kind != "kernel"]
    told = [f"{title_of(c)}{_seen(c)}" for c in run]
    inside = len(same) - len(run)
    if inside:
        told.append(f"{plural(inside, 'metric')} of {work_word(comparison.baseline.backend)}s")
    return ", ".join(told)


def _seen(change: Change) -> str:
    """` (3.9 %)`; what is small is held against an absolute change, and no per cent of it says anything."""
    if change.detectable is None or change.detectable > 1:
        return ""
    return f" ({figures(100 * change.detectable, 2)} %)"


KERNEL_COLUMNS = ("baseline", "candidate", "change", "")  # behind what it is


def kernel_rows(kernels: Sequence[KernelChange]) -> list[tuple[str, ...]]:
    """The kernels that are not the same and matter, largest change first."""
    listed = [k for k in kernels if k.word not in ("same", "ambiguous") and k.share >= _SHARE][:MOST]
    names = labels([(k.name, k.launch or "") for k in listed], 44)
    return [
        (
            names[k.name, k.launch or ""],
            quantity(k.baseline_seconds, "s"),
            quantity(k.candidate_seconds, "s"),
            relative(_ratio(k.baseline_seconds, k.candidate_seconds)),
            k.word,
        )
        for k in listed
    ]


def kernel_line(kernels: Sequence[KernelChange]) -> str:
    """`2 slower, 1 vanished, 1 appeared; 40 the same, 3 not decided`."""
    words = [k.word for k in kernels]
    told = [
        f"{words.count(word)} {word}"
        for word in ("slower", "faster", "appeared", "vanished")
        if word in words
    ]
    rest = []
    if "same" in words:
        rest.append(f"{words.count('same')} the same")
    if "ambiguous" in words:
        rest.append(f"{words.count('ambiguous')} not decided: within what two traces differ by")
    return "; ".join(part for part in (", ".join(told), ", ".join(rest)) if part)


FUNCTION_COLUMNS = ("function", "baseline", "candidate", "change", "")


def function_tables(functions: Sequence[FunctionChange]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Of each profile its title and the functions that changed most."""
    tables: list[tuple[str, list[tuple[str, ...]]]] = []
    for title in dict.fromkeys(f.profile for f in functions):
        own = [f for f in functions if f.profile == title][:MOST]
        rows: list[tuple[str, ...]] = [
            (
                f.name,
                quantity(f.baseline, f.unit if f.unit == "%" else ""),
                quantity(f.candidate, f.unit if f.unit == "%" else ""),
                _points(f) if f.unit == "%" else relative(_ratio(f.baseline, f.candidate)),
                {"slower": "more", "faster": "less"}.get(f.word, f.word),
            )
            for f in own
        ]
        tables.append((title, rows))
    return tables


def _points(change: FunctionChange) -> str:
    distance = (change.candidate or 0.0) - (change.baseline or 0.0)
    return f"{'+' if distance >= 0 else '-'}{figures(abs(distance))} pts"


def _ratio(before: float | None, after: float | None) -> float | None:
    return after / before if before and after is not None else None


def difference_line(difference: Difference) -> str:
    """`driver: 580.159 -> 590.10; a driver's update may change launch times`."""
    field = all_fields().get(difference.name)
    title = field.title if field is not None else difference.name
    values = (
        _lists(difference) or f"{difference.baseline or 'not told'} -> {difference.candidate or 'not told'}"
    )
    return f"{title}: {values}; {difference.meaning}"


def _lists(difference: Difference) -> str | None:
    """Of two long lists what is in one of them alone; None where they are none."""
    sides = [(value or "").split(", ") for value in (difference.baseline, difference.candidate)]
    if max(map(len, sides)) <= _LISTED:
        return None
    told = []
    for name, own, other in (("baseline", *sides), ("candidate", *reversed(sides))):
        alone = [item for item in own if item not in set(other)]
        if alone:
            more = f" and {len(alone) - _LISTED} more" if len(alone) > _LISTED else ""
            told.append(f"{', '.join(alone[:_LISTED])}{more} in the {name} alone")
    return "; ".join(told) or None


def looked_line(comparison: Comparison) -> str | None:
    """How many were looked at, and what that costs."""
    count = len(comparison.changes)
    if not count:
        return None
    tested = comparison.looked_at
    text = f"{plural(count, 'metric')} looked at"
    if tested:
        text += f", {tested} by samples: of those called different 5 % at most are so by chance"
        single = [c for c in comparison.changes if len(c.baseline.groups) == len(c.candidate.groups) == 1]
        if any(not is_case(change) for change in single):
            text += ", if single processes differ by no more than is assumed"
        elif single:
            text += ", as far as the cases themselves tell what two sweeps differ by"
    return text
