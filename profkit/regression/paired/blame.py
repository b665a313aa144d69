"""Which changed line is the likeliest cause: where a change touches a function that takes more than before.

The lines that differ between two versions are held against the calls that a function makes, cProfile's seconds of a
Python function, or the instructions that were counted in a function of machine code. A line in no function that rose
is not blamed, and where none did, nothing is. Nor is one in a function that only calls another one with changed lines,
if these explain what it takes more.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.insights.host_calls import brief_name
from profkit.core.files.regular import read_bounded_text
from profkit.core.types import BlamedLine, Fact
from profkit.regression.paired.call_counts import CallChange
from profkit.regression.paired.changed_lines import (
    ChangedLines,
    changed_lines,
    docstring_lines,
    is_code,
    spans_of,
)
from profkit.regression.paired.git import blamed_commit, diff_text, removing_commit, subject_of
from profkit.regression.paired.rises import Key, Rise, Rises, hot_lines, rises_of
from profkit.regression.paired.version import Version
from profkit.regression.paired.why import Reason

MOST_LINES = 3
LEAST_LEFT = 0.3  # of what a function takes more with what it calls: what no other changed function explains


@dataclass(frozen=True)
class _Place:
    """Changed lines of one function: `numbers` are those that hold code, by line.

    `head`: its decorators or its first line changed, so that how often it is called may be its own doing.
    """

    lines: ChangedLines
    function: str
    numbers: dict[int, str]
    head: bool = False

    @property
    def key(self) -> Key:
        return self.lines.path, self.function


@dataclass(frozen=True)
class _Found:
    """A place in what rose: by which share of all, that in words, and the function that its line is likely to call."""

    place: _Place
    share: float
    why: Fact
    word: str = ""


def blamed_lines(reason: Reason, first: Version, second: Version) -> tuple[BlamedLine, ...]:
    """The lines, the likeliest first: that of the function that rose most. Empty where no profile speaks of one.

    Calls that were counted come before seconds and instructions: nothing on the machine changes them.
    """
    if first.root is None or second.root is None or first.commit is None:
        return ()
    text = diff_text(second.root, first.commit, None if second.dirty else second.commit)
    places = [place for lines in changed_lines(text) for place in _places(second.root, lines)]
    hot = hot_lines(reason, second.root)
    best: dict[str, tuple[tuple[float, float], int, _Found]] = {}
    for found in _found(places, reason, rises_of(reason, first.root, second.root)):
        line, likelihood = _likeliest(found, hot)
        rank = found.share, likelihood
        # Of several changes in one function that which holds what is called more often, or most of the instructions.
        if found.place.function not in best or rank > best[found.place.function][0]:
            best[found.place.function] = rank, line, found
    ranked = sorted(best.values(), key=lambda entry: entry[0], reverse=True)
    return tuple(_blamed(first, second, line, found) for _, line, found in ranked[:MOST_LINES])


# ---------------------------------------------------------------- where the lines are


def _places(root: Path, lines: ChangedLines) -> Iterator[_Place]:
    """The functions in which the lines lie, each with its part of them."""
    try:
        text = read_bounded_text(root / lines.path)
    except (OSError, ValueError):
        return
    rows = text.splitlines()
    spans = spans_of(lines.path, text)
    strings = docstring_lines(lines.path, text)

    def code_in(begin: int, end: int) -> dict[int, str]:
        numbers = range(max(begin, lines.first), min(end, lines.last, len(rows)) + 1)
        if lines.removed:
            return dict.fromkeys(numbers, "")
        return {n: rows[n - 1] for n in numbers if is_code(rows[n - 1], lines.path) and n not in strings}

    if spans is None:
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*(?=\s*\()", lines.context)
        if words and (numbers := code_in(1, len(rows))):
            yield _Place(lines, words[-1], numbers)
        return
    covered: set[int] = set()
    for span in spans:
        # What was taken out below the line above a function stood at its head: a decorator.
        above = span.first - 1 if lines.removed and lines.removed[0].lstrip().startswith("@") else span.first
        if above <= lines.last and lines.first <= span.last:
            begin = min(above, span.first)
            if numbers := code_in(begin, span.last):
                yield _Place(lines, span.name, numbers, min(numbers) < span.body)
        covered.update(range(max(span.first, lines.first), min(span.last, lines.last) + 1))
    outside = {number: row for number, row in code_in(1, len(rows)).items() if number not in covered}
    if outside and lines.path.endswith(".py"):
        yield _Place(lines, "<module>", outside)


# ---------------------------------------------------------------- what rose there


def _found(places: Sequence[_Place], reason: Reason, rises: Rises) -> Iterator[_Found]:
    """The places in functions that make more calls, or take more by themselves or by what has no changed lines."""
    taken: dict[
        Key, float
    ] = {}  # what the changed functions explain, those that take least first: they lie deepest
    for place in sorted(places, key=lambda place: _size(place.key, rises)):
        own, whole = _rise(rises.own, place.key), _rise(rises.whole, place.key)
        below = sum(share for key, share in taken.items() if key != place.key and rises.calls(place.key, key))
        left = whole.share - below if whole is not None else 0.0
        if whole is not None and left < LEAST_LEFT * whole.share:
            left = 0.0
        share = max(own.share if own is not None else 0.0, left)
        if share > 0:
            taken[place.key] = share
        change = _calls_in(place, reason.calls)
        if change is not None:
            yield _Found(place, 1 + change.share, change.short(reason.per), brief_name(change.function[1]))
        elif own is not None and own.share >= left:
            yield _Found(place, share, own.why)
        elif whole is not None and left > 0:
            yield _Found(place, share, whole.why)


def _size(key: Key, rises: Rises) -> float:
    whole = _rise(rises.whole, key)
    return whole.size if whole is not None else 0.0


def _rise(rises: Mapping[Key, Rise], key: Key) -> Rise | None:
    """By the whole path, by a path that ends alike (a compiler's, from another folder), or without a file."""
    path, function = key
    found = rises.get(key) or rises.get(("", function))
    if found is None:
        found = next(
            (rise for (file, name), rise in rises.items() if name == function and _ends_alike(file, path)),
            None,
        )
    return found


def _ends_alike(file: str, path: str) -> bool:
    parts = Path(file).parts
    return bool(file) and (path.endswith("/" + file) or (".." in parts and parts[-1] == Path(path).name))


def _calls_in(place: _Place, calls: Sequence[CallChange]) -> CallChange | None:
    """The further calls that the place makes, the largest first; else those of itself, if it brings them about."""
    for change in calls:
        if change.caller == place.key:
            return change
    for change in calls:
        if change.function != place.key and change.function[0] != place.lines.path:
            continue
        # A generator: what runs it is built in, so no caller is known.
        begun = change.caller is None and change.line is not None and change.line in place.numbers
        if begun or (place.head and change.function == place.key):
            return change
    return None


def _likeliest(found: _Found, hot: dict[tuple[str, int], float]) -> tuple[int, float]:
    """The changed line that holds what is called more often, else most of the instructions, else the first."""
    numbers = found.place.numbers
    name = found.word.rpartition(".")[2].strip("<>")
    if name:
        call = re.compile(rf"\b{re.escape(name)}\s*\(")
        for number, row in numbers.items():
            if call.search(row) or any(call.search(text) for text in found.place.lines.removed):
                return number, 1.0
    path = found.place.lines.path
    costs = {
        number: max(
            (share for (file, line), share in hot.items() if line == number and _same_file(file, path)),
            default=0.0,
        )
        for number in numbers
    }
    line = max(costs, key=lambda number: costs[number])
    return line, costs[line]


def _same_file(file: str, path: str) -> bool:
    return file == path or _ends_alike(file, path)


def _blamed(first: Version, second: Version, line: int, found: _Found) -> BlamedLine:
    lines, root = found.place.lines, second.root
    assert root is not None
    assert first.commit is not None
    head = None if second.dirty else second.commit
    text = ""
    if lines.removed:
        text = lines.removed[0].strip()
        commit = removing_commit(root, lines.path, lines.removed[0], first.commit, head)
    else:
        commit = blamed_commit(root, lines.path, line, head)
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = read_bounded_text(root / lines.path).splitlines()[line - 1].strip()
    subject = subject_of(root, commit) if commit else "not committed"
    return BlamedLine(
        lines.path, line, text, commit or "", subject, found.place.function, found.why, bool(lines.removed)
    )
