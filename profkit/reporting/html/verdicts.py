"""The verdicts: the three things to do first, then every target with its reason, those of single kernels folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.backends import backend_named
from profkit.core.types import Reading, RunDocument, Scope, Verdict
from profkit.reporting.html.part import Extras, Part
from profkit.reporting.html.templates import filled
from profkit.reporting.order import SIGNS, WORDS, actions, common_causes, counts, gain, named, worst_first

PARTS_OF_RUN = ("kernel", "function")
MOST = 300  # verdicts on single kernels or functions that the page shows; the rest stands in run.json


@dataclass(frozen=True)
class Row:
    """One verdict as it is shown, or several that one cause left unknown; `value` is finished HTML."""

    word: str
    sign: str
    told: str
    targets: tuple[str, ...]
    threshold: str
    value: str
    reason: str
    scope: str
    advice: tuple[str, ...]


def part(document: RunDocument, extras: Extras) -> Part | None:
    """What to do first, and all verdicts. None where nothing was judged."""
    if not document.verdicts:
        return None
    known = _by_place(document)
    whole = [v for v in document.verdicts if v.scope.kind not in PARTS_OF_RUN]
    inner = [v for v in document.verdicts if v.scope.kind in PARTS_OF_RUN]
    body = filled(
        "verdicts.html.j2",
        actions=[(a, SIGNS[a.verdict], WORDS[a.verdict]) for a in actions(document)],
        rows=_rows(whole, known, extras),
        inner=[_row(v, known, extras) for v in worst_first(inner)[:MOST]],
        kind=f"{backend_named(document.backend).work}s",
        counted=counts(inner),
        left=max(0, len(inner) - MOST),
    )
    return Part("verdicts", "Verdicts", body, headline=counts(whole) or None)


def _by_place(document: RunDocument) -> dict[tuple[str, Scope], Reading]:
    """Readings by metric and scope: those of summaries too, which were made of the others."""
    found: dict[tuple[str, Scope], Reading] = {}
    told: Sequence[Reading] = [r for s in document.summaries for r in s.readings]
    for reading in (*document.readings, *told):
        key = (reading.metric, reading.scope)
        if key not in found or found[key].value is None:
            found[key] = reading
    return found


def _rows(verdicts: Sequence[Verdict], known: dict[tuple[str, Scope], Reading], extras: Extras) -> list[Row]:
    """A row for each verdict, worst first; those that one cause left unknown share one."""
    causes = common_causes(verdicts)
    shared = {id(one): cause for cause, same in causes.items() for one in same}
    rows: list[Row] = []
    for verdict in worst_first(verdicts):
        cause = shared.get(id(verdict))
        row = _row(verdict, known, extras)
        if cause is None:
            rows.append(row)
        elif causes[cause][0] is verdict:
            targets = tuple(one.target for one in causes[cause])
            rows.append(replace(row, targets=targets, threshold="", value="", reason=cause))
    return rows


def _row(verdict: Verdict, known: dict[tuple[str, Scope], Reading], extras: Extras) -> Row:
    reading = known.get((verdict.metric, verdict.scope))
    value = ""
    if reading is not None and (verdict.value is None or reading.value == verdict.value):
        value = extras.sources.link(reading)
    elif verdict.value is not None:
        value = extras.sources.of_verdict(verdict)
    return Row(
        word=verdict.verdict,
        sign=SIGNS[verdict.verdict],
        told=WORDS[verdict.verdict],
        targets=(verdict.target,),
        threshold=verdict.threshold,
        value=value,
        reason=verdict.reason + gain(verdict),
        scope=named(verdict.scope) if verdict.scope.kind in PARTS_OF_RUN else "",
        advice=verdict.advice if verdict.verdict in ("fail", "unknown") else (),
    )
