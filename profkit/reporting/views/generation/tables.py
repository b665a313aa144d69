"""Tables of a generation: operations, attempts, what each feedback changed, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    within_attempts,
)
from profkit.core.formatting import joined, plural, shorten
from profkit.core.types import Attempt, GenerationDocument, OperationAttempts
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.ci import Case, Cases, CaseState
from profkit.reporting.extras import PAGE
from profkit.reporting.view import (
    Block,
    Detail,
    OnScreen,
    Paragraph,
    Section,
    Sourced,
    Span,
    Status,
    Statuses,
    StatusRow,
    TableColumn,
    Text,
    soft,
    table,
)
from profkit.reporting.view import joined as joined_text
from profkit.reporting.views.evaluation.text import format_duration, interval_text, percent, ratio
from profkit.reporting.views.generation.charts import legend, solved_chart
from profkit.reporting.views.generation.text import (
    OUTCOME_SIGNS,
    OUTCOMES,
    STOPPED,
    attempt_speed,
    cost_text,
    counted_words,
    insight_text,
    last_failure,
    sign_of,
    stop_text,
    title,
    whole_spending,
)

_FEW, _MANY = 20, 400  # rows of a screen, and of a page
_TOLD: Mapping[str, str] = {
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

    def files(self, attempt: Attempt) -> Text:
        """All that an attempt has, by what it is."""
        pages = (
            ("kernel", attempt.file),
            ("feedback", attempt.feedback),
            ("evaluation", f"{attempt.evaluation}/{PAGE}" if attempt.evaluation else ""),
            ("profile", f"{attempt.profile}/{PAGE}" if attempt.profile else ""),
        )
        linked = [span for name, path in pages if (span := self.span(name, path)).link is not None]
        return joined_text(
            *(part for place, span in enumerate(linked) for part in (" " if place else "", span))
        )


# ---------------------------------------------------------------- operations


def ordered(document: GenerationDocument) -> list[OperationAttempts]:
    """Those without a correct kernel first, then the slowest against PyTorch."""

    def order(operation: OperationAttempts) -> tuple[int, float]:
        kept = kept_attempt(operation)
        if kept is None:
            return 0, 0.0
        return (2, kept.speedup.median) if kept.speedup is not None else (1, 0.0)

    return sorted(document.operations, key=order)


def unsolved_section(
    operations: Sequence[OperationAttempts], document: GenerationDocument, links: Linker
) -> Iterator[Section]:
    """Each operation without a correct kernel, and what is wrong with its last attempt."""
    without = [one for one in operations if kept_attempt(one) is None and one.attempts]
    if not without:
        return
    rows = [
        StatusRow(
            sign_of(last),
            last.status,
            (one.operation,),
            shorten(last.reason, 300),
            value=_tests_text(last),
            place=f"attempt {last.number} of {len(one.attempts)}",
            below=(
                f"{stop_text(one, document)}",
                *((links.span(last.feedback, last.feedback),) if last.feedback else ()),
            ),
        )
        for one in without
        if (last := last_failure(one)) is not None
    ]
    titles = ("operation", "", "passed", "the last that was tested")
    left = len(rows) - _FEW
    more = (Paragraph(f"{plural(left, 'further operation')} in index.html."),) if left > 0 else ()
    body = Detail(
        (Statuses(tuple(rows[:_MANY]), titles, "status", "", ""),),
        (Statuses(tuple(rows[:_FEW]), titles, "status", "", ""), *more),
    )
    headline = f"{plural(len(without), 'operation')}; what is wrong with the last attempt that was tested"
    yield Section("Without a correct kernel", (body,), headline, anchor="unsolved")


def _tests_text(attempt: Attempt) -> str:
    return f"{attempt.passed} of {attempt.tests}" if attempt.tests else ""


def operations_section(operations: Sequence[OperationAttempts], links: Linker) -> Iterator[Section]:
    """A row for each: the kept kernel, its speed, how many attempts there were, why it ended."""
    if not operations:
        return
    narrow = table(
        ["Operation", "Kept", "Speed-up", "Word", "Ended"],
        [
            (
                shorten(one.operation, 24),
                f"{kept.number if kept is not None else 'none'} of {len(one.attempts)}",
                attempt_speed(kept),
                kept.speedup.word if kept is not None and kept.speedup is not None else "",
                one.stopped or "goes on",
            )
            for one in operations
            for kept in [kept_attempt(one)]
        ],
        words=5,
        brief=_FEW,
    )
    yield Section(
        "Operations", (OnScreen((narrow,), (_operation_table(operations, links),)),), anchor="operations"
    )


def _operation_table(operations: Sequence[OperationAttempts], links: Linker) -> Block:
    kept = [kept_attempt(one) for one in operations]
    has_bound = any(each is not None and each.bound_share is not None for each in kept)
    has_own = any(each is not None and each.own_share is not None for each in kept)
    titles: list[str | TableColumn] = ["Operation", "Kept", "Speed-up", "95 % interval", TableColumn("Word")]
    titles += ["Bound"] if has_bound else []
    titles += ["Own kernels"] if has_own else []
    titles += ["Attempts", TableColumn("Ended")]
    rows = []
    for one, best in zip(operations, kept, strict=True):
        speedup = best.speedup if best is not None else None
        row: list[Text] = [
            shorten(one.operation, 48),
            links.kernel(best) if best is not None else Span("none", status=Status.FAIL),
            ratio(speedup.median) if speedup is not None else "-",
            interval_text(speedup.low, speedup.high) if speedup is not None else "",
            speedup.word if speedup is not None else "",
        ]
        row += [percent(best.bound_share) if best is not None else "-"] if has_bound else []
        row += [percent(best.own_share) if best is not None else "-"] if has_own else []
        row += [str(len(one.attempts)), STOPPED[one.stopped]]
        rows.append(row)
    note = (
        "The kept kernel is the first correct one, or a later one that is surely faster (its 95 % interval lies "
        "above). Bound: the least time that the hardware allows over the measured one."
    )
    return table(titles, rows, words=2, note=note)


# ---------------------------------------------------------------- attempts


def attempts_section(operations: Sequence[OperationAttempts], links: Linker) -> Iterator[Section]:
    """Every attempt with its files."""
    pairs = [(one, each) for one in operations for each in one.attempts]
    if not pairs:
        return
    titles = [
        "Operation",
        "Attempt",
        "Status",
        "Passed",
        "Speed-up",
        "Bound",
        "Why, or what limits it",
        "Files",
    ]
    rows = [
        (
            shorten(one.operation, 48),
            f"{each.number} (kept)" if kept_attempt(one) == each else str(each.number),
            Span(each.status, status=sign_of(each)),
            _tests_text(each) or "-",
            attempt_speed(each),
            percent(each.bound_share),
            shorten(each.reason or each.bottleneck or "", 160),
            links.files(each),
        )
        for one, each in pairs[:_MANY]
    ]
    left = max(0, len(pairs) - _MANY)
    body = table(titles, rows, words=len(titles), left=left)
    headline = f"{plural(len(pairs), 'attempt')} with their files"
    yield Section("Attempts", (Detail((body,), (), "Attempts"),), headline, anchor="attempts", repeats=True)


# ---------------------------------------------------------------- within k


def solved_section(document: GenerationDocument) -> Iterator[Section]:
    """Solved and faster than p within 1, 2, ... attempts."""
    rows = within_attempts(document)
    if not rows:
        return
    total = len(document.operations)
    places = [point.p for point in rows[0].fast]
    titles = [
        "k",
        "Solved",
        "Share",
        *(f"fast_{p:g}" for p in places),
        *(["Speed-up"] if places else []),
    ]
    body = table(
        titles,
        [
            (
                str(row.attempts),
                f"{row.solved} of {total}",
                percent(row.share),
                *(percent(point.share) for point in row.fast),
                *([ratio(row.geomean.value if row.geomean is not None else None)] if places else []),
            )
            for row in rows
        ],
        note=(
            "Each attempt knows the feedback of those before it, so this is the share solved within k attempts, and "
            "not pass@k of independent samples. fast_p: correct, and the whole 95 % interval above p. Speed-up: the "
            "geometric mean of the kept kernels. All shares are of all operations."
        ),
    )
    chart = solved_chart(document)
    drawn = (Sourced((Paragraph(legend(chart)), Charts((chart,)))),) if chart is not None else ()
    yield Section("Solved within k attempts", (*drawn, body), anchor="within")


# ---------------------------------------------------------------- feedback


def feedback_section(document: GenerationDocument, links: Linker) -> Iterator[Section]:
    """What became of each kind of feedback, and from each attempt to the next."""
    steps = feedback_steps(document)
    if not steps:
        return
    effects = feedback_effects(steps)
    kinds = table(
        ["What was told", "Times", "What became of it"],
        [
            (_TOLD.get(effect.told, effect.told), str(effect.steps), _effect_text(effect))
            for effect in effects
        ],
        words=3,
        title="By what was told",
    )
    one_by_one = Detail((_steps_table(steps, links),), (), "Feedback by feedback")
    yield Section("What each feedback changed", (kinds, one_by_one), feedback_line(steps), anchor="feedback")


def _effect_text(effect: FeedbackEffect) -> str:
    counts = [(effect.outcomes.get(outcome, 0), OUTCOMES[outcome]) for outcome in OUTCOME_ORDER]
    return counted_words(counts)


def feedback_line(steps: Sequence[FeedbackStep]) -> str:
    """`Of 10 feedbacks 2 led to a correct kernel and 1 to a faster one; 1 did harm.`"""
    counts = {outcome: sum(step.outcome == outcome for step in steps) for outcome in OUTCOME_ORDER}
    harm = counts["slower"] + counts["broken"]
    parts = [f"{counts['solved']} led to a correct kernel", f"{counts['faster']} to a faster one"]
    line = f"Of {plural(len(steps), 'feedback')} {joined(parts)}"
    return f"{line}; {harm} did harm." if harm else f"{line}."


def _steps_table(steps: Sequence[FeedbackStep], links: Linker) -> Block:
    titles = [
        "Operation",
        "Attempts",
        "Before",
        "After",
        "Changed",
        "First insight that was told",
        "Feedback",
    ]
    rows = [
        (
            shorten(step.operation.operation, 48),
            f"{step.before.number} to {step.after.number}",
            _step_text(step.before),
            _step_text(step.after),
            _changed_text(step),
            _insights_text(step),
            links.span("feedback" if step.before.feedback else "-", step.before.feedback),
        )
        for step in steps[:_MANY]
    ]
    left = max(0, len(steps) - _MANY)
    return table(titles, rows, words=len(titles), title="From each attempt to the next", left=left)


def _step_text(attempt: Attempt) -> Text:
    words = attempt_speed(attempt) if is_correct(attempt) and attempt.speedup is not None else ""
    tests = _tests_text(attempt) if not is_correct(attempt) else ""
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


# ---------------------------------------------------------------- spending


def spending_section(document: GenerationDocument) -> Iterator[Section]:
    """Tokens, cost and seconds, by attempt and by operation."""
    groups = [
        ("Attempt", [(str(number), spent) for number, spent in spending_by_attempt(document).items()]),
        (
            "Operation",
            [(shorten(one.operation, 36), spending_of(one.attempts)) for one in document.operations],
        ),
    ]
    whole = whole_spending(document)
    if not whole.attempts:
        return
    by_attempt, by_operation = (
        _spending_table(name, [*rows, ("all", whole)], document) for name, rows in groups
    )
    body = Detail((by_attempt, by_operation), (by_attempt,), "Spent")
    yield Section("What it cost", (body,), cost_line(document, whole), anchor="spent")


def cost_line(document: GenerationDocument, whole: Spending) -> str:
    """Tokens and cost of the whole, or why there is no cost."""
    unknown = "tokens are not known"
    tokens = (
        f"{whole.input_tokens or 0:,} tokens in, {whole.output_tokens or 0:,} out"
        if whole.input_tokens is not None or whole.output_tokens is not None
        else unknown
    )
    estimated = ", some of them estimated by length" if whole.estimated else ""
    prices = document.limits.prices
    if whole.cost is not None and prices is not None:
        cost = f"cost {cost_text(whole.cost)} at {prices[0]:g} in and {prices[1]:g} out per million tokens"
    elif whole.cost is not None:
        cost = f"cost {cost_text(whole.cost)}"
    else:
        cost = "no prices were given, so the cost is not known"
    return f"{tokens}{estimated}; {cost}"


def _spending_table(name: str, rows: Sequence[tuple[str, Spending]], document: GenerationDocument) -> Block:
    several = "Seconds are sums: operations that go on at the same time add up to more than the "
    note = f"{several}{format_duration(document.seconds)} that passed." if document.seconds else ""
    columns: list[tuple[str, Callable[[Spending], Text], bool]] = [
        ("Requests", lambda s: f"{s.requests:,}", True),
        ("Retries", lambda s: f"{s.retries:,}", any(s.retries for _, s in rows)),
        ("Stored", lambda s: f"{s.stored:,}", any(s.stored for _, s in rows)),
        ("In", lambda s: _count(s.input_tokens), True),
        ("Out", lambda s: _count(s.output_tokens), True),
        ("Cost", lambda s: cost_text(s.cost) if s.cost is not None else "-", any(s.cost for _, s in rows)),
        ("Model", lambda s: _seconds(s.asking), True),
        ("Evaluation", lambda s: _seconds(s.evaluating), True),
        ("Profiles", lambda s: _seconds(s.profiling), any(s.profiling for _, s in rows)),
    ]
    used = [(title, cell) for title, cell, shown in columns if shown]
    return table(
        [name, *(title for title, _ in used)],
        [(words, *(cell(spent) for _, cell in used)) for words, spent in rows],
        note=note,
    )


def _seconds(seconds: float) -> str:
    return format_duration(seconds) if seconds else "-"


def _count(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


# ---------------------------------------------------------------- for machines

_CASE_STATES: Mapping[str, CaseState] = {
    "passed": "passed",
    "incorrect": "failure",
    "cheat": "failure",
    "lost": "unknown",
    "no-answer": "unknown",
}  # all else is an error


def test_cases(document: GenerationDocument) -> Cases:
    """Each operation as a test case: it passes where it has a correct kernel."""
    cases = []
    for one in document.operations:
        last = kept_attempt(one) or last_failure(one)
        status = last.status if last is not None else "no attempt"
        state = _CASE_STATES.get(status, "error") if last is not None else "unknown"
        message = "" if state == "passed" else (last.reason if last is not None and last.reason else status)
        seconds = sum(each.evaluated_seconds for each in one.attempts)
        cases.append(Case("profkit.generation", one.operation, state, message, "", seconds, status))
    return Cases(title(document), tuple(cases), document.started, document.seconds)
