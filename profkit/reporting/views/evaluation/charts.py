"""Charts of an evaluation: how many operations are faster than p, and where they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import floor, log10

from profkit.analysis.evaluation.scores import (
    FAILED,
    OperationResult,
    counts,
    elements_of,
    fast_p,
    fast_p_curve,
    is_timed_well,
    surely_faster_than,
)
from profkit.analysis.evaluation.speedups import mean_speedup
from profkit.core.formatting import format_figures, plural, shorten
from profkit.core.types import EvaluationDocument, TestResult
from profkit.reporting.chart_blocks import WinnerCell, WinnerMap
from profkit.reporting.charts.marks import Chart
from profkit.reporting.charts.series import step_curve
from profkit.reporting.view import Block, table
from profkit.reporting.views.evaluation.text import percent, ratio, speedup_text

_PLACES = (0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
_MOST_ROWS = 120  # operations in a map: each row is a kilobyte of a page
_FASTER, _SLOWER, _FAILED = 0, 1, 3  # numbers of colours
MAP_LEGEND = "F faster than PyTorch, S slower, = the same, ? not decided, ✗ failed"


def fast_curve(operations: Sequence[OperationResult]) -> Chart | None:
    """fast_p over p; None where no operation is correct and timed."""
    points = fast_p_curve(operations)
    if not points or not fast_p(operations, 0.0):
        return None
    counted = [one for one in operations if one.counted]
    steps = []
    start = fast_p(operations, 0.0) or 0.0
    for point in points:
        number = round(point.share * len(counted))
        names = [one.operation for one in counted if surely_faster_than(one) == point.p]
        which = f"; up to here {shorten(', '.join(names), 120)}" if names else ""
        share = percent(point.share)
        words = f"more than {ratio(point.p)}: {share}, {number} of {plural(len(counted), 'operation')}{which}"
        steps.append((point.p, point.share, words))
    return step_curve(
        "Correct and surely more than p times as fast",
        f"{percent(start)} of {plural(len(counted), 'operation')} are correct and timed; "
        f"{percent(fast_p(operations, 1.0))} are also surely faster than PyTorch.",
        "p",
        start,
        steps,
    )


def fast_table(operations: Sequence[OperationResult]) -> Block:
    """fast_p at the places that are usually named."""
    shares = [percent(fast_p(operations, p)) for p in _PLACES]
    return table(("p", *(format_figures(p, 2) for p in _PLACES)), [("share", *shares)])


def speedup_map(document: EvaluationDocument) -> WinnerMap | None:
    """Operations over sizes, and over dtypes where there are several; None where all would be one column."""
    tests = [result for result in document.results if result.test.timed and counts(result)]
    if not any(map(is_timed_well, tests)):
        return None
    dtypes = {result.test.dtype for result in tests}
    groups: dict[tuple[str, int], list[TestResult]] = defaultdict(list)
    for result in tests:
        elements = elements_of(result.test.arguments)
        if elements:
            name = result.test.operation
            row = f"{name} {result.test.dtype}" if len(dtypes) > 1 else name
            groups[row, floor(log10(elements))].append(result)
    rows = list(dict.fromkeys(row for row, _ in groups))[:_MOST_ROWS]
    columns = sorted({column for row, column in groups if row in rows})
    if len(columns) < 2 and len(dtypes) < 2:
        return None
    cells = {
        (rows.index(row), columns.index(column)): _cell(row, column, own, document.floor)
        for (row, column), own in groups.items()
        if row in rows
    }
    return WinnerMap(
        "Speed-up by operation and elements",
        f"{plural(len(rows), 'row')} by {plural(len(columns), 'size')}; a size is that of the largest tensor.",
        tuple(shorten(row, 36) for row in rows),
        tuple(_size(column) for column in columns),
        cells,
        f"{MAP_LEGEND}; the number: how many times as fast, or as slow",
    )


def _cell(row: str, column: int, tests: Sequence[TestResult], limit: float) -> WinnerCell:
    failed = sum(result.status in FAILED for result in tests)
    timed = [result for result in tests if is_timed_well(result)]
    mean = mean_speedup(timed, limit)
    place = f"{row}, {_size(column)} to {_size(column + 1)} elements"
    words = f"{place}: {speedup_text(mean)} over {plural(len(timed), 'test')}" if mean is not None else place
    if failed:
        return WinnerCell("✗", _FAILED, None, f"{words}; {failed} of {plural(len(tests), 'test')} failed")
    if mean is None:
        return WinnerCell("?", None, None, f"{words}: not timed")
    if mean.word == "FASTER":
        return WinnerCell("F", _FASTER, mean.value, words)
    if mean.word == "SLOWER":
        return WinnerCell("S", _SLOWER, 1 / mean.value, words)
    return WinnerCell("=" if mean.word == "SAME" else "?", None, None, words)


def _size(power: int) -> str:
    """10 to the power: `1`, `10`, `1 k`, `100 M`."""
    prefix = ("", " k", " M", " G", " T")[min(4, power // 3)]
    return f"{10 ** (power - 3 * min(4, power // 3))}{prefix}"
