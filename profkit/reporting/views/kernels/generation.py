"""A generation: how many operations have a kernel, what is wrong with the others, what it cost."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from profkit.analysis.generation import (
    GenerationScores,
    generation_scores,
    kept_attempt,
)
from profkit.core.formatting import format_duration, joined, plural, shorten
from profkit.core.types import Attempt, AttemptStatus, GenerationDocument, OperationAttempts
from profkit.reporting.columns import Column, data_table
from profkit.reporting.facts import fact_text, word_of
from profkit.reporting.view import (
    Block,
    Commands,
    Detail,
    FieldList,
    Label,
    Section,
    Span,
    Status,
    Statuses,
    StatusRow,
    Text,
    View,
    between,
    notes,
)
from profkit.reporting.view import joined as joined_text
from profkit.reporting.views.kernels.cases import (
    complete_label,
    facts_of,
    files_line,
    hundredfold,
    limited,
    speedup_text,
)
from profkit.reporting.views.run_about import PAGE
from profkit.runtime.passes.shown_command import file_to_type

_FILES = ("index.html", "report.md", "generation.json", "OVERALL_SUMMARY.txt")
_MAX_SCREEN_ROWS, _MAX_PAGE_ROWS = 20, 400  # rows of a screen, and of a page
_BEST_OF_SEVERAL = (
    "The speed-up of a kept kernel is the best of several measurements, so it is slightly high. The first line below "
    "measures the kept kernels again, with other arguments."
)
_SIGNS: Mapping[AttemptStatus, Status] = {
    "passed": Status.PASS,
    "skipped": Status.NONE,
    "not-run": Status.UNKNOWN,
    "repeated": Status.NONE,
    "lost": Status.UNKNOWN,
    "no-answer": Status.UNKNOWN,
}  # all else fails


def view(document: GenerationDocument, folder: Path | None = None) -> View:
    """Return the generation as blocks.

    `folder` is where it is stored, for the commands to type and for links to its files.
    """
    scores = generation_scores(document)
    without = document.complete and scores.solved < scores.operations
    label = Label(Status.FAIL, "FAIL") if without else complete_label(document.complete, "NOT COMPLETE")
    return View(
        title(document),
        tuple(_blocks(document, scores, folder)),
        label,
        (head_line(document, scores),),
        facts=tuple(_conclusions(scores)),
    )


def _conclusions(scores: GenerationScores) -> Iterator[tuple[str, Text]]:
    """Yield what the first line does not say."""
    mean, whole = scores.geomean, scores.geomean_with_fallback
    if mean is not None:
        line = f"{speedup_text(mean)} as fast as PyTorch over {plural(mean.n, 'kept kernel')}"
        if whole is not None and whole.n > mean.n:
            line += f"; {speedup_text(whole)} over {whole.n} with PyTorch in place of what is missing"
        yield "Speed", f"{line}. Geometric means."
    if scores.without_own_kernels:
        names = joined(scores.without_own_kernels)
        yield "No kernel", f"{names}: the kept file only calls kernels of PyTorch or its libraries."


def _blocks(document: GenerationDocument, scores: GenerationScores, folder: Path | None) -> Iterator[Block]:
    operations = sorted(document.operations, key=_order)
    yield from _unsolved(operations, document, folder)
    yield from _operations(operations, folder)
    yield from _attempts(operations, folder)
    yield from notes((_BEST_OF_SEVERAL,) if scores.geomean is not None else ())
    where = folder if folder is not None else "FOLDER"
    lines = [evaluate_line(document, where)] if scores.solved else []
    lines += [resume_line(document, where)] if scores.solved < scores.operations else []
    if lines:
        yield Section("Next", (Commands(tuple(lines)),), anchor="next")
    yield Section("How it was made", (FieldList(_facts(document)),), anchor="how")
    yield from files_line(folder, _FILES)


def _order(operation: OperationAttempts) -> tuple[int, float]:
    """Return those without a correct kernel first, then the slowest against PyTorch."""
    kept = kept_attempt(operation)
    if kept is None:
        return 0, 0.0
    return (2, kept.speedup.median) if kept.speedup is not None else (1, 0.0)


# ---------------------------------------------------------------- operations and attempts


def _link(words: str, path: str, folder: Path | None) -> Span:
    """Return the words, with the file behind them where it is there."""
    there = folder is not None and bool(path) and (folder / path).is_file()
    return Span(words, link=path if there else None)


def _files(operation: OperationAttempts, attempt: Attempt, folder: Path | None) -> Text:
    """Return all that an attempt has, by what it is."""
    pages = (
        ("kernel", attempt.file),
        ("answer", f"{operation.folder}/{operation.folder}_attempt_{attempt.number}_answer.md"),
        ("feedback", attempt.feedback),
        ("evaluation", f"{attempt.evaluation}/{PAGE}" if attempt.evaluation else ""),
        ("profile", f"{attempt.profile}/{PAGE}" if attempt.profile else ""),
    )
    linked = [span for name, path in pages if (span := _link(name, path, folder)).link is not None]
    return joined_text(*between(" ", linked))


def _sign(attempt: Attempt) -> Status:
    return _SIGNS.get(attempt.status, Status.FAIL)


def _tests(attempt: Attempt) -> str:
    """Return `4 of 6`, the tests that passed; nothing where none decided anything."""
    return f"{attempt.passed} of {attempt.tests}" if attempt.tests else ""


def last_failure(operation: OperationAttempts) -> Attempt | None:
    """Return the last attempt that was tested and did not pass, else the last one; None without any."""
    tested = [attempt for attempt in operation.attempts if attempt.tests]
    return next(reversed(tested or operation.attempts), None)


def _unsolved(
    operations: Sequence[OperationAttempts], document: GenerationDocument, links: Path | None
) -> Iterator[Section]:
    """Yield each operation without a correct kernel, and what is wrong with its last attempt."""

    def row(attempts: OperationAttempts, last: Attempt) -> StatusRow:
        feedback = (_link(last.feedback, last.feedback, links),) if last.feedback else ()
        return StatusRow(
            _sign(last),
            last.status,
            (attempts.operation,),
            shorten(fact_text(last.reason), 300),
            value=_tests(last),
            place=f"attempt {last.number} of {len(attempts.attempts)}",
            below=(stop_text(attempts, document), *feedback),
        )

    without = [attempts for attempts in operations if kept_attempt(attempts) is None]
    rows = tuple(row(attempts, last) for attempts in without if (last := last_failure(attempts)) is not None)
    if rows:
        titles = ("operation", "", "passed", "the last that was tested")
        whole = Statuses(rows, titles, "status", "", "")
        body = limited(
            whole, rows[:_MAX_SCREEN_ROWS], _MAX_PAGE_ROWS, "operation", "generation.json", "index.html"
        )
        headline = f"{plural(len(rows), 'operation')}; what is wrong with the last attempt that was tested"
        yield Section("Without a correct kernel", (body,), headline, anchor="unsolved")


def _operations(operations: Sequence[OperationAttempts], links: Path | None) -> Iterator[Section]:
    """Yield a row for each: the kept kernel, its speed, how many attempts there were, why it ended."""

    def kept(attempts: OperationAttempts) -> Text:
        found = kept_attempt(attempts)
        if found is None:
            return Span(f"none of {len(attempts.attempts)}", status=Status.FAIL)
        return _link(f"{found.number} of {len(attempts.attempts)}", found.file, links)

    def share(name: str) -> Column[OperationAttempts]:
        field = {"Bound": "bound_share", "Own kernels": "own_share"}[name]
        return Column(
            name, lambda attempts: hundredfold(getattr(kept_attempt(attempts), field, None)), "%", wide=True
        )

    columns: tuple[Column[OperationAttempts], ...] = (
        Column("Operation", lambda attempts: shorten(attempts.operation, 24)),
        Column("Kept", kept),
        Column("Speed-up", lambda attempts: attempt_speed(kept_attempt(attempts)), hidden_when_empty=False),
        share("Bound"),
        share("Own kernels"),
        Column("Ended", lambda attempts: attempts.stopped or "goes on"),
    )
    note = "The kept kernel is the fastest correct one; a later one must be faster by a twentieth."
    if operations:
        screen = data_table(columns, operations, screen=True, brief=_MAX_SCREEN_ROWS)
        page = data_table(columns, operations, note=note)
        yield Section("Operations", (Detail((page,), (screen,)),), anchor="operations")


def _attempts(operations: Sequence[OperationAttempts], links: Path | None) -> Iterator[Section]:
    """Yield every attempt with its files."""
    pairs = [(attempts, each) for attempts in operations for each in attempts.attempts]
    if not pairs:
        return
    columns: tuple[Column[tuple[OperationAttempts, Attempt]], ...] = (
        Column("Operation", lambda row: shorten(row[0].operation, 48)),
        Column(
            "Attempt", lambda row: f"{row[1].number}{' (kept)' if kept_attempt(row[0]) == row[1] else ''}"
        ),
        Column("Status", lambda row: Span(row[1].status, status=_sign(row[1]))),
        Column("Passed", lambda row: _tests(row[1]) or "-"),
        Column("Speed-up", lambda row: attempt_speed(row[1])),
        Column(
            "Why, or what limits it", lambda row: shorten(fact_text(row[1].reason or row[1].bottleneck), 160)
        ),
        Column("Files", lambda row: _files(*row, links)),
    )
    body = data_table(columns, pairs[:_MAX_PAGE_ROWS], left=max(0, len(pairs) - _MAX_PAGE_ROWS))
    headline = f"{plural(len(pairs), 'attempt')} with their files"
    yield Section("Attempts", (Detail((body,), (), "Attempts"),), headline, anchor="attempts", repeats=True)


def attempt_speed(attempt: Attempt | None) -> str:
    """Return `1.64 x (1.59-1.69, FASTER)`; `-` where it is not correct or was not timed."""
    return speedup_text(attempt.speedup) if attempt is not None else "-"


# ---------------------------------------------------------------- the whole in words


def title(document: GenerationDocument) -> str:
    """Return the title: `Generation of triton kernels by a-model-5 on NVIDIA H100`."""
    device = f" on {document.device}" if document.device else ""
    language = f"{document.language} " if document.language else ""
    return f"Generation of {language}kernels by {document.model or document.provider}{device}"


def model_text(document: GenerationDocument) -> str:
    """Return `a-model-5 (anthropic)`; with the server where that is not the provider's own."""
    server = f", {document.server}" if document.server else ""
    return f"{document.model} ({document.provider}{server})" if document.model else document.provider + server


def head_line(document: GenerationDocument, scores: GenerationScores | None = None) -> str:
    """Return `3 of 4 operations have a correct kernel, 2 faster than PyTorch; 14 attempts, 31,000 tokens, 4.1 min`."""
    scores = generation_scores(document) if scores is None else scores
    if not scores.operations:
        return "There was no operation to generate"
    operations = plural(scores.operations, "operation")
    have = "has" if scores.operations == 1 or scores.solved == 1 else "have"
    line = f"{scores.solved} of {operations} {have} a correct kernel"
    if scores.words:
        line += f", {scores.words.get('FASTER', 0)} faster than PyTorch"
    elif scores.solved:
        line += ", none was timed"
    line += f"; {plural(scores.attempts, 'attempt')}"
    if tokens := document.input_tokens + document.output_tokens:
        line += f", {tokens:,} {'token' if tokens == 1 else 'tokens'}"
    return f"{line}, {format_duration(document.seconds)}" if document.seconds else line


def stop_text(operation: OperationAttempts, document: GenerationDocument) -> str:
    """Return why an operation has no further attempt, with what is known of it."""
    words = word_of("stop", operation.stopped)
    if operation.stopped == "attempts":
        words = f"all {document.limits.attempts} attempts made"
    return f"{words}: {fact_text(operation.reason)}" if operation.reason else words


def _facts(document: GenerationDocument) -> tuple[tuple[str, str], ...]:
    """Return who made it, where, and within which limits."""
    limits = document.limits
    allowed = [f"{plural(limits.attempts, 'attempt')} for each operation"]
    allowed += [f"{limits.tokens:,} tokens"] if limits.tokens is not None else []
    return facts_of(document, ("Model", model_text(document)), ("Limits", joined(allowed)))


# ---------------------------------------------------------------- lines to type


def evaluate_line(document: GenerationDocument, folder: Path | str) -> str:
    """Return the line that measures the kept kernels anew, on the tests of the same suite."""
    words = ["--suite", _own_tests(document) or shlex.quote(document.suite)]
    if traces := _typed(document, "--traces"):
        words += ["--traces", file_to_type(traces, "FILE")]
    if device := _typed(document, "--device"):
        words += ["--device", shlex.quote(device)]
    if document.dtype:
        words += ["--dtype", shlex.quote(document.dtype)]
    return f"profkit evaluate {' '.join(words)} --backend directory --kernels {shlex.quote(str(folder))}"


def resume_line(document: GenerationDocument, folder: Path | str) -> str:
    """Return the line that goes on with it, with the user's own tests, which run then."""
    own = f" --suite {tests}" if (tests := _own_tests(document)) else ""
    return f"profkit generate --resume {shlex.quote(str(folder))}{own}"


def _own_tests(document: GenerationDocument) -> str:
    """Return the file of tests as it was typed, or its name, to be typed; empty where the suite is one of profkit's."""
    if not document.suite.endswith(".py"):
        return ""
    return file_to_type(_typed(document, "--suite") or document.suite, "FILE.py")


def _typed(document: GenerationDocument, option: str) -> str:
    words = document.command
    return words[words.index(option) + 1] if option in words[:-1] else ""
