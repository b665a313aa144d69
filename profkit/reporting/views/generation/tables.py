"""Tables of a generation: operations, what is solved within k attempts, what it cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from profkit.analysis.generation import (
    Spending,
    kept_attempt,
    spending_by_attempt,
    spending_of,
    within_attempts,
)
from profkit.core.formatting import plural, shorten
from profkit.core.types import GenerationDocument, OperationAttempts
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.forges.ci import Case, Cases, CaseState
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
    table,
)
from profkit.reporting.views.evaluation.text import (
    format_duration,
    interval_text,
    percent,
    ratio,
    speedup_text,
)
from profkit.reporting.views.generation.charts import legend, solved_chart
from profkit.reporting.views.generation.links import Linker
from profkit.reporting.views.generation.text import (
    STOPPED,
    attempt_speed,
    cost_text,
    last_failure,
    sign_of,
    stop_text,
    tests_text,
    title,
    whole_spending,
)

_FEW, _MANY = 20, 400  # rows of a screen, and of a page
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
            value=tests_text(last),
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


def operations_section(operations: Sequence[OperationAttempts], links: Linker) -> Iterator[Section]:
    """A row for each: the kept kernel, its speed, how many attempts there were, why it ended."""
    if not operations:
        return
    narrow = table(
        ["Operation", "Kept", "Speed-up", "Ended"],
        [
            (
                shorten(one.operation, 24),
                f"{kept.number if kept is not None else 'none'} of {len(one.attempts)}",
                attempt_speed(kept),
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
        "The kept kernel is the fastest correct one; a later one must be faster by a twentieth. Bound: the least "
        "time that the hardware allows over the measured one."
    )
    return table(titles, rows, words=2, note=note)


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
                *([speedup_text(row.geomean)] if places else []),
            )
            for row in rows
        ],
        note=(
            "Each attempt knows the feedback of those before it, so this is the share solved within k attempts, and "
            "not pass@k of independent samples. fast_p: correct, and the whole 95 % interval above p; above 1 only "
            "what is FASTER. Speed-up: the geometric mean of the kept kernels. All shares are of all operations."
        ),
    )
    chart = solved_chart(document)
    drawn = (Sourced((Paragraph(legend(chart)), Charts((chart,)))),) if chart is not None else ()
    yield Section("Solved within k attempts", (*drawn, body), anchor="within")


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
