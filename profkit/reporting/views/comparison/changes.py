"""What stands below the verdict of a comparison: what changed, why, and what is the same in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.comparability import all_fields
from profkit.analysis.kernel_names import labels, short_name
from profkit.analysis.metrics.catalogue import title_of
from profkit.backends import kernel_word
from profkit.core.formatting import format_figures, format_quantity, plural, shorten, signed
from profkit.core.types import RUN, BlamedLine, Change, CodeChange, Comparison, Difference, Pairing
from profkit.reporting.facts import fact_text
from profkit.reporting.view import (
    Block,
    DataTable,
    Item,
    ItemList,
    Section,
    Span,
    Status,
    TableColumn,
    Text,
    code,
    joined,
    notes,
    soft,
    strong,
    table,
)
from profkit.reporting.views.comparison.words import (
    cause_text,
    change_text,
    evidence_texts,
    size_text,
    status_of,
)
from profkit.runtime.passes.shown_command import MASK

# Of calling a time different that is the same, over all looks, as `regression/paired/interleave.py` has it.
ERROR = 0.02
_TRUST = f"Of times that did not change, at most {100 * ERROR:.0f} % would be called different."
_GEOMETRIC_MEAN = "time.geometric_mean"
_TIMES = 10.0  # a change as large as that is shown as a factor
_SHARE = 0.005  # of the GPU time: kernels below it are counted, not listed
_MAX_ROWS = 12  # rows of a table; the document has all
_MAX_MEANS = 40  # the same of the table that decides about two sweeps
_MAX_LINES = 6  # that changed in what became slower
_BRIEF = 6  # of a list on a short screen
_WIDTH = 44  # characters of a kernel's name


def blocks(comparison: Comparison) -> Iterator[Block]:
    """Yield all that stands below the verdict."""
    yield from _blamed(comparison.blamed)
    if comparison.differences:
        lines = tuple(
            Span(difference_line(difference), status=Status.FAIL if difference.tier == "must" else None)
            for difference in comparison.differences
        )
        yield Section("Not alike", (ItemList(lines),))
    yield from _changed(comparison)
    items = tuple(
        Item(cause_text(cause), (soft("; ".join(evidence_texts(cause))),) if cause.evidence else ())
        for cause in comparison.causes
    )
    if items:
        yield Section("Why, as far as the counters show it", (ItemList(items[:_MAX_ROWS]),))
    if comparison.kernels:
        yield _kernels(comparison)
    yield from _functions(comparison.functions)
    yield from _undecided(comparison)
    yield from _same(comparison)
    looked = looked_line(comparison)
    yield from notes([*map(fact_text, comparison.notes), *([looked] if looked else [])])


def pair_facts(pairing: Pairing) -> list[tuple[str, Text]]:
    """Return how many pairs in which time, and what was taken out of their times."""
    pairs = f"{plural(pairing.pairs, 'pair')} in random order, "
    pairs += f"{format_figures(pairing.seconds, 2)} s of at most {format_figures(pairing.budget, 2)} s"
    rows: list[tuple[str, Text]] = [("runs", pairs)]
    if pairing.waited is not None:
        share = format_figures(100 * pairing.waited, 2)
        rows.append(("taken out", f"waiting for a processor, {share} % of the time of the runs"))
    return rows


def looked_line(comparison: Comparison) -> str | None:
    """Return how many metrics may be called different by chance."""
    if not comparison.changes:
        return None
    if comparison.pairing is not None:
        return _TRUST
    text = f"{plural(len(comparison.changes), 'metric')} compared"
    if comparison.looked_at:
        text += f", {comparison.looked_at} by samples: at most 5 % of those called different are so by chance"
    return text


# ---------------------------------------------------------------- changed lines, and what is not alike


def _blamed(lines: Sequence[BlamedLine]) -> Iterator[Block]:
    """Yield the changed lines in what became slower, the most likely cause first."""
    if lines:
        items = (
            Item(
                blamed_text(line),
                (code(line.text.strip()),) if line.text.strip() else (),
            )
            for line in lines[:_MAX_LINES]
        )
        title = "Changed lines in what became slower, the likeliest first"
        yield Section(title, (ItemList(tuple(items)),))


def blamed_text(line: BlamedLine) -> Text:
    """Return `bench.py:12 in parse, commit 1a2b3c4 'Parse twice': own time +38 %`."""
    where = f"{line.path}:{line.line}" if line.line > 0 else line.path
    commit = f"commit {line.commit[:7]}" if line.commit else "not committed"
    subject = f" '{line.subject}'" if line.subject and line.commit else ""
    inside = (" in ", code(line.function)) if line.function else ()
    return joined(strong(where), *inside, f", {commit}", soft(subject), f": {fact_text(line.why)}")


def difference_line(difference: Difference) -> str:
    """Return `driver: 580.159 -> 590.10; a driver's update may change launch times`."""
    field = all_fields().get(difference.name)
    before, after = (
        shorten(side or "not known", 120) for side in (difference.baseline, difference.candidate)
    )
    why = field.why if field is not None else ""
    if field is not None and MASK in f"{before} {after}" and difference.tier != field.tier:
        why = f"nobody knows whether what is masked is the same: {why}"
    elif field is not None and difference.tier != field.tier:
        why = f"the {'baseline' if difference.baseline is None else 'candidate'} does not say: {why}"
    return f"{field.title if field is not None else difference.name}: {before} -> {after}; {why}"


# ---------------------------------------------------------------- metrics


def _of_metrics(comparison: Comparison, word: str) -> list[Change]:
    """Return the changes with that word, without means of sweeps."""
    return [c for c in comparison.changes if c.word == word and c.metric != _GEOMETRIC_MEAN]


def _changed(comparison: Comparison) -> Iterator[Block]:
    """Yield what is different; of two sweeps before that the means over all shapes, which decide, the worst first."""
    means = [change for change in comparison.changes if change.metric == _GEOMETRIC_MEAN]
    if means:
        yield Section("Geometric means over all shapes", (changes_table(means, _MAX_MEANS),))
    changes = _of_metrics(comparison, "different")
    if changes:
        yield Section("What changed", (changes_table(changes, _MAX_ROWS),))


def changes_table(changes: Sequence[Change], most: int) -> DataTable:
    """Return a row for each: its sign and name, from what to what, by how much.

    Where not all of them are different also how small a change would have been seen.
    """
    seen = any(change.word != "different" for change in changes)
    rows: list[tuple[Text, ...]] = []
    for change in changes[:most]:
        status = status_of(change)
        name = joined(Span(status.sign, status=status), f" {_title_of(change)}")
        values = (format_quantity(side.value, change.unit) for side in (change.baseline, change.candidate))
        share = [seen_share(change) or "-"] if seen else []
        rows.append((name, *values, size_text(change), *share))
    titles = ["metric", "baseline", "candidate", "change", *(["would be seen"] if seen else [])]
    return table(titles, rows, left=max(0, len(changes) - most))


def seen_share(change: Change) -> str:
    """Return the smallest detectable change; empty if an absolute change decides, or it is not known."""
    if change.detectable is None or change.detectable > 1:
        return ""
    return f"{format_figures(100 * change.detectable, 2)} %"


def _title_of(change: Change) -> str:
    """Return `Time per iteration (step)`: the catalogue's title, and of what."""
    scope = change.scope
    if change.metric == _GEOMETRIC_MEAN:
        return scope.name or ""
    one_each = change.baseline.groups and all(len(group) == 1 for group in change.baseline.groups)
    if change.metric == "time.median" and scope == RUN and one_each:
        return "Time of the process"
    known = title_of(change.metric)
    if scope.kind == "kernel":
        return f"{known}: {short_name(scope.name or '', 24)}"
    return f"{known} ({scope.name})" if scope.kind == "region" and scope.name else known


def _undecided(comparison: Comparison) -> Iterator[Block]:
    lines = [f"{_title_of(c)}: {change_text(c)}" for c in _of_metrics(comparison, "ambiguous")]
    if lines:
        yield Section(f"{plural(len(lines), 'metric')} not decided", (ItemList(tuple(lines), brief=_BRIEF),))


def _same(comparison: Comparison) -> Iterator[Block]:
    """Yield all that is the same in one line, each with the smallest change that would have been seen."""
    same = _of_metrics(comparison, "same")
    shown = [(_title_of(c), seen_share(c)) for c in same if c.scope.kind != "kernel"]
    parts = [f"{name} ({seen})" if seen else name for name, seen in shown]
    if len(same) > len(parts):
        metrics = plural(len(same) - len(parts), "metric")
        parts.append(f"{metrics} of {kernel_word(comparison.baseline.backend)}s")
    if parts:
        title = "The same (and the smallest change that would have been seen)"
        yield Section(title, (), headline=", ".join(parts))


# ---------------------------------------------------------------- kernels and functions


def _kernels(comparison: Comparison) -> Section:
    """Return the kernels that are not the same and matter, largest change first, below how many became what."""
    what = kernel_word(comparison.baseline.backend)
    words = [kernel.word for kernel in comparison.kernels]
    counts = [f"{words.count(word)} {word}" for word in _KERNEL_WORDS if word in words]
    counts += [f"{words.count('same')} the same"] if "same" in words else []
    counts += [f"{words.count('ambiguous')} not decided"] if "ambiguous" in words else []
    listed = [k for k in comparison.kernels if k.word in _KERNEL_WORDS and k.share >= _SHARE][:_MAX_ROWS]
    own = [(k.name, k.launch or "") for k in listed]
    names = labels(own, _WIDTH)
    rows: list[tuple[Text, ...]] = []
    for k in listed:
        times = (format_quantity(seconds, "s") for seconds in (k.baseline, k.candidate))
        by = _relative(k.baseline, k.candidate)
        rows.append((code(names[k.name, k.launch or ""]), *times, by, k.word))
    body = (_changes_of(what, rows),) if rows else ()
    return Section(f"{what.capitalize()}s: {', '.join(counts)}", body)


_KERNEL_WORDS = ("slower", "faster", "appeared", "vanished")


def _changes_of(what: str, rows: Sequence[tuple[Text, ...]]) -> DataTable:
    name = TableColumn(what, kernel=True)
    return table((name, "baseline", "candidate", "change", TableColumn("")), rows)


def _functions(functions: Sequence[CodeChange]) -> Iterator[Block]:
    """Yield for each profile the functions that changed most."""
    for title in dict.fromkeys(f.profile for f in functions):
        rows: list[tuple[Text, ...]] = []
        for f in [f for f in functions if f.profile == title][:_MAX_ROWS]:
            values = [format_quantity(value, "") for value in (f.baseline, f.candidate)]
            word = {"slower": "more", "faster": "less"}.get(f.word, f.word)
            rows.append((code(f.name), *values, _relative(f.baseline, f.candidate), word))
        yield Section(f"Changed {title}", (_changes_of("function", rows),))


def _relative(before: float | None, after: float | None) -> str:
    """Return `+9.8 %`, `12.4 x`; a dash where there is no ratio."""
    if not before or after is None:
        return "-"
    ratio = after / before
    return f"{format_figures(ratio)} x" if ratio >= _TIMES else f"{signed(100 * (ratio - 1))} %"
