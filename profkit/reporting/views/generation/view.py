"""A generation: how many operations have a kernel, what is wrong with the others, what each feedback changed, what it
cost."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from profkit.analysis.generation import (
    GenerationScores,
    WithinAttempts,
    feedback_steps,
    generation_scores,
    kept_attempt,
    within_attempts,
)
from profkit.core.formatting import format_utc_time, joined, plural, shorten
from profkit.core.types import GenerationDocument, OperationAttempts, Speedup
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.charts.marks import Point, Points
from profkit.reporting.charts.series import series_chart
from profkit.reporting.columns import Column, data_table
from profkit.reporting.forges import Case, Cases, CaseState
from profkit.reporting.view import (
    Block,
    Commands,
    Facts,
    OnScreen,
    Paragraph,
    Section,
    Sourced,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    notes,
    table,
)
from profkit.reporting.views.cases import (
    complete_label,
    files_line,
    hundredfold,
    limited,
    map_section,
    percent,
    range_text,
    speedup_text,
)
from profkit.reporting.views.generation.attempts import (
    MAP_LEGEND,
    Linker,
    attempts_map,
    attempts_section,
    feedback_line,
    feedback_section,
    legend,
    speed_section,
    spending_section,
    time_section,
)
from profkit.reporting.views.generation.text import (
    STOPPED,
    asked_model,
    attempt_speed,
    continue_line,
    cost_line,
    counted_words,
    evaluate_line,
    head_line,
    last_failure,
    sign_of,
    stop_text,
    tests_text,
    title,
    whole_spending,
    words_of,
)

_FILES = ("index.html", "report.md", "generation.json", "OVERALL_SUMMARY.txt", "README.md")
_FEW, _MANY = 20, 400  # rows of a screen, and of a page
_BEST_OF_SEVERAL = (
    "The speed-up of a kept kernel is the best of several measurements, so it is slightly high. The first line below "
    "measures the kept kernels anew, with other arguments."
)


def view(document: GenerationDocument, folder: Path | None = None, *, linked: bool = True) -> View:
    """The generation as blocks. `folder` is where it lies, for the lines to type, and for links to the files that are
    there; without `linked` there are none, since the page will lie elsewhere."""
    scores = generation_scores(document)
    links = Linker(folder if linked else None)
    return View(
        title(document),
        (*_blocks(document, _ordered(document), scores, folder, links), _test_cases(document)),
        complete_label(document.complete, "NOT COMPLETE"),
        (head_line(document, scores),),
        facts=tuple(_conclusions(document, scores)),
    )


def _conclusions(document: GenerationDocument, scores: GenerationScores) -> Iterator[tuple[str, Text]]:
    """What to know before any table."""
    if scores.operations:
        words = f"; against PyTorch {words_of(scores)}" if scores.words else ""
        share, operations = percent(scores.solved / scores.operations), plural(scores.operations, "operation")
        yield "Kernels", f"{scores.solved} of {operations} ({share}) solved{words}."
    mean, whole = scores.geomean, scores.geomean_with_fallback
    if mean is not None:
        line = f"{speedup_text(mean)} as fast as PyTorch over {plural(mean.n, 'kept kernel')}"
        if whole is not None and whole.n > mean.n:
            line += f"; {speedup_text(whole)} over {whole.n} with PyTorch in place of what is missing"
        yield "Speed", f"{line}. Geometric means."
    if scores.without_own_kernels:
        names = joined(scores.without_own_kernels)
        yield "No kernel", f"{names}: the kept file only calls kernels of PyTorch or its libraries."
    if scores.attempts:
        counts = [f"{number} {status}" for status, number in Counter(scores.statuses).most_common()]
        yield "Attempts", f"{scores.attempts}: {joined(counts)}."
    if steps := feedback_steps(document):
        yield "Feedback", feedback_line(steps)
    spent = whole_spending(document)
    if spent.attempts:
        yield "Spent", f"{cost_line(document, spent)}."
    if scores.operations:
        ends = [(number, STOPPED[reason]) for reason, number in Counter(scores.stopped).most_common()]
        yield "Ended", f"{counted_words(ends)}."


def _blocks(
    document: GenerationDocument,
    operations: Sequence[OperationAttempts],
    scores: GenerationScores,
    folder: Path | None,
    links: Linker,
) -> Iterator[Block]:
    yield from _unsolved(operations, document, links)
    yield from _operations(operations, links)
    note = f"{MAP_LEGEND}. The number: how many times as fast, or as slow; * the kept kernel."
    yield from map_section("Attempts by operation", attempts_map(operations), note)
    yield from speed_section(document)
    yield from _solved(document)
    yield from feedback_section(document, links)
    yield from attempts_section(operations, links)
    yield from spending_section(document)
    yield from time_section(document)
    yield from notes(((_BEST_OF_SEVERAL,) if scores.geomean is not None else ()) + document.notes)
    where = folder if folder is not None else "FOLDER"
    lines = [evaluate_line(document, where)] if scores.solved else []
    lines += [line] if (line := continue_line(document, where)) is not None else []
    if lines:
        yield Section("Next", (Commands(tuple(lines)),), anchor="next")
    yield Section("How it was made", (Facts(_facts(document)),), anchor="how")
    yield from files_line(folder, _FILES)


# ---------------------------------------------------------------- operations


def _ordered(document: GenerationDocument) -> list[OperationAttempts]:
    """Those without a correct kernel first, then the slowest against PyTorch."""

    def order(operation: OperationAttempts) -> tuple[int, float]:
        kept = kept_attempt(operation)
        if kept is None:
            return 0, 0.0
        return (2, kept.speedup.median) if kept.speedup is not None else (1, 0.0)

    return sorted(document.operations, key=order)


def _unsolved(
    operations: Sequence[OperationAttempts], document: GenerationDocument, links: Linker
) -> Iterator[Section]:
    """Each operation without a correct kernel, and what is wrong with its last attempt."""
    without = [one for one in operations if kept_attempt(one) is None and one.attempts]
    if not without:
        return

    def row(one: OperationAttempts) -> StatusRow | None:
        last = last_failure(one)
        if last is None:
            return None
        feedback = (links.span(last.feedback, last.feedback),) if last.feedback else ()
        return StatusRow(
            sign_of(last),
            last.status,
            (one.operation,),
            shorten(last.reason, 300),
            value=tests_text(last),
            place=f"attempt {last.number} of {len(one.attempts)}",
            below=(stop_text(one, document), *feedback),
        )

    def statuses(rows: Sequence[StatusRow]) -> Statuses:
        return Statuses(
            tuple(rows), ("operation", "", "passed", "the last that was tested"), "status", "", ""
        )

    rows = [made for made in map(row, without) if made is not None]
    left, file = len(rows) - _FEW, "generation.json"
    body = limited(statuses, rows, rows[:_FEW], left, _MANY, "operation", file, "index.html")
    headline = f"{plural(len(without), 'operation')}; what is wrong with the last attempt that was tested"
    yield Section("Without a correct kernel", (body,), headline, anchor="unsolved")


def _operations(operations: Sequence[OperationAttempts], links: Linker) -> Iterator[Section]:
    """A row for each: the kept kernel, its speed, how many attempts there were, why it ended."""
    if not operations:
        return

    def speedup(one: OperationAttempts) -> Speedup | None:
        kept = kept_attempt(one)
        return kept.speedup if kept is not None else None

    def shares(name: str) -> Column[OperationAttempts]:
        field = {"Bound": "bound_share", "Own kernels": "own_share"}[name]
        return Column(name, lambda one: hundredfold(getattr(kept_attempt(one), field, None)), "%")

    def kernel(one: OperationAttempts) -> Text:
        kept = kept_attempt(one)
        return links.kernel(kept) if kept is not None else Span("none", status=Status.FAIL)

    def number(one: OperationAttempts) -> Text:
        kept = kept_attempt(one)
        return f"{kept.number if kept is not None else 'none'} of {len(one.attempts)}"

    narrow: tuple[Column[OperationAttempts], ...] = (
        Column("Operation", lambda one: shorten(one.operation, 24)),
        Column("Kept", number),
        Column("Speed-up", lambda one: attempt_speed(kept_attempt(one)), hidden_when_empty=False),
        Column("Ended", lambda one: one.stopped or "goes on"),
    )
    wide: tuple[Column[OperationAttempts], ...] = (
        Column("Operation", lambda one: shorten(one.operation, 48)),
        Column("Kept", kernel),
        Column(
            "Speed-up",
            lambda one: own.median if (own := speedup(one)) else None,
            "x",
            hidden_when_empty=False,
        ),
        Column("95 % interval", lambda one: range_text(own.low, own.high) if (own := speedup(one)) else ""),
        Column("Word", lambda one: own.word if (own := speedup(one)) else ""),
        shares("Bound"),
        shares("Own kernels"),
        Column("Attempts", lambda one: len(one.attempts), "n"),
        Column("Ended", lambda one: STOPPED[one.stopped]),
    )
    note = (
        "The kept kernel is the fastest correct one; a later one must be faster by a twentieth. Bound: the least "
        "time that the hardware allows over the measured one."
    )
    screen, page = data_table(narrow, operations, brief=_FEW), data_table(wide, operations, note=note)
    yield Section("Operations", (OnScreen((screen,), (page,)),), anchor="operations")


# ---------------------------------------------------------------- within k


def _solved(document: GenerationDocument) -> Iterator[Section]:
    """Solved and faster than p within 1, 2, ... attempts."""
    rows = within_attempts(document)
    if not rows:
        return
    total = len(document.operations)
    places = [point.p for point in rows[0].fast]
    speed = ["Speed-up"] if places else []
    body = table(
        ["k", "Solved", "Share", *(f"fast_{p:g}" for p in places), *speed],
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
    lines = _solved_lines(rows, plural(total, "operation")) if len(rows) > 1 else []
    of = f"the share of {plural(total, 'operation')} with a correct kernel within k attempts"
    chart = series_chart("Solved within k attempts", "k", lines, "%", of=of, counted=True)
    drawn = (Sourced((Paragraph(legend(lines)), Charts((chart,)))),) if lines else ()
    yield Section("Solved within k attempts", (*drawn, body), anchor="within")


def _solved_lines(rows: Sequence[WithinAttempts], total: str) -> list[Points]:
    """Shares of the operations within k attempts: solved, and faster than p."""
    shares = [("solved", "S", [(row.attempts, row.share) for row in rows])]
    for letter, p in zip("ABCD", (1.0, 1.2, 1.5, 2.0), strict=True):
        own = [(row.attempts, point.share) for row in rows for point in row.fast if point.p == p]
        shares += [(f"fast_{p:g}", letter, own)] if own else []
    lines = []
    for number, (name, letter, own) in enumerate(shares):
        points = (
            Point(k, 100 * share, f"{name} within {plural(k, 'attempt')}: {percent(share)} of {total}")
            for k, share in own
        )
        lines.append(Points(tuple(points), name, letter, number, joined=True, hover=name))
    return lines


# ---------------------------------------------------------------- how it was made, and test cases


def _facts(document: GenerationDocument) -> tuple[tuple[str, Text], ...]:
    """Who made it, where, within which limits."""
    limits = document.limits
    allowed = [f"{plural(limits.attempts, 'attempt')} for each operation"]
    allowed += [f"{limits.tokens:,} tokens"] if limits.tokens is not None else []
    allowed += [f"cost {limits.cost:g}"] if limits.cost is not None else []
    rows: list[tuple[str, Text]] = [
        ("Made", format_utc_time(document.started)),
        ("Model", asked_model(document)),
        ("Language", document.language),
        ("Suite", f"{document.suite}{', ' + document.dtype if document.dtype else ''}"),
        ("Device", document.device),
        ("Versions", ", ".join(f"{name} {version}" for name, version in document.versions.items())),
        ("Limits", joined(allowed)),
        ("Command", shlex.join(document.command)),
        (
            "Evaluation",
            "Each attempt as a stranger's kernel: in a process of its own, against PyTorch, on values that it has not "
            "seen. FASTER, SAME, SLOWER: by the whole 95 % interval, as profkit evaluate has it.",
        ),
    ]
    return tuple((name, text) for name, text in rows if text)


_CASE_STATES: Mapping[str, CaseState] = {
    "passed": "passed",
    "incorrect": "failure",
    "cheat": "failure",
    "lost": "unknown",
    "no-answer": "unknown",
}  # all else is an error


def _test_cases(document: GenerationDocument) -> Cases:
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
