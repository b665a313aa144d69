"""A report out of launches and a session, whichever way both were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profkit.core.types import Counter, Gpu, GpuTrace, Report
from profkit.profilers.ncu.chip_table import lacking
from profkit.profilers.ncu.facts import Seen, facts_of
from profkit.profilers.ncu.launches import Group, Launch, grouped
from profkit.profilers.ncu.session import Session, gpus

TOOL = "ncu"
_BARE = ("device__", "launch__", "nvlink__", "profiler__")  # what is told without counting anything


def report_of(
    session: Session, launches: Iterable[Launch], format: str, warnings: Sequence[str] = ()
) -> Report:
    """Counters (medians) and times by launch configuration, largest time first; facts, devices, what is doubtful."""
    seen, empty = Seen(), list[str]()
    groups = grouped(seen.watch(_counted(launches, empty)))
    times = sorted(
        (time for group in groups if (time := group.time()) is not None),
        key=lambda time: (-time.total, time.first or 0),
    )
    driver = session.driver or next(iter(seen.drivers), None)
    devices = gpus(session, driver)
    trace = GpuTrace(tool=TOOL, kernels=tuple(times), launches=seen.kinds["kernel"]) if times else None
    return Report(
        tool=TOOL,
        format=format,
        version=session.version,
        facts=facts_of(session, seen),
        counters=tuple(counter for group in groups for counter in _counters(group, devices)),
        trace=trace,
        gpus=devices,
        warnings=(*warnings, *_doubts(seen, groups, empty)),
    )


def _counted(launches: Iterable[Launch], empty: list[str]) -> Iterator[Launch]:
    """Those that something was counted of. A launch that ncu could not finish leaves a result without a grid."""
    for launch in launches:
        bare = all(name.startswith(_BARE) for name in launch.values)
        if launch.kind == "kernel" and bare and not any(launch.kernel.grid):
            empty.append(launch.kernel.name)
        else:
            yield launch


def _counters(group: Group, devices: Sequence[Gpu]) -> Iterable[Counter]:
    """What was counted, and what readings need that this chip cannot count."""
    told = tuple(group.counters())
    yield from told
    chips = {gpu.chip or gpu.capability for gpu in devices}
    if len(chips) == 1:
        for name, why in lacking(chips.pop(), {counter.name.lower() for counter in told}).items():
            yield Counter(name, None, "not-supported", scope=group.scope, reason=why)


def _doubts(seen: Seen, groups: Sequence[Group], empty: Sequence[str]) -> Iterable[str]:
    if empty:
        told = ", ".join(dict.fromkeys(empty[:3])) + (f" and {len(empty) - 3} more" if len(empty) > 3 else "")
        yield f"nothing was counted of {told}: ncu began with it and could not finish"
    if not seen.launches and not empty:
        yield "the report holds no results: no kernel was profiled"
    if seen.unsupported:
        yield f"{seen.unsupported} results are of a device that this version of Nsight Compute does not support"
    together = {kind: seen.kinds[kind] for kind in ("range", "cmdlist", "graph") if seen.kinds[kind]}
    if together:
        said = " and ".join(f"{n} {kind}" for kind, n in together.items())
        yield f"{said} results count several kernels as one: they are read as regions, not as kernels"
    untimed = sum(1 for group in groups if group.scope.kind == "kernel" and group.time() is None)
    if untimed:
        yield f"{untimed} launch configurations have no duration (gpu__time_duration.sum was not collected)"
    for group in groups:
        if len(group.shapes) > 1:
            yield (
                f"{group.kernel.name} ({group.kernel.id}) was launched with different registers or shared memory: "
                "its values are medians over all of them"
            )
        if len(group.devices) > 1:
            yield (
                f"{group.kernel.name} ({group.kernel.id}) ran on several devices: "
                "its values are medians over all of them"
            )
