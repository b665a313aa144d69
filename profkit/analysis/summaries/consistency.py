"""Whether one report contradicts itself: readings that cannot be true together decide nothing, and it is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profkit.analysis.metrics.formula import consistency_checks
from profkit.core.formatting import figures, plural
from profkit.core.types import Reading, RunDocument, Scope

_MARK = "contradicts itself: "  # what a note of this room can be told by


def checked(document: RunDocument) -> RunDocument:
    """The document with its kernels' readings doubted where they contradict each other, and notes that say so.

    Checked is within one kernel and one artifact: comparing reports is another matter. Doing it twice changes nothing.
    """
    doubts: dict[tuple[Scope, str | None], dict[str, str]] = {}
    broken: dict[str, list[str]] = {}
    counts = _counts(document)
    for (scope, artifact, tool), readings in _together(document.readings).items():
        # What another artifact counted again is of another execution, so counters come in only where there is one.
        values = {**counts.get(scope, {}), **{r.metric: r.value for r in readings if r.value is not None}}
        for check in consistency_checks(tool):
            sides = check.sides(values)
            if sides is None:
                continue
            why = f"{check.says} do not agree ({_side(sides[0])} {_not(check.relation)} {_side(sides[1])})"
            found = doubts.setdefault((scope, artifact), {})
            for name in check.doubts:
                found.setdefault(name, why)
            broken.setdefault(check.says, []).append(scope.name or "?")

    def now(reading: Reading) -> Reading:
        if reading.scope.kind != "kernel" or reading.value is None:
            return reading
        doubt = doubts.get((reading.scope, reading.source.artifact), {}).get(reading.metric)
        return reading if reading.doubt == doubt else replace(reading, doubt=doubt)

    readings_now = tuple(now(reading) for reading in document.readings)
    kept = tuple(note for note in document.notes if _MARK not in note)
    return replace(document, readings=readings_now, notes=(*kept, *_notes(broken)))


def _together(readings: Sequence[Reading]) -> Mapping[tuple[Scope, str | None, str], list[Reading]]:
    found: dict[tuple[Scope, str | None, str], list[Reading]] = {}
    for reading in readings:
        if reading.scope.kind == "kernel" and reading.source.tool != "profkit":
            key = (reading.scope, reading.source.artifact, reading.source.tool)
            found.setdefault(key, []).append(reading)
    return found


def _counts(document: RunDocument) -> Mapping[Scope, Mapping[str, float]]:
    """The kernels' counters, where the readings of each kernel are of one artifact only."""
    artifacts: dict[Scope, set[str | None]] = {}
    for reading in document.readings:
        if reading.value is not None and reading.source.tool != "profkit":
            artifacts.setdefault(reading.scope, set()).add(reading.source.artifact)
    found: dict[Scope, dict[str, float]] = {}
    for counter in document.counters:
        one = len(artifacts.get(counter.scope, ())) == 1
        if one and counter.scope.kind == "kernel" and counter.value is not None:
            found.setdefault(counter.scope, {})[counter.name] = counter.value
    return found


def _side(value: float) -> str:
    return figures(value) if abs(value) < 1e6 else f"{value:.3g}"


def _not(relation: str) -> str:
    return "against" if relation == "==" else "is more than"


def _notes(broken: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"The report {_MARK}{says} do not agree in {plural(len(set(names)), 'kernel')} "
        f"({', '.join(dict.fromkeys(names[:3]))}{', ...' if len(set(names)) > 3 else ''}); "
        "these readings decide nothing"
        for says, names in broken.items()
    ]
