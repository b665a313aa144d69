"""Charts of a generation: solved within k attempts, the speed of each attempt, all attempts at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.generation import (
    Spending,
    WithinAttempts,
    is_correct,
    kept_attempt,
    spending_of,
    within_attempts,
)
from profkit.core.formatting import plural, shorten
from profkit.core.types import Attempt, GenerationDocument, OperationAttempts
from profkit.reporting.chart_blocks import Piece, StackedBar, WinnerCell, WinnerMap
from profkit.reporting.charts.marks import Chart, Point, Points
from profkit.reporting.charts.series import series_chart
from profkit.reporting.view import Span, Text, between, joined
from profkit.reporting.views.evaluation.text import format_duration, percent
from profkit.reporting.views.generation.text import attempt_speed

LINES = 8  # operations in a chart of lines: there are eight colours
MOST_ROWS = 120  # operations in a map: each row is a kilobyte of a page
_LETTERS = "ABCDEFGH"
_FASTER, _SLOWER, _FAILED = 0, 1, 3  # numbers of colours
MAP_LEGEND = (
    "F faster than PyTorch, S slower, = the same, ? not decided or not timed, ✗ not correct, "
    + "r the same code again"
)


# ---------------------------------------------------------------- within k


def solved_chart(document: GenerationDocument) -> Chart | None:
    """Shares of the operations within k attempts: solved, and faster than p; None of fewer than two attempts."""
    rows = within_attempts(document)
    if len(rows) < 2:
        return None
    total = plural(len(document.operations), "operation")
    lines = [_share_line("solved", "S", 0, [(row, row.share) for row in rows], total)]
    for number, p in enumerate((1.0, 1.2, 1.5, 2.0), 1):
        shares = [(row, point.share) for row in rows for point in row.fast if point.p == p]
        if shares:
            lines.append(_share_line(f"fast_{p:g}", _LETTERS[number - 1], number, shares, total))
    of = f"the share of {total} with a correct kernel within k attempts"
    return series_chart("Solved within k attempts", "k", lines, "%", of=of, counted=True)


def _share_line(
    name: str, letter: str, number: int, shares: Sequence[tuple[WithinAttempts, float]], total: str
) -> Points:
    points = tuple(
        Point(
            row.attempts,
            100 * share,
            f"{name} within {plural(row.attempts, 'attempt')}: {percent(share)} of {total}",
        )
        for row, share in shares
    )
    return Points(points, name, letter, number, joined=True, hover=name)


def legend(chart: Chart) -> Text:
    """The letters of a chart's lines with what they stand for."""
    series = [mark for mark in reversed(chart.marks) if isinstance(mark, Points)]
    names = [joined(Span(line.letter, series=line.number), f" {line.name}") for line in series]
    return joined(*between("  ", names))


# ---------------------------------------------------------------- attempt by attempt


def speed_charts(document: GenerationDocument) -> Chart | None:
    """The speed-up of each correct attempt, for the operations that have several; None where none has."""
    operations = [one for one in document.operations if len(_timed(one)) > 1]
    operations = sorted(operations, key=_change, reverse=True)[:LINES]
    if not operations:
        return None
    lines = [_speed_line(one, number) for number, one in enumerate(operations)]
    title = "Speed-up over PyTorch"
    return series_chart(title, "attempt", lines, "x", counted=True, caption=f"{title} by attempt:")


def _timed(operation: OperationAttempts) -> list[Attempt]:
    return [each for each in operation.attempts if is_correct(each) and each.speedup is not None]


def _change(operation: OperationAttempts) -> float:
    """How many times the largest speed-up of an operation is its smallest."""
    values = [each.speedup.median for each in _timed(operation) if each.speedup is not None]
    return max(values) / min(values) if min(values) > 0 else 0.0


def _speed_line(operation: OperationAttempts, number: int) -> Points:
    points = tuple(
        Point(
            each.number,
            each.speedup.median,
            f"{operation.operation}, attempt {each.number}: {attempt_speed(each)}",
            each.speedup.low,
            each.speedup.high,
        )
        for each in _timed(operation)
        if each.speedup is not None
    )
    name = shorten(operation.operation, 36)
    return Points(points, name, _LETTERS[number], number, joined=True, hover=name)


def attempts_map(operations: Sequence[OperationAttempts]) -> WinnerMap | None:
    """Operations by attempts, each with what became of it; None without any."""
    rows = [one for one in operations if one.attempts][:MOST_ROWS]
    if not rows:
        return None
    columns = max(each.number for one in rows for each in one.attempts)
    cells = {
        (row, each.number - 1): _cell(one, each) for row, one in enumerate(rows) for each in one.attempts
    }
    return WinnerMap(
        "Attempts by operation",
        f"{plural(len(rows), 'operation')} by {plural(columns, 'attempt')}.",
        tuple(shorten(one.operation, 36) for one in rows),
        tuple(str(number) for number in range(1, columns + 1)),
        cells,
        f"{MAP_LEGEND}; the number: how many times as fast, or as slow; * the kept kernel",
    )


def _cell(operation: OperationAttempts, attempt: Attempt) -> WinnerCell:
    words = f"{operation.operation}, attempt {attempt.number}: {attempt.status}"
    if not is_correct(attempt):
        letter, color = ("r", None) if attempt.status == "repeated" else ("✗", _FAILED)
        reason = f": {shorten(attempt.reason, 200)}" if attempt.reason else ""
        return WinnerCell(letter, color, None, words + reason)
    kept = "*" if kept_attempt(operation) == attempt else ""
    words += f", {attempt_speed(attempt)}" + (", kept" if kept else "")
    speedup = attempt.speedup
    if speedup is None or speedup.word == "AMBIGUOUS":
        return WinnerCell(f"?{kept}", None, None, words)
    if speedup.word == "SAME":
        return WinnerCell(f"={kept}", None, None, words)
    if speedup.word == "FASTER":
        return WinnerCell(f"F{kept}", _FASTER, speedup.median, words)
    return WinnerCell(f"S{kept}", _SLOWER, 1 / speedup.median, words)


# ---------------------------------------------------------------- time


def time_bar(document: GenerationDocument) -> StackedBar | None:
    """Where the seconds of all attempts went; None where none were told."""
    spent = spending_of([each for one in document.operations for each in one.attempts])
    whole = spent.asking + spent.evaluating + spent.profiling
    if whole <= 0:
        return None
    pieces = tuple(
        Piece(name, seconds / whole, f"{name}: {format_duration(seconds)}")
        for name, seconds in time_parts(spent)
        if seconds
    )
    return StackedBar("seconds", "Where the time went", f"{format_duration(whole)} in all.", pieces)


def time_parts(spent: Spending) -> tuple[tuple[str, float], ...]:
    """Names and seconds of what attempts spend time on."""
    return ("model", spent.asking), ("evaluation", spent.evaluating), ("profiles", spent.profiling)
