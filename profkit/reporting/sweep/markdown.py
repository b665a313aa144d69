"""A sweep as GitHub-flavoured Markdown: what to conclude, who wins in a table for each panel, maps folded below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from profkit.analysis.ranking.grid import results_by_shape
from profkit.analysis.ranking.ranking import (
    BASELINE,
    ComparisonGroup,
    ImplementationRanking,
    comparison_groups,
    rank_implementations,
)
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import SweepDocument
from profkit.reporting.html.escape import link
from profkit.reporting.markdown import escape_markdown, fenced_block, folded_block, grid_of, limit_length
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

HEAD = ("", "Time", "Largest memory", "Calls/s", "Roofline", "Speed-up", "From-to", "Alone fastest")
KEY = (
    "Time and speed-up are geometric means over shapes, speed-ups over PyTorch. Largest memory: during any call, inputs"
    " included. Roofline: the median share of it. Alone fastest: shapes at which nobody is as fast, by 95 % intervals."
)
REASONS = 40  # rows of what is missing
CELLS = 3000  # of one map: a larger one is for the page
WIDE = 100  # characters of a plot


def render(document: SweepDocument, limit: int | None = None) -> str:
    """The sweep as Markdown, in at most `limit` bytes of UTF-8: what is left out then, from the end, is counted."""
    found, titles = comparison_groups(document), short_titles(document)
    parts = [
        f"## Sweep on {escape_markdown(document.device)}: {head_line(document)}",
        _conclusions(document),
        _speedups(document, found, titles),
    ]
    for panel in found:
        parts += _panel(panel, document)
    parts += [
        KEY if found else "",
        _roofline(document),
        _missing(document),
        _profiled(document),
        _how(document),
    ]
    return limit_length([part for part in parts if part], limit)


def _conclusions(document: SweepDocument) -> str:
    told = []
    for line in conclusions(document):
        label, _, rest = line.partition(":")
        told.append(f"- **{label}:**{escape_markdown(rest)}")
    return "\n".join(told)


def _speedups(document: SweepDocument, found: Sequence[ComparisonGroup], titles: dict[str, str]) -> str:
    """One row for each panel, one column for each implementation: the geometric mean speed-up, the best in bold."""
    names = list(dict.fromkeys(result.implementation for result in document.results))
    rows = []
    for panel in found:
        by_name = {one.implementation: one for one in rank_implementations(panel, document.roofs)}
        values = {
            name: 1.0 if name == BASELINE and one.measured else one.speedup for name, one in by_name.items()
        }
        best = max((value for value in values.values() if value is not None), default=None)
        cells = []
        for name in names:
            value = values.get(name)
            told = "1" if name == BASELINE and value is not None else ratio(value)
            cells.append(f"**{told}**" if value is not None and value == best and len(values) > 1 else told)
        rows.append([escape_markdown(titles[panel.title]), *cells])
    if len(rows) < 2 or len(names) < 2:
        return ""
    return "### Speed-up over PyTorch\n\n" + grid_of(["", *map(escape_markdown, names)], rows)


def _panel(panel: ComparisonGroup, document: SweepDocument) -> tuple[str, ...]:
    """The table; the map, folded; lines along each axis, folded."""
    table = rank_implementations(panel, document.roofs)
    lines = [f"### {escape_markdown(panel.title)}", f"{plural(len(panel.points), 'shape')}."]
    lines.append(grid_of(HEAD, [_row(standing) for standing in table]))
    if told := [
        f"- {escape_markdown(one.implementation)}: {escape_markdown(gaps(one))}"
        for one in table
        if one.why_not
    ]:
        lines.append("\n".join(told))
    signs = letters(document)
    return "\n\n".join(lines), _map(panel, signs), _plots(panel, signs)


def _plots(panel: ComparisonGroup, signs: Mapping[str, str]) -> str:
    """Lines along each axis, drawn with letters."""
    found = [one for one in (speedup_plots(panel, signs, WIDE), time_plots(panel, signs, WIDE)) if one]
    if not found:
        return ""
    told = "\n\n".join(f"{what}\n\n" + "\n".join(lines) for what, lines in found)
    return folded_block("By batch, sequence and dimension", fenced_block(f"{legend(panel, signs)}\n\n{told}"))


def _roofline(document: SweepDocument) -> str:
    told = [f"{what}\n\n" + "\n".join(lines) for what, lines in roofline_lines(document, WIDE)]
    if not told:
        return ""
    return "### Roofline\n\n" + fenced_block("\n\n".join([who(document), *told]))


def _row(standing: ImplementationRanking) -> list[str]:
    baseline = standing.implementation == BASELINE
    return [
        escape_markdown(standing.implementation),
        format_quantity(standing.time, "s"),
        format_quantity(float(standing.memory), "B") if standing.memory is not None else "-",
        format_quantity(1 / standing.time) if standing.time else "-",
        told_share(standing.efficiency),
        "1" if baseline and standing.measured else ratio(standing.speedup),
        span(standing.least, standing.most) or "-",
        f"{standing.wins}",
    ]


def _map(panel: ComparisonGroup, signs: Mapping[str, str]) -> str:
    """Who is fastest at each shape, with the time of the next one over the winner's."""
    best = results_by_shape(panel)
    dimensions = sorted({point.dimension for point in panel.points})
    rows = sorted({(p.batch, p.sequence) for p in panel.points}, key=lambda pair: (pair[0] * pair[1], pair))
    if len(panel.implementations) < 2 or not best or len(rows) * len(dimensions) > CELLS:
        return ""
    at = {(p.batch, p.sequence, p.dimension): place for p, place in best.items()}
    lines = [
        f"{legend(panel, signs)}, {ALIKE} several alike; the number: how many times as long the next one takes",
        "",
    ]
    head = [f"{d}" for d in dimensions]
    body = []
    for batch, sequence in rows:
        cells = []
        for d in dimensions:
            place = at.get((batch, sequence, d))
            sign = NOTHING if place is None else ALIKE if place.alone is None else signs[place.alone]
            lead = f" {place.lead:.2f}" if place and place.alone and place.lead and place.lead < 1000 else ""
            cells.append(f"{sign}{lead}")
        body.append((f"{batch} x {sequence}", cells))
    label = max(len(name) for name, _ in body)
    wide = max(len(cell) for cells in (head, *(cells for _, cells in body)) for cell in cells) + 2
    lines.append(" " * label + "".join(f"  {cell}".ljust(wide) for cell in head).rstrip())
    lines += [
        name.rjust(label) + "".join(f"  {cell}".ljust(wide) for cell in cells).rstrip()
        for name, cells in body
    ]
    return folded_block(
        "Fastest at batch x sequence (rows) by dimension (columns)", fenced_block("\n".join(lines))
    )


def _missing(document: SweepDocument) -> str:
    found = missing(document)
    if not found:
        return ""
    rows = [
        [
            f"**{one.state}**" if one.state in BAD else one.state,
            escape_markdown(one.implementation),
            escape_markdown(one.told),
            escape_markdown(one.reason or "no reason is known")
            + (f"; <code>{escape_markdown(one.fix)}</code>" if one.fix else ""),
        ]
        for one in found[:REASONS]
    ]
    left = len(found) - REASONS
    more = f"\n\n{plural(left, 'further reason')} in `benchmark_results.json`." if left > 0 else ""
    head = ("State", "Implementation", "Cases", "Reason")
    return f"### Not measured\n\n{grid_of(head, rows)}{more}"


def _profiled(document: SweepDocument) -> str:
    """The cases that have a run of their own, with links to it."""
    lines = [
        f"- [{escape_markdown(case_line(result, document))}]({link(f'{result.profile}/report.md')})"
        for result in profiled(document)
    ]
    return "### Profiled\n\n" + "\n".join(lines) if lines else ""


def _how(document: SweepDocument) -> str:
    rows = [[name, escape_markdown(words)] for name, words in how(document)]
    return f"### How it was measured\n\n{grid_of(('', ''), rows)}"
