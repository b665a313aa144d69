"""A comparison for the terminal: the verdict in one sentence, what changed, why, and what is the same in one line."""

from __future__ import annotations

from profkit.core.formatting import plural, work_word
from profkit.core.types import Comparison, ComparisonOutcome
from profkit.reporting.comparison_words import (
    CHANGE_COLUMNS,
    FUNCTION_COLUMNS,
    KERNEL_COLUMNS,
    MOST,
    MOST_OVER_SHAPES,
    SIGNS,
    cases_line,
    causes_told,
    change_rows,
    difference_line,
    different,
    function_tables,
    is_case,
    kernel_line,
    kernel_rows,
    looked_line,
    open_lines,
    over_shapes,
    over_shapes_rows,
    over_shapes_title,
    same_line,
    side_line,
)
from profkit.reporting.screen import Screen

STYLES: dict[ComparisonOutcome, str] = {
    "regressed": "bold red",
    "refused": "bold red",
    "ambiguous": "bold yellow",
    "changed": "bold yellow",
    "improved": "bold green",
    "same": "bold green",
}
_SHORT = 4  # differences, notes and open questions that are told one by one


def render(comparison: Comparison, *, color: bool | None = None, width: int | None = None) -> str:
    """The comparison as text of at most `width` (80) columns."""
    screen = Screen(color, width)
    outcome = comparison.outcome
    if comparison.forced:
        screen.line(("FORCED: these two must not be compared; what follows may mean nothing.", "bold red"))
    screen.line((f"{SIGNS[outcome]} {outcome.upper()}  ", STYLES[outcome]), comparison.reason, hang=2)
    if comparison.fix is not None:
        screen.line((f"fix: {comparison.fix}", "dim"), indent=2)
    screen.blank()
    for name, side in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        screen.labelled((name, "dim"), side_line(side), width=9, indent=0)
    _differences(screen, comparison)
    _over_shapes(screen, comparison)
    _changes(screen, comparison)
    _causes(screen, comparison)
    _kernels(screen, comparison)
    _functions(screen, comparison)
    _open(screen, comparison)
    _rest(screen, comparison)
    return screen.text()


def _over_shapes(screen: Screen, comparison: Comparison) -> None:
    """Of two sweeps what decides: every implementation of every operation."""
    found = over_shapes(comparison)
    if not found:
        return
    screen.heading(over_shapes_title(found))
    screen.table(CHANGE_COLUMNS, tuple(over_shapes_rows(found[:MOST_OVER_SHAPES])))
    if len(found) > MOST_OVER_SHAPES:
        screen.line(f"and {len(found) - MOST_OVER_SHAPES} more: --format json has all of them", indent=2)
    if (cases := cases_line(comparison)) is not None:
        screen.line(cases, indent=2)


def _changes(screen: Screen, comparison: Comparison) -> None:
    changes = different(comparison)
    if not changes:
        return
    screen.heading("Single cases that stand out" if all(map(is_case, changes)) else "What changed")
    screen.table(CHANGE_COLUMNS, tuple(change_rows(changes[:MOST])))
    if len(changes) > MOST:
        screen.line(f"and {len(changes) - MOST} more: --format json has all of them", indent=2)


def _causes(screen: Screen, comparison: Comparison) -> None:
    for heading, causes in causes_told(comparison):
        screen.heading(heading)
        for cause in causes:
            screen.line(f"- {cause.sentence}", indent=2, hang=2)
            if cause.evidence:
                screen.line(("; ".join(cause.evidence), "dim"), indent=4)


def _kernels(screen: Screen, comparison: Comparison) -> None:
    if not comparison.kernels:
        return
    what = work_word(comparison.baseline.backend)
    screen.heading(f"{what.capitalize()}s: {kernel_line(comparison.kernels)}")
    rows = kernel_rows(comparison.kernels)
    if rows:
        screen.table((what, *KERNEL_COLUMNS), tuple(rows))


def _functions(screen: Screen, comparison: Comparison) -> None:
    for title, rows in function_tables(comparison.functions):
        screen.heading(f"Changed {title}")
        screen.table(FUNCTION_COLUMNS, tuple(rows))


def _differences(screen: Screen, comparison: Comparison) -> None:
    if not comparison.differences:
        return
    screen.heading("Not alike")
    for difference in comparison.differences:
        style = "red" if difference.tier == "must" else ""
        screen.line((f"- {difference_line(difference)}", style), indent=2, hang=2)


def _open(screen: Screen, comparison: Comparison) -> None:
    lines = open_lines(comparison)
    if not lines:
        return
    screen.heading("Not decided")
    for line in lines[:_SHORT]:
        screen.line(f"- {line}", indent=2, hang=2)
    if len(lines) > _SHORT:
        screen.line(f"and {plural(len(lines) - _SHORT, 'more metric')}", indent=2)


def _rest(screen: Screen, comparison: Comparison) -> None:
    same = same_line(comparison)
    if same is not None:
        screen.heading("The same (and the smallest change that would have been seen)")
        screen.line(same, indent=2)
    notes = [*comparison.notes, *([looked] if (looked := looked_line(comparison)) else [])]
    if notes:
        screen.heading("Notes")
        for note in notes:
            screen.line(f"- {note}", indent=2, hang=2)
