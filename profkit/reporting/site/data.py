"""What the pages' script draws and compares: `.js` files of workloads, and one of what all of them share.

A page that is opened as a file may load a script and no JSON; so each file is calls, with data alone in them. Every
text in them is escaped: nothing that a history holds can end a call. Small workloads share a file: a browser takes
milliseconds to open one, and the comparison needs all of them.

    profkitSite.share({title, commit, moments, commits, machines, outcomes, workloads})
    profkitSite.workload({id, name, runs, reasons, rows, series})

A moment is what two nights are told apart by: all runs of one night, or of one commit on one day. Runs are columns
(`at` moment, `m` minutes after its first run, `k` machine, `o` outcome, ...), where one number stands for a column in
which all are alike. A series refers to its runs by `rows`, a list of lists of indices.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import floor, isfinite, log10

from profkit.analysis.metrics import metric
from profkit.analysis.metrics.catalogue import nearest_metric
from profkit.backends import kernel_word
from profkit.core.formatting import shorten
from profkit.core.types import Entry, Json, Point, SeriesKey, SeriesSummary
from profkit.reporting.charts.axes import axis_unit
from profkit.reporting.charts.trend import CAUSES
from profkit.reporting.html.escape import island
from profkit.reporting.plain_text import without_control_characters
from profkit.reporting.site.runs import NightRuns, WorkloadRuns

# Significant digits of the smallest value of a series, and so of all: two of them have a ratio that is right to 0.02 %,
# where 0.1 % is shown.
FIGURES = 5
UNIT_LENGTH = 24
_EXACT = 2.0**53  # a double holds every whole number up to here
_SHOWN = 12  # characters of a machine's id

RunLink = Callable[[Entry], "str | None"]  # from a run to its page, relative to the pages of workloads


@dataclass
class Texts:
    """Texts by their number, each once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str | None) -> int:
        """Its number; -1 for none."""
        return -1 if text is None else self.numbers.setdefault(text, len(self.numbers))

    def column(self, texts: Sequence[str | None]) -> list[int]:
        """The number of each."""
        known = {text: self.number(text) for text in dict.fromkeys(texts)}
        return [known[text] for text in texts]

    def all(self) -> list[Json]:
        """In the order of their numbers."""
        return [without_control_characters(text) for text in self.numbers]


@dataclass(frozen=True)
class Shared:
    """What all files refer to: the moments, and texts."""

    moments: tuple[NightRuns, ...]
    commits: Texts = field(default_factory=Texts)
    machines: Texts = field(default_factory=Texts)
    outcomes: Texts = field(default_factory=Texts)

    def data(self, title: str, commit_url: str | None, workloads: list[Json]) -> Json:
        """Everything that a page needs before it knows its workload."""
        commits = [self.commits.number(moment.commit) for moment in self.moments]
        return {
            "title": title,
            "commit": commit_url,
            "moments": [
                [moment.minute, commit, _clean(moment.night or ""), len(moment.workloads)]
                for moment, commit in zip(self.moments, commits, strict=True)
            ],
            "commits": self.commits.all(),
            "machines": self.machines.all(),
            "outcomes": self.outcomes.all(),
            "workloads": workloads,
        }


def _clean(text: str) -> str:
    return without_control_characters(text)


# ---------------------------------------------------------------- one workload


def workload_data(
    name: str,
    page: str,
    series: Sequence[SeriesSummary],
    runs: WorkloadRuns,
    shared: Shared,
    link: RunLink,
) -> Json:
    """All series of a workload, and all of its runs."""
    reasons, rows = Texts(), Texts()
    lists: list[Json] = []
    found: list[Json] = []
    several = len({one.trend.series.key.backend for one in series}) > 1
    for one in series:
        points = [point.entry for point in one.trend.series.points]
        number = -1
        if points != runs.ids:
            at = [runs.places[point] for point in points]
            number = rows.number(",".join(map(str, at)))
            if number == len(lists):
                lists.append([*at])
        found.append({"row": number, **_series(one, reasons, several)})
    return {
        "id": page,
        "name": without_control_characters(name),
        "runs": _runs(runs, shared, reasons, link),
        "reasons": reasons.all(),
        "rows": lists,
        "series": found,
    }


def series_name(key: SeriesKey, *, several: bool = False) -> str:
    """What tells a series from the others of its workload: `time.median of gated_mlp, on cpu`."""
    scope = key.scope
    kind = kernel_word(key.backend) if scope.kind == "kernel" else scope.kind
    of = "" if scope.name in (None, key.workload) else f" of {kind} {scope.name}"
    more = f" ({scope.id})" if scope.id else ""
    where = f", on {key.backend}" if several and key.backend else ""
    return without_control_characters(f"{key.metric}{of}{more}{where}")


def short_unit(unit: str) -> str:
    """A unit as it stands beside a number: other tools may call one what they like."""
    return without_control_characters(shorten(unit, UNIT_LENGTH))


@lru_cache
def metric_title(name: str) -> str:
    """`Median time`; empty for a metric that the catalogue does not know."""
    return metric(name).title if nearest_metric(name) == name else ""


def _series(one: SeriesSummary, reasons: Texts, several: bool) -> dict[str, Json]:
    trend = one.trend
    key, points = trend.series.key, trend.series.points
    values = [point.value if isfinite(point.value) else None for point in points]
    exponent, numbers = quantise(values)
    sizes = sorted(abs(value) for value in values if value is not None)
    size = abs(one.level) if one.level else sizes[len(sizes) // 2] if sizes else 0.0
    unit = axis_unit(trend.series.unit, size)
    data: dict[str, Json] = {
        "n": series_name(key, several=several),
        "t": metric_title(key.metric),
        "u": [short_unit(unit.name), unit.factor],
        "b": trend.series.better,
        "e": exponent,
        "v": numbers,
        "seg": [
            [segment.first, CAUSES[segment.cause], without_control_characters(segment.reason)]
            for segment in trend.epochs
        ],
    }
    if one.gates:
        data["g"] = 1
    data |= _intervals(points, values, exponent)
    doubts: dict[str, Json] = {
        str(i): reasons.number(point.reason or "not valid")
        for i, point in enumerate(points)
        if not point.valid
    }
    figures = {"level": one.level, "before": one.before, "counts": one.counts}
    data |= {name: rounded(value) for name, value in figures.items() if value is not None and isfinite(value)}
    changes: list[Json] = [
        [change.index, rounded(change.before), rounded(change.after)] for change in trend.change_points
    ]
    notes: list[Json] = [without_control_characters(note) for note in trend.notes]
    optional: dict[str, Json] = {"x": doubts, "ch": changes, "notes": notes}
    return data | {name: value for name, value in optional.items() if value}


def _intervals(
    points: Sequence[Point], values: Sequence[float | None], exponent: int | None
) -> dict[str, Json]:
    """How far the interval reaches below and above each value, in its steps."""
    if exponent is None or not any(point.low is not None and point.high is not None for point in points):
        return {}
    scale = 10.0**-exponent
    below: list[Json] = []
    above: list[Json] = []
    for point, value in zip(points, values, strict=True):
        if value is None or point.low is None or point.high is None:
            below.append(None)
            above.append(None)
        else:
            below.append(round(min(_EXACT, (value - point.low) * scale)))
            above.append(round(min(_EXACT, (point.high - value) * scale)))
    return {"lo": below, "hi": above}


def quantise(values: Sequence[float | None]) -> tuple[int | None, list[Json]]:
    """The values as whole multiples of a power of ten, and its exponent: the smallest has `FIGURES` digits or more.

    Whole numbers stay what they are where they are no longer than that. Where the values reach over too many powers
    of ten the exponent is None, and each is a number of its own.

    >>> quantise([0.0041234567, None, 0.5])
    (-7, [41235, None, 5000000])
    """
    sizes = [abs(value) for value in values if value]
    if not sizes:
        return 0, [None if value is None else 0 for value in values]
    exponent = floor(log10(min(sizes))) - FIGURES + 1
    if exponent < 0 and all(value is None or value.is_integer() for value in map(_float, values)):
        exponent = 0
    if not -300 < exponent < 300 or max(sizes) / 10.0**exponent > _EXACT:
        return None, [rounded(value, FIGURES) for value in values]
    scale = 10.0**-exponent
    return exponent, [None if value is None else round(value * scale) for value in values]


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def rounded(value: float | None, figures: int = FIGURES + 1) -> float | None:
    """The value with so many significant digits."""
    return None if value is None else float(f"{value:.{figures}g}")


# ---------------------------------------------------------------- its runs


def _runs(runs: WorkloadRuns, shared: Shared, reasons: Texts, link: RunLink) -> dict[str, Json]:
    entries, moments = runs.entries, runs.moments
    data: dict[str, Json] = {
        "count": len(entries),
        "at": _steps([moment.number for moment in moments]),
        "m": _column([minute - moment.minute for minute, moment in zip(runs.minutes, moments, strict=True)]),
        "k": _column(_machines(entries, shared)),
        "o": _column(shared.outcomes.column([entry.outcome for entry in entries])),
    }
    commits = [entry.commit for entry in entries]
    if commits != [moment.commit for moment in moments]:
        data["c"] = _column(shared.commits.column(commits))
    if any(entry.dirty for entry in entries):
        data["d"] = _column([int(entry.dirty or 0) for entry in entries])
    if not all(entry.valid for entry in entries):
        data["x"] = {
            str(i): reasons.number(entry.reason or "not valid")
            for i, entry in enumerate(entries)
            if not entry.valid
        }
    links = [link(entry) for entry in entries]
    if any(links):
        data["l"] = _links(links)
    return data


def _machines(entries: Sequence[Entry], shared: Shared) -> list[int]:
    """The number of the machine of each run; runs that were read together share their list of features."""
    known: dict[tuple[str, int], int] = {}
    found = []
    for entry in entries:
        key = entry.machine, id(entry.features)
        number = known.get(key)
        if number is None:
            number = known[key] = shared.machines.number(machine_name(entry))
        found.append(number)
    return found


def machine_name(entry: Entry) -> str:
    """`abcdef012345 (NVIDIA H200, 132 SMs)`: the begin of its id, and what must match."""
    facts = [feature.value for feature in entry.features if feature.tier == "must" and feature.value]
    name = entry.machine[:_SHOWN] or "unknown"
    return f"{name} ({', '.join(facts[:3])})" if facts else name


def _links(links: Sequence[str | None]) -> Json:
    """What all begin with, what all end with, and of each what is between; null for a run without a page."""
    known = [each for each in links if each]
    # By characters is what is meant here, in paths too.
    first = os.path.commonprefix(known)  # noqa: RUF071
    last = os.path.commonprefix([each[len(first) :][::-1] for each in known])[::-1]  # noqa: RUF071
    middle: list[Json] = [each[len(first) : len(each) - len(last)] if each else None for each in links]
    return [first, last, middle]


def _column(numbers: list[int]) -> Json:
    """The numbers, or the one that all of them are."""
    return numbers[0] if len(set(numbers)) == 1 else [*numbers]


def _steps(numbers: Iterable[int]) -> Json:
    """Of each number how much it is more than the one before it; where that is the same for all, it and the first."""
    steps, before = [], 0
    for number in numbers:
        steps.append(number - before)
        before = number
    even = len(steps) > 1 and len(set(steps[1:])) == 1
    return {"from": steps[0], "step": steps[1]} if even else [*steps]


# ---------------------------------------------------------------- files


def call(function: str, data: Json) -> str:
    """One call of the pages' script, as a line of a `.js` file."""
    return f"profkitSite.{function}({island(data)});\n"


def hashed_name(stem: str, content: str, suffix: str) -> str:
    """A file's name that changes with its content: pages that were written before go on with their own files."""
    return f"{stem}-{hashlib.sha256(content.encode()).hexdigest()[:12]}.{suffix}"
