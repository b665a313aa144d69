"""A sweep, judged, on one screen: what is not right, what is farthest from its roofline, and verdicts by the dozen."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from profkit.analysis.ranking.ranking import BAD, by_time_above_roofline, efficiency
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import RunDocument, SweepDocument, Verdict, VerdictWord
from profkit.reporting.view import (
    Block,
    Commands,
    Label,
    Paragraph,
    Section,
    Statuses,
    StatusRow,
    Text,
    View,
    joined,
    soft,
    strong,
    table,
)
from profkit.reporting.views.cases import percent
from profkit.reporting.views.run import STATUSES
from profkit.reporting.views.run_text import WORDS, count_verdicts, worst_first
from profkit.reporting.views.sweep.text import (
    case_line,
    conclusions,
    head_line,
    missing_cases,
    short_name,
)
from profkit.reporting.views.sweep.view import missing_statuses

_REASONS = 5  # why some are not right
_CASES = 6  # that are farthest from their roofline
_ROWS = 24  # of a table of verdicts


def view(run: RunDocument, sweep: SweepDocument | None = None, folder: Path | None = None) -> View:
    """The digest; `sweep` is what its journal knows, where that is at hand."""
    worst = next(iter(worst_first(run.verdicts)), None)
    cases = plural(sum(timing.group is not None for timing in run.timings), "case")
    line = head_line(sweep) if sweep is not None else f"a sweep, {cases} with a time"
    facts = conclusions(sweep) if sweep is not None else ()
    return View(
        f"Sweep on {sweep.device}" if sweep is not None else f"{run.name} on {run.backend}",
        tuple(_blocks(run, sweep, folder)),
        Label(STATUSES[worst.verdict], WORDS[worst.verdict]) if worst is not None else None,
        (line,),
        facts=(*facts, *((("Verdicts", count_verdicts(run.verdicts)),) if run.verdicts else ())),
    )


def _blocks(run: RunDocument, sweep: SweepDocument | None, folder: Path | None) -> Iterator[Block]:
    if sweep is not None:
        bad = [one for one in missing_cases(sweep) if one.state in BAD]
        if bad:
            left = len(bad) - _REASONS
            more = (Paragraph(plural(left, "further reason")),) if left > 0 else ()
            yield Section(
                "Not right",
                (
                    missing_statuses(bad[:_REASONS]),
                    *more,
                ),
            )
        yield from _farthest(sweep)
    yield from _verdicts(run)
    name = shlex.quote(str(folder)) if folder is not None else "RUN"
    lines = (f"profkit check {name} --details", f"profkit report {name} --format junit    (or json)")
    yield Section("Every case by itself", (Commands(lines),))


def _farthest(sweep: SweepDocument) -> Iterator[Section]:
    """Of each implementation those with most time above their roofline."""
    names = dict.fromkeys(result.implementation for result in sweep.results)
    each = max(1, _CASES // max(1, len(names)))
    number: dict[str, int] = defaultdict(int)
    rows: list[Sequence[Text]] = []
    for result in by_time_above_roofline(sweep):
        number[result.implementation] += 1
        if number[result.implementation] > each or len(rows) >= _ROWS:
            continue
        share = efficiency(result, sweep.roofs) or 0.0
        above = (1 - min(1.0, share)) * (result.median or 0.0)
        name = case_line(result, sweep).partition(": ")[0]
        rows.append((name, format_quantity(result.median, "s"), percent(share), format_quantity(above, "s")))
    if rows:
        body = table(("case", "time", "roofline", "time above it"), rows)
        yield Section("Most time above the roofline, by implementation", (body,))


def _verdicts(run: RunDocument) -> Iterator[Section]:
    """Of the run one by one; of cases by implementation and operation, those that all pass in a line."""
    whole = [verdict for verdict in worst_first(run.verdicts) if verdict.scope.kind == "run"]
    rows = [
        StatusRow(
            STATUSES[verdict.verdict],
            WORDS[verdict.verdict],
            (verdict.target,),
            verdict.reason if verdict.verdict in ("fail", "unknown") else "",
        )
        for verdict in whole
    ]
    cases = _by_target(run)
    if rows or cases:
        blocks: list[Block] = [Statuses(tuple(rows))] if rows else []
        blocks += [block for target, groups in cases.items() for block in _of_target(target, groups)]
        yield Section("Verdicts", tuple(blocks))


def _by_target(run: RunDocument) -> dict[str, dict[str, list[Verdict]]]:
    """Verdicts on cases, by target, then by implementation and operation."""
    group_of = {timing.name: timing.group for timing in run.timings if timing.group is not None}
    verdicts: dict[str, dict[str, list[Verdict]]] = defaultdict(lambda: defaultdict(list))
    for verdict in run.verdicts:
        group = group_of.get(verdict.scope.name or "") if verdict.scope.kind == "region" else None
        if group is not None:
            verdicts[verdict.target][group].append(verdict)
    return verdicts


def _number(verdicts: Sequence[Verdict], word: VerdictWord) -> int:
    return sum(verdict.verdict == word for verdict in verdicts)


def _of_target(target: str, groups: Mapping[str, Sequence[Verdict]]) -> Iterator[Block]:
    endings = {" ".join(group.split(" ")[-2:]) for group in groups}  # direction and dtype
    common = next(iter(endings)) if len(endings) == 1 else ""
    order = sorted(groups.items(), key=lambda item: (-_number(item[1], "fail"), -_number(item[1], "unknown")))
    rows: list[Sequence[Text]] = []
    passed = []
    for group, own in order:
        name = short_name(group.removesuffix(f" {common}") if common else group)
        if _number(own, "fail") or _number(own, "unknown"):
            numbers = (str(_number(own, word)) for word in ("fail", "unknown", "pass"))
            rows.append((name, str(len(own)), *numbers, _worst(own)))
        else:
            passed.append(name)
    every = [verdict for own in groups.values() for verdict in own]
    yield Paragraph(joined(strong(target), f"{', ' + common if common else ''}: {count_verdicts(every)}"))
    if not rows:
        return
    columns = ("", "cases", "fail", "unknown", "pass", "worst")
    yield table(columns, rows[:_ROWS], left=max(0, len(rows) - _ROWS))
    if passed:
        yield Paragraph(soft(f"all cases pass: {', '.join(passed)}"))
    advice = next((v.advice[0] for v in worst_first(every) if v.advice and v.verdict != "pass"), None)
    if advice is not None:
        yield Paragraph(soft(f"try: {advice}"))


def _worst(verdicts: Sequence[Verdict]) -> str:
    """The largest value of those that do not pass, and its shape."""
    bad = [v for v in verdicts if v.verdict in ("fail", "unknown") and v.value is not None]
    if not bad:
        return "-"
    worst = max(bad, key=lambda v: v.value or 0.0)
    return f"{format_quantity(worst.value, worst.unit)} at {(worst.scope.name or '').rpartition(' ')[2]}"
