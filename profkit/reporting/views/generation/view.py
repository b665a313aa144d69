"""A generation: how many operations have a kernel, what is wrong with the others, what each feedback changed, what it
cost."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.analysis.generation import GenerationScores, feedback_steps, generation_scores
from profkit.core.formatting import format_utc_time, joined, plural
from profkit.core.types import GenerationDocument, OperationAttempts
from profkit.reporting.chart_blocks import Charts
from profkit.reporting.charts.marks import Points
from profkit.reporting.view import (
    Block,
    Commands,
    Detail,
    Facts,
    Fold,
    Label,
    OnScreen,
    Paragraph,
    Section,
    Status,
    Text,
    View,
    command,
    notes,
)
from profkit.reporting.views.evaluation.text import percent, speedup_text
from profkit.reporting.views.generation.attempts import attempts_section, feedback_line, feedback_section
from profkit.reporting.views.generation.charts import (
    LINES,
    MAP_LEGEND,
    attempts_map,
    legend,
    speed_charts,
    time_bar,
)
from profkit.reporting.views.generation.links import Linker
from profkit.reporting.views.generation.tables import (
    cost_line,
    operations_section,
    ordered,
    solved_section,
    spending_section,
    test_cases,
    unsolved_section,
)
from profkit.reporting.views.generation.text import (
    STOPPED,
    asked_model,
    continue_line,
    counted_words,
    evaluate_line,
    head_line,
    title,
    whole_spending,
    words_of,
)

_FILES = ("index.html", "report.md", "generation.json", "OVERALL_SUMMARY.txt", "README.md")
_DRAWN_OPEN = 40  # rows of a map: a longer one opens at a click
_BEST_OF_SEVERAL = (
    "The speed-up of a kept kernel is the best of several measurements, so it is slightly high. The first line below "
    "measures the kept kernels anew, with other arguments."
)


def view(document: GenerationDocument, folder: Path | None = None, *, linked: bool = True) -> View:
    """The generation as blocks. `folder` is where it lies, for the lines to type, and for links to the files that are
    there; without `linked` there are none, since the page will lie elsewhere."""
    scores = generation_scores(document)
    operations = ordered(document)
    links = Linker(folder if linked else None)
    complete = Label(Status.PASS, "COMPLETE") if document.complete else Label(Status.UNKNOWN, "NOT COMPLETE")
    return View(
        title(document),
        (*_blocks(document, operations, scores, folder, links), test_cases(document)),
        complete,
        (head_line(document, scores),),
        facts=_conclusions(document, scores),
    )


def _conclusions(document: GenerationDocument, scores: GenerationScores) -> tuple[tuple[str, Text], ...]:
    """What to know before any table."""
    facts: list[tuple[str, Text]] = []
    words = f"; against PyTorch {words_of(scores)}" if scores.words else ""
    if scores.operations:
        share = percent(scores.solved / scores.operations)
        facts.append(
            (
                "Kernels",
                f"{scores.solved} of {plural(scores.operations, 'operation')} ({share}) solved{words}.",
            )
        )
    mean, whole = scores.geomean, scores.geomean_with_fallback
    if mean is not None:
        line = f"{speedup_text(mean)} as fast as PyTorch over {plural(mean.n, 'kept kernel')}"
        if whole is not None and whole.n > mean.n:
            line += f"; {speedup_text(whole)} over {whole.n} with PyTorch in place of what is missing"
        facts.append(("Speed", f"{line}. Geometric means."))
    if scores.without_own_kernels:
        names = joined(scores.without_own_kernels)
        facts.append(("No kernel", f"{names}: the kept file only calls kernels of PyTorch or its libraries."))
    if scores.attempts:
        counts = [f"{number} {status}" for status, number in Counter(scores.statuses).most_common()]
        facts.append(("Attempts", f"{scores.attempts}: {joined(counts)}."))
    steps = feedback_steps(document)
    if steps:
        facts.append(("Feedback", feedback_line(steps)))
    spent = whole_spending(document)
    if spent.attempts:
        facts.append(("Spent", f"{cost_line(document, spent)}."))
    if scores.operations:
        ends = [(number, STOPPED[reason]) for reason, number in Counter(scores.stopped).most_common()]
        facts.append(("Ended", f"{counted_words(ends)}."))
    return tuple(facts)


def _blocks(
    document: GenerationDocument,
    operations: Sequence[OperationAttempts],
    scores: GenerationScores,
    folder: Path | None,
    links: Linker,
) -> Iterator[Block]:
    yield from unsolved_section(operations, document, links)
    yield from operations_section(operations, links)
    yield from _attempt_charts(document, operations)
    yield from solved_section(document)
    yield from feedback_section(document, links)
    yield from attempts_section(operations, links)
    yield from spending_section(document)
    bar = time_bar(document)
    if bar is not None:
        yield Section("Where the time went", (Detail((Charts((bar,)),), (), "Time"),), anchor="time")
    remarks = ((_BEST_OF_SEVERAL,) if scores.geomean is not None else ()) + document.notes
    yield from notes(remarks)
    yield from _next_steps(document, scores, folder)
    yield Section("How it was made", (Facts(_facts(document)),), anchor="how")
    if folder is not None:
        files = [name for name in _FILES if (folder / name).is_file()]
        line = f"{folder}: {', '.join(files)}" if files else str(folder)
        yield OnScreen((Paragraph(""), Paragraph(command(line))), ())


def _attempt_charts(
    document: GenerationDocument, operations: Sequence[OperationAttempts]
) -> Iterator[Section]:
    places, speeds = attempts_map(operations), speed_charts(document)
    if places is not None:
        note = f"{MAP_LEGEND}. The number: how many times as fast, or as slow; * the kept kernel."
        many = len(places.rows) > _DRAWN_OPEN
        body = Detail((Charts((places,), note),), () if many else (places,), "Attempts by operation")
        fold = Fold.FOLDED if many else Fold.OPEN
        yield Section("Attempts by operation", (body,), places.description, fold, "map")
    if speeds is not None:
        shown = sum(isinstance(mark, Points) for mark in speeds.marks)
        most = f" The {LINES} operations whose speed changed most." if shown == LINES else ""
        body = Detail(
            (Paragraph(legend(speeds)), Charts((speeds,), f"Correct attempts alone.{most}")),
            (),
            "Speed by attempt",
        )
        yield Section("Speed by attempt", (body,), anchor="speed")


def _next_steps(
    document: GenerationDocument, scores: GenerationScores, folder: Path | None
) -> Iterator[Section]:
    """Lines to type, the most useful first."""
    where = folder if folder is not None else "FOLDER"
    lines = []
    if scores.solved:
        lines.append(evaluate_line(document, where))
    if (line := continue_line(document, where)) is not None:
        lines.append(line)
    if lines:
        yield Section("Next", (Commands(tuple(lines)),), anchor="next")


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
