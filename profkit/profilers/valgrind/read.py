"""Reads callgrind files: counters of the run and its regions, a profile by function, the costliest lines."""

from __future__ import annotations

import heapq
import re
import shlex
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from profkit.core.errors import UnreadableReport
from profkit.core.types import RUN, Counter, Fact, Hotspot, Profile, Report, Scope
from profkit.profilers.valgrind.callgrind import CallgrindDump, CallgrindFunction, parse_dumps, walk_costs

Node = TypeVar("Node", bound=Hashable)
HOTTEST = 300  # functions a profile keeps by its first event, and
HOTTEST_ELSE = 30  # by every other event: where the misses are may not be where the instructions are
_WRAPPED = 1 << 63  # callgrind subtracts unsigned; beyond this a cost is an underflow and no cost
_GEOMETRY = re.compile(r"(I1|D1|LL|L2) cache:\s*(.*)")
_REGION = re.compile(r"Client Request:\s*(.*?)(?: \[entries (\d{1,18})(, cold)?\])?$")
_UNITS = {"Ir": "instructions"}


def inclusive_costs(
    own: Mapping[Node, int], calls: Mapping[tuple[Node, Node], int], total: int
) -> dict[Node, int]:
    """Return each function's cost with what it called.

    It is `total` at most: functions that call each other would add up to more.
    """
    costs = dict(own)
    for (caller, called), cost in calls.items():
        costs.setdefault(called, 0)
        costs[caller] = costs.get(caller, 0) + (cost if caller != called else 0)
    return {node: min(cost, total) for node, cost in costs.items()}


def looks_like_callgrind(head: bytes) -> bool:
    """Return whether `head` begins a callgrind file: it has events, and functions as `fn=`."""
    if b"\0" in head[:4096]:
        return False
    if head.startswith(b"# callgrind format"):
        return True
    lines = head.splitlines()
    events = any(line.startswith(b"events:") for line in lines)
    wrote = any(line.startswith((b"creator:", b"positions:", b"version:")) for line in lines)
    functions = any(line.startswith(b"fn=") for line in lines)
    return events and (wrote or (functions and not lines[0].startswith((b"desc:", b"cmd:"))))


def read_callgrind(path: Path, *more: Path) -> Report:
    """Read the callgrind file at `path`, and add those of the run's other processes, `more`.

    Counters have the file's own event names (`Ir`, `DLmr`, or whatever the writer counted), for the whole run and
    for each region that a client request names. Sums are made from the cost lines: the `summary:` line is wrong
    after a client request (0, or an underflow near 2**64). Raises UnreadableReport for an invalid callgrind file.
    """
    dumps: list[CallgrindDump] = []
    warnings: list[Fact] = []
    for file in (path, *more):
        of_file = parse_dumps(file)
        warnings += _check_totals(file, of_file)
        dumps += of_file
    doubt = next(iter(warnings), None)
    if "Ir" not in (events := _event_names(dumps)):
        raise UnreadableReport(
            f"{path} counts {', '.join(events)[:80]} but no instructions: valgrind did not write it",
            f"kcachegrind {shlex.quote(str(path))}   (if pyprof2calltree wrote it: profkit summarize the pstats file)",
        )
    report = _report_of(dumps, warnings, doubt)
    lines = read_line_costs((path, *more), _costliest(dumps), events)
    return replace(report, profiles=(*report.profiles, lines)) if lines is not None else report


def _costliest(dumps: Sequence[CallgrindDump]) -> set[CallgrindFunction]:
    """Return the functions with most of any event, in any dump."""
    return {
        function
        for dump in dumps
        for column in range(len(dump.events))
        for function in heapq.nlargest(COSTLIEST, dump.own, key=lambda candidate: dump.own[candidate][column])
    }


def _event_names(dumps: Sequence[CallgrindDump]) -> list[str]:
    return list(dict.fromkeys(event for dump in dumps for event in dump.events))


def _report_of(dumps: list[CallgrindDump], warnings: Sequence[Fact], doubt: Fact | None) -> Report:
    """Build one report of several dumps; `doubt` is what is wrong with a sum of theirs."""
    events = _event_names(dumps)
    own: dict[CallgrindFunction, list[int]] = {}
    calls: dict[tuple[CallgrindFunction, CallgrindFunction], list[int]] = {}
    for dump in dumps:
        order = [events.index(event) for event in dump.events]
        for function, costs in dump.own.items():
            sums = own.setdefault(function, [0] * len(events))
            for index, cost in zip(order, costs, strict=True):
                sums[index] += cost
        for pair, (count, cost) in dump.calls.items():
            if order[0] == 0:  # another dump's first event may be another one
                sums = calls.setdefault(pair, [0, 0])
                sums[0] += count
                sums[1] += cost
    _check_possible(own, events)
    regions = _by_region(dumps)
    counters = _counters(events, dumps, RUN)
    for region, of_region in regions.items():
        counters += _counters(events, of_region, Scope("region", region))
    notes = list(warnings)
    if not any(counter.value for counter in counters):
        notes.append(Fact("nothing-collected"))
    creator = dumps[0].header.get("creator", "")
    version = re.search(r"\d+(\.\d+)+\S*", creator)
    return Report(
        tool="valgrind",
        format="callgrind",
        version=version[0] if version else None,
        facts=_facts(dumps, events),
        counters=tuple(replace(counter, doubt=doubt) for counter in counters),
        profiles=(replace(_cost_profile(events, own, calls, countable=not regions), doubt=doubt),),
        warnings=tuple(notes),
    )


def _check_possible(own: dict[CallgrindFunction, list[int]], events: list[str]) -> None:
    for function, costs in own.items():
        for event, cost in zip(events, costs, strict=True):
            if not 0 <= cost < _WRAPPED:
                raise UnreadableReport(
                    f"{function.name[:60] or 'the file'} has {str(cost)[:24]} {event}, which no run can have: "
                    "an underflow"
                )


def _counters(events: list[str], dumps: list[CallgrindDump], scope: Scope) -> list[Counter]:
    sums = dict.fromkeys(events, 0)
    for dump in dumps:
        for event, cost in zip(dump.events, _own_sums(dump), strict=True):
            sums[event] += cost
    return [Counter(event, float(value), "measured", scope=scope) for event, value in sums.items()]


def _own_sums(dump: CallgrindDump) -> list[int]:
    """Return the own costs of all functions, by event."""
    return [sum(column) for column in zip(*dump.own.values(), strict=True)] or [0] * len(dump.events)


def _check_totals(path: Path, dumps: list[CallgrindDump]) -> Iterable[Fact]:
    """Yield what is doubtful about the file. Raises UnreadableReport where it was cut short."""
    for number, dump in enumerate(dumps, 1):
        by_callgrind = dumps[0].header.get("creator", "").startswith("callgrind")
        if by_callgrind and dump.totals is None:
            raise UnreadableReport(
                f"{path} was cut short: dump {number} has no totals line",
                "record it again, and let the program end by itself",
            )
        if dump.totals is None:
            continue
        sums = _own_sums(dump)
        totals = (*dump.totals, *[0] * len(sums))  # zeros at the end are left out
        for event, ours, theirs in zip(dump.events, sums, totals, strict=False):
            if 1000 * abs(ours - theirs) > max(ours, theirs):
                yield Fact.of("other-total", dump=number, event=event, total=str(theirs), sum=str(ours))
                break


def _by_region(dumps: list[CallgrindDump]) -> dict[str, list[CallgrindDump]]:
    regions: dict[str, list[CallgrindDump]] = {}
    for dump in dumps:
        if (matched := _find_trigger(dump)) is not None and matched[1]:
            regions.setdefault(matched[1], []).append(dump)
    return regions


def _find_trigger(dump: CallgrindDump) -> re.Match[str] | None:
    return next((m for d in dump.descriptions if (m := _REGION.search(d)) is not None), None)


def _facts(dumps: list[CallgrindDump], events: list[str]) -> dict[str, str]:
    header = dumps[0].header
    facts = {"events": " ".join(events), "dumps": str(len(dumps)), "positions": str(dumps[0].positions)}
    for key, fact in (("creator", "creator"), ("cmd", "command"), ("pid", "pid")):
        if key in header:
            facts[fact] = header[key]
    for description in dumps[0].descriptions:
        if (matched := _GEOMETRY.match(description)) is not None and matched[2]:
            facts[f"{matched[1]} cache"] = matched[2]
    regions = [trigger for dump in dumps if (trigger := _find_trigger(dump)) is not None]
    if regions:
        facts["regions"] = ", ".join(dict.fromkeys(trigger[1] for trigger in regions))
    entries = sum(int(trigger[2]) for trigger in regions if trigger[2])
    if entries:
        facts["entries"] = str(entries)
        facts["caches at first entry"] = "cold" if any(trigger[3] for trigger in regions) else "warm"
    return facts


def _cost_profile(
    events: list[str],
    own: dict[CallgrindFunction, list[int]],
    calls: dict[tuple[CallgrindFunction, CallgrindFunction], list[int]],
    countable: bool,
) -> Profile:
    """Return the profile by the first event.

    Callgrind counts calls also while it collects nothing, so the calls of a region are unknown.
    """
    total = sum(costs[0] for costs in own.values())
    edges = {pair: costs[1] for pair, costs in calls.items() if 0 <= costs[1] < _WRAPPED}
    inclusive = inclusive_costs({f: c[0] for f, c in own.items()}, edges, total)
    called: dict[CallgrindFunction, int] = {}
    if countable:
        for (_, function), costs in calls.items():
            called[function] = called.get(function, 0) + costs[0]
    hotspots = tuple(
        Hotspot(
            function=function.name,
            own=float(own[function][0]) if function in own else 0.0,
            total=float(inclusive[function]),
            calls=count if (count := called.get(function)) is not None and count < _WRAPPED else None,
            file=_known_name(function.file),
            library=_known_name(function.library),
            counters={e: float(c) for e, c in zip(events, own[function], strict=True)}
            if function in own
            else {},
        )
        for function in _hottest_functions(own, inclusive, len(events))
    )
    unit = _UNITS.get(events[0], events[0])
    return Profile(f"functions by {unit}", unit, float(total), hotspots, "counted-functions")


def _hottest_functions(
    own: dict[CallgrindFunction, list[int]], inclusive: dict[CallgrindFunction, int], width: int
) -> list[CallgrindFunction]:
    """Return the functions worth keeping, by own cost of the first event."""
    hottest: dict[CallgrindFunction, None] = {}
    for column in range(width):
        best = sorted(own, key=lambda f: own[f][column], reverse=True)
        hottest |= dict.fromkeys(f for f in best[: HOTTEST_ELSE if column else HOTTEST] if own[f][column] > 0)
    hottest |= dict.fromkeys(sorted(inclusive, key=lambda f: inclusive[f], reverse=True)[:HOTTEST_ELSE])
    return sorted(
        hottest, key=lambda f: (-(own[f][0] if f in own else 0), -inclusive[f], f.name, f.file, f.library)
    )


def _known_name(name: str) -> str | None:
    return name if name and name != "???" else None


def read_callgrind_with_mix(path: Path) -> Report:
    """Read a callgrind file, with its instructions by kind if it has addresses and their object files."""
    from profkit.profilers.valgrind.instructions import instruction_mix

    report = read_callgrind(path)
    mix = instruction_mix(path)
    if mix is None:
        return report
    doubt = report.profiles[0].doubt
    mixed = (replace(counter, doubt=doubt) for counter in mix.whole.counters())
    return replace(report, counters=(*report.counters, *mixed), warnings=(*report.warnings, *mix.notes))


COSTLIEST = 3  # functions by each event whose lines are read, and
MAX_LINES = 5  # lines by each event that are kept

SourceLine = tuple[CallgrindFunction, str, int]  # function, file of the line, line


def read_line_costs(
    paths: Iterable[Path], functions: Collection[CallgrindFunction], events: Sequence[str]
) -> Profile | None:
    """Return the costliest lines of `functions`, over all `paths`; None where no file knows lines.

    Raises UnreadableReport where a file breaks the grammar.
    """
    costs: dict[SourceLine, list[int]] = {}
    for path in paths:
        _add_costs(path, functions, events, costs)
    if not costs:
        return None
    costliest: dict[SourceLine, None] = {}
    for column in range(len(events)):
        best = sorted(costs, key=lambda place: costs[place][column], reverse=True)[:MAX_LINES]
        costliest |= dict.fromkeys(place for place in best if costs[place][column] > 0)
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
        for function, file, line in sorted(costliest, key=lambda place: (-costs[place][0], place))
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
            raise UnreadableReport(f"{path} is not a valid callgrind file: {error}") from error
