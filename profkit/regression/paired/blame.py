"""Which changed line is the likeliest cause: where a change touches a function that takes more than before.

The lines that differ between two versions are held against the calls that a function makes, cProfile's seconds of a
Python function with all that it calls, or the instructions that were counted in a function of machine code. A line in
no function that rose is not blamed, and where none did, nothing is.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profkit.core.files.regular import read_bounded_text
from profkit.core.formatting import format_quantity
from profkit.core.statistics import median
from profkit.core.types import BlamedLine, Hotspot, Profile, RunDocument
from profkit.regression.paired.call_counts import CallChange
from profkit.regression.paired.git import blamed_commit, diff_text, subject_of
from profkit.regression.paired.version import Version
from profkit.regression.paired.why import ROUNDS, Reason, is_counted

MOST_LINES = 3
LEAST_RISE = 0.1  # of the function's own value before: what a tracer's noise does not reach
LEAST_SHARE = 0.01  # of the whole: what could explain a change that counts
_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)")


@dataclass(frozen=True)
class ChangedLines:
    """Lines `first` to `last` of `path`, as the candidate has them; `context` is the function that git sees there."""

    path: str
    first: int
    last: int
    context: str = ""


def blamed_lines(reason: Reason, first: Version, second: Version) -> tuple[BlamedLine, ...]:
    """The lines, the likeliest first: that of the function that rose most. Empty where no profile speaks of one.

    Calls that were counted come before seconds and instructions: nothing on the machine changes them.
    """
    if first.root is None or second.root is None or first.commit is None:
        return ()
    text = diff_text(second.root, first.commit, None if second.dirty else second.commit)
    rises = _rises(reason, first.root, second.root)
    exact = {change.caller: change for change in reversed(reason.calls)}
    found: dict[str, tuple[float, BlamedLine]] = {}
    for lines in changed_lines(text):
        for function, line in _functions_of(second.root, lines):
            change = exact.get((lines.path, function)) or _begun_in(lines, reason.calls)
            if change is not None:
                rise: tuple[float, str] | None = (1 + change.share, change.short(reason.per))
            else:
                rise = rises.get((lines.path, function)) or rises.get(("", function))
            if rise is not None and rise[0] > found.get(function, (0.0, None))[0]:
                found[function] = rise[0], _blamed(second, lines.path, line, function, rise[1])
    ranked = sorted(found.values(), key=lambda pair: -pair[0])
    return tuple(blamed for _, blamed in ranked[:MOST_LINES])


def changed_lines(diff: str) -> Iterator[ChangedLines]:
    """The hunks of a diff without context (`git diff -U0`). Of lines that were only taken out, the one above."""
    path, inside = "", 0  # lines of a hunk that follow: what they hold is the files' own, and no header
    for line in diff.split("\n"):
        if inside and line[:1] in "+-\\":
            inside -= line[:1] != "\\"
        elif line.startswith("+++ "):
            name = line[4:].rstrip("\t")
            path = name[2:] if name.startswith("b/") else ""
        elif match := _HUNK.match(line):
            start, count = int(match[2]), int(match[3] or 1)
            inside = int(match[1] or 1) + count
            first = max(1, start)
            if path:
                yield ChangedLines(path, first, max(first, start + count - 1), match[4])


def _begun_in(lines: ChangedLines, calls: Sequence[CallChange]) -> CallChange | None:
    """A generator that begins in the changed lines: what runs it is built in, so no caller is known."""
    return next(
        (
            change
            for change in calls
            if change.caller is None
            and change.function[0] == lines.path
            and change.line is not None
            and lines.first <= change.line <= lines.last
        ),
        None,
    )


def _functions_of(root: Path, lines: ChangedLines) -> Iterator[tuple[str, int]]:
    """The functions in which the lines lie, and the first changed line in each."""
    if lines.path.endswith(".py"):
        try:
            tree = ast.parse(read_bounded_text(root / lines.path))
        except (OSError, ValueError, SyntaxError, RecursionError):
            return
        spans = [
            (node.lineno, node.end_lineno or node.lineno, node.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        inside = [span for span in spans if span[0] <= lines.last and lines.first <= span[1]]
        for begin, _, name in inside or [(1, 0, "<module>")]:
            yield name, max(begin, lines.first)
        return
    words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*(?=\s*\()", lines.context)
    if words:
        yield words[-1], lines.first


def _rises(reason: Reason, first: Path, second: Path) -> dict[tuple[str, str], tuple[float, str]]:
    """By file (empty where a profile names none) and function: the share of all by which it rose, and that in words.

    Seconds only of functions that took longer in each of three runs of the candidate than in each of three of the
    baseline, which ran beside them, since cProfile's seconds are those of a busy machine.
    """
    rises: dict[tuple[str, str], tuple[float, str]] = {}
    if all(len(runs) >= ROUNDS for runs in reason.profiled):
        _add_rises(rises, _times(reason.profiled[0], first), _times(reason.profiled[1], second))
    if len(reason.documents) == 2 and all(map(is_counted, reason.documents)):
        before, after = reason.documents
        _add_rises(rises, _instructions(before, first), _instructions(after, second))
    return rises


_Values = dict[tuple[str, str], float]
# Of what, in which unit; the whole and the value of each function, for each run.
_Measured = dict[tuple[str, str], list[tuple[float, _Values]]]


def _add_rises(rises: dict[tuple[str, str], tuple[float, str]], before: _Measured, after: _Measured) -> None:
    for (title, unit), runs in after.items():
        old = before.get((title, unit))
        if not old:
            continue
        for key in {key for _, values in runs for key in values}:
            lows, highs = ([values.get(key, 0.0) for _, values in side] for side in (old, runs))
            was, now = median(lows), median(highs)
            rise = (min(highs) - max(lows)) / median([whole for whole, _ in runs])
            if rise >= LEAST_SHARE and now - was >= LEAST_RISE * was and rise > rises.get(key, (0.0, ""))[0]:
                sizes = f"{format_quantity(was, unit)} to {format_quantity(now, unit)}"
                rises[key] = rise, f"{title}: {sizes}"


def _times(runs: Sequence[RunDocument], root: Path) -> _Measured:
    """Seconds under cProfile of each function with what it calls, and of itself with the libraries it calls."""
    measured: _Measured = {}
    for document in runs:
        for profile in document.profiles:
            if profile.kind == "own-time" and profile.total > 0:
                title = profile.title.split(" by ")[0]
                both = (
                    (f"{title}, with what it calls", _by_function(profile, root)),
                    (
                        f"{title}, with the built-in functions and libraries that it calls",
                        _direct(document, profile, root),
                    ),
                )
                for name, values in both:
                    measured.setdefault((name, profile.unit), []).append((profile.total, values))
    return measured


def _instructions(document: RunDocument, root: Path) -> _Measured:
    return {
        (f"{profile.title.split(' by ')[0]}, with what it calls", profile.unit): [
            (profile.total, _by_function(profile, root))
        ]
        for profile in document.profiles
        if profile.unit == "instructions" and profile.kind != "counted-lines" and profile.total > 0
    }


def _direct(document: RunDocument, own: Profile, root: Path) -> dict[tuple[str, str], float]:
    """Seconds in each function itself and in what it calls that is none of the program's own functions.

    A function near the top of the program (one that calls all handlers, say) has nearly all of the time below it: what
    was added to the function itself is little of that, and much of this.
    """
    values: dict[tuple[str, str], float] = {}
    for hotspot in own.hotspots:
        if hotspot.library is None and hotspot.function != "<module>":
            key = _path_inside(hotspot, root), hotspot.function
            values[key] = values.get(key, 0.0) + hotspot.own
    for profile in document.profiles:
        if profile.kind != "program-calls":
            continue
        for edge in profile.hotspots:
            key = _path_inside(edge, root), edge.function
            if key in values and edge.callee is not None and edge.callee.library is not None:
                values[key] += edge.total or 0.0
    return values


def _by_function(profile: Profile, root: Path) -> dict[tuple[str, str], float]:
    values: dict[tuple[str, str], float] = {}
    for hotspot in profile.hotspots:
        key = _path_inside(hotspot, root), hotspot.function.split("(")[0].rpartition("::")[2]
        # Of a module all that it imports would count: that is not its own.
        total = hotspot.total if hotspot.total is not None and hotspot.function != "<module>" else hotspot.own
        values[key] = values.get(key, 0.0) + (total or 0.0)
    return values


def _path_inside(hotspot: Hotspot, root: Path) -> str:
    if hotspot.file is None:
        return ""
    path = Path(hotspot.file)
    if path.is_absolute():
        return str(path.relative_to(root)) if path.is_relative_to(root) else hotspot.file
    return hotspot.file


def _blamed(version: Version, path: str, line: int, function: str, reason: str) -> BlamedLine:
    root = version.root
    assert root is not None
    commit = blamed_commit(root, path, line, None if version.dirty else version.commit)
    text = ""
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = read_bounded_text(root / path).splitlines()[line - 1].strip()
    subject = subject_of(root, commit) if commit else "not committed"
    return BlamedLine(path, line, text, commit or "", subject, function, reason)
