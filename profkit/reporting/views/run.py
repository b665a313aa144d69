"""One run: its time, what to do first, the verdicts, charts and tables, every number, and what it was measured on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profkit.analysis.metrics import all_metrics
from profkit.analysis.summaries.kernels import KernelRow
from profkit.analysis.summaries.metal_readings import INTERVALS
from profkit.backends import backend_named
from profkit.core.formatting import format_percent, format_utc_time, plural
from profkit.core.types import Reading, RunDocument, Scope, Verdict, VerdictWord
from profkit.reporting.extras import Extras
from profkit.reporting.footnotes import reading_span, threshold_text, verdict_span
from profkit.reporting.view import (
    Block,
    DataTable,
    Detail,
    Fold,
    Items,
    Label,
    OnScreen,
    Paragraph,
    Section,
    Sourced,
    Status,
    Statuses,
    StatusRow,
    Style,
    TableColumn,
    Text,
    View,
    between,
    code,
    joined,
    soft,
    strong,
    table,
)
from profkit.reporting.views import run_about, run_charts, run_metal
from profkit.reporting.views.run_insights import (
    concluded,
    more_on_screen,
    nsight_section,
    time_split_text,
    to_do_section,
)
from profkit.reporting.views.run_kernels import kernel_table, kernels_of, references
from profkit.reporting.views.run_source import instructions_section
from profkit.reporting.views.run_text import (
    LAST,
    WORDS,
    WORTH,
    actions,
    command_line,
    common_causes,
    count_verdicts,
    gain_clause,
    gpu_lines,
    is_answered,
    machine_line,
    scope_name,
    time_line,
    title_of,
    unfinished_passes,
    with_command,
    worst_first,
)
from profkit.reporting.views.summaries import summary_texts
from profkit.reporting.views.summaries.parts import SummaryText, Texts

STATUSES: dict[VerdictWord, Status] = {
    "fail": Status.FAIL,
    "unknown": Status.UNKNOWN,
    "pass": Status.PASS,
    "not-applicable": Status.NONE,
}
_STATES = {
    "running": "This run goes on, or its process died: what was finished stands below.",
    "interrupted": "This run was interrupted: what was finished stands below.",
    "failed": "This run failed: what was finished stands below.",
}
# Tables that a short screen shows too.
_IN_KERNELS = ("occupancy", "bandwidth", "access", "execution")  # what the table of kernels has in a column
_NOTES = 4  # of a summary, on a short screen
_MOST_VERDICTS = 300  # on single functions or kernels, in a document
_FUNCTIONS, _KERNELS = 3, 5  # of which a screen shows the verdicts
_READINGS = 60  # of one concern


def view(document: RunDocument, folder: Path | None = None, extras: Extras | None = None) -> View:
    """The run as blocks. `folder` is its folder, for the closing lines; `extras` is what run.json does not hold."""
    extras = extras if extras is not None else Extras()
    state = f" ({document.state})" if document.state != "complete" else ""
    warning: Text = _STATES.get(document.state, "")
    if document.failure is not None:
        warning = joined(strong("✗ Failed: ", Status.FAIL), document.failure)
    label, reason = _verdict(document.verdicts)
    texts = {text.concern: text for text in summary_texts(document)}
    return View(
        (strong(document.name), f" on {document.backend}{state}"),
        tuple(block for block in _blocks(document, texts, folder, extras) if block is not None),
        label,
        (reason,) if reason else (),
        facts=tuple(_facts(document, texts)),
        command=command_line(document),
        warning=warning,
    )


def _facts(document: RunDocument, texts: Texts) -> Iterator[tuple[str, Text]]:
    if (split := time_split_text(document.time_split)) is not None:
        yield "Split", split
    if (line := time_line(document)) is not None:
        readings = [r for s in document.summaries if s.concern == "time" for r in s.readings]
        median = next((r for r in readings if r.metric == "time.median" and r.value is not None), None)
        yield "Time", replace(reading_span(median, line, Style.STRONG), mark="") if median else strong(line)
    if "gpu" in texts:
        yield "GPU", strong(texts["gpu"].headline)
    if document.passes and unfinished_passes(document):
        finished = len(document.passes) - len(unfinished_passes(document))
        yield "Passes", f"{finished} of {len(document.passes)} finished; what did not is below"
    for line in gpu_lines(document):
        yield "Device", line
    if (machine := machine_line(document)) is not None:
        yield "Machine", machine
    if document.place is not None:
        yield "Place", document.place
    if document.started:
        yield "Started", format_utc_time(document.started)
    if (commit := _commit(document)) is not None:
        yield "Commit", commit


def _commit(document: RunDocument) -> str | None:
    """`1a2b3c4d5e6f on main, with changes that are not committed`; None where the run was not asked."""
    revision = document.revision
    if revision is None:
        return None
    if revision.commit is None:
        return f"not known: {revision.reason}" if revision.reason else None
    branch = f" on {revision.branch}" if revision.branch else ""
    return revision.commit[:12] + branch + (", with changes that are not committed" if revision.dirty else "")


_OUTCOME_WORDS: dict[VerdictWord, str] = {
    "fail": "missed",
    "unknown": "not known",
    "pass": "met",
    "not-applicable": "not applicable",
}


def _verdict(verdicts: Sequence[Verdict]) -> tuple[Label | None, Text]:
    """`✗ 2 targets missed` of the run, and behind it which, how many others there are, and misses in its parts."""
    whole = [v for v in verdicts if v.scope.kind in ("run", "region")]
    by_word = {word: [v for v in whole if v.verdict == word] for word in WORDS}
    worst = next((word for word, group in by_word.items() if group), None)
    missed = {v.target for v in by_word["fail"]}
    inner = [v for v in verdicts if v not in whole and v.verdict == "fail" and v.target not in missed]
    parts: list[Text] = []
    if worst in ("fail", "unknown"):
        names = dict.fromkeys(v.target for v in by_word[worst])
        parts.append(joined(*between(", ", map(code, names))))
    rest = [
        f"{len(group)} {_OUTCOME_WORDS[word]}" for word, group in by_word.items() if group and word != worst
    ]
    parts += [", ".join(rest)] if rest else []
    if inner:
        parts.append(f"{plural(len(inner), 'miss', 'misses')} in single kernels or functions alone")
    reason = joined(*between("; ", (part for part in parts)))
    if worst is None:
        return (Label(Status.UNKNOWN, "no target on the whole run"), reason) if inner else (None, "")
    return Label(STATUSES[worst], f"{plural(len(by_word[worst]), 'target')} {_OUTCOME_WORDS[worst]}"), reason


def _blocks(
    document: RunDocument, texts: Texts, folder: Path | None, extras: Extras
) -> Iterator[Block | None]:
    kernels = kernels_of(document)
    yield to_do_section(document)
    yield run_metal.use_section(document, texts)
    yield run_charts.time_section(document, texts, kernels)
    yield from _gpu_sections(document, texts, kernels)
    yield _verdicts(document)
    yield instructions_section(document)
    yield nsight_section(document.insights)
    yield run_charts.roofline_section(document, texts, kernels)
    yield run_charts.occupancy_section(document, texts, kernels)
    yield run_metal.shaders_section(document)
    yield run_metal.counters_section(document)
    yield run_charts.levels_section(document, texts, kernels)
    yield run_metal.states_section(document)
    yield run_charts.timing_section(document, texts)
    yield run_charts.flame_section(document, texts, extras)
    yield run_charts.python_section(document, texts)
    yield run_charts.memory_section(document, texts, extras)
    yield run_metal.absent_section(document)
    yield _all_numbers(document, texts)
    for summary in texts.values():
        if summary.concern in LAST:
            yield Section(title_of(summary.concern), tuple(_summary(summary)), summary.headline)
    yield run_about.passes_section(document, extras)
    yield run_about.conditions_section(document)
    yield run_about.machine_section(document)
    if document.notes:
        short = tuple(n for n in document.notes if not n.startswith("nothing is marked"))
        brief = (Section("Notes", (Items(short, brief=_NOTES),)),) if short else ()
        yield Detail((Section("Notes", (Items(document.notes),)),), brief)
    yield run_about.files_section(extras)
    if folder is not None:
        yield from run_about.next_sections(document, folder)
    yield more_on_screen(document)
    yield run_about.cases_of(document)


# ---------------------------------------------------------------- what to do, and the verdicts


def _verdicts(document: RunDocument) -> Section | None:
    """Verdicts on the run, then on its functions or kernels."""
    if not document.verdicts:
        return None
    whole = [v for v in document.verdicts if v.scope.kind in ("run", "region")]
    inner = [v for v in document.verdicts if v.scope.kind not in ("run", "region")]
    readings = _by_place(document)
    blocks: list[Block] = []
    if whole:
        full = Statuses(tuple(_rows(whole, readings)))
        blocks.append(Detail((full,), (Statuses(tuple(_brief_rows(document, whole, inner))),)))
    if inner:
        kind = f"{backend_named(document.backend).work}s"
        above = {verdict.target for verdict in whole if verdict.verdict in ("fail", "unknown")}
        rows = tuple(
            replace(_row(verdict, readings), below=()) if verdict.target in above else _row(verdict, readings)
            for verdict in worst_first(inner)[:_MOST_VERDICTS]
        )
        left = len(inner) - len(rows)
        more: tuple[Block, ...] = (Paragraph(soft(f"{left} more stand in run.json.")),) if left else ()
        body = Section(f"In single {kind}", (Statuses(rows), *more), count_verdicts(inner), Fold.FOLDED)
        blocks.append(OnScreen(tuple(_worst_parts(document, inner, whole)), (body,)))
    return Section("Verdicts", tuple(blocks))


def _by_place(document: RunDocument) -> dict[tuple[str, Scope], Reading]:
    """Readings by metric and scope: those of summaries too, which were made of the others."""
    by_place: dict[tuple[str, Scope], Reading] = {}
    for reading in (*document.readings, *(r for s in document.summaries for r in s.readings)):
        key = (reading.metric, reading.scope)
        if key not in by_place or by_place[key].value is None:
            by_place[key] = reading
    return by_place


def _rows(verdicts: Sequence[Verdict], readings: Mapping[tuple[str, Scope], Reading]) -> Iterator[StatusRow]:
    """A row for each verdict, worst first; those that one cause left unknown share one."""
    several = len({verdict.scope.name for verdict in verdicts if verdict.scope.kind == "region"}) > 1
    causes = common_causes(verdicts)
    shared = {id(same_verdict): cause for cause, same in causes.items() for same_verdict in same}
    for verdict in worst_first(verdicts):
        cause = shared.get(id(verdict))
        if cause is None:
            row = _row(verdict, readings)
            yield replace(row, place=verdict.scope.name or "") if several else row
        elif causes[cause][0] is verdict:
            yield _shared_row(cause, causes[cause])


def _shared_row(cause: str, same: Sequence[Verdict]) -> StatusRow:
    names = tuple(dict.fromkeys(verdict.target for verdict in same))
    advice = dict.fromkeys(verdict.advice[0] for verdict in same if verdict.advice)
    return StatusRow(Status.UNKNOWN, WORDS["unknown"], names, cause, below=_advice_lines(tuple(advice)))


def _brief_rows(
    document: RunDocument, whole: Sequence[Verdict], inner: Sequence[Verdict]
) -> Iterator[StatusRow]:
    """For a short screen: what was said above is named; of a GPU's run what is as it should be takes a line."""
    causes = common_causes(whole)
    of_gpu = any(verdict.scope.kind == "kernel" for verdict in inner)
    several = len({verdict.scope.name for verdict in whole if verdict.scope.kind == "region"}) > 1
    shown = of_gpu and not concluded(document)
    above = [action.about for action in actions(document)] if shown else []
    together = [verdict for same in causes.values() for verdict in same]
    for word, status in STATUSES.items():
        known = [v for v in whole if v.verdict == word and v not in together]
        names = tuple(dict.fromkeys(v.target for v in known if v in above))
        if names:
            yield StatusRow(status, WORDS[word], names, "see above")
        known = [v for v in known if v not in above]
        if of_gpu and word in ("pass", "not-applicable"):
            if known:
                yield StatusRow(status, WORDS[word], tuple(v.target for v in known), "")
            continue
        for verdict in known:
            row = _short_row(verdict, advice=_tries(document, verdict, of_gpu=of_gpu))
            yield replace(row, place=verdict.scope.name or "") if several else row
        if word == "unknown":
            yield from (replace(_shared_row(cause, same), below=()) for cause, same in causes.items())


def _tries(document: RunDocument, verdict: Verdict, *, of_gpu: bool) -> int:
    """How many lines to try a short screen has: none where an insight says what to do."""
    return int(of_gpu and verdict.verdict == "fail" and not is_answered(verdict, document.insights))


def _worst_parts(
    document: RunDocument, inner: Sequence[Verdict], whole: Sequence[Verdict]
) -> Iterator[Block]:
    """For a screen: of the largest functions or kernels what failed, but for what decided the run's verdict."""
    scopes: dict[Scope, list[Verdict]] = {}
    for verdict in inner:
        scopes.setdefault(verdict.scope, []).append(verdict)
    of_kernels = any(scope.kind == "kernel" for scope in scopes)
    for scope, verdicts in list(scopes.items())[: _KERNELS if of_kernels else _FUNCTIONS]:
        weight = next((v.weight for v in verdicts if v.weight is not None), None)
        if of_kernels and weight is not None and weight < WORTH:
            continue  # too small to fail a run
        share = f", {format_percent(100 * weight)} % of the GPU time" if weight is not None else ""
        line = Paragraph(
            (soft("in "), strong(scope_name(scope)), soft(f"{share}: {count_verdicts(verdicts)}"))
        )
        failed = [v for v in worst_first(verdicts) if v.verdict == "fail" and not _decides_run(v, whole)]
        rows = Statuses(tuple(_short_row(v, advice=_tries(document, v, of_gpu=of_kernels)) for v in failed))
        blocks = (line, *((rows,) if failed else ()))
        yield from blocks if of_kernels else (Detail(blocks),)


def _decides_run(verdict: Verdict, whole: Sequence[Verdict]) -> bool:
    """Whether the run's own verdict on that target is this one in other words: the kernel that decided it."""
    return any(v.target == verdict.target and verdict.reason in v.reason for v in whole)


def _short_row(verdict: Verdict, *, advice: int) -> StatusRow:
    reason = verdict.reason + gain_clause(verdict)
    word = verdict.verdict
    lines = verdict.advice[:advice] if word in ("fail", "unknown") else ()
    return StatusRow(STATUSES[word], WORDS[word], (verdict.target,), reason, below=_advice_lines(lines))


def _row(verdict: Verdict, readings: Mapping[tuple[str, Scope], Reading]) -> StatusRow:
    """With its threshold, and its number with its source: the reading that it was judged by, where one holds it."""
    row = _short_row(verdict, advice=len(verdict.advice))
    place = scope_name(verdict.scope) if verdict.scope.kind not in ("run", "region") else ""
    reading = readings.get((verdict.metric, verdict.scope))
    value: Text = ""
    if reading is not None and (verdict.value is None or reading.value == verdict.value):
        value = reading_span(reading)
    elif verdict.value is not None:
        value = verdict_span(verdict)
    return replace(row, limit=threshold_text(verdict), place=place, value=value)


def _advice_lines(advice: Sequence[str]) -> tuple[Text, ...]:
    return tuple(map(with_command, advice))


# ---------------------------------------------------------------- concerns


def _gpu_sections(document: RunDocument, texts: Texts, kernels: Sequence[KernelRow]) -> Iterator[Block]:
    """What a reader of a GPU's run looks at first: its kernels, ranges, time line, and encoders."""
    if kernels:
        summary = texts.get("kernels")
        counted = sum(bool(row.readings) for row in kernels)
        caption = f"{plural(len(kernels), 'launch configuration')}, the largest share of the GPU time first"
        headline = summary.headline if summary is not None else f"{caption}; {counted} counted."
        blocks = tuple(_summary(summary)) if summary is not None else ()
        yield Section("Kernels", (kernel_table(document, kernels, blocks),), headline)
    else:
        yield from references(document)
    for concern in ("ranges", "gpu", "encoders", *(() if kernels else ("kernels",))):
        summary = texts.get(concern)
        if summary is not None:
            headline = summary.headline if concern != "gpu" else ""  # the head has it
            metal = document.metal if concern == "encoders" else None
            drawn = run_metal.work_chart("encoder", metal.encoders, INTERVALS) if metal is not None else ()
            anchor = concern if concern == "encoders" else f"summary-{concern}"
            yield Section(title_of(concern), (*drawn, *_summary(summary)), headline, anchor=anchor)


def _all_numbers(document: RunDocument, texts: Texts) -> Section | None:
    """Every concern: its readings with their sources, or what tells them without; tables and notes."""
    causes = common_causes(document.verdicts)
    blocks: list[Block] = []
    for summary in texts.values():
        if summary.concern in LAST:
            continue
        section = _concern_section(summary)
        in_table = backend_named(document.backend).per_kernel and summary.concern in _IN_KERNELS
        repeated = (
            summary.concern == "time"
            or in_table
            or any(_why(reading) in causes for reading in summary.readings)
        )
        blocks.append(Detail((section,)) if repeated else section)
    return Section("All numbers", tuple(blocks), anchor="numbers") if blocks else None


def _why(reading: Reading) -> str | None:
    """Why there is no value: the cause that it shares with others, else its own reason."""
    return None if reading.value is not None else reading.cause or reading.reason


def _concern_section(summary: SummaryText) -> Section:
    readings = [reading for reading in summary.readings if reading.scope.kind != "kernel"]
    blocks: list[Block] = []
    own = summary.concern in ("kernels", "ranges", "gpu", "encoders")  # tables of their own, above
    if readings:
        blocks.append(Sourced((_readings(readings),)))
    if not own:
        blocks += [Sourced((), (again,)) if readings else again for again in summary.metrics]
        blocks += summary.tables
        if summary.notes:
            blocks.append(Items(tuple(map(with_command, summary.notes))))
    return Section(title_of(summary.concern), tuple(blocks), summary.headline, Fold.FOLDED, repeats=own)


def _readings(readings: Sequence[Reading]) -> DataTable:
    titles = {reading.name: reading.title for reading in all_metrics()}
    rows = []
    for reading in readings[:_READINGS]:
        place = f" in {scope_name(reading.scope)}" if reading.scope.kind == "function" else ""
        name = (titles.get(reading.metric, reading.metric), soft(place))
        why = joined(
            reading.reason or "", *((" Fix: ", code(reading.fix)) if reading.fix and reading.reason else ())
        )
        rows.append((name, reading_span(reading), why))
    columns = ("what", TableColumn("value", numeric=True), TableColumn("why"))
    left = max(0, len(readings) - _READINGS)
    return table(columns, rows, left=left)


def _summary(summary: SummaryText) -> Iterator[Block]:
    """Its tables and notes; on a short screen the tables that matter most, and a few notes."""
    for shown in (*summary.metrics, *summary.tables):
        yield shown if shown.title in summary.brief else Detail((shown,))
    if summary.notes:
        yield Items(tuple(map(with_command, summary.notes)), brief=_NOTES)
