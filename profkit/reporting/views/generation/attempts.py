"""A generation attempt by attempt: at a glance, each with its files, what the feedback on it changed, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from profkit.analysis.generation import (
    OUTCOMES as OUTCOME_ORDER,
)
from profkit.analysis.generation import (
    FeedbackEffect,
    FeedbackStep,
    Spending,
    feedback_effects,
    feedback_steps,
    is_correct,
    kept_attempt,
    spending_by_attempt,
    spending_of,
)
from profkit.core.formatting import joined, plural, shorten
from profkit.core.types import Attempt, GenerationDocument, OperationAttempts
from profkit.reporting.chart_blocks import Charts, Piece, StackedBar, WinnerCell, WinnerMap
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import series_chart
from profkit.reporting.columns import Column, data_table
from profkit.reporting.extras import PAGE
from profkit.reporting.view import (
    Block,
    Detail,
    Paragraph,
    Section,
    Span,
    Text,
    between,
    soft,
)
from profkit.reporting.view import joined as joined_text
from profkit.reporting.views.cases import (
    FAILED,
    FASTER,
    MOST_ROWS,
    SLOWER,
    format_duration,
    percent,
    ratio,
)
from profkit.reporting.views.generation.text import (
    OUTCOME_SIGNS,
    OUTCOMES,
    attempt_speed,
    cost_line,
    counted_words,
    insight_text,
    sign_of,
    tests_text,
    whole_spending,
)

LINES = 8  # operations in a chart of lines: there are eight colours
_MANY = 400  # rows of a page
_LETTERS = "ABCDEFGH"
MAP_LEGEND = (
    "F faster than PyTorch, S slower, = the same, ? not decided, ✗ not correct, r the same code again"
)
_GIVEN: Mapping[str, str] = {
    "insight": "speed and insights of a correct kernel",
    "passed": "speed of a correct kernel",
    "incorrect": "wrong results",
    "load-error": "it cannot be loaded",
    "crashed": "a crash",
    "timeout": "a time limit",
    "out-of-memory": "too little memory",
    "cheat": "a cheat",
    "no-code": "no code in the answer",
    "repeated": "the same code again",
}


class Linker:
    """Makes links to files below the generation's folder: of those alone that are there."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def span(self, words: str, path: str) -> Span:
        """The words, with the file behind them where it is there."""
        there = self._folder is not None and bool(path) and (self._folder / path).is_file()
        return Span(words, link=path if there else None)

    def kernel(self, attempt: Attempt) -> Text:
        """`relu_attempt_3.py`; `-` where there is none."""
        return self.span(PurePosixPath(attempt.file).name or "-", attempt.file)

    def files(self, operation: OperationAttempts, attempt: Attempt) -> Text:
        """All that an attempt has, by what it is."""
        pages = (
            ("kernel", attempt.file),
            ("answer", f"{operation.folder}/{operation.folder}_attempt_{attempt.number}_answer.md"),
            ("feedback", attempt.feedback),
            ("evaluation", f"{attempt.evaluation}/{PAGE}" if attempt.evaluation else ""),
            ("profile", f"{attempt.profile}/{PAGE}" if attempt.profile else ""),
        )
        linked = [span for name, path in pages if (span := self.span(name, path)).link is not None]
        return joined_text(*between(" ", linked))


# ---------------------------------------------------------------- at a glance


def attempts_map(operations: Sequence[OperationAttempts]) -> WinnerMap | None:
    """Operations by attempts, each with what became of it; None without any."""
    rows = [one for one in operations if one.attempts][:MOST_ROWS]
    if not rows:
        return None
    columns = max(each.number for one in rows for each in one.attempts)
    return WinnerMap(
        "Attempts by operation",
        f"{plural(len(rows), 'operation')} by {plural(columns, 'attempt')}.",
        tuple(shorten(one.operation, 36) for one in rows),
        tuple(str(number) for number in range(1, columns + 1)),
        {
            (row, each.number - 1): _map_cell(one, each)
            for row, one in enumerate(rows)
            for each in one.attempts
        },
        f"{MAP_LEGEND}; the number: how many times as fast, or as slow; * the kept kernel",
    )


def _map_cell(operation: OperationAttempts, attempt: Attempt) -> WinnerCell:
    words = f"{operation.operation}, attempt {attempt.number}: {attempt.status}"
    if not is_correct(attempt):
        letter, color = ("r", None) if attempt.status == "repeated" else ("✗", FAILED)
        reason = f": {shorten(attempt.reason, 200)}" if attempt.reason else ""
        return WinnerCell(letter, color, None, words + reason)
    kept = "*" if kept_attempt(operation) == attempt else ""
    words += f", {attempt_speed(attempt)}" + (", kept" if kept else "")
    speedup = attempt.speedup
    if speedup is None or speedup.word in ("AMBIGUOUS", "SAME"):
        same = speedup is not None and speedup.word == "SAME"
        return WinnerCell(f"{'=' if same else '?'}{kept}", None, None, words)
    if speedup.word == "FASTER":
        return WinnerCell(f"F{kept}", FASTER, speedup.median, words)
    return WinnerCell(f"S{kept}", SLOWER, 1 / speedup.median, words)


def speed_section(document: GenerationDocument) -> Iterator[Section]:
    """The speed-up of each correct attempt, for the operations that have several."""
    timed = {one.operation: _timed(one) for one in document.operations}
    several = [name for name, own in timed.items() if len(own) > 1]
    several = sorted(several, key=lambda name: -_change([y for _, y, _ in timed[name]]))[:LINES]
    if not several:
        return
    lines = [_line(name, number, timed[name]) for number, name in enumerate(several)]
    title = "Speed-up over PyTorch"
    chart = series_chart(title, "attempt", lines, "x", counted=True, caption=f"{title} by attempt:")
    most = f" The {LINES} operations whose speed changed most." if len(lines) == LINES else ""
    body = (Paragraph(legend(lines)), Charts((chart,), f"Correct attempts alone.{most}"))
    yield Section("Speed by attempt", (Detail(body, (), "Speed by attempt"),), anchor="speed")


def _timed(operation: OperationAttempts) -> list[tuple[Attempt, float, tuple[float, float]]]:
    """The correct attempts that were timed, with their speed-ups and intervals."""
    return [
        (each, each.speedup.median, (each.speedup.low, each.speedup.high))
        for each in operation.attempts
        if is_correct(each) and each.speedup is not None
    ]


def _change(values: Sequence[float]) -> float:
    """How many times the largest is the smallest."""
    return max(values) / min(values) if min(values) > 0 else 0.0


def _line(name: str, number: int, timed: Sequence[tuple[Attempt, float, tuple[float, float]]]) -> Points:
    points = tuple(
        Point(each.number, value, f"{name}, attempt {each.number}: {attempt_speed(each)}", *ends)
        for each, value, ends in timed
    )
    return Points(points, shorten(name, 36), _LETTERS[number], number, joined=True, hover=name)


def legend(lines: Sequence[Points]) -> Text:
    """The letters of a chart's lines with what they stand for."""
    names = [joined_text(Span(line.letter, series=line.number), f" {line.name}") for line in lines]
    return joined_text(*between("  ", names))


# ---------------------------------------------------------------- every attempt


def attempts_section(operations: Sequence[OperationAttempts], links: Linker) -> Iterator[Section]:
    """Every attempt with its files."""
    pairs = [(one, each) for one in operations for each in one.attempts]
    if not pairs:
        return
    columns: tuple[Column[tuple[OperationAttempts, Attempt]], ...] = (
        Column("Operation", lambda row: shorten(row[0].operation, 48)),
        Column(
            "Attempt", lambda row: f"{row[1].number}{' (kept)' if kept_attempt(row[0]) == row[1] else ''}"
        ),
        Column("Status", lambda row: Span(row[1].status, status=sign_of(row[1]))),
        Column("Passed", lambda row: tests_text(row[1]) or "-"),
        Column("Speed-up", lambda row: attempt_speed(row[1])),
        Column("Bound", lambda row: percent(row[1].bound_share)),
        Column("Own kernels", lambda row: percent(row[1].own_share)),
        Column("Why, or what limits it", lambda row: shorten(row[1].reason or row[1].bottleneck or "", 160)),
        Column("Files", lambda row: links.files(*row)),
    )
    body = data_table(columns, pairs[:_MANY], left=max(0, len(pairs) - _MANY))
    headline = f"{plural(len(pairs), 'attempt')} with their files"
    yield Section("Attempts", (Detail((body,), (), "Attempts"),), headline, anchor="attempts", repeats=True)


# ---------------------------------------------------------------- feedback


def feedback_section(document: GenerationDocument, links: Linker) -> Iterator[Section]:
    """What became of each kind of feedback, and from each attempt to the next."""
    steps = feedback_steps(document)
    if not steps:
        return
    kinds: tuple[Column[FeedbackEffect], ...] = (
        Column("What was told", lambda effect: _GIVEN.get(effect.told, effect.told)),
        Column("Times", lambda effect: str(effect.steps)),
        Column(
            "What became of it",
            lambda effect: counted_words(
                (effect.outcomes.get(one, 0), OUTCOMES[one]) for one in OUTCOME_ORDER
            ),
        ),
    )
    columns: tuple[Column[FeedbackStep], ...] = (
        Column("Operation", lambda step: shorten(step.operation.operation, 48)),
        Column("Attempts", lambda step: f"{step.before.number} to {step.after.number}"),
        Column("Before", lambda step: _step_text(step.before)),
        Column("After", lambda step: _step_text(step.after)),
        Column("Changed", _changed_text),
        Column("First insight that was told", _insights_text),
        Column(
            "Feedback",
            lambda step: links.span("feedback" if step.before.feedback else "-", step.before.feedback),
        ),
    )
    title, left = "From each attempt to the next", max(0, len(steps) - _MANY)
    one_by_one = data_table(columns, steps[:_MANY], title=title, left=left)
    blocks = (
        data_table(kinds, feedback_effects(steps), title="By what was told"),
        Detail((one_by_one,), (), "Feedback by feedback"),
    )
    yield Section("What each feedback changed", blocks, feedback_line(steps), anchor="feedback")


def feedback_line(steps: Sequence[FeedbackStep]) -> str:
    """`Of 10 feedbacks 2 led to a correct kernel and none to a faster one; 1 did harm.`"""
    counts = {outcome: sum(step.outcome == outcome for step in steps) for outcome in OUTCOME_ORDER}
    harm = counts["slower"] + counts["broken"]
    solved, faster = (counts[outcome] or "none" for outcome in ("solved", "faster"))
    parts = [f"{solved} led to a correct kernel", f"{faster} to a faster one"]
    line = f"Of {plural(len(steps), 'feedback')} {joined(parts)}"
    return f"{line}; {harm} did harm." if harm else f"{line}."


def _step_text(attempt: Attempt) -> Text:
    words = attempt_speed(attempt) if is_correct(attempt) and attempt.speedup is not None else ""
    tests = tests_text(attempt) if not is_correct(attempt) else ""
    return joined_text(Span(attempt.status, status=sign_of(attempt)), f" {words or tests}".rstrip())


def _changed_text(step: FeedbackStep) -> Text:
    word = Span(OUTCOMES[step.outcome], status=OUTCOME_SIGNS.get(step.outcome))
    return joined_text(word, f", {ratio(step.ratio)}" if step.ratio is not None else "")


def _insights_text(step: FeedbackStep) -> Text:
    if step.insight is None:
        return ""
    more = len(step.before.insights) - 1
    rest = soft(f" and {plural(more, 'more', 'more')}") if more else ""
    return joined_text(shorten(insight_text(step.insight), 160), rest)


# ---------------------------------------------------------------- tokens, seconds


def spending_section(document: GenerationDocument) -> Iterator[Section]:
    """Tokens and seconds, by attempt and by operation, and where the time went."""
    whole = whole_spending(document)
    if not whole.attempts:
        return
    attempts = [(str(number), spent) for number, spent in spending_by_attempt(document).items()]
    operations = [(shorten(one.operation, 36), spending_of(one.attempts)) for one in document.operations]
    by_attempt = _spending_table("Attempt", [*attempts, ("all", whole)], document)
    by_operation = _spending_table("Operation", [*operations, ("all", whole)], document)
    body = Detail((by_attempt, by_operation), (by_attempt,), "Spent")
    yield Section("What it cost", (body,), cost_line(whole), anchor="spent")


def _spending_table(name: str, rows: Sequence[tuple[str, Spending]], document: GenerationDocument) -> Block:
    def count(number: int | None) -> str:
        return "-" if number is None else f"{number:,}"

    def duration(seconds: float) -> str:
        return format_duration(seconds) if seconds else "-"

    several = "Seconds are sums: operations that go on at the same time add up to more than the "
    columns: tuple[Column[tuple[str, Spending]], ...] = (
        Column(name, lambda row: row[0]),
        Column("Attempts", lambda row: count(row[1].attempts), "n", hidden_when_empty=False),
        Column("Retries", lambda row: count(row[1].retries or None), "n"),
        Column("In", lambda row: count(row[1].input_tokens), "n", hidden_when_empty=False),
        Column("Out", lambda row: count(row[1].output_tokens), "n", hidden_when_empty=False),
        Column("Model", lambda row: duration(row[1].asking), "s", hidden_when_empty=False),
        Column("Evaluation", lambda row: duration(row[1].evaluating), "s", hidden_when_empty=False),
        Column("Profiles", lambda row: duration(row[1].profiling), "s"),
    )
    note = f"{several}{format_duration(document.seconds)} that passed." if document.seconds else ""
    return data_table(columns, rows, note=note)


def time_section(document: GenerationDocument) -> Iterator[Section]:
    """Where the seconds of all attempts went; nothing where none were counted."""
    spent = spending_of([each for one in document.operations for each in one.attempts])
    parts = (("model", spent.asking), ("evaluation", spent.evaluating), ("profiles", spent.profiling))
    whole = sum(seconds for _, seconds in parts)
    if whole > 0:
        pieces = tuple(
            Piece(name, seconds / whole, f"{name}: {format_duration(seconds)}")
            for name, seconds in parts
            if seconds
        )
        bar = StackedBar("seconds", "Where the time went", f"{format_duration(whole)} in all.", pieces)
        yield Section("Where the time went", (Detail((Charts((bar,)),), (), "Time"),), anchor="time")
