"""Costs by source line of the costliest functions, from a callgrind file with line positions.

A line stands in the file that it was written in: of code that the compiler moved into another function, that is the
file and line of the inlined code (callgrind's `fi=` and `fe=`), under the function that holds it now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from profkit.core.errors import UnreadableReport
from profkit.core.types import Hotspot, Profile
from profkit.profilers.valgrind.callgrind import CallgrindFunction, walk_costs

COSTLIEST = 3  # functions by each event whose lines are read, and
MOST_LINES = 5  # lines by each event that are kept

SourceLine = tuple[CallgrindFunction, str, int]  # function, file of the line, line


def read_line_costs(
    paths: Iterable[Path], functions: Collection[CallgrindFunction], events: Sequence[str]
) -> Profile | None:
    """The costliest lines of `functions`, over all `paths`; None where no file knows lines.

    Raises UnreadableReport where a file breaks the grammar.
    """
    costs: dict[SourceLine, list[int]] = {}
    for path in paths:
        _add_costs(path, functions, events, costs)
    if not costs:
        return None
    kept: dict[SourceLine, None] = {}
    for column in range(len(events)):
        best = sorted(costs, key=lambda place: costs[place][column], reverse=True)[:MOST_LINES]
        kept |= dict.fromkeys(place for place in best if costs[place][column] > 0)
    hotspots = tuple(
        Hotspot(
            function.name,
            float(costs[function, file, line][0]),
            file=file,
            line=line,
            library=function.library or None,
            counters={
                event: float(cost) for event, cost in zip(events, costs[function, file, line], strict=True)
            },
        )
        for function, file, line in sorted(kept, key=lambda place: (-costs[place][0], place))
    )
    total = float(sum(sums[0] for sums in costs.values()))
    return Profile(
        "source lines of the costliest functions", "instructions", total, hotspots, "counted-lines"
    )


def _add_costs(
    path: Path,
    functions: Collection[CallgrindFunction],
    events: Sequence[str],
    costs: dict[SourceLine, list[int]],
) -> None:
    columns = {event: column for column, event in enumerate(events)}
    for line in walk_costs(path, "line"):
        if line.function not in functions or line.position <= 0 or line.file in ("", "???"):
            continue
        if unknown := [event for event in line.events if event not in columns]:
            raise UnreadableReport(f"{path} has parts with other events: {', '.join(unknown)[:80]}")
        sums = costs.setdefault((line.function, line.file, line.position), [0] * len(events))
        try:
            for event, cost in zip(line.events, line.costs, strict=False):
                sums[columns[event]] += int(cost)
        except ValueError as error:
            raise UnreadableReport(f"{path} is no sound callgrind file: {error}") from error
