"""Builds a report from launches and a session: counters, times, devices, and facts for comparisons.

The session lies scattered over the block headers of an .ncu-rep. Host name, addresses, folders and the
environment are in there as well, and are not read.
"""

from __future__ import annotations

import shlex
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone

from profkit.core.process import without_wrapper
from profkit.core.types import Fact, Gpu, GpuTrace, Report
from profkit.profilers.ncu.blocks import Buffer, Message, ReportBlock, read_text
from profkit.profilers.ncu.command import chip_name
from profkit.profilers.ncu.launches import (
    PASSES,
    LaunchGroup,
    LaunchResult,
    Value,
    finite_number,
    group_launches,
)
from profkit.profilers.ncu.results import metric_value

# BlockHeader and ReportSessionDetails (ProfilerReport.proto).
_SESSION, _STRINGS = 3, 4
_CREATED, _DEVICE, _VERSION, _COMMAND = 2, 6, 8, 11
_TOOL, _CUDA = "Nsight Compute Target", "CUDA Version"


@dataclass
class ReportSession:
    """The session of a report, put together from all its pieces; what the file does not hold stays empty."""

    versions: dict[str, str] = field(default_factory=dict)
    devices: dict[int, tuple[str, dict[str, Value]]] = field(default_factory=dict)
    command: str | None = None  # of the profiler, whole
    created: int | None = None  # seconds since 1970

    @property
    def version(self) -> str | None:
        """Return the profiler's version, `2025.3.1`, without its build."""
        words = self.versions.get(_TOOL, "").split()
        return ".".join(words[0].split(".")[:3]) if words else None


def read_header(data: Buffer, block: ReportBlock, session: ReportSession) -> tuple[str, ...]:
    """Return the strings of the header of `block`, and add its session to `session`.

    Raises MalformedMessage.
    """
    part = block.header
    header = Message(data, part.offset, part.offset + part.size)
    for details in header.parts(_SESSION):
        _read_session(details, session)
    tables = header.parts(_STRINGS)
    return tuple(read_text(data, a, b) for table in tables for a, b in table.spans.get(1, ()))


def session_gpus(session: ReportSession, driver: str | None) -> tuple[Gpu, ...]:
    """Return the devices, by index. Sizes in bytes, bandwidth in bytes per second, clock in Hz."""
    return tuple(
        gpu_of(name, index, attributes, driver)
        for index, (name, attributes) in sorted(session.devices.items())
    )


def gpu_of(name: str, index: int, attributes: Mapping[str, Value], driver: str | None) -> Gpu:
    """Build a device from its attributes, named without `device__attribute_`."""

    def number(*names: str) -> int | None:
        values = (finite_number(attributes.get(name)) for name in names)
        return next((int(value) for value in values if value is not None), None)

    major, minor = number("compute_capability_major"), number("compute_capability_minor")
    shown = attributes.get("display_name")
    return Gpu(
        name=name or (shown if isinstance(shown, str) else "") or f"GPU {index}",
        index=index,
        capability=None if major is None else f"{major}.{minor or 0}",
        chip=chip_name(number("chip")),
        multiprocessors=number("multiprocessor_count"),
        memory_bytes=number("total_memory"),
        l2_bytes=number("l2_cache_size"),
        bandwidth=_bandwidth(
            number("max_mem_frequency_khz", "memory_clock_rate"),
            number("global_memory_bus_width", "fb_bus_width"),
        ),
        driver=driver,
        highest_clock=1e3 * khz if (khz := number("clock_rate")) else None,
    )


def _bandwidth(khz: int | None, bits: int | None) -> float | None:
    """Return the peak DRAM bandwidth in bytes per second.

    Two transfers per memory clock over the whole bus (CUDA C++ Best Practices, 8.2.1).
    """
    return 2.0 * khz * 1e3 * bits / 8 if khz and bits else None


def _read_session(details: Message, session: ReportSession) -> None:
    if _CREATED in details.numbers and session.created is None:
        session.created = details.numbers[_CREATED]
    for device in details.parts(_DEVICE):
        attributes = {
            row.text(1).removeprefix("device__attribute_"): metric_value(row.data, *row.spans[2][-1])
            for row in device.parts(3)
            if 2 in row.spans
        }
        session.devices.setdefault(device.numbers.get(1, 0), (device.text(2), attributes))
    for version in details.parts(_VERSION):
        session.versions[version.text(1)] = version.text(2)
    session.command = details.text(_COMMAND).strip() or session.command


# Options of ncu that take no value: what follows one of them may be the workload.
_BARE = ("-f", "--force-overwrite", "--nvtx", "--csv", "--quiet", "--verbose")
# The fact that an option tells, and what holds where it is not given.
_SHOWN = {"cache control": ("--cache-control", "all"), "replay": ("--replay-mode", "kernel")}


@dataclass
class LaunchTotals:
    """Totals over all launches, counted as they pass by."""

    launches: int = 0
    clocks: Tally[tuple[bool | None, bool | None]] = field(default_factory=Tally)
    passes: Tally[int] = field(default_factory=Tally)
    drivers: dict[str, None] = field(default_factory=dict)

    def watch(self, launches: Iterable[LaunchResult]) -> Iterable[LaunchResult]:
        """Yield the same launches, and count them."""
        for launch in launches:
            self.launches += 1
            self.clocks[launch.lock_requested, launch.lock_done] += 1
            if (passes := finite_number(launch.values.get(PASSES))) is not None:
                self.passes[int(passes)] += 1
            if launch.driver is not None:
                self.drivers[launch.driver] = None
            yield launch


def facts_of(session: ReportSession, totals: LaunchTotals) -> dict[str, str]:
    """Return every fact that the file has; what it lacks is absent."""
    options, workload = split_command(session.command)
    facts: dict[str, str | None] = {"command": shlex.join(without_wrapper(workload)) if workload else None}
    facts["driver"] = ", ".join(totals.drivers)
    facts["CUDA"] = session.versions.get(_CUDA)
    facts["clocks"] = clocks_in_words(totals.clocks)
    for fact, (option, default) in _SHOWN.items():
        facts[fact] = options.get(option, default) if options else None
    facts["replay passes"] = _format_range(totals.passes)
    if session.created:
        facts["recorded"] = _time(session.created)
    return {name: value for name, value in facts.items() if value}


def split_command(line: str | None) -> tuple[dict[str, str], tuple[str, ...]]:
    """Split a recorded command line into ncu's own options with their values, and the workload's command.

    What stands behind `--` is the workload; without that, the first word that is no option and no option's value.
    """
    try:
        words = shlex.split(line or "")
    except ValueError:  # recorded without its quotes
        words = (line or "").split()
    options: dict[str, str] = {}
    remaining = iter(words[1:])
    for word in remaining:
        name, equals, value = word.partition("=")
        if word == "--":
            return options, tuple(remaining)
        if not word.startswith("-"):
            return options, (word, *remaining)
        options[name] = value if equals or word in _BARE else next(remaining, "")
    return options, ()


def clocks_in_words(clocks: Mapping[tuple[bool | None, bool | None], int]) -> str | None:
    """Say whether ncu locked the clocks to base; a request to lock them may have been refused."""
    words = {_clock_word(*status): count for status, count in clocks.items() if status[0] is not None}
    if len(words) < 2:
        return next(iter(words), None)
    return ", ".join(f"{word} in {count} launches" for word, count in words.items())


def _clock_word(requested: bool | None, done: bool | None) -> str:
    if not requested:
        return "not locked"
    return "locked to base" if done else "asked to lock, refused"


def _format_range(passes: Mapping[int, int]) -> str | None:
    if not passes:
        return None
    least, most = min(passes), max(passes)
    return str(least) if least == most else f"{least} to {most}"


def _time(seconds: int) -> str | None:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None


TOOL = "ncu"
_UNCOUNTED = (
    "device__",
    "launch__",
    "nvlink__",
    "profiler__",
)  # values that a report has without any counting


def report_of(
    session: ReportSession, launches: Iterable[LaunchResult], format: str, warnings: Sequence[Fact] = ()
) -> Report:
    """Build a report of counters (medians) and times by configuration, largest time first.

    It has the facts, devices and warnings as well.
    """
    totals, empty = LaunchTotals(), list[str]()
    groups = group_launches(totals.watch(_counted_launches(launches, empty)))
    times = sorted(
        (time for group in groups if (time := group.time()) is not None),
        key=lambda time: (-time.total, time.first or 0),
    )
    driver = next(iter(totals.drivers), None)
    devices = session_gpus(session, driver)
    trace = GpuTrace(tool=TOOL, kernels=tuple(times), launches=totals.launches) if times else None
    return Report(
        tool=TOOL,
        format=format,
        version=session.version,
        facts=facts_of(session, totals),
        counters=tuple(counter for group in groups for counter in group.counters()),
        trace=trace,
        gpus=devices,
        warnings=(*warnings, *_report_warnings(totals, groups, empty)),
    )


def _counted_launches(launches: Iterable[LaunchResult], empty: list[str]) -> Iterator[LaunchResult]:
    """Yield the launches of which something was counted, and add the names of the others to `empty`.

    A launch that ncu could not finish leaves a result without a grid.
    """
    for launch in launches:
        bare = all(name.startswith(_UNCOUNTED) for name in launch.values)
        if bare and not any(launch.kernel.grid):
            empty.append(launch.kernel.name)
        else:
            yield launch


def _report_warnings(
    totals: LaunchTotals, groups: Sequence[LaunchGroup], empty: Sequence[str]
) -> Iterable[Fact]:
    if empty:
        names = ", ".join(dict.fromkeys(empty[:3]))
        yield Fact.of("launches-not-counted", names=names, more=max(0, len(empty) - 3))
    if not totals.launches and not empty:
        yield Fact("no-results")
    untimed = sum(1 for group in groups if group.time() is None)
    if untimed:
        yield Fact.of("untimed-configurations", count=untimed)
    yield from different_launches(groups)


def different_launches(groups: Sequence[LaunchGroup]) -> Iterable[Fact]:
    """Yield one note for each way in which launches of one configuration differ, whatever the number of kernels."""
    ways: dict[tuple[str, ...], list[LaunchGroup]] = {}
    for group in groups:
        several = ["other-registers"] if len(group.shapes) > 1 else []
        several += ["several-devices"] if len(group.devices) > 1 else []
        if several:
            ways.setdefault(tuple(several), []).append(group)
    for differences, alike in ways.items():
        first = alike[0].kernel
        yield Fact.of(
            "launched-in-ways", *map(Fact, differences), name=first.name, id=first.id, more=len(alike) - 1
        )
