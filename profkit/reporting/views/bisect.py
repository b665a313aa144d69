"""Which commit changed a time: the answer in one sentence, the commits that were tested, and what changed there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from math import log

from profkit.core.formatting import format_duration as duration
from profkit.core.formatting import format_figures, plural, shorten
from profkit.core.types import BisectDocument, BisectPart, BisectSearch, BisectState, BisectStep
from profkit.core.types.comparison import CERTAINTY
from profkit.reporting.facts import fact_text
from profkit.reporting.view import (
    Block,
    Commands,
    DataTable,
    Item,
    ItemList,
    Label,
    Section,
    Status,
    TableColumn,
    Text,
    View,
    code,
    joined,
    soft,
    table,
)
from profkit.runtime.passes.shown_command import line_to_type, shown_line

_SHORT = 10  # digits of a commit
_SUBJECT = 16  # characters of a message in the table
_NEAR = 0.4  # of the whole change: a commit that is that near to an end is like it
_WORDS: dict[BisectState, tuple[Status, str]] = {
    "found": (Status.FAIL, "FOUND"),
    "several": (Status.FAIL, "SEVERAL"),
    "same": (Status.PASS, "SAME"),
    "ambiguous": (Status.UNKNOWN, "AMBIGUOUS"),
    "open": (Status.UNKNOWN, "OPEN"),
    "running": (Status.UNKNOWN, "NOT FINISHED"),
}
_STATUSES = {"different": Status.FAIL, "same": Status.PASS, "ambiguous": Status.UNKNOWN}


def view(document: BisectDocument, folder: str = "") -> View:
    """Return the bisection as blocks; `folder` is where it lies."""
    search = document.search
    status, word = _WORDS[search.state]
    headline: list[Text] = [_sentence(document)]
    if search.state == "ambiguous":
        headline.append(joined(soft("fix: "), code(f"--budget {2 * document.options.budget:.0f}")))
    pairs = sum(len(step.pairs) for step in search.steps)
    seconds = sum(step.seconds for step in search.steps)
    facts: list[tuple[str, Text]] = [
        ("good", _named(document, search.good)),
        ("bad", _named(document, search.commits[-1])),
        ("commits", str(len(search.commits))),
        ("tests", f"{len(search.steps)}, with {plural(pairs, 'pair')} of runs, in {duration(seconds)}"),
    ]
    facts += [("time of", code(search.scope.name))] if search.scope.name else []
    facts += [("kept in", folder)] if folder else []
    return View(
        "bisection",
        tuple(_blocks(document)),
        Label(status, word),
        tuple(headline),
        tuple(facts),
        command=shown_line(document.command),
    )


# ---------------------------------------------------------------- the sentence


def _sentence(document: BisectDocument) -> str:
    search = document.search
    if search.state in ("same", "ambiguous"):
        step = search.steps[0]
        size = f"{_size(step.ratio)} {_interval(step.low, step.high)}"
        what = "take the same time" if search.state == "same" else "may take the same time or not"
        return f"Both ends {what}: {size}. Nothing was searched."
    single = [part for part in search.parts if part.kind == "one"]
    if search.state == "found":
        return _found(document, single[0])
    if search.state == "several":
        return _several(document, search, single)
    likely = sorted(search.probabilities.items(), key=lambda item: -item[1])[:3]
    names = "; ".join(f"{_quoted(document, commit)} ({_chance(p)})" for commit, p in likely)
    if search.state == "open":
        return (
            f"No single commit stands out: the change may be spread over several of these {len(search.commits)}. "
            f"The likeliest: {names}."
        )
    return f"Not at its end. The likeliest so far: {names}." if names else "Not at its end."


def _found(document: BisectDocument, part: BisectPart) -> str:
    course = f"{_course(part.ratio)} (probability {_chance(part.probability)})"
    doubt = ""
    if part.word is not None and part.word != "different":
        doubt = f" Run in turn with the commit before it, it was {part.word.upper()}: a larger --budget says more."
    if part.probability < CERTAINTY:
        doubt += f" That is less than the {_chance(CERTAINTY)} that are wanted: the tests are spent."
    if len(part.commits) == 1:
        return f"{_quoted(document, part.commits[0])} made it {course}.{doubt}"
    names = ", ".join(_quoted(document, commit) for commit in part.commits)
    return (
        f"One of these {len(part.commits)} made it {course}: {names}. The others of them do not run.{doubt}"
    )


def _several(document: BisectDocument, search: BisectSearch, single: list[BisectPart]) -> str:
    whole = search.steps[0]
    rest = [part for part in search.parts if part.kind == "rest" and _counts(part, document)]
    pieces = [
        f"{' or '.join(_quoted(document, commit) for commit in part.commits)} {_size(part.ratio)} "
        f"({_chance(part.probability)})"
        for part in single
    ]
    pieces += [
        f"{_size(part.ratio)} in {plural(len(part.commits), 'commit')} up to {part.commits[-1][:_SHORT]}, and in no "
        "single one"
        for part in rest
    ]
    return f"The change of {_size(whole.ratio)} is in several commits: {'; '.join(pieces)}."


def _counts(part: BisectPart, document: BisectDocument) -> bool:
    return max(part.ratio, 1 / part.ratio) > 1 + document.options.floor


# ---------------------------------------------------------------- the blocks


def _blocks(document: BisectDocument) -> Iterator[Block]:
    search = document.search
    if search.steps:
        yield Section("Tested", (_tests(document, search),))
    if search.skipped:
        items = (
            Item(_named(document, commit), (soft(fact_text(why)),)) for commit, why in search.skipped.items()
        )
        yield Section("Skipped", (ItemList(tuple(items)),))
    parts = [part for part in search.parts if part.kind == "one"]
    if parts:
        yield Section("Next", (Commands(tuple(_compare_line(document, part) for part in parts)),))


def _tests(document: BisectDocument, search: BisectSearch) -> DataTable:
    columns = (
        TableColumn("commit"),
        TableColumn("time", meaning="of the commit, against the good end, with its interval"),
        TableColumn("word"),
    )
    return table(columns, [_test_row(document, search, step) for step in search.steps])


def _test_row(document: BisectDocument, search: BisectSearch, step: BisectStep) -> tuple[Text, ...]:
    subject = shorten(document.subjects.get(step.later, ""), _SUBJECT)
    return (
        joined(code(step.later[:_SHORT]), " after its parent" if step.kind == "confirm" else f" {subject}"),
        f"{_size(step.ratio)} {_interval(step.low, step.high)}",
        _word(search, step),
    )


def _word(search: BisectSearch, step: BisectStep) -> Text:
    """Return which end the commit of a search test is like; for other tests the word of the paired test."""
    whole = log(search.steps[0].ratio)
    if step.kind != "search" or not whole:
        return Label(_STATUSES[step.word], step.word.upper()).span
    share = log(step.ratio) / whole
    return "like GOOD" if share < _NEAR else "like BAD" if 1 - _NEAR < share < 1 + _NEAR else "neither"


def _compare_line(document: BisectDocument, part: BisectPart) -> str:
    words = ["profkit", "compare", "--base", part.baseline[:_SHORT], "--head", part.commits[-1][:_SHORT]]
    words += ["--setup", line_to_type(shlex.split(document.setup))] if document.setup is not None else []
    return f"{shlex.join(words)} -- {line_to_type(document.command)}"


# ---------------------------------------------------------------- pieces of text


def _named(document: BisectDocument, commit: str) -> Text:
    subject = document.subjects.get(commit, "")
    return joined(code(commit[:_SHORT]), f" {subject}" if subject else "")


def _quoted(document: BisectDocument, commit: str) -> str:
    subject = document.subjects.get(commit, "")
    return f"{commit[:_SHORT]} '{subject}'" if subject else commit[:_SHORT]


def _course(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    return f"{format_figures(abs(percent), 2)} % {'slower' if percent > 0 else 'faster'}"


def _size(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"


def _interval(low: float, high: float) -> str:
    return f"[{100 * (low - 1):+.1f}, {100 * (high - 1):+.1f}]"


def _chance(probability: float) -> str:
    percent = 100 * probability
    return (
        f"{percent:.1f} %" if 99 < percent < 99.95 else ">99.9 %" if percent >= 99.95 else f"{percent:.0f} %"
    )
