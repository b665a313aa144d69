"""A comparison of two runs: the verdict in one sentence, what changed, why, and what is the same in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.comparability import all_fields
from profkit.analysis.kernel_names import labels
from profkit.analysis.metrics import title_of
from profkit.backends import kernel_word
from profkit.core.formatting import format_figures, format_quantity, format_utc_time, plural, signed
from profkit.core.types import (
    RUN,
    Change,
    Comparison,
    Difference,
    FunctionChange,
    KernelChange,
    Side,
)
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    Fold,
    Item,
    Items,
    Label,
    Section,
    Span,
    Status,
    TableColumn,
    Text,
    View,
    code,
    joined,
    notes,
    soft,
    strong,
    table,
)
from profkit.reporting.views.comparison import paired
from profkit.reporting.views.comparison.machine import machine_blocks
from profkit.reporting.views.comparison.words import (
    OUTCOMES,
    cause_text,
    change_text,
    evidence_texts,
    fact_text,
    outcome_label,
    status_of,
    why_text,
)

DISTURBANCES = (
    "neighbours",
    "state",
)  # kinds of causes that say how well it was measured, not why it changed
_GEOMETRIC_MEAN = "time.geometric_mean"
_CHANGE_COLUMNS = ("metric", "baseline", "candidate", "change", "interval")
_LISTED = 6  # items of a list, as of timed regions
_TIMES = 10.0  # a change as large as that is shown as a factor
_COMMIT = 12  # digits of a commit
_SHARE = 0.005  # of the GPU time: kernels below it are counted, not listed
_MOST = 12  # rows of a table; the document has all
_MOST_MEANS = 40  # the same of the table that decides about two sweeps
_BRIEF = 4  # open questions on a short screen


def view(comparison: Comparison) -> View:
    """The comparison as blocks."""
    forced = "FORCED: these two must not be compared; what follows may mean nothing."
    pairing = comparison.pairing
    headline: list[Text] = [why_text(comparison)] if pairing is None else paired.headline(comparison)
    headline += [joined(soft("fix: "), fact_text(comparison.fix))] if comparison.fix else []
    names = dict.fromkeys((comparison.baseline.name, comparison.candidate.name))
    label = Label(OUTCOMES[comparison.outcome], comparison.outcome.upper())
    sides = ("baseline", _side_line(comparison.baseline)), ("candidate", _side_line(comparison.candidate))
    return View(
        f"comparison of {' and '.join(names)}",
        (*blocks(comparison), *machine_blocks("compare", [("", comparison)])),
        outcome_label(comparison) if pairing is not None else label,
        tuple(headline),
        (*sides, *(paired.facts(pairing) if pairing is not None else ())),
        warning=strong(forced, Status.FAIL) if comparison.forced else "",
    )


def blocks(comparison: Comparison, *, trust: bool = True) -> Iterator[Block]:
    """All that stands below the verdict; with `trust` also how far its words are to be trusted."""
    yield from paired.interval(comparison)
    yield from paired.blamed(comparison.blamed)
    if comparison.differences:
        lines = tuple(
            Span(difference_line(difference), status=Status.FAIL if difference.tier == "must" else None)
            for difference in comparison.differences
        )
        yield Section("Not alike", (Items(lines),))
    yield from _means(comparison)
    yield from _paired_kernels(comparison)
    changes = [c for c in comparison.changes if c.word == "different" and c.metric != _GEOMETRIC_MEAN]
    if changes:
        title = "Single cases that stand out" if all(map(_is_case, changes)) else "What changed"
        rows = _change_rows(changes[:_MOST])
        yield Section(title, (table(_CHANGE_COLUMNS, rows, left=max(0, len(changes) - _MOST)),))
    why = [cause for cause in comparison.causes if cause.kind not in DISTURBANCES][:_MOST]
    measuring = [cause for cause in comparison.causes if cause.kind in DISTURBANCES]
    for heading, causes in (
        ("Why, as far as the counters show it", why),
        ("How well it was measured", measuring),
    ):
        if causes:
            items = (
                Item(cause_text(cause), (soft("; ".join(evidence_texts(cause))),) if cause.evidence else ())
                for cause in causes
            )
            yield Section(heading, (Items(tuple(items)),))
    if comparison.kernels:
        yield _kernels(comparison)
    yield from _functions(comparison.functions)
    yield from _undecided(comparison)
    same = _same_line(comparison)
    if same is not None:
        yield Section("The same (and the smallest change that would have been seen)", (), headline=same)
    looked = looked_line(comparison) if trust else None
    yield from notes([*map(fact_text, comparison.notes), *([looked] if looked else [])])


def _side_line(side: Side) -> str:
    """`step on cpu, 2026-11-20 13:37:20 UTC, commit a1b2c3d4e5f6 with changes`."""
    parts = [side.name if not side.path or side.path.endswith(side.name) else f"{side.name} ({side.path})"]
    parts += [side.backend] if side.backend else []
    if side.started:
        parts.append(format_utc_time(side.started))
    if side.commit and side.commit[:_COMMIT] not in side.name:
        parts.append(f"commit {side.commit[:_COMMIT]}{' with changes' if side.dirty else ''}")
    return ", ".join(parts)


# ---------------------------------------------------------------- two sweeps


def _means(comparison: Comparison) -> Iterator[Block]:
    """Of two sweeps what decides: each implementation of each operation over all shapes, worst first."""
    changes = [change for change in comparison.changes if change.metric == _GEOMETRIC_MEAN]
    cases = _cases_line(comparison)
    if changes:
        shapes, words = _common_name(changes)
        over = f"{shapes} each" if shapes else "all shapes"
        title = f"Over {over}{', ' + words if words else ''}: geometric means"
        rows = [_change_row(change, _short_name(change, shapes, words)) for change in changes]
        body = table(_CHANGE_COLUMNS, rows, brief=_MOST_MEANS, note=cases or "")
        yield Section(title, (body,))
    elif cases:
        yield Items((cases,))


def _short_name(change: Change, shapes: str, words: str) -> str:
    """The name of a mean without what its title says."""
    name = (change.scope.name or "").removesuffix(f", {shapes}" if shapes else "")
    return name.removesuffix(f" {words}" if words and shapes else "")


def _common_name(changes: Sequence[Change]) -> tuple[str, str]:
    """The number of shapes, and direction and dtype, where they are the same in all; else nothing."""
    parts = [(change.scope.name or "").rpartition(", ") for change in changes]
    shapes = {part[2] for part in parts}
    words = {" ".join(part[0].split(" ")[-2:]) for part in parts}
    shape_count = next(iter(shapes)) if len(shapes) == 1 else ""
    return shape_count, next(iter(words)) if shape_count and len(words) == 1 else ""


def _is_case(change: Change) -> bool:
    """Whether it is a single case of a sweep: there are thousands, and only those that stand out are listed."""
    return change.metric == "time.median" and change.role == "supports"


def _cases_line(comparison: Comparison) -> str | None:
    """Of two sweeps how many single cases stand out, and from what change on one does."""
    cases = [change for change in comparison.changes if _is_case(change)]
    if not cases:
        return None
    sizes = sorted(change.detectable for change in cases if change.detectable is not None)
    words = [change.word for change in cases]
    line = f"{plural(len(cases), 'single case')}, which decide nothing: {words.count('different')} stand out"
    line += f", {words.count('same')} the same within {format_figures(100 * cases[0].floor, 2)} %"
    line += f", {words.count('ambiguous')} not decided"
    if sizes:
        line += (
            f"; a change of {format_figures(100 * sizes[len(sizes) // 2], 2)} % would show in half of them"
        )
    return line


# ---------------------------------------------------------------- metrics


def _change_rows(changes: Sequence[Change]) -> list[tuple[Text, ...]]:
    kernels = [(c.scope.name or "", c.scope.id or "") for c in changes if c.scope.kind == "kernel"]
    names = labels(kernels, 30) if kernels else {}
    rows = []
    for change in changes:
        title = change.scope.name or "" if _is_case(change) else _title_of(change)
        if change.scope.kind == "kernel":
            title = f"{title}: {names[change.scope.name or '', change.scope.id or '']}"
        rows.append(_change_row(change, title))
    return rows


def _change_row(change: Change, name: str) -> tuple[Text, ...]:
    """The name with a sign for its course, baseline, candidate, change, interval."""
    status = status_of(change)
    return (
        joined(Span(status.sign, status=status), f" {name}"),
        format_quantity(change.baseline.value, change.unit),
        format_quantity(change.candidate.value, change.unit),
        _difference(change),
        _interval(change),
    )


def _title_of(change: Change) -> str:
    """`Time per iteration (step)`: the catalogue's title, and of what."""
    if change.metric == "time.median" and change.scope == RUN and _by_pairs(change):
        return "Time of the process"
    known = title_of(change.metric)
    return f"{known} ({change.scope.name})" if change.scope.kind == "region" and change.scope.name else known


def _by_pairs(change: Change) -> bool:
    """Whether each of its samples is one process."""
    return bool(change.baseline.groups) and all(len(group) == 1 for group in change.baseline.groups)


def _relative(ratio: float | None) -> str:
    """`+9.8 %`, `2.4 x`; a dash where there is no ratio."""
    if ratio is None:
        return "-"
    part = ratio - 1
    if ratio >= _TIMES:
        return f"{format_figures(ratio)} x"
    size = abs(100 * part)
    text = f"{size:.2f}" if size < 1 else format_figures(size)
    return f"{'+' if part >= 0 else '-'}{text} %"


def _points(before: float | None, after: float | None) -> str:
    """`+2.1 pts`: the distance of two values in %."""
    distance = (after or 0.0) - (before or 0.0)
    return f"{signed(distance)} pts"


def _difference(change: Change) -> str:
    if change.unit == "%":
        return _points(change.baseline.value, change.candidate.value)
    return _relative(change.ratio)


def _interval(change: Change) -> str:
    """`+8.1 to +12 %`, `+2.9 to +3.4 pts`, `3.0 to 15 x`; a dash where the change has none."""
    low, high = change.low, change.high
    if low is None or high is None:
        return "-"
    if low == high:
        return "exact"
    if change.unit == "%":
        ends, unit = [(end - 1) * change.baseline.value for end in (low, high)], "pts"
    elif high >= _TIMES:
        return f"{format_figures(low, 2)} to {format_figures(high, 2)} x"
    else:
        ends, unit = [100 * (end - 1) for end in (low, high)], "%"
    return " to ".join(signed(end, 2) for end in ends) + f" {unit}"


def _undecided(comparison: Comparison) -> Iterator[Block]:
    lines = tuple(
        f"{_title_of(change)}{_of_kernel(change)}: {change_text(change)}"
        for change in comparison.changes
        if change.word == "ambiguous" and not _is_case(change) and change.metric != _GEOMETRIC_MEAN
    )
    if lines:
        title = f"{plural(len(lines), 'metric')} not decided"
        yield Detail(
            (Section(title, (Items(lines),), fold=Fold.FOLDED),),
            (Section("Not decided", (Items(lines, brief=_BRIEF),)),),
        )


def _of_kernel(change: Change) -> str:
    if change.scope.kind != "kernel":
        return ""
    key = change.scope.name or "", change.scope.id or ""
    return f" of {labels([key], 40)[key]}"


def _same_line(comparison: Comparison) -> str | None:
    """All that is the same in one line, each with the smallest change that would have been seen."""
    same = [
        c for c in comparison.changes if c.word == "same" and not _is_case(c) and c.metric != _GEOMETRIC_MEAN
    ]
    if not same:
        return None
    of_run = [change for change in same if change.scope.kind != "kernel"]
    parts = [f"{_title_of(change)}{_smallest_change(change)}" for change in of_run]
    if len(same) > len(of_run):
        metrics = plural(len(same) - len(of_run), "metric")
        parts.append(f"{metrics} of {kernel_word(comparison.baseline.backend)}s")
    return ", ".join(parts)


def _smallest_change(change: Change) -> str:
    """` (3.9 %)`; nothing for a small value, which is compared with an absolute change."""
    if change.detectable is None or change.detectable > 1:
        return ""
    return f" ({format_figures(100 * change.detectable, 2)} %)"


def looked_line(comparison: Comparison) -> str | None:
    """How many metrics were compared, and how many may be called different by chance."""
    count = len(comparison.changes)
    if not count:
        return None
    if comparison.pairing is not None:
        return paired.trust_line(comparison)
    text = f"{plural(count, 'metric')} compared"
    if comparison.looked_at:
        text += f", {comparison.looked_at} by samples: at most 5 % of those called different are so by chance"
        single = [c for c in comparison.changes if len(c.baseline.groups) == len(c.candidate.groups) == 1]
        if any(not _is_case(change) for change in single):
            text += ", if single processes differ by no more than is assumed"
        elif single:
            text += ", as far as the cases themselves tell what two sweeps differ by"
    return text


# ---------------------------------------------------------------- kernels and functions


def _kernels(comparison: Comparison) -> Section:
    """The kernels that are not the same and matter, largest change first, below how many became what."""
    what = kernel_word(comparison.baseline.backend)
    listed = [k for k in comparison.kernels if k.word not in ("same", "ambiguous") and k.share >= _SHARE][
        :_MOST
    ]
    names = labels([(k.name, k.launch or "") for k in listed], 44)
    rows = [
        (
            code(names[k.name, k.launch or ""]),
            format_quantity(k.baseline_seconds, "s"),
            format_quantity(k.candidate_seconds, "s"),
            _relative(_ratio(k.baseline_seconds, k.candidate_seconds)),
            k.word,
        )
        for k in listed
    ]
    return Section(
        f"{what.capitalize()}s: {_kernel_counts(comparison.kernels)}", (_changes(what, rows),) if rows else ()
    )


def _changes(what: str, rows: Sequence[tuple[Text, ...]]) -> DataTable:
    name = TableColumn(what, kernel=True)
    return table((name, "baseline", "candidate", "change", TableColumn("")), rows)


def _kernel_counts(kernels: Sequence[KernelChange]) -> str:
    """`2 slower, 1 vanished, 1 appeared; 40 the same, 3 not decided`."""
    words = [kernel.word for kernel in kernels]
    changed = [
        f"{words.count(word)} {word}"
        for word in ("slower", "faster", "appeared", "vanished")
        if word in words
    ]
    rest = []
    if "same" in words:
        rest.append(f"{words.count('same')} the same")
    if "ambiguous" in words:
        rest.append(f"{words.count('ambiguous')} not decided: within what two traces differ by")
    return "; ".join(part for part in (", ".join(changed), ", ".join(rest)) if part)


def _functions(functions: Sequence[FunctionChange]) -> Iterator[Block]:
    """Of each profile the functions that changed most."""
    for title in dict.fromkeys(f.profile for f in functions):
        rows = [
            (
                code(f.name),
                format_quantity(f.baseline, f.unit if f.unit == "%" else ""),
                format_quantity(f.candidate, f.unit if f.unit == "%" else ""),
                _points(f.baseline, f.candidate)
                if f.unit == "%"
                else _relative(_ratio(f.baseline, f.candidate)),
                {"slower": "more", "faster": "less"}.get(f.word, f.word),
            )
            for f in [f for f in functions if f.profile == title][:_MOST]
        ]
        yield Section(f"Changed {title}", (_changes("function", rows),))


def _ratio(before: float | None, after: float | None) -> float | None:
    return after / before if before and after is not None else None


# ---------------------------------------------------------------- what is not alike


def difference_line(difference: Difference) -> str:
    """`driver: 580.159 -> 590.10; a driver's update may change launch times`."""
    field = all_fields().get(difference.name)
    title = field.title if field is not None else difference.name
    values = (
        _differing_items(difference)
        or f"{difference.baseline or 'not known'} -> {difference.candidate or 'not known'}"
    )
    why = field.why if field is not None else ""
    if difference.intended:
        why = "this is what is compared, as asked for"
    elif field is not None and difference.tier != field.tier:
        why = f"the {'baseline' if difference.baseline is None else 'candidate'} does not say: {why}"
    return f"{title}: {values}; {why}"


def _differing_items(difference: Difference) -> str | None:
    """Of two long lists what is in one of them alone; None where they are none."""
    sides = [(value or "").split(", ") for value in (difference.baseline, difference.candidate)]
    if max(map(len, sides)) <= _LISTED:
        return None
    parts = []
    for name, own, opposite in (("baseline", *sides), ("candidate", *reversed(sides))):
        alone = [item for item in own if item not in set(opposite)]
        if alone:
            more = f" and {len(alone) - _LISTED} more" if len(alone) > _LISTED else ""
            parts.append(f"{', '.join(alone[:_LISTED])}{more} in the {name} alone")
    return "; ".join(parts) or None


def _paired_kernels(comparison: Comparison) -> Iterator[Block]:
    """Each kernel that has another name in the baseline, and is taken for the same."""
    pairs = [kernel for kernel in comparison.kernels if kernel.baseline_name is not None]
    if not pairs:
        return
    old = [(kernel.baseline_name or "", kernel.baseline_launch or "") for kernel in pairs]
    new = [(kernel.name, kernel.launch or "") for kernel in pairs]
    names = labels([*old, *new], 44)
    items = tuple(
        Item(
            joined(code(names[before]), " became ", code(names[after])),
            (soft("each is the only kernel of its run"),),
        )
        for kernel, before, after in zip(pairs, old, new, strict=True)
    )
    yield Section("Taken for one kernel", (Items(items, brief=6),))
