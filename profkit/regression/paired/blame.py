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
from profkit.core.statistics import median
from profkit.core.types import BlamedLine, Fact, Hotspot, Profile, RunDocument
from profkit.regression.paired.call_counts import CallChange
from profkit.regression.paired.changed_lines import (
    ChangedLines,
    changed_lines,
    docstring_lines,
    is_code,
    spans_of,
)
from profkit.regression.paired.git import blamed_commit, diff_text, removing_commit, subject_of
from profkit.regression.paired.version import Version
from profkit.regression.paired.why import ROUNDS, Reason, is_counted

MOST_LINES = 3
Key = tuple[str, str]  # the file (empty where a profile names none), the function
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


# ---------------------------------------------------------------- by how much each function takes more

LEAST_RISE = 0.1  # of the function's own value before: what a tracer's noise does not reach
LEAST_SHARE = 0.01  # of the whole: what could explain a change that counts


@dataclass(frozen=True)
class Rise:
    """`share` of all by which it rose, with what it calls or (`own`) without; `size`: its share of all now, 0..1."""

    share: float
    why: Fact
    size: float


@dataclass(frozen=True)
class Rises:
    """Functions that rose, without what they call and with it, and who calls whom, where that is known."""

    own: Mapping[Key, Rise]
    whole: Mapping[Key, Rise]
    below: Mapping[Key, frozenset[Key]] | None = None

    def calls(self, caller: Key, callee: Key) -> bool:
        """Whether `callee` runs below `caller`, as far as is known."""
        return self.below is None or callee in self.below.get(caller, frozenset())


def rises_of(reason: Reason, first: Path, second: Path) -> Rises:
    """The functions that take more in the second version; the folders are those of the code of both.

    Seconds only of functions that took longer in each of three runs of the candidate than in each of three of the
    baseline, which ran beside them, since cProfile's seconds are those of a busy machine.
    """
    own: dict[Key, Rise] = {}
    whole: dict[Key, Rise] = {}
    below: Mapping[Key, frozenset[Key]] | None = None
    if all(len(runs) >= ROUNDS for runs in reason.profiled):
        before, after = reason.profiled
        _add(own, _seconds(before, first, own=True), _seconds(after, second, own=True), "own-seconds")
        _add(whole, _seconds(before, first, own=False), _seconds(after, second, own=False), "seconds")
        below = _below(after[-1], second)
    if len(reason.documents) == 2 and all(map(is_counted, reason.documents)):
        found = [
            [_instructions(document, root, own=one) for one in (True, False)]
            for document, root in zip(reason.documents, (first, second), strict=True)
        ]
        if all(measured is not None for pair in found for measured in pair):
            counts = [[m for m in pair if m is not None] for pair in found]
            _add(own, counts[0][:1], counts[1][:1], "own-instructions")
            _add(whole, counts[0][1:], counts[1][1:], "instructions")
            below = None if whole else below
    return Rises(own, whole, below)


_Measured = tuple[float, Mapping[Key, float]]  # the whole, and the value of each function


def _add(rises: dict[Key, Rise], before: Sequence[_Measured], after: Sequence[_Measured], code: str) -> None:
    if not before or not after:
        return
    everything = median([whole for whole, _ in after])
    for key in {key for _, values in after for key in values}:
        lows, highs = ([values.get(key, 0.0) for _, values in side] for side in (before, after))
        was, now = median(lows), median(highs)
        share = (min(highs) - max(lows)) / everything
        rose = share >= LEAST_SHARE and now - was >= LEAST_RISE * was
        if rose and (key not in rises or share > rises[key].share):
            rises[key] = Rise(share, Fact.of(code, before=was, after=now), now / everything)


def _seconds(runs: Sequence[RunDocument], root: Path, *, own: bool) -> list[_Measured]:
    """Of each run, by function: seconds with what it calls, or `own` with built-in functions and libraries alone."""
    found: list[_Measured] = []
    for document in runs:
        for profile in document.profiles:
            if profile.kind == "own-time" and profile.total > 0:
                values = _direct(document, profile, root) if own else _with_calls(profile, root)
                found.append((profile.total, values))
    return found


def _instructions(document: RunDocument, root: Path, *, own: bool) -> _Measured | None:
    """By function of machine code; None where none were counted."""
    for profile in document.profiles:
        if profile.unit == "instructions" and profile.kind != "counted-lines" and profile.total > 0:
            return profile.total, _itself(profile, root) if own else _with_calls(profile, root)
    return None


def _direct(document: RunDocument, own: Profile, root: Path) -> dict[Key, float]:
    """Seconds in each function itself and in what it calls that is none of the program's own functions.

    A function near the top of the program (one that calls all handlers, say) has nearly all of the time below it: what
    was added to the function itself is little of that, and much of this.
    """
    values: dict[Key, float] = {}
    for hotspot in own.hotspots:
        if hotspot.library is None and hotspot.function != "<module>":
            key = path_inside(hotspot.file, root), hotspot.function
            values[key] = values.get(key, 0.0) + hotspot.own
    for profile in document.profiles:
        if profile.kind != "program-calls":
            continue
        for edge in profile.hotspots:
            key = path_inside(edge.file, root), edge.function
            if key in values and edge.callee is not None and edge.callee.library is not None:
                values[key] += edge.total or 0.0
    return values


def _itself(profile: Profile, root: Path) -> dict[Key, float]:
    values: dict[Key, float] = {}
    for hotspot in profile.hotspots:
        key = _key(hotspot, root)
        values[key] = values.get(key, 0.0) + hotspot.own
    return values


def _with_calls(profile: Profile, root: Path) -> dict[Key, float]:
    values: dict[Key, float] = {}
    for hotspot in profile.hotspots:
        # Of a module all that it imports would count: that is not its own.
        total = hotspot.total if hotspot.total is not None and hotspot.function != "<module>" else hotspot.own
        key = _key(hotspot, root)
        values[key] = values.get(key, 0.0) + (total or 0.0)
    return values


def _below(document: RunDocument, root: Path) -> dict[Key, frozenset[Key]] | None:
    """All functions that run below each, by cProfile's calls; None where they are not known."""
    calls: dict[Key, set[Key]] = {}
    for profile in document.profiles:
        if profile.kind == "program-calls":
            for edge in profile.hotspots:
                if edge.callee is not None:
                    callee = path_inside(edge.callee.file, root), edge.callee.function
                    calls.setdefault((path_inside(edge.file, root), edge.function), set()).add(callee)
    if not calls:
        return None
    found = {}
    for caller in calls:
        seen: set[Key] = set()
        left = [caller]
        while left:
            new = calls.get(left.pop(), set()) - seen
            seen |= new
            left.extend(new)
        found[caller] = frozenset(seen)
    return found


def hot_lines(reason: Reason, root: Path) -> dict[tuple[str, int], float]:
    """Of the candidate, by file and line: its share of all counted instructions, 0..1, of the costliest lines."""
    found: dict[tuple[str, int], float] = {}
    if len(reason.documents) == 2 and all(map(is_counted, reason.documents)):
        for profile in reason.documents[1].profiles:
            if profile.kind == "counted-lines" and profile.total > 0:
                for spot in profile.hotspots:
                    if spot.line is not None:
                        place = path_inside(spot.file, root), spot.line
                        found[place] = found.get(place, 0.0) + spot.own / profile.total
    return found


def _key(hotspot: Hotspot, root: Path) -> Key:
    return path_inside(hotspot.file, root), hotspot.function.split("(")[0].rpartition("::")[2]


def path_inside(file: str | None, root: Path) -> str:
    """The file as git names it; as it is where it lies elsewhere, empty where none is known."""
    if file is None:
        return ""
    path = Path(file)
    if path.is_absolute() and path.is_relative_to(root):
        return str(path.relative_to(root))
    return file
