"""What became worse, an entry for each metric that decides, with its line: what a forge shows in a diff."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profkit.core.types import BlamedLine, Change, Comparison
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.view import plain_text
from profkit.reporting.views.comparison.machine import why_lines
from profkit.reporting.views.comparison.paired import blamed_text
from profkit.reporting.views.comparison.sizes import metric_name, size_text

NO_METRIC = "regressed"  # where no single metric made the outcome


@dataclass(frozen=True)
class FileLine:
    """A line of a file, relative to the repository, and what is known of it."""

    path: str
    line: int
    text: str = ""


@dataclass(frozen=True)
class Regression:
    """One metric of one workload that is worse. `places` are its lines, the likeliest first; none where none is known.

    `fingerprint` is the same for the same metric of the same workload, whatever the numbers and lines are.
    """

    workload: str
    metric: str
    message: str
    places: tuple[FileLine, ...]
    fingerprint: str


def regressions(
    compared: Sequence[tuple[str, Comparison]], changed_file: str | None = None
) -> list[Regression]:
    """All that became worse in named comparisons; `changed_file` is the place of what no line is known for."""
    return [one for name, comparison in compared for one in _of_one(name, comparison, changed_file)]


def _of_one(name: str, comparison: Comparison, changed_file: str | None) -> Iterator[Regression]:
    if comparison.outcome != "regressed":
        return
    places = tuple(_place(line) for line in comparison.blamed)
    if not places and changed_file is not None:
        places = (
            FileLine(without_control_characters(changed_file), 1, "the first changed file: no line is known"),
        )
    before = f"{name}: " if name else ""
    worse = [
        c for c in comparison.changes if c.role == "decides" and (c.word, c.course) == ("different", "worse")
    ]
    why = why_lines(comparison)
    for change in worse:
        lines = [f"{before}{metric_name(change)} {size_text(change)}", _versions(comparison), *why]
        yield _regression(name, change.metric, _key(change), lines, places)
    if not worse:
        yield _regression(
            name, NO_METRIC, NO_METRIC, [before + comparison.reason, _versions(comparison), *why], places
        )


def _regression(
    name: str, metric: str, key: str, lines: Sequence[str], places: tuple[FileLine, ...]
) -> Regression:
    fingerprint = hashlib.sha256(f"{name}\0{key}".encode(errors="replace")).hexdigest()
    message = "\n".join(map(without_control_characters, lines))
    return Regression(name, metric, message, places, fingerprint)


def _key(change: Change) -> str:
    return f"{change.metric}\0{change.scope.kind}\0{change.scope.name}"


def _place(line: BlamedLine) -> FileLine:
    path = without_control_characters(line.path)
    return FileLine(path, max(1, line.line), without_control_characters(plain_text(blamed_text(line))))


def _versions(comparison: Comparison) -> str:
    return f"{comparison.baseline.name} -> {comparison.candidate.name}"
