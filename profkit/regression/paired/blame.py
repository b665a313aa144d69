"""Find the changed lines that are the likeliest cause: those in functions that take more than before.

The lines of Python that differ between two versions are matched with the calls that a function makes, and its
seconds under cProfile. A line outside of functions that rose is not blamed, and if none rose, nothing is.
Comments, docstrings and empty lines make nothing slower.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.analysis.function_names import brief_name
from profkit.core.files.regular import read_bounded
from profkit.core.statistics import median
from profkit.core.types import BlamedLine, Fact, Profile, RunDocument
from profkit.regression.paired.checkout import Version, blamed_commit, diff_text, subject_of
from profkit.regression.paired.why import ROUNDS, CallChange, Key, Reason, path_inside

MAX_LINES = 3
MIN_RISE = 0.1  # of the function's own value before: what a tracer's noise does not reach
MIN_SHARE = 0.01  # of the whole: what could explain a change that counts
MAJORITY = 0.7  # of what the largest rises by: what lies deeper and rises by as much explains it


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
    """A place in a function that rose: its share of the whole, the evidence, and the function it probably calls."""

    place: _Place
    share: float
    why: Fact
    word: str = ""


def blamed_lines(reason: Reason, first: Version, second: Version) -> tuple[BlamedLine, ...]:
    """Return the blamed lines, that of the function that rose most first; none if no profile speaks of one.

    Calls that were counted come before seconds: nothing on the machine changes them.
    """
    if first.root is None or second.root is None or first.commit is None:
        return ()
    text = diff_text(second.root, first.commit, None if second.dirty else second.commit)
    places = [place for lines in changed_lines(text) for place in _places(second.root, lines)]
    best: dict[str, tuple[tuple[float, bool], int, _Found]] = {}
    for candidate in _found(places, reason, first.root, second.root):
        line = _calling_line(candidate)
        rank = candidate.share, line is not None
        # Of several changes in one function that which holds what is called more often.
        if candidate.place.function not in best or rank > best[candidate.place.function][0]:
            best[candidate.place.function] = rank, line or min(candidate.place.numbers), candidate
    ranked = sorted(best.values(), key=lambda entry: entry[0], reverse=True)
    return tuple(_blamed(second, line, candidate) for _, line, candidate in ranked[:MAX_LINES])


def _calling_line(found: _Found) -> int | None:
    """Return the changed line that calls what is now called more often; None if none does."""
    name = found.word.rpartition(".")[2].strip("<>")
    call = re.compile(rf"\b{re.escape(name)}\s*\(")
    if not name:
        return None
    for number, row in found.place.numbers.items():
        if call.search(row):
            return number
    return None


def _blamed(second: Version, line: int, found: _Found) -> BlamedLine:
    lines, root = found.place.lines, second.root
    assert root is not None
    head = None if second.dirty else second.commit
    text, commit = "", blamed_commit(root, lines.path, line, head)
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = read_bounded(root / lines.path).decode().splitlines()[line - 1].strip()
    subject = subject_of(root, commit) if commit else "not committed"
    return BlamedLine(lines.path, line, text, commit or "", subject, found.place.function, found.why)


# ---------------------------------------------------------------- by how much each function takes more


@dataclass(frozen=True)
class _Rise:
    """`share` of all by which a function rose; `size`: its share of all now, 0..1."""

    share: float
    why: Fact
    size: float


def _found(places: Sequence[_Place], reason: Reason, first: Path, second: Path) -> Iterator[_Found]:
    """Yield the places in functions that make more calls, or take more by themselves.

    If none does, the one in the deepest function that takes more with what it calls: what it calls has no changed
    lines.
    """
    own = _rises(reason, first, second, own=True)
    rose = False
    for place in places:
        change, rise = _calls_in(place, reason.calls), own.get(place.key)
        if change is not None:
            yield _Found(place, 1 + change.share, change.short(reason.per), brief_name(change.function[1]))
        elif rise is not None:
            yield _Found(place, rise.share, rise.why)
        rose = rose or change is not None or rise is not None
    if rose:
        return
    whole = _rises(reason, first, second, own=False)
    rises = [(rise, place) for place in places if (rise := whole.get(place.key)) is not None]
    most = max((rise.share for rise, _ in rises), default=0.0)
    deepest = min((rise.size for rise, _ in rises if rise.share >= MAJORITY * most), default=0.0)
    for rise, place in rises:
        if rise.size == deepest:
            yield _Found(place, rise.share, rise.why)


def _calls_in(place: _Place, calls: Sequence[CallChange]) -> CallChange | None:
    """Return the further calls that the place makes, the largest; else those of itself, if it causes them."""
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


_Measured = tuple[float, dict[Key, float]]  # the whole, and the value of each function


def _rises(reason: Reason, first: Path, second: Path, *, own: bool) -> dict[Key, _Rise]:
    """Return the functions that take more in the second version, `own` or with what they call.

    Those that took longer in each of three runs of the candidate than in each of three of the baseline, which ran
    beside them, since cProfile's seconds are those of a busy machine.
    """
    if any(len(runs) < ROUNDS for runs in reason.profiled):
        return {}
    before, after = (
        _seconds(runs, root, own=own) for runs, root in zip(reason.profiled, (first, second), strict=True)
    )
    if not before or not after:
        return {}
    rises: dict[Key, _Rise] = {}
    everything = median([whole for whole, _ in after])
    for key in {key for _, values in after for key in values}:
        lows, highs = ([values.get(key, 0.0) for _, values in side] for side in (before, after))
        was, now = median(lows), median(highs)
        share = (min(highs) - max(lows)) / everything
        if share >= MIN_SHARE and now - was >= MIN_RISE * was:
            why = Fact.of("own-seconds" if own else "seconds", before=was, after=now)
            rises[key] = _Rise(share, why, now / everything)
    return rises


def _seconds(runs: Sequence[RunDocument], root: Path, *, own: bool) -> list[_Measured]:
    """Return for each run the seconds of each function, its `own` or with what it calls."""
    return [
        (profile.total, _values(profile, root, own=own))
        for document in runs
        for profile in document.profiles
        if profile.kind == "own-time" and profile.total > 0
    ]


def _values(profile: Profile, root: Path, *, own: bool) -> dict[Key, float]:
    values: dict[Key, float] = {}
    for hotspot in profile.hotspots:
        # Of a module all that it imports would count: that is not its own.
        alone = own or hotspot.total is None or hotspot.function == "<module>"
        key = path_inside(hotspot.file, root), hotspot.function
        values[key] = values.get(key, 0.0) + (hotspot.own if alone else hotspot.total or 0.0)
    return values


# ---------------------------------------------------------------- the lines that differ

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


@dataclass(frozen=True)
class ChangedLines:
    """Lines `first` to `last` of `path`, as the candidate has them."""

    path: str
    first: int
    last: int


def changed_lines(diff: str) -> Iterator[ChangedLines]:
    """Yield the hunks of a diff without context (`git diff -U0`) that have lines in the candidate."""
    path, wanted = "", 0  # lines of a hunk that follow: what they hold is the files' own, and no header
    for line in diff.split("\n"):
        if wanted and line[:1] in ("+", "-"):
            wanted -= 1
        elif wanted and line[:1] == "\\":
            continue
        elif line.startswith("+++ "):
            name = line[4:].rstrip("\t")
            path, wanted = name[2:] if name.startswith("b/") else "", 0
        elif match := _HUNK.match(line):
            start, count = int(match[2]), int(match[3] or 1)
            wanted = int(match[1] or 1) + count
            if path and count:
                yield ChangedLines(path, start, start + count - 1)


def _places(root: Path, lines: ChangedLines) -> Iterator[_Place]:
    """Yield the functions in which the lines lie, each with its part of them."""
    try:
        text = read_bounded(root / lines.path).decode() if lines.path.endswith(".py") else ""
        tree = ast.parse(text)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return
    rows = text.splitlines()

    def code_in(begin: int, end: int) -> dict[int, str]:
        numbers = range(max(begin, lines.first), min(end, lines.last, len(rows)) + 1)
        return {n: rows[n - 1] for n in numbers if rows[n - 1].strip()[:1] not in ("", "#")}

    outside = code_in(1, len(rows))
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):  # a docstring
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                rows[number - 1] = ""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        first = min((mark.lineno for mark in node.decorator_list), default=node.lineno)
        last = node.end_lineno or node.lineno
        if numbers := code_in(first, last):
            yield _Place(lines, node.name, numbers, min(numbers) < node.body[0].lineno)
        for number in range(max(first, lines.first), min(last, lines.last) + 1):
            outside.pop(number, None)
    if outside := {number: row for number, row in outside.items() if rows[number - 1].strip()}:
        yield _Place(lines, "<module>", outside)
