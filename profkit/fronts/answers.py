"""What an agent gets of a run or a comparison: few lines, each with its place, within what a context has room for.

A program names its functions and files and prints what it likes, and a report may say anything. All such text stands
under `untrusted`, and nothing else does: what is not known to be profkit's own goes there (`own_words.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from profkit.core.types import Check, CodeSpot, Comparison, Fact, Insight, Place
from profkit.fronts.own_words import is_own_fact, is_own_text
from profkit.fronts.tool_words import as_arguments
from profkit.profiling.api import Run
from profkit.reporting.facts import fact_text
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.views.comparison.changes import difference_line
from profkit.reporting.views.comparison.view import why_lines
from profkit.reporting.views.run_text import scope_name, time_line, unfinished_passes, worst_first
from profkit.runtime.passes.shown_command import mask_secrets

MAX_CHARACTERS = 4500  # characters of an answer: 1,500 tokens, where one has three characters at least
PARTS = ("hot_spots", "insights", "verdicts", "readings")
_CHECKED = ("name", "state", "detail", "fix")
_FIRST = {"hot_spots": 6, "insights": 3}  # rows of a run, where no part was asked for
_MIN_SHARE = 0.005  # of the wall time: a smaller hot spot is none
_LONGEST = 300  # characters of one text
_DIGITS = 6  # of a number: more are noise, and of seventeen an answer is half
_LINES = 12  # of what a program printed, the last ones
_MAX_DIFFERENCES = 4  # between two runs, beside the numbers
_COLUMNS = ("metric", "target", "verdict", "value", "unit", "threshold", "scope_name", "quality", "reason")
# Cells that hold a name of the program, or a sentence with one: never profkit's own, whatever they say.
_NAMES = ("file", "function", "code", "name", "title", "evidence", "scope_name", "why")
Cells: TypeAlias = dict[str, str | int | float | bool | Fact | None]
Texts: TypeAlias = dict[str, str | list[str]]
Row: TypeAlias = dict[str, str | int | float | bool | Texts]
Rows: TypeAlias = list[Row]  # what is not known is not there


@dataclass(frozen=True)
class RunAnswer:
    """A run or a report. Shares are of the wall time (0 to 1); `at_most` is the share of the time `of` to be won."""

    id: str  # what `summarize`, `check` and `compare` take as its path
    state: str
    time: str
    not_measured: Rows  # passes that did not run or failed, and why
    untrusted: Texts = field(default_factory=dict)  # texts of the program or the report, also in each row
    hot_spots: Rows = field(default_factory=list)
    insights: Rows = field(default_factory=list)
    verdicts: Rows = field(default_factory=list)
    readings: Rows = field(default_factory=list)
    # Rows that are left, by part: summarize(id, part) has them.
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CompareAnswer:
    """Whether the candidate is slower, and why. `ratio` is candidate over baseline, with its interval."""

    outcome: str
    sentence: str
    fix: str
    changes: Rows
    untrusted: Texts = field(
        default_factory=dict
    )  # sentences that hold names of the program, also in each row
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DoctorAnswer:
    """What works here; and what is limited, missing or refused, with the line that fixes it."""

    working: list[str]
    checks: Rows
    more: dict[str, int] = field(default_factory=dict)


def of_run(run: Run, id: str, part: str | None = None, start: int = 0, root: Path | None = None) -> RunAnswer:
    """Return a run in short, or the rows of one `part` from `start` on; files below `root` are relative to it."""
    document = run.document
    rows = {
        "hot_spots": [_spot(spot, root) for spot in document.hot_spots if spot.share >= _MIN_SHARE],
        "insights": [_insight(insight, root) for insight in document.insights],
        "verdicts": [
            _columns({**row, "reason": verdict.reason})
            for row, verdict in zip(run.verdicts(), worst_first(document.verdicts), strict=True)
        ],
        "readings": [_columns({**row}) for row in run.rows() if row["value"] is not None],
    }
    shown: dict[str, Any] = (
        {part: rows[part][start:]} if part else {name: rows[name][:n] for name, n in _FIRST.items()}
    )
    left = {part: len(shown[part])} if part else {name: len(items) for name, items in rows.items()}
    gone = [_row({"pass": result.name, "reason": result.reason}) for result in unfinished_passes(document)]
    answer = RunAnswer(id, document.state, time_line(document) or "", gone, {"name": _short(document.name)})
    return _fitted(replace(answer, **shown), left)


def of_comparison(found: Comparison) -> CompareAnswer:
    """Return outcome, reason and changes of two versions or runs."""
    changes = [
        _row(
            _of(change, "metric", "word", "course", "unit", "ratio", "low", "high"),
            {"scope_name": scope_name(change.scope) if change.scope.name else None},
            {"baseline": change.baseline.value, "candidate": change.candidate.value},
            {"doubt": next(iter(change.doubts), None)},
        )
        for change in found.changes
    ]
    own, untrusted = _separated({"sentence": found.why, "fix": found.fix})
    if (
        "fix" in untrusted
    ):  # it has the commands of both runs in it, and an agent runs nothing that stands there
        own["fix"] = as_arguments(fact_text(Fact("in-turns")))
    if alike := [_short(difference_line(difference)) for difference in found.differences[:_MAX_DIFFERENCES]]:
        untrusted["not_alike"] = alike
    if found.outcome not in ("same", "ambiguous") and (why := why_lines(found)):
        untrusted["why"] = [_short(line) for line in why]
    said = {name: str(text) for name, text in own.items()}
    answer = CompareAnswer(found.outcome, said.get("sentence", ""), said.get("fix", ""), changes, untrusted)
    return _fitted(answer, {"changes": len(changes)})


def of_checks(checks: Sequence[Check]) -> DoctorAnswer:
    """Return what the doctor found; its words are profkit's and those of the tools that are installed here."""
    rows: Rows = [
        {
            key: _short(as_arguments(text) if key == "fix" else text)
            for key, text in vars(check).items()
            if key in _CHECKED and text is not None
        }
        for check in checks
        if check.state != "ok"
    ]
    return _fitted(DoctorAnswer([c.name for c in checks if c.state == "ok"], rows), {"checks": len(rows)})


def of_fault(error: str, fix: str | None = None, said: str = "") -> str:
    """Return why nothing was done, as one line of JSON; `said`: what a program printed, or a message that may
    hold it.
    """
    lines = [_short(line) for line in said.splitlines() if line.strip()]
    untrusted = {"said": [*lines[:1], *lines[1:][-_LINES:]]} if lines else {}
    return _as_json(
        {"error": mask_secrets(error), "fix": _short(as_arguments(fix or "")), "untrusted": untrusted}
    )


def _spot(spot: CodeSpot, root: Path | None) -> Row:
    under = spot.under
    code: Cells = {"code": spot.code.text if spot.code is not None else None}
    called: Cells = _of(under, "name", "calls") if under is not None else {"calls": spot.calls}
    return _row({"share": round(spot.share, 3), "kind": spot.kind}, _place(spot.where, root), code, called)


def _insight(insight: Insight, root: Path | None) -> Row:
    gain = insight.gain
    bound: Cells = {"at_most": round(gain.at_most, 3), "of": gain.of} if gain is not None else {}
    return _row(_of(insight, "rule", "title", "evidence", "change"), _place(insight.where, root), bound)


def _place(where: Place, root: Path | None) -> Cells:
    file = where.file
    if file is not None and root is not None and Path(file).is_relative_to(root):
        file = str(Path(file).relative_to(root))
    return {"file": file, "line": where.line, "function": where.function or where.kernel}


def _columns(row: Cells) -> Row:
    return _row({name: row[name] for name in _COLUMNS if name in row})


def _of(item: object, *names: str) -> Cells:
    return {name: getattr(item, name) for name in names}


def _row(*parts: Cells) -> Row:
    """Return the cells that are known; texts that are not known to be profkit's own under `untrusted`."""
    own, untrusted = _separated(*parts)
    return {**own, "untrusted": untrusted} if untrusted else own


def _separated(*parts: Cells) -> tuple[Row, Texts]:
    """Return what is known to be profkit's own of the cells that are known, and the other texts."""
    own: Row = {}
    untrusted: Texts = {}
    for name, cell in (item for part in parts for item in part.items()):
        is_own = is_own_fact(cell) if isinstance(cell, Fact) else is_own_text(str(cell))
        text = as_arguments(fact_text(cell)) if isinstance(cell, Fact) else cell
        if isinstance(text, float):
            own[name] = float(f"{text:.{_DIGITS}g}")
        elif not isinstance(text, str):
            own |= {name: text} if text is not None else {}
        elif is_own and name not in _NAMES:
            own[name] = _short(text)
        else:
            untrusted[name] = _short(text)
    return own, untrusted


def _short(text: str) -> str:
    """Return the text in one line, without what is not seen, secrets of a program's output and sources masked."""
    line = " ".join(without_control_characters(text[: 4 * _LONGEST]).split())
    line = mask_secrets(line)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


Answer = TypeVar("Answer", RunAnswer, CompareAnswer, DoctorAnswer)


def text_of(answer: RunAnswer | CompareAnswer | DoctorAnswer) -> str:
    """Return the answer as one line of JSON, without what is empty."""
    return _as_json(asdict(answer))


def _as_json(answer: dict[str, Any]) -> str:
    return json.dumps({k: v for k, v in answer.items() if v or v == 0}, ensure_ascii=False)


def _fitted(answer: Answer, total: dict[str, int]) -> Answer:
    """Return the answer without the last rows that do not fit; `more` counts the missing ones of `total`."""
    while True:
        more = {name: left for name, n in total.items() if (left := n - len(getattr(answer, name)))}
        answer = replace(answer, more=more)
        longest = max(total, key=lambda name: len(getattr(answer, name)))
        if len(text_of(answer)) <= MAX_CHARACTERS or not getattr(answer, longest):
            return answer
        answer = replace(answer, **{longest: getattr(answer, longest)[:-1]})
