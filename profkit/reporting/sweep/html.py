"""A sweep as one page in the frame of all pages: what to conclude, then panel by panel, then every case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profkit.analysis.ranking.ranking import (
    BASELINE,
    ComparisonGroup,
    comparison_groups,
    rank_implementations,
    rank_overall,
)
from profkit.core.formatting import plural
from profkit.core.types import SweepDocument
from profkit.reporting.html.frame import page
from profkit.reporting.html.part import Part
from profkit.reporting.html.templates import filled
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.sweep import html_cases as cases
from profkit.reporting.sweep.conclusions import conclusions
from profkit.reporting.sweep.html_panel import Signs, panel_html
from profkit.reporting.sweep.words import (
    BAD,
    case_line,
    head_line,
    how,
    letters,
    missing,
    profiled,
    ratio,
    short_titles,
)

STYLES, SCRIPTS = ("charts.css", "kernels.css", "sweep.css"), ("charts.js", "kernels.js", "sweep.js")
OPEN = 8  # panels that stand open; of more each opens at a click
CELLS = 2500  # shapes that are drawn: each is 300 bytes, and a page is to open at once
REASONS = 200  # rows of what is missing


@dataclass(frozen=True)
class _Missing:
    tone: str
    sign: str
    state: str
    implementation: str
    cases: str
    reason: str
    fix: str | None


def render(document: SweepDocument) -> str:
    """The sweep as one self-contained HTML file, as text for UTF-8."""
    found, titles = comparison_groups(document), short_titles(document)
    names = list(dict.fromkeys(result.implementation for result in document.results))
    signs = Signs(letters(document), {name: number for number, name in enumerate(names)})
    parts = [_overall(document, found, titles, signs)]
    room = CELLS
    for number, panel in enumerate(found):
        drawn = len(panel.points) <= room
        room -= len(panel.points) if drawn else 0
        parts.append(_panel(number, panel, document, signs, titles, drawn=drawn, folded=len(found) > OPEN))
    parts += [cases.roofline_part(document, signs), cases.part(document), _missing(document)]
    parts += [_profiled(document), _how(document)]
    made = [part for part in parts if part is not None]
    title = f"Sweep on {without_control_characters(document.device)}"
    return page(title, made, head=_head(document), styles=STYLES, scripts=SCRIPTS)


def _head(document: SweepDocument) -> str:
    told = [line.partition(":") for line in conclusions(document)]
    bad = any(result.state in BAD for result in document.results)
    tone = "fail" if bad else "pass" if document.complete else "unknown"
    return filled(
        "sweep_head.html.j2",
        device=document.device,
        line=head_line(document),
        tone=tone,
        conclusions=[(name, words.strip()) for name, _, words in told],
    )


def _overall(
    document: SweepDocument, found: Sequence[ComparisonGroup], titles: dict[str, str], signs: Signs
) -> Part | None:
    """Speed-ups: a row for each panel, a column for each implementation, and all shapes together below."""
    names = list(signs.letters)
    if not found or len(names) < 2:
        return None
    rows = []
    for number, panel in enumerate(found):
        values: dict[str, float | None] = {
            s.implementation: 1.0 if s.implementation == BASELINE and s.measured else s.speedup
            for s in rank_implementations(panel, document.roofs)
        }
        rows.append((titles[panel.title], f"panel-{number}", _cells(names, values)))
    if len(rows) > 1:
        scores = rank_overall(document).scores
        values = {
            s.implementation: 1.0 if s.implementation == BASELINE and s.measured else s.speedup
            for s in scores
        }
        rows.append(("All shapes", "", _cells(names, values)))
    body = filled(
        "sweep_overall.html.j2",
        names=[
            (without_control_characters(name), signs.letters[name], signs.places[name] % 8 + 1)
            for name in names
        ],
        rows=rows,
        baseline=BASELINE,
    )
    return Part("speed-ups", "Who is fastest", body)


def _cells(names: Sequence[str], values: dict[str, float | None]) -> list[tuple[str, bool]]:
    best = max((value for value in values.values() if value is not None), default=None)
    found = []
    for name in names:
        value = values.get(name)
        told = "1" if name == BASELINE and value is not None else ratio(value)
        found.append((told, value is not None and value == best))
    return found


def _panel(
    number: int,
    panel: ComparisonGroup,
    document: SweepDocument,
    signs: Signs,
    titles: dict[str, str],
    *,
    drawn: bool,
    folded: bool,
) -> Part:
    told = f"{panel.title}, {plural(len(panel.points), 'shape')}"
    told += "" if drawn else "; not drawn here, as there are many: the table of all cases filters them"
    body = panel_html(panel, document, signs, drawn=drawn)
    return Part(f"panel-{number}", titles[panel.title], body, headline=told, folded=folded)


def _missing(document: SweepDocument) -> Part | None:
    found = missing(document)
    if not found:
        return None
    rows = [
        _Missing(
            "fail" if one.state in BAD else "unknown",
            "✗" if one.state in BAD else "?",
            one.state,
            one.implementation,
            one.told,
            one.reason or "no reason is known",
            one.fix,
        )
        for one in found[:REASONS]
    ]
    number = sum(one.cases for one in found)
    body = filled("sweep_missing.html.j2", rows=rows, left=max(0, len(found) - REASONS))
    return Part("missing", "Not measured", body, headline=f"{plural(number, 'case')} without a time, and why")


def _profiled(document: SweepDocument) -> Part | None:
    """The cases that have a run of their own, with links to its page."""
    rows = [(case_line(result, document), f"{result.profile}/report.html") for result in profiled(document)]
    if not rows:
        return None
    told = "Why these take as long as they do: each has a page of its own."
    return Part("profiled", "Profiled", filled("sweep_profiled.html.j2", rows=rows), headline=told)


def _how(document: SweepDocument) -> Part:
    body = filled("sweep_how.html.j2", facts=how(document))
    return Part("how", "How it was measured", body)
