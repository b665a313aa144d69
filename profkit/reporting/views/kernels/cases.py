"""What views of many cases share, sweeps, evaluations and generations: numbers as words, and parts of a page."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profkit.analysis.evaluation.scores import MeanSpeedup
from profkit.core.formatting import format_percent, format_quantity, format_utc_time, joined, plural, shorten
from profkit.core.types import EvaluationDocument, GenerationDocument, Speedup, SpeedWord, Verdict
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import threshold_text
from profkit.reporting.view import (
    Block,
    Detail,
    Item,
    ItemList,
    Label,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    command,
)
from profkit.reporting.views.run_text import VERDICTS, count_verdicts, worst_first
from profkit.runtime.passes.shown_command import shown_line

_SPEED_WORDS: Mapping[SpeedWord, str] = {
    "FASTER": "faster",
    "SAME": "the same",
    "SLOWER": "slower",
    "AMBIGUOUS": "not decided",
}


# ---------------------------------------------------------------- numbers


def ratio(value: float | None) -> str:
    """Return a speed-up: `1.62 x`; `-` if there is none."""
    return format_quantity(value, "x")


def range_text(low: float | None, high: float | None) -> str:
    """Return the range of speed-ups: `0.720-44.4`; empty if they are not known."""
    if low is None or high is None:
        return ""
    return f"{ratio(low)}-{ratio(high)}".replace(" x", "")


def speedup_text(speedup: MeanSpeedup | Speedup | None) -> str:
    """Return `1.32 x (1.21-1.44, FASTER)`; `-` if there is none. Without interval and word a speed-up says nothing."""
    if speedup is None:
        return "-"
    value = speedup.median if isinstance(speedup, Speedup) else speedup.value
    known = not isinstance(speedup, Speedup) or speedup.pairs > 1
    between = range_text(speedup.low, speedup.high) if known else ""
    return f"{ratio(value)} ({between or 'no interval'}, {speedup.word})"


def counted_speeds(words: Mapping[SpeedWord, int]) -> str:
    """Return `3 faster, 1 the same and 2 not decided`: how many became what against PyTorch."""
    return joined([f"{words[word]} {text}" for word, text in _SPEED_WORDS.items() if words.get(word, 0)])


def short_name(name: str) -> str:
    """Return what an implementation is called, in a sentence or a table."""
    return shorten(name, 40)


def percent(share: float | None) -> str:
    """Return a share (0..1): `85.7 %`; `-` if there is none."""
    return "-" if share is None else f"{format_percent(100 * share)} %"


def hundredfold(share: float | None) -> float | None:
    """Return a share (0..1) as percents."""
    return None if share is None else 100 * share


def facts_of(
    document: EvaluationDocument | GenerationDocument, *more: tuple[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return when and where it was made, of what and by what; then `more`. What is not known is left out."""
    rows = (
        ("Started", format_utc_time(document.started)),
        ("Suite", f"{document.suite}{', ' + document.dtype if document.dtype else ''}"),
        ("Device", document.device),
        ("Versions", ", ".join(f"{name} {version}" for name, version in document.versions.items())),
        *more,
        ("Command", shown_line(document.command)),
    )
    return tuple((name, text) for name, text in rows if text)


# ---------------------------------------------------------------- parts of a page


def complete_label(complete: bool, other: str = "INTERRUPTED") -> Label:
    """Return whether all of it was done."""
    return Label(Status.PASS, "COMPLETE") if complete else Label(Status.UNKNOWN, other)


def limited(
    whole: Statuses, few: Sequence[StatusRow], most: int, what: str, file: str, page: str = "report.html"
) -> Detail:
    """Return rows of which a short screen shows a `few` and how many are left; a page shows `most`, and `file` all."""

    def part(rows: Sequence[StatusRow], where: str) -> tuple[Block, ...]:
        left = len(whole.rows) - len(rows)
        more = (Paragraph(f"{plural(left, f'further {what}')} in {where}."),) if left > 0 else ()
        return (*((replace(whole, rows=tuple(rows)),) if rows else ()), *more)

    return Detail(part(whole.rows[:most], file), part(few, page))


def verdicts_section(verdicts: Sequence[Verdict]) -> Iterator[Section]:
    """Yield a row for each target: the worst verdict with its reason, and how many there are of each."""
    by_target: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in worst_first(verdicts):
        by_target[verdict.target].append(verdict)
    rows = []
    for target, own in by_target.items():
        first = own[0]
        needs_reason = first.verdict in ("fail", "unknown")
        counts = count_verdicts(own) if len(own) > 1 else ""
        rows.append(
            StatusRow(
                VERDICTS[first.verdict].status,
                VERDICTS[first.verdict].word,
                (target,),
                "; ".join(filter(None, (counts, fact_text(first.reason) if needs_reason else ""))),
                limit=threshold_text(first),
                place=first.scope.name or "" if needs_reason else "",
                below=first.advice[:1] if needs_reason else (),
            )
        )
    if rows:
        yield Section("Verdicts", (Statuses(tuple(rows)),), anchor="verdicts")


def profiled_section(
    runs: Sequence[tuple[str, Sequence[str], str]], folder: Path | None, headline: str
) -> Iterator[Section]:
    """Yield the cases with their own run, as (words, lines below, its folder), and the command that shows it."""
    items = tuple(
        Item(
            Span(words, link=f"{run}/report.html"),
            (*below, command(f"profkit report {shlex.quote(str((folder or Path()) / run))}")),
        )
        for words, below, run in runs
    )
    if items:
        yield Section("Profiled", (ItemList(items),), headline, anchor="profiled")


def files_line(folder: Path | None, names: Sequence[str]) -> Iterator[Block]:
    """Yield, on a screen, where the existing files of these names are."""
    if folder is not None:
        found = [name for name in names if (folder / name).is_file()]
        line = f"{folder}: {', '.join(found)}" if found else str(folder)
        yield Detail((), (Paragraph(""), Paragraph(command(line))))
