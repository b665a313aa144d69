"""Sections for a run's verdicts: a row per target with value, threshold and mark, and explanations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from profkit.analysis.judge.target_checks import is_met
from profkit.analysis.kernel_names import short_name
from profkit.backends import backend_named
from profkit.core.formatting import format_percent, format_threshold, joined
from profkit.core.types import Reading, RunDocument, Scope, Verdict
from profkit.reporting.facts import BRIEF, brief_reason, fact_text
from profkit.reporting.plain_text import reading_span, threshold_text, verdict_span
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    Fold,
    ItemList,
    NotOnPage,
    PageOnly,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Style,
    TableColumn,
    Text,
    between,
    soft,
)
from profkit.reporting.view import joined as joined_text
from profkit.reporting.views.run_insights import explained_targets
from profkit.reporting.views.run_text import (
    OUTCOMES,
    VERDICTS,
    common_causes,
    count_verdicts,
    scope_name,
    worst_first,
)

_MAX_VERDICTS = 300  # on single functions or kernels, in a document
_KERNEL = 18  # characters of a kernel's name beside a verdict
_MAX_OPEN = (
    3  # targets without a value that have a row each: for one reason; on a page, above its pictures, for any
)


def targets_section(document: RunDocument, *, verdicts: bool = False) -> Section | None:
    """Return a row for each target, with a folded explanation of each verdict and what to try below the table.

    A page has the explanations further down. A short screen leaves them out unless `verdicts` is set. Returns
    None for a run without verdicts.
    """
    table = _targets_table(document)
    why = _sentences(document, fold=Fold.OPEN if verdicts else Fold.FOLDED)
    below = why if verdicts else ((Detail(why),) if why else ())
    more = (NotOnPage(below),) if below else ()
    if table is None:
        return Section("Targets", more, anchor="targets") if more else None
    return replace(table, blocks=(*table.blocks, *more))


def _targets_table(document: RunDocument) -> Section | None:
    """Return a row for each target on the run or its regions: value, threshold, and outcome with its reason.

    Rows keep the order of the targets, so that each number is at the same place in every run; many without a value for
    one reason are one line below. On a GPU the number is that of a single kernel: of those that decide the verdict, the
    one that takes most time.
    """
    whole = [verdict for verdict in document.verdicts if verdict.scope.kind in ("run", "region")]
    if not whole:
        return None
    readings = _by_place(document)
    several = len({verdict.scope.name for verdict in whole if verdict.scope.kind == "region"}) > 1
    shown = [_largest_that_decides(verdict, document.verdicts) for verdict in whole]
    main = max(
        (verdict for verdict in shown if verdict is not None),
        key=lambda verdict: verdict.weight or 0.0,
        default=None,
    )
    columns = (
        TableColumn("target"),
        TableColumn("value", numeric=True),
        TableColumn("threshold"),
        TableColumn("verdict", wraps=True),
    )
    rows: list[tuple[Text, ...]] = []
    open_: dict[str, list[Verdict]] = {}  # the targets without a value, by why that is
    known: list[tuple[Text, ...]] = []
    reasons: list[str | None] = []  # of each row, where it has no value
    numbers = explained_targets(document)
    for verdict, of in zip(whole, shown, strict=True):
        elsewhere = of is not None and main is not None and of.scope != main.scope
        decided = verdict.verdict in ("pass", "fail")
        source = verdict if of is None or (elsewhere and not decided) else of
        place = of.scope if of is not None and elsewhere and decided else None
        outcome = _outcome(verdict, of or verdict, place, numbers.get(verdict.target))
        value, name = _value(source, readings), _name(verdict, several=several)
        rows.append((name, value or "not known", _threshold(verdict), outcome))
        if source.value is None and verdict.verdict in ("unknown", "not-applicable"):
            open_.setdefault(outcome.text, []).append(verdict)
            reasons.append(outcome.text)
        else:
            known.append(rows[-1])
            reasons.append(None)
    many = {reason: alike for reason, alike in open_.items() if len(alike) > _MAX_OPEN}
    shown_rows = tuple(row for row, reason in zip(rows, reasons, strict=True) if reason not in many)
    blocks: tuple[Block, ...] = (DataTable(columns, shown_rows),) if shown_rows else ()
    if many:
        blocks = (*blocks, *map(Paragraph, _open_targets(many, several=several)))
    if len(rows) - len(known) > _MAX_OPEN:
        short = (DataTable(columns, tuple(known)),) if known else ()
        blocks = (
            NotOnPage(blocks),
            PageOnly((*short, ItemList(tuple(_open_targets(open_, several=several))))),
        )
    return Section("Targets", blocks, _whose(main, document) or _of_place(whole, document), anchor="targets")


def _open_targets(why: Mapping[str, Sequence[Verdict]], *, several: bool) -> list[Text]:
    """Return a line for each reason with the targets of which no value is known for it."""
    lines: list[Text] = []
    for reason, verdicts in why.items():
        sign = VERDICTS[verdicts[0].verdict].status
        names = [_name(verdict, several=several)[1:] for verdict in verdicts]
        mark = Span(f"{sign.sign} ", Style.STRONG, sign)
        lines.append(joined_text(mark, *between(", ", names), ": ", Span(reason, status=sign)))
    return lines


def _largest_that_decides(verdict: Verdict, verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the kernel verdict with most time among those that agree with the run's verdict; None without one.

    Where the run's verdict is unknown and no kernel's is, it is the largest kernel whose value is known.
    """
    if verdict.scope.kind != "run":
        return None
    own = [other for other in verdicts if other.scope.kind == "kernel" and other.target == verdict.target]
    alike = [other for other in own if other.verdict == verdict.verdict]
    if verdict.verdict == "unknown" and not alike:
        alike = [other for other in own if other.value is not None]
    return max(alike, key=lambda other: other.weight or 0.0, default=None)


_UNITS = {
    "tensor.utilization": "tensor cores",
    "bandwidth.l1.share": "L1",
    "bandwidth.l2.share": "L2",
    "bandwidth.dram.share": "DRAM",
}
_IDLE = 1.0  # %: a unit that does less is not named


def _whose(main: Verdict | None, document: RunDocument) -> Text:
    """Return `Of sgemm, 83.2 % of the GPU time, if no other kernel is named.`; empty where no kernel was judged.

    Append how busy the kernel's tensor cores, caches and DRAM are, in % of their peaks: most of these are no
    targets where another unit limits the kernel.
    """
    if main is None:
        return ""
    share = f", {format_percent(100 * main.weight)} % of the GPU time" if main.weight is not None else ""
    own = {
        reading.metric: reading.value
        for reading in document.readings
        if reading.scope == main.scope and reading.value is not None and reading.doubt is None
    }
    missed = own.get("cache.l2.miss_rate")
    hits = f" ({format_percent(100 - missed)} % of its accesses hit)" if missed is not None else ""
    busy = [
        f"{title} {format_percent(own[metric])} %{hits if title == 'L2' else ''}"
        for metric, title in _UNITS.items()
        if own.get(metric, 0.0) >= _IDLE
    ]
    units = f" Its units, of their peaks: {', '.join(busy)}." if busy else ""
    return f"Of {scope_name(main.scope)}{share}, if no other kernel is named.{units}"


def _of_place(verdicts: Sequence[Verdict], document: RunDocument) -> Text:
    """Return `L1, L2 and SIMD are those of relax, graph.cpp:41: 83.2 % of the time.`.

    Empty where no verdict is on a single function.
    """
    placed = [verdict for verdict in verdicts if verdict.reason.code == "in-function"]
    if not placed:
        return ""
    names, weight = placed[0].reason.names, placed[0].weight
    short = short_name(names.get("name", "?"), _PLACE)
    same = (
        spot.where for spot in document.hot_spots if short_name(spot.where.function or "", _PLACE) == short
    )
    where = next((place for place in same if place.file and place.line), None)
    line = f", {(where.file or '').rpartition('/')[2]}:{where.line}" if where is not None else ""
    whole = names.get("by", "time")
    share = f": {format_percent(100 * weight)} % of the {whole}" if weight is not None else ""
    targets = joined([_OF_PLACE.get(verdict.target, verdict.target) for verdict in placed])
    return f"{targets} {'are those' if len(placed) > 1 else 'is that'} of {short}{line}{share}."


_OF_PLACE = {
    "l1-miss-rate": "L1",
    "l2-miss-rate": "L2",
    "l3-miss-rate": "L3",
    "branch-miss-rate": "branches",
    "simd-utilization": "SIMD",
}
_PLACE = 40  # characters of a function's name


def _name(verdict: Verdict, *, several: bool) -> tuple[Span | str, ...]:
    """Return the mark and the name of the target, followed by its region where there are several."""
    status = VERDICTS[verdict.verdict].status
    place = f" in {verdict.scope.name}" if several and verdict.scope.name else ""
    return (Span(f"{status.sign} ", Style.STRONG, status), verdict.target, soft(place))


def _threshold(verdict: Verdict) -> str:
    """Return `< 5 %`; for instructions per cycle `> 2`, since the target's name already is the unit."""
    limit = verdict.threshold
    if limit is None or limit.unit != "instructions/cycle":
        return threshold_text(verdict)
    return format_threshold(limit.operator, limit.value, "")


def _outcome(verdict: Verdict, of: Verdict, place: Scope | None, finding: int | None) -> Span:
    """Return `met`, `missed in sgemm`, or why the target is not judged or counts as met beyond its threshold.

    `of` is the verdict on the kernel whose number is shown, `place` that kernel where it has to be named, and
    `finding` the number of the finding that says what to change.
    """
    word, limit = OUTCOMES[verdict.verdict], verdict.threshold
    why = brief_reason((of if of.verdict == verdict.verdict else verdict).reason)
    if verdict.verdict == "unknown" and not why and verdict.reason.code == "against":
        word = "varies too much"
    elif verdict.verdict in ("not-applicable", "unknown"):
        word = _with_fix(why or word, verdict)
    elif place is not None:
        word += f" in {short_name(place.name or '?', _KERNEL)}"
    elif verdict.verdict == "pass" and limit is not None and of.value is not None:
        beyond = not is_met(of.value, limit.operator, limit.value)
        word = f"met: {why}" if beyond and why else word
    if verdict.verdict == "fail" and finding is not None:
        word += f": see {finding} above"
    return Span(word, status=VERDICTS[verdict.verdict].status)


def _with_fix(why: str, verdict: Verdict) -> str:
    """Return `no time left: --budget 46`: the reason, with the option that fixes it where both fit into one line."""
    whole = f"{why}: {fix_option(verdict)}"
    return whole if fix_option(verdict) and len(whole) <= BRIEF else why


def fix_option(verdict: Verdict) -> str:
    """Return the option that makes an unknown value known (`--budget 46`); empty where no option does."""
    fix = next(iter(verdict.advice), "") if verdict.verdict == "unknown" else ""
    return fix if fix.startswith("--") else ""


def _sentences(document: RunDocument, fold: Fold = Fold.FOLDED) -> tuple[Section, ...]:
    """Return why the run's verdicts are what they are, with what to try.

    The verdicts on its functions or kernels follow.
    """
    whole = _whole_statuses(document)
    why = Section("Why, and what to try", whole, fold=fold)
    return (*((why,) if whole else ()), *_inner_verdicts(document))


def verdicts_of_page(document: RunDocument) -> Iterator[PageOnly]:
    """Yield the explanations of the verdicts for a page, whose table of targets is further up."""
    if blocks := _sentences(document):
        yield PageOnly((Section("Targets, one by one", blocks, anchor="verdicts"),))


def _whole_statuses(document: RunDocument) -> tuple[Statuses, ...]:
    """Return the verdicts on the run and its regions as one block; empty where there are none."""
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    return (Statuses(tuple(_rows(whole, _by_place(document)))),) if whole else ()


def _inner_verdicts(document: RunDocument) -> Iterator[Section]:
    """Yield a folded section with the verdicts on single functions or kernels, worst first.

    It shows at most `_MAX_VERDICTS` of them. Advice is left out for targets that already failed or are unknown
    on the whole run.
    """
    inner = [v for v in document.verdicts if v.scope.kind not in ("run", "region")]
    if not inner:
        return
    whole = (v for v in document.verdicts if v.scope.kind in ("run", "region"))
    above = {verdict.target for verdict in whole if verdict.verdict in ("fail", "unknown")}
    readings = _by_place(document)
    statuses = [
        replace(row, below=()) if verdict.target in above else row
        for verdict in worst_first(inner)[:_MAX_VERDICTS]
        for row in (_row(verdict, readings),)
    ]
    left = len(inner) - len(statuses)
    more: tuple[Block, ...] = (Paragraph(soft(f"{left} more are in run.json.")),) if left else ()
    title = f"In single {backend_named(document.backend).work}s"
    body = (Statuses(tuple(statuses)), *more)
    yield Section(title, body, count_verdicts(inner), Fold.FOLDED)


def _by_place(document: RunDocument) -> dict[tuple[str, Scope], Reading]:
    """Return the readings by metric and scope, including those of summaries, which derive from the others.

    The first reading of a key wins, unless it has no value.
    """
    by_place: dict[tuple[str, Scope], Reading] = {}
    for reading in (*document.readings, *(r for s in document.summaries for r in s.readings)):
        key = (reading.metric, reading.scope)
        if key not in by_place or by_place[key].value is None:
            by_place[key] = reading
    return by_place


def _rows(verdicts: Sequence[Verdict], readings: Mapping[tuple[str, Scope], Reading]) -> Iterator[StatusRow]:
    """Yield a row for each verdict, worst first; unknown verdicts with a common cause share one row."""
    several = len({verdict.scope.name for verdict in verdicts if verdict.scope.kind == "region"}) > 1
    causes = common_causes(verdicts)
    for verdict in worst_first(verdicts):
        same = causes.get(verdict.cause, []) if verdict.cause and verdict.verdict == "unknown" else []
        if not same:
            row = _row(verdict, readings)
            yield replace(row, place=verdict.scope.name or "") if several else row
        elif same[0] is verdict:
            names = tuple(dict.fromkeys(verdict.target for verdict in same))
            advice = tuple(dict.fromkeys(verdict.advice[0] for verdict in same if verdict.advice))
            yield StatusRow(
                Status.UNKNOWN, VERDICTS["unknown"].word, names, fact_text(verdict.cause), below=advice
            )


def _row(verdict: Verdict, readings: Mapping[tuple[str, Scope], Reading]) -> StatusRow:
    """Return a verdict's row: its reason, value with source, threshold and scope.

    It has the advice only where the verdict is a failure or unknown.
    """
    word = verdict.verdict
    return StatusRow(
        VERDICTS[word].status,
        VERDICTS[word].word,
        (verdict.target,),
        fact_text(verdict.reason),
        _value(verdict, readings),
        threshold_text(verdict),
        scope_name(verdict.scope) if verdict.scope.kind not in ("run", "region") else "",
        verdict.advice if word in ("fail", "unknown") else (),
    )


def _value(verdict: Verdict, readings: Mapping[tuple[str, Scope], Reading]) -> Text:
    """Return the judged number with the source of the reading that holds it; empty if there is none."""
    reading = readings.get((verdict.metric, verdict.scope))
    if reading is not None and verdict.reason.code == "in-function" and reading.value != verdict.value:
        return verdict_span(verdict)
    if reading is not None and (verdict.value is None or reading.value == verdict.value):
        return reading_span(reading)
    return verdict_span(verdict) if verdict.value is not None else ""
