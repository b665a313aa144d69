"""What a CI system takes: test cases and annotations as blocks, GitHub's lines and step summary.

The blocks repeat what other blocks tell people. The grammar and escapes of the lines are those of GitHub's runner
(actions/toolkit, `packages/core/src/command.ts`): in a message `%`, carriage return and line feed, in a property `:`
and `,` too. The runner shows ten errors, ten warnings and ten notices of a step, so the worst come first and what is
left out is counted in the last one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from profkit.core.files.safe_folder import check_links, make_parents
from profkit.core.types import Verdict
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import text_for_others
from profkit.reporting.view import Block, CaseState, Level, View, plain_text, walk
from profkit.reporting.views.run_text import VERDICTS


@dataclass(frozen=True)
class Case:
    """One test case. `message` says why it did not pass, `detail` is the longer text below it.

    What is `unknown` is skipped, and an error where unknown verdicts fail.
    """

    group: str  # readers make a tree of its dots
    name: str
    state: CaseState = "passed"
    message: str = ""
    detail: str = ""
    seconds: float = 0.0
    kind: str = ""  # a short fixed word: the type of a failure


@dataclass(frozen=True)
class CaseList(Block):
    """The result as tests, for machines: one suite. It repeats what other blocks tell people."""

    name: str
    cases: tuple[Case, ...]
    started: str = ""  # ISO 8601
    seconds: float = 0.0
    properties: tuple[tuple[str, str], ...] = ()
    output: str = ""


@dataclass(frozen=True)
class Annotation:
    """A message; with a `path` relative to the repository and a `line` (from 1), it is shown at that line."""

    level: Level
    title: str
    message: str
    path: str = ""
    line: int = 0


@dataclass(frozen=True)
class AnnotationList(Block):
    """Messages for a CI system that shows them beside the run, the worst first; people read the same elsewhere."""

    rows: tuple[Annotation, ...]


def verdict_case(group: str, verdict: Verdict) -> Case:
    """Return a target as a test case."""
    state = VERDICTS[verdict.verdict].status.case
    name = f"{verdict.target} {verdict.scope.name or ''}".rstrip()
    tries = verdict.advice if state in ("failure", "unknown") else ()
    reason = fact_text(verdict.reason)
    detail = "\n".join([reason, *(f"try: {line}" for line in tries)])
    return Case(group, name, state, "" if state == "passed" else reason, detail, kind=verdict.verdict)


MAX_ANNOTATIONS = 10  # of each level in a step (GitHub's documentation, "Limits of annotations")


def annotation_lines(view: View) -> str:
    """Return a line for each annotation of the view, the worst first; empty where all is well."""
    lines: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    for block in walk(view.blocks):
        if isinstance(block, AnnotationList):
            for row in block.rows:
                text = "\n".join(dict.fromkeys(map(text_for_others, row.message.split("\n"))))
                lines[row.level].append(_command(row.level, row.title, text, row.path, row.line))
    shown = []
    for name, rows in lines.items():
        if len(rows) > MAX_ANNOTATIONS:
            more = _command(
                name, f"{plain_text(view.title)}: {len(rows) - MAX_ANNOTATIONS + 1} more", "see the report"
            )
            rows = [*rows[: MAX_ANNOTATIONS - 1], more]
        shown += rows
    return "".join(line + "\n" for line in shown)


def _command(level: str, title: str, text: str, path: str = "", line: int = 0) -> str:
    """Return `::error title=...::...` as the runner reads it.

    >>> _command("error", "a: b, 100 %", "first\nsecond")
    '::error title=a%3A b%2C 100 %25::first%0Asecond'
    >>> _command("error", "slower", "text", "a,b.py", 3)
    '::error file=a%2Cb.py,line=3,title=slower::text'
    """
    place = f"file={_property(path)}," + (f"line={line}," if line else "") if path else ""
    return f"::{level} {place}title={_property(title)}::{_escaped(text)}"


def _property(text: str) -> str:
    return _escaped(text_for_others(text)).replace(":", "%3A").replace(",", "%2C")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


# ---------------------------------------------------------------- a step of GitHub Actions

_BETWEEN = 1024  # bytes that are left free between two summaries of one step


def summary_file() -> Path | None:
    """Return the file that GitHub's runner shows as the step's summary; None if there is no such runner."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(name) if name else None


def append_summary(path: Path, view: View) -> str | None:
    """Append the view, within what GitHub shows of one step in all; why it could not be written, or None."""
    from profkit.reporting import markdown

    try:
        make_parents(path.parent)
        check_links(path)
        size = path.stat().st_size if path.exists() else 0
        with path.open("a", encoding="utf-8") as file:
            text = markdown.render(view, max(4096, markdown.STEP_SUMMARY - size - _BETWEEN))
            file.write(text + "\n")
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return None


def annotations_in_step(view: View) -> str:
    """Return the lines for GitHub's runner; empty where it does not listen."""
    return annotation_lines(view) if os.environ.get("GITHUB_ACTIONS") == "true" else ""
