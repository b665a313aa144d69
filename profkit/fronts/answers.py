"""What an agent gets of a run or a comparison: few lines, each with its place, within what a context has room for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from profkit.core.types import Check, Comparison, HotSpot, Insight, Place
from profkit.profiling.api import Run
from profkit.reporting.facts import fact_text
from profkit.reporting.views.comparison.view import why_lines
from profkit.reporting.views.run_text import scope_name, time_line, unfinished_passes
from profkit.runtime.passes.secrets import hide_secrets
from profkit.runtime.passes.shown_command import MASK

MOST = 4500  # characters of an answer: 1,500 tokens, where one has three characters at least
PARTS = ("hot_spots", "insights", "verdicts", "readings")
_FIRST = {"hot_spots": 6, "insights": 3}  # rows of a run, where no part was asked for
_LEAST = 0.005  # of the wall time: a smaller hot spot is none
_LONGEST = 300  # characters of one text
_COLUMNS = ("metric", "target", "verdict", "value", "unit", "threshold", "scope_name", "quality", "reason")
Row: TypeAlias = dict[str, str | int | float | bool | None]
Rows: TypeAlias = list[Row]  # what is not known is not there


@dataclass(frozen=True)
class RunAnswer:
    """A run or a report. Shares are of the wall time (0 to 1); `at_most` is the share of the time `of` to be won."""

    id: str  # what `summarize`, `check` and `compare` take as its path
    name: str
    state: str
    time: str
    not_measured: list[str]  # passes that did not run or failed, and why
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
    why: list[str]
    fix: str | None
    changes: Rows
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class DoctorAnswer:
    """What works here; and what is limited, missing or refused, with the line that fixes it."""

    working: list[str]
    checks: Rows
    more: dict[str, int] = field(default_factory=dict)


def of_run(run: Run, id: str, part: str | None = None, start: int = 0) -> RunAnswer:
    """A run in short, or the rows of one `part` from `start` on."""
    document = run.document
    rows = {
        "hot_spots": [_spot(spot) for spot in document.hot_spots if spot.share >= _LEAST],
        "insights": list(map(_insight, document.insights)),
        "verdicts": list(map(_columns, run.verdicts())),
        "readings": [_columns(row) for row in run.rows() if row["value"] is not None],
    }
    shown: dict[str, Any] = (
        {part: rows[part][start:]} if part else {name: rows[name][:n] for name, n in _FIRST.items()}
    )
    left = {part: len(shown[part])} if part else {name: len(items) for name, items in rows.items()}
    gone = [_short(f"{one.name}: {fact_text(one.reason)}") for one in unfinished_passes(document)]
    answer = RunAnswer(id, document.name, document.state, time_line(document) or "", gone)
    return _fitted(replace(answer, **shown), left)


def of_comparison(found: Comparison) -> CompareAnswer:
    """Outcome, reason and changes of two versions or runs."""
    changes = [
        _row(
            _of(change, "metric", "word", "course", "unit", "ratio", "low", "high"),
            {"scope_name": scope_name(change.scope) if change.scope.name else None},
            {"baseline": change.baseline.value, "candidate": change.candidate.value},
        )
        for change in found.changes
    ]
    why = [_short(line) for line in why_lines(found)] if found.outcome not in ("same", "ambiguous") else []
    fix = fact_text(found.fix) or None
    return _fitted(
        CompareAnswer(found.outcome, fact_text(found.why), why, fix, changes), {"changes": len(changes)}
    )


def of_checks(checks: Sequence[Check]) -> DoctorAnswer:
    """What the doctor found."""
    rows = [_row(_of(check, "name", "state", "detail", "fix")) for check in checks if check.state != "ok"]
    return _fitted(DoctorAnswer([c.name for c in checks if c.state == "ok"], rows), {"checks": len(rows)})


def _spot(spot: HotSpot) -> Row:
    under = spot.under
    code: Row = {"code": spot.code.text if spot.code is not None else None}
    called: Row = _of(under, "name", "calls") if under is not None else {"calls": spot.calls}
    return _row({"share": round(spot.share, 3), "kind": spot.kind}, _place(spot.where), code, called)


def _insight(insight: Insight) -> Row:
    gain = insight.gain
    bound: Row = {"at_most": round(gain.at_most, 3), "of": gain.of} if gain is not None else {}
    return _row(_of(insight, "title", "evidence", "change"), _place(insight.where), bound)


def _place(where: Place) -> Row:
    return {"file": where.file, "line": where.line, "function": where.function or where.kernel}


def _columns(row: Row) -> Row:
    return _row({name: row[name] for name in _COLUMNS if name in row})


def _of(item: object, *names: str) -> Row:
    return {name: getattr(item, name) for name in names}


def _row(*parts: Row) -> Row:
    cells = {name: cell for part in parts for name, cell in part.items() if cell is not None}
    return {name: _short(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}


def _short(text: str) -> str:
    line = hide_secrets(
        " ".join(text[: 4 * _LONGEST].split()), lambda _: MASK
    )  # of a program's output and sources, too
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


Answer = TypeVar("Answer", RunAnswer, CompareAnswer, DoctorAnswer)


def text_of(answer: RunAnswer | CompareAnswer | DoctorAnswer) -> str:
    """The answer as one line of JSON, without what is empty."""
    return json.dumps({k: v for k, v in asdict(answer).items() if v or v == 0}, ensure_ascii=False)


def _fitted(answer: Answer, total: dict[str, int]) -> Answer:
    """Without the last rows, as many as do not fit; `more` counts what of `total` is not told."""
    while True:
        more = {name: left for name, n in total.items() if (left := n - len(getattr(answer, name)))}
        answer = replace(answer, more=more)
        longest = max(total, key=lambda name: len(getattr(answer, name)))
        if len(text_of(answer)) <= MOST or not getattr(answer, longest):
            return answer
        answer = replace(answer, **{longest: getattr(answer, longest)[:-1]})
