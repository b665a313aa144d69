"""The cases of a sweep: below the roofline, in a table that sorts and filters, and those without a time by reason."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from profkit.analysis.ranking.ranking import (
    BAD,
    BASELINE,
    FILE,
    efficiency,
)
from profkit.core.formatting import format_quantity, plural, shorten
from profkit.core.types import CaseResult, CaseState, SweepDocument
from profkit.reporting.charts.blocks import Charts
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import cloud_chart
from profkit.reporting.columns import Column, sortable_table
from profkit.reporting.view import (
    Block,
    Paragraph,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    command,
)
from profkit.reporting.views.kernels.cases import (
    hundredfold,
    limited,
    percent,
)

_ROWS, _FEW_ROWS = 200, 8  # of what has no time, and on a short screen
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def markers(document: SweepDocument) -> Mapping[str, Span]:
    """How each implementation is marked, the same everywhere: a letter of its own in the colour of its number.

    The letter is its first one that nobody else has; those that begin with a capital choose first.
    """
    names = list(dict.fromkeys(result.implementation for result in document.results))
    letters: dict[str, str] = {}
    for name in sorted(names, key=lambda name: not name[:1].isupper()):
        spare = f"{name}ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
        free = (sign.upper() for sign in spare if sign.isascii() and sign.isalnum())
        letters[name] = next((sign for sign in free if sign not in letters.values()), "?")
    return {name: Span(letters[name], series=number) for number, name in enumerate(names)}


def short_name(name: str) -> str:
    """What an implementation is called, in a sentence or a table."""
    return shorten(name, 40)


def case_line(result: CaseResult, document: SweepDocument) -> str:
    """`Triton, GELU forward float32 16x256x8: 5.11 µs, 12 % of its roofline`."""
    share = efficiency(result, document.roofs)
    line = f"{short_name(result.implementation)}, {result.point.name}: {format_quantity(result.median, 's')}"
    return line + (f", {percent(share)} of its roofline" if share is not None else "")


def roofline_section(document: SweepDocument, marks: Mapping[str, Span]) -> Section:
    """Every case below the measured ceilings."""
    ceilings = document.roofs
    rates: dict[str, list[Point]] = defaultdict(list)
    for result in document.results:
        if result.median and result.bytes and result.flops:
            words = case_line(result, document)
            point = Point(result.flops / result.bytes, result.flops / result.median, words, size=1.6)
            rates[result.implementation].append(point)
    if not ceilings.bandwidth or not ceilings.flops or not rates:
        why = "The device's peaks were not measured" if rates else "No case has a time"
        return Section("Roofline", (Paragraph(f"{why}, so there is no roofline."),), anchor="roofline")
    own = [(name, mark) for name, mark in marks.items() if name in rates]
    chart = cloud_chart(
        "All cases below the ceilings",
        "FLOP per byte that must be moved",
        [Points(tuple(rates[name]), name, mark.text, mark.series or 0, hover=name) for name, mark in own],
        (ceilings.bandwidth, ceilings.flops),
    )
    key: list[str | Span] = []
    for name, mark in own:
        key += [mark, f" {short_name(name)}  "]
    note = (
        "Bytes and FLOPs are those that a call cannot do without: inputs read once, outputs written once. What lies "
        f"above was served by caches. The ceilings were measured right before the sweep: {ceilings.method}."
    )
    return Section("Roofline", (Paragraph(tuple(key)), Charts((chart,), note)), anchor="roofline")


def cases_section(document: SweepDocument) -> Iterator[Section]:
    """One table that sorts and filters; nothing where no case was settled."""
    results = document.results
    if not results:
        return
    columns = _columns(document)
    same = [c for c in columns[1:] if len(set(map(c.value, results))) == 1]
    said = [
        f"{c.title.lower()} {c.value(results[0])}" for c in same if c.unit == "text" and c.value(results[0])
    ]
    note = "An empty cell was not measured: the state says why. ± is half of the median's 95 % interval."
    note += f" The same for all: {', '.join(said)}." if said else ""
    body = sortable_table(
        "All cases",
        [c for c in columns if c not in same],
        results,
        [f"{result.implementation}, {result.point.name}" for result in results],
        note=note,
        hint="words of a case: CUDA 16x256",
    )
    how = "click a title to sort, type words to filter."
    headline = f"{plural(len(results), 'case')}: {how}"
    yield Section("All cases", (body,), headline, anchor="cases", repeats=True)


def _columns(document: SweepDocument) -> tuple[Column[CaseResult], ...]:
    base = {r.point: r.median for r in document.results if r.implementation == BASELINE and r.median}

    def speedup(result: CaseResult) -> float | None:
        before = base.get(result.point)
        return before / result.median if before and result.median else None

    def state(result: CaseResult) -> str:
        return shorten(f"{result.state}: {result.reason}" if result.reason else result.state, 120)

    def share(result: CaseResult) -> float | None:
        return hundredfold(efficiency(result, document.roofs))

    of_roofline = "of the roofline: the least time by bytes and FLOPs over the measured one"
    return (
        Column("Case", lambda r: shorten(f"{r.point.operation} {r.point.shape}", 40)),
        Column("By", lambda r: shorten(r.implementation, 24), meaning="the implementation"),
        Column("Direction", lambda r: r.point.direction),
        Column("Dtype", lambda r: r.point.dtype),
        Column("Time", lambda r: r.median, "s", "median of its samples"),
        Column("±", lambda r: hundredfold(r.half_width), "%", "half of its 95 % interval"),
        Column("Speed-up", speedup, "x", f"the time of {BASELINE} over its own"),
        Column("Memory", lambda r: r.memory, "B", "the most during a call, inputs included"),
        Column("GPU Efficiency", share, "%", of_roofline),
        Column("Batch", lambda r: r.point.batch, "n"),
        Column("Sequence", lambda r: r.point.sequence, "n"),
        Column("Dimension", lambda r: r.point.dimension, "n"),
        Column("State", state),
        Column("Remarks", lambda r: "; ".join((*r.remarks, *r.throttled)) or None),
    )


# ---------------------------------------------------------------- what has no time


def missing_rows(document: SweepDocument) -> list[StatusRow]:
    """Cases without a time by reason, whatever numbers stand in it: what is wrong first, then what does not fit."""
    cases: dict[tuple[CaseState, str, str], list[CaseResult]] = defaultdict(list)
    for r in document.results:
        if r.state != "measured":
            cases[r.state, r.implementation, _NUMBERS.sub("#", r.reason or "")].append(r)
    rows = []
    for (state, name, _), same in cases.items():
        groups = {(r.point.operation, r.point.direction, r.point.dtype) for r in same}
        first = same[0]
        place = first.point.name + (f" and {len(same) - 1} more" if len(same) > 1 else "")
        place += f" in {len(groups)} operations" if len(groups) > 1 else ""
        status = Status.FAIL if state in BAD else Status.UNKNOWN
        reason = shorten(first.reason or "no reason is known", 400)
        below = (command(first.fix),) if first.fix else ()
        rows.append(StatusRow(status, state, (short_name(name),), reason, place=place, below=below))
    return sorted(rows, key=lambda row: row.status is not Status.FAIL)


def missing_section(rows: Sequence[StatusRow], title: str) -> Iterator[Block]:
    """A short screen has what is not right, and what can be made available."""

    def statuses(some: Sequence[StatusRow]) -> Statuses:
        return Statuses(tuple(some), ("implementation", "", "", "cases"), "state", "", "fix: ")

    if rows:
        first = [row for row in rows if row.status is Status.FAIL or row.below][:_FEW_ROWS]
        body = limited(statuses, rows, first, len(rows) - len(first), _ROWS, "reason", FILE)
        yield Section(title, (body,), anchor="missing")
