"""Sums up rows of `perf stat`, however they were printed, into counters with their states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from profkit.core.errors import UnreadableReport
from profkit.core.types import RUN, Counter, CounterState, Fact, Scope

_MODIFIERS = re.compile(r"(?P<name>.+):(?P<letters>[ukhIGHpPSDWeb]+)\Z")
_WITH_PMU = re.compile(r"(?P<pmu>[A-Za-z0-9_.\-]+)/(?P<event>[^/]*)/(?P<letters>[ukhIGHpPSDWeb]*)\Z")
# `cas_count_read [uncore_imc_3]`: perf stat --no-merge.
_BOXED = re.compile(r"(?P<name>\S.*?) \[[^\]]+\]\Z")
_NAMED = re.compile(r"(?:^|,)name=(?P<quote>['\"]?)(?P<name>[^,'\"]+)(?P=quote)")
# A core PMU is one of several kinds of core; other PMUs (memory controllers, caches) are the machine's parts.
_CORE_PMU = re.compile(r"(cpu_(core|atom|lowpower)|armv[89]_\w+|apple_\w+_pmu)\Z")
# What profkit's own event tables put before a name, since `name=` hides the PMU that perf would print.
_CORE_PREFIX = re.compile(r"(?P<pmu>cpu_(core|atom|lowpower))__(?P<name>.+)\Z")
# Their events say nothing without the PMU's name; energy-pkg is clear enough.
_KEEP_PMU = ("cstate_core", "cstate_pkg", "msr")


@dataclass(frozen=True)
class EventName:
    """`name` as formulas know it, `pmu` of a hybrid part, `user` where only user space was counted."""

    name: str
    pmu: str | None = None
    user: bool = False


@lru_cache(maxsize=4096)
def split_name(printed: str) -> EventName:
    """Split an event as perf prints it into name, PMU and modifiers."""
    text = printed.strip()
    if match := _BOXED.match(text):
        text = match["name"]
    letters = ""
    pmu: str | None = None
    if match := _WITH_PMU.match(text):
        letters, event = match["letters"], match["event"]
        if named := _NAMED.search(event):
            event = named["name"]
        if _CORE_PMU.match(match["pmu"]):
            pmu = match["pmu"]
        if "=" in event or not event or match["pmu"] in _KEEP_PMU:
            text = f"{match['pmu']}/{event}/" if pmu is None else event or text
        else:
            text = event
    elif match := _MODIFIERS.match(text):
        text, letters = match["name"], match["letters"]
    if match := _CORE_PREFIX.match(text):
        text, pmu = match["name"], match["pmu"]
    # The kernel's part alone is another quantity and keeps its letter; both rings together are the event.
    where = {letter for letter in letters if letter in "ukhGH"}
    if where and where != {"u"} and not where >= {"u", "k"}:
        text = f"{text}:{''.join(sorted(where))}"
    return EventName(text, pmu, where == {"u"})


# Whatever ran has executed instructions and branches and touched its first-level cache. cache-references,
# cache-misses and stalled-cycles are here because virtual machines and old AMD parts program them, report
# them as running, and count 0 (seen on a cloud VM and on an AMD E-series). A raw code (r4f2e) is in the list
# because a hypervisor that does not know it counts 0 too. task-clock is not: a task may sleep through a
# window; but the window itself has a length, so duration_time is (it reads 0 next to other events on a Zen 5
# with perf 7.2).
_NEVER_ZERO = re.compile(
    r"(cpu[-_])?cycles|ref-cycles|bus-cycles|instructions|inst_retired(\..*)?|branch(es|-instructions|-misses)|"
    r"br_retired|ex_ret_brn|cache-(references|misses)|stalled-cycles-(frontend|backend)|"
    r"l1-[di]cache-(loads|load-misses|stores|store-misses)|l1d_cache(_refill)?|ls_dispatch\..*|"
    r"duration_time|r[0-9a-f]{1,16}",
    re.IGNORECASE,
)


def cannot_be_zero(name: str) -> bool:
    """Return whether a count of 0 at more than 0 % running is a hard zero.

    `name` is without modifiers and PMU.
    """
    return _NEVER_ZERO.fullmatch(name) is not None


# Rows of one interval that are remembered, to tell a second count of an event from a row of another CPU. A
# file with more rows in one interval has threads by the hundred thousand and is only added up.
_REMEMBERED = 200_000
# perf itself lists some ten thousand; a file with more names of events is not of perf's making.
_MAX_EVENTS = 50_000
# Without the right to count in the kernel perf prints 0 for these, as if it had counted.
_KERNEL_DOES_IT = ("context-switches", "cs", "cpu-migrations", "migrations")


class StatRow(NamedTuple):
    """One line of one event. `value` is None where perf printed a state instead, named in `state`.

    `runtime` in ns and `percent` (0..100, truncated by perf to whole percent) are None where not printed.
    """

    event: str
    value: float | None
    state: CounterState
    unit: str = ""
    runtime: float | None = None
    percent: float | None = None
    interval: str | None = None
    aggregate: str | None = None
    cgroup: str | None = None
    printed: str = ""  # of a text for people the digits: without a value they are no number that perf prints


@dataclass(slots=True)
class _EventSum:
    """The sum of one event's rows so far; the numbers count its rows by state."""

    value: float = 0.0
    runtime: float = 0.0
    enabled: float = 0.0
    counted: int = 0
    not_counted: int = 0
    not_supported: int = 0
    starved: int = 0
    unit: str = ""
    user: bool = False
    unclear: str = ""  # digits of a row that are no number which perf prints, or may be two

    def add(self, row: StatRow) -> None:
        self.unit = self.unit or row.unit
        if row.printed and row.value is None:
            self.unclear = row.printed
        if row.value is None:
            if row.state == "not-supported":
                self.not_supported += 1
            else:
                self.not_counted += 1
                self.starved += row.percent == 0
            return
        self.counted += 1
        self.value += row.value
        if row.runtime is not None and row.percent:
            self.runtime += row.runtime
            self.enabled += row.runtime * 100.0 / row.percent


class CounterSums:
    """Sums up rows in the order of the file; memory grows with the number of events and not of rows."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str | None, int], _EventSum] = {}
        self._seen: dict[tuple[str | None, str | None, str], int] = {}
        self._interval: str | None = None
        self._rows_in_interval = 0
        self._rows_in_first = 0
        self.rows = 0
        self.intervals = 0

    def add(self, row: StatRow) -> None:
        """Add one row. Raises UnreadableReport for more events than a report of perf stat can have."""
        self.rows += 1
        if row.interval != self._interval:
            self._interval = row.interval
            self.intervals += 1
            self._rows_in_first = self._rows_in_first or self._rows_in_interval
            self._rows_in_interval = 0
            self._seen.clear()
        self._rows_in_interval += 1
        place = (row.aggregate, row.cgroup, row.event)
        instance = self._seen.get(place, 0)
        if len(self._seen) < _REMEMBERED:
            self._seen[place] = instance + 1
        key = (row.event, row.cgroup, instance)
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= _MAX_EVENTS:
                raise UnreadableReport(f"more than {_MAX_EVENTS} different events: not a report of perf stat")
            entry = self._entries[key] = _EventSum()
        entry.add(row)

    def finish(self) -> tuple[tuple[Counter, ...], tuple[Fact, ...], Mapping[str, str]]:
        """Return counters, warnings and facts of all rows that were added."""
        warnings: list[Fact] = []
        names = {event: split_name(event) for event, _, _ in self._entries}
        names = _keep_apart(names)
        cgroups = {cgroup for _, cgroup, _ in self._entries if cgroup is not None}
        references = self._references()
        merged: dict[tuple[str, str | None, str | None], _EventSum] = {}
        for (event, cgroup, instance), entry in self._entries.items():
            name = names[event]
            entry.user = name.user
            key = (name.name, name.pmu, cgroup)
            if instance:
                warnings += _second_count(name.name, merged.get(key), entry)
                if (earlier := merged.get(key)) is not None and _running_share(earlier) >= _running_share(
                    entry
                ):
                    continue
                merged[key] = entry
            elif key in merged:
                _add_sums(merged[key], entry)
            else:
                merged[key] = entry
        counters = tuple(
            _counter(name, pmu, entry, references, Scope("run", cgroup) if len(cgroups) > 1 else RUN)
            for (name, pmu, cgroup), entry in merged.items()
        )
        if self.intervals > 1 and self._rows_in_interval < self._rows_in_first:
            warnings.append(Fact("last-interval-cut"))
        if len(cgroups) > 1:
            warnings.append(Fact.of("cgroups-apart", count=len(cgroups)))
        return counters, tuple(dict.fromkeys(warnings)), self._facts(names, cgroups)

    def _references(self) -> list[float]:
        """Return the run times of events that were on a counter all the time, longest first."""
        return sorted(
            {e.runtime for e in self._entries.values() if _running_share(e) >= 1.0 and e.runtime},
            reverse=True,
        )

    def _facts(self, names: Mapping[str, EventName], cgroups: set[str]) -> dict[str, str]:
        facts: dict[str, str] = {}
        if any(name.user for name in names.values()):
            facts["space"] = "user only"
        if self.intervals > 1:
            facts["intervals"] = str(self.intervals)
        if len(cgroups) == 1:
            facts["cgroup"] = next(iter(cgroups))
        return facts


def _running_share(entry: _EventSum) -> float:
    """Return the part of the time on a counter by perf's percentages (0..1); 1 where they are not printed."""
    if entry.enabled:
        return entry.runtime / entry.enabled
    return 1.0 if entry.counted else 0.0


# What is counted one by one, so that a part of one is none; other events may have a scale.
_WHOLE = re.compile(
    r"((page|minor|major|alignment|emulation)-)?faults|context-switches|cs|(cpu-)?migrations", re.IGNORECASE
)
_CLOCKS = ("task-clock", "cpu-clock")
_CLOCK_UNITS = {"msec": 1e6, "ns": 1.0}  # ns of each unit that perf's versions have printed a clock in


def _fault(name: str, entry: _EventSum) -> Fact | None:
    """Return why the printed value is no count of this event; None where it is one."""
    if entry.unclear:
        return Fact.of("unclear-number", said=entry.unclear)
    whole = _WHOLE.fullmatch(name) or (cannot_be_zero(name) and name != "duration_time")
    if whole and not entry.unit and entry.value != int(entry.value):
        return Fact.of("not-whole", value=entry.value)
    if name in _CLOCKS and not entry.unit and entry.value:
        return Fact.of("unit-unknown", unit="")
    return None


def _clock_unit(entry: _EventSum) -> str:
    """Return the unit that perf before 4.18 does not print.

    It is the one in which the clock is as long as the time that it ran; "" where none fits.
    """
    fits = (
        unit
        for unit, ns in _CLOCK_UNITS.items()
        if abs(entry.value * ns - entry.runtime) < 0.5 * entry.runtime
    )
    return next(fits, "")


def _counter(name: str, pmu: str | None, entry: _EventSum, references: list[float], scope: Scope) -> Counter:
    state: CounterState
    if name in _CLOCKS:
        entry.unit = entry.unit or _clock_unit(entry)
    if (fault := _fault(name, entry)) is not None:
        return Counter(name, None, "not-counted", entry.unit, scope=scope, pmu=pmu, reason=fault)
    if entry.counted == 0:
        state = "not-supported" if entry.not_supported and not entry.not_counted else "not-counted"
        reason = None if state == "not-supported" else Fact("never-on-a-counter")
        return Counter(name, None, state, entry.unit, scope=scope, pmu=pmu, reason=reason)
    if entry.value == 0 and cannot_be_zero(name):
        reason = Fact("cannot-be-zero")
        return Counter(name, None, "hard-zero", entry.unit, scope=scope, pmu=pmu, reason=reason)
    if entry.value == 0 and entry.user and name in _KERNEL_DOES_IT:
        reason = Fact("happens-in-the-kernel")
        return Counter(name, None, "not-counted", entry.unit, scope=scope, pmu=pmu, reason=reason)
    share = _counted_share(entry, references)
    state = "measured" if share >= 1.0 else "multiplexed"
    return Counter(name, entry.value, state, entry.unit, share=share, scope=scope, pmu=pmu)


def _counted_share(entry: _EventSum, references: list[float]) -> float:
    """Return the part of the time on a counter (0..1), finer than perf's percentage if possible.

    perf truncates to whole percent, so a run time over that of an event which was always on is better where both
    agree. An event that found no counter in some intervals has a share below what its own rows say.
    """
    printed = min(1.0, _running_share(entry))
    if printed >= 1.0 and not entry.starved:
        return 1.0
    for reference in references:
        fine = entry.runtime / reference
        if entry.starved and fine <= printed:
            return fine
        if printed <= fine < min(1.0, printed + 0.01):
            return fine
    return printed


def _add_sums(entry: _EventSum, added: _EventSum) -> None:
    for name in ("value", "runtime", "enabled", "counted", "not_counted", "not_supported", "starved"):
        setattr(entry, name, getattr(entry, name) + getattr(added, name))


def _second_count(name: str, first: _EventSum | None, second: _EventSum) -> Iterator[Fact]:
    """Yield how far two counts of one event lie apart, which perf counted in several groups at once."""
    if first is not None and first.value and second.value:
        apart = abs(second.value - first.value) / max(first.value, second.value)
        # 2 % as for groups of separate runs (DRIFT_LIMIT of metrics.derive).
        yield Fact.of("counted-twice" if apart < 0.02 else "counted-twice-apart", name=name, share=apart)


def _keep_apart(names: dict[str, EventName]) -> dict[str, EventName]:
    """Keep the modifier in the name where a report has both `cycles` and `cycles:u`, two quantities."""
    users: dict[tuple[str, str | None], set[bool]] = {}
    for name in names.values():
        users.setdefault((name.name, name.pmu), set()).add(name.user)
    return {
        event: replace(name, name=f"{name.name}:u")
        if name.user and len(users[name.name, name.pmu]) > 1
        else name
        for event, name in names.items()
    }
