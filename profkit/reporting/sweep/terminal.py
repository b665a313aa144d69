"""A sweep in a terminal: what to conclude first, then who wins where panel by panel, then what is not known."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from profkit.analysis.ranking.grid import results_by_shape, winners_by_size
from profkit.analysis.ranking.ranking import (
    BASELINE,
    ComparisonGroup,
    ImplementationRanking,
    comparison_groups,
    rank_implementations,
)
from profkit.analysis.ranking.ranking import FILE as RESULTS
from profkit.core.formatting import format_quantity, plural, shorten
from profkit.core.types import SweepDocument
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.screen import Screen
from profkit.reporting.sweep.conclusions import conclusions
from profkit.reporting.sweep.plots import roofline_lines, speedup_plots, time_plots, who
from profkit.reporting.sweep.words import (
    ALIKE,
    BAD,
    NOTHING,
    case_line,
    gaps,
    head_line,
    how,
    legend,
    letters,
    missing,
    profiled,
    ratio,
    short_titles,
    span,
    told_share,
)

COLUMNS = ("", "time", "most mem.", "calls/s", "roof", "speed-up", "range", "alone")
KEY = (
    "time, speed-up: geometric means over shapes. most mem.: the largest, inputs included. roof: the median share of"
    " the roofline. range: of the speed-ups. alone: shapes at which nobody is as fast."
)
FILES = ("report.html", "report.md", RESULTS)
REASONS = 6  # of cases that were not measured, spelled out
LONG_MAP = 8  # rows: of a longer one each is all shapes of as many vectors
MAPS = 8  # panels with a map and plots, where not all is asked for
LONG = 60  # lines after which the first ones have left the screen: they stand at the end once more


def render(
    document: SweepDocument,
    folder: Path,
    *,
    details: bool = False,
    color: bool | None = None,
    width: int | None = None,
) -> str:
    """The whole sweep; `details` spells out what is shortened: every row of a map, every reason."""
    screen = Screen(color, width)
    screen.line((f"{document.device}: {head_line(document)}", "bold"))
    _conclusions(screen, document)
    found, titles = comparison_groups(document), short_titles(document)
    for number, panel in enumerate(found):
        screen.heading(f"{panel.title}, {plural(len(panel.points), 'shape')}")
        _table(screen, panel, document)
        if details or number < MAPS:
            _map(screen, panel, letters(document), details)
            _plots(screen, panel, letters(document), details)
    if found:
        screen.blank()
        screen.line((KEY, "dim"))
    if len(found) > MAPS and not details:
        without = ", ".join(titles[panel.title] for panel in found[MAPS:])
        screen.line(f"Without a map and plots here: {without} (--details, or report.html)", hang=2)
    _roofline(screen, document)
    _missing(screen, document, details)
    _profiled(screen, document, folder)
    _how(screen, document)
    if screen.text().count("\n") > LONG:
        screen.heading("In short")
        _conclusions(screen, document)
    _files(screen, folder)
    return screen.text()


def _conclusions(screen: Screen, document: SweepDocument) -> None:
    for line in conclusions(document):
        label, _, rest = line.partition(":")
        screen.line((f"{label}:", "red" if label == "Not right" else "bold"), rest, hang=2)


def _table(screen: Screen, panel: ComparisonGroup, document: SweepDocument) -> None:
    table = rank_implementations(panel, document.roofs)
    screen.table(COLUMNS, tuple(_row(standing) for standing in table))
    for standing in table:
        if standing.why_not:
            screen.line(
                f"{shorten(without_control_characters(standing.implementation), 20)}: {gaps(standing)}",
                indent=2,
                hang=2,
            )


def _row(standing: ImplementationRanking) -> tuple[str, ...]:
    baseline = standing.implementation == BASELINE
    return (
        shorten(without_control_characters(standing.implementation), 14),
        format_quantity(standing.time, "s"),
        format_quantity(float(standing.memory), "B") if standing.memory is not None else "-",
        format_quantity(1 / standing.time) if standing.time else "-",
        told_share(standing.efficiency),
        "1" if baseline and standing.measured else ratio(standing.speedup),
        span(standing.least, standing.most) or "-",
        str(standing.wins),
    )


def _map(screen: Screen, panel: ComparisonGroup, signs: Mapping[str, str], details: bool) -> None:
    """Who is fastest at each shape: rows are batch x sequence, columns dimensions."""
    best = results_by_shape(panel)
    if len(panel.implementations) < 2 or not best:
        return
    dimensions = sorted({point.dimension for point in panel.points})
    at = {(point.batch, point.sequence): point for point in panel.points}
    rows: list[tuple[str, list[str]]] = []
    if len(at) <= LONG_MAP or details:
        what = "batch x sequence"
        won = {(p.batch, p.sequence, p.dimension): place.winners for p, place in best.items()}
        for batch, sequence in sorted(at, key=lambda pair: (pair[0] * pair[1], pair)):
            cells = [_sign(won.get((batch, sequence, d)), signs) for d in dimensions]
            rows.append((f"{batch} x {sequence}", cells))
    else:
        what = "batch x sequence, multiplied"
        for row in winners_by_size(panel, dimensions):
            rows.append((f"{row.batch_x_sequence:,}", [_sign(names, signs) for names in row.cells]))
    screen.line(
        f"fastest at {what}, by dimension: {legend(panel, signs)}, {ALIKE} several alike", indent=2, hang=2
    )
    _grid(screen, dimensions, rows)


def _grid(screen: Screen, dimensions: Sequence[int], rows: Sequence[tuple[str, list[str]]]) -> None:
    """The map, in as many parts as the screen needs."""
    label = max(len(name) for name, _ in rows)
    wide = max(len(str(d)) for d in dimensions) + 1
    fits = max(1, (screen.console.width - 4 - label) // wide)
    for first in range(0, len(dimensions), fits):
        part = slice(first, first + fits)
        screen.typed("".rjust(label) + " " + "".join(str(d).rjust(wide) for d in dimensions[part]), "dim", 2)
        for name, cells in rows:
            screen.typed(
                name.rjust(label) + " " + "".join(cell.rjust(wide) for cell in cells[part]), indent=2
            )


def _sign(names: Sequence[str] | None, signs: Mapping[str, str]) -> str:
    if names is None:
        return NOTHING
    return signs[names[0]] if len(names) == 1 else ALIKE


def _plots(screen: Screen, panel: ComparisonGroup, signs: Mapping[str, str], details: bool) -> None:
    """Speed-ups along each axis, and times with `details` or where nothing can be compared."""
    width = screen.console.width - 4
    speedups, times = speedup_plots(panel, signs, width), time_plots(panel, signs, width)
    for one in (speedups, times if details or speedups is None else None):
        if one is not None:
            screen.line(one[0], indent=2, hang=2)
            _drawn(screen, one[1])


def _roofline(screen: Screen, document: SweepDocument) -> None:
    drawn = roofline_lines(document, screen.console.width - 2)
    if drawn:
        screen.heading("Roofline")
        screen.line((who(document), "dim"), indent=2, hang=2)
    for told, lines in drawn:
        screen.line(told, indent=2, hang=2)
        _drawn(screen, lines)


def _drawn(screen: Screen, lines: Sequence[str]) -> None:
    for line in lines:
        screen.typed(line, indent=2)


def _missing(screen: Screen, document: SweepDocument, details: bool) -> None:
    """What is wrong with an implementation, and what brings one that is not there; the rest stands with its table."""
    found = missing(document)
    for one in [one for one in found if one.state not in BAD and one.fix][:REASONS]:
        screen.heading(f"{shorten(without_control_characters(one.implementation), 30)} can be had")
        screen.line(
            f"{one.state} in {plural(one.cases, 'case')}: {without_control_characters(one.reason)}",
            indent=2,
            hang=2,
        )
        screen.typed(f"fix: {one.fix}", indent=2)
    bad = [one for one in found if one.state in BAD]
    if not bad:
        return
    screen.heading("Not right")
    for one in bad if details else bad[:REASONS]:
        what = f"{shorten(without_control_characters(one.implementation), 30)}, {one.told}"
        said = shorten(without_control_characters(one.reason), 200) or "no reason is known"
        screen.line(f"{what}: ", (one.state, "red"), f": {said}", indent=2, hang=2)
    if len(bad) > REASONS and not details:
        screen.line(f"and {plural(len(bad) - REASONS, 'further reason')}: --details", indent=2)


def _profiled(screen: Screen, document: SweepDocument, folder: Path) -> None:
    """The cases that have a run of their own, with the line that shows it."""
    found = profiled(document)
    if found:
        screen.heading("Profiled")
    for result in found:
        screen.line(case_line(result, document), indent=2, hang=2)
        screen.typed(f"profkit report {shlex.quote(str(folder / (result.profile or '')))}", "dim", 4)


def _how(screen: Screen, document: SweepDocument) -> None:
    screen.heading("How it was measured")
    for name, words in how(document):
        screen.labelled((name, "dim"), words, width=12)


def _files(screen: Screen, folder: Path) -> None:
    """Where the rest is."""
    screen.blank()
    beside = [name for name in FILES if (folder / name).is_file()]
    screen.typed(f"{folder}: {', '.join(beside)}" if beside else str(folder))
