"""Whether this machine is quiet enough to measure on: each condition judged, with the line that improves it.

Nothing here refuses a measurement. `limited` says that timing will be less certain than it could be;
counters of instructions and a simulation do not suffer from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profkit.core.formatting import plural
from profkit.core.types import Check
from profkit.hardware.conditions import MachineConditions, read_conditions
from profkit.hardware.system import superuser_command

GIB = 1 << 30

# A 1 % effect is what timing is asked to show (--precision 0.01), so what takes more than a few per cent of
# the processor from us is named. 5 % of a core is also below what an idle desktop's own services use.
OTHERS_MOST = 0.05
PRESSURE_MOST = 5.0
STOLEN_MOST = 0.01
SPREAD_MOST = 0.10  # pyperf calls a benchmark unstable when its deviation reaches 10 %
MEMORY_LEAST = 1 * GIB  # Python, torch and a matrix or two; valgrind doubles what the workload takes


def noise_checks(root: Path = Path("/"), window: float = 0.5) -> tuple[Check, ...]:
    """Look at the machine for about `window` seconds and judge what is seen."""
    return judge_conditions(read_conditions(root, window))


def judge_conditions(conditions: MachineConditions) -> tuple[Check, ...]:
    """One check for each condition the machine tells; what it does not tell has none."""
    return tuple(_judge_all(conditions))


def _judge_all(conditions: MachineConditions) -> Iterator[Check]:
    yield _judge_load(conditions)
    if conditions.stolen is not None:
        bad = conditions.stolen > STOLEN_MOST
        yield Check(
            "stolen time",
            "limited" if bad else "ok",
            f"the hypervisor gave {100 * conditions.stolen:.1f} % of the time to other guests",
            "measure again later, or on an instance with dedicated cores" if bad else None,
        )
    if conditions.jitter is not None:
        jitter, bad = conditions.jitter, conditions.jitter.spread > SPREAD_MOST
        yield Check(
            "steady speed",
            "limited" if bad else "ok",
            f"the 90th percentile of {jitter.rounds} equal rounds took {100 * jitter.spread:.0f} % longer than the"
            f" fastest ({jitter.fastest * 1e3:.2f} ms)",
            "stop other work on this machine, and compare only runs of many samples" if bad else None,
        )
    yield from _judge_clock(conditions)
    if conditions.quota is not None and conditions.quota < conditions.cores:
        threads = max(1, int(conditions.quota))
        yield Check(
            "container's processor limit",
            "limited",
            f"{conditions.quota:g} of {conditions.cores} cores' time: more threads than that are paused",
            f"OMP_NUM_THREADS={threads}, or give whole cores: docker run --cpuset-cpus={_core_range(threads)}",
        )
    if conditions.aslr is not None:
        yield Check("address layout", "ok", _describe_layout(conditions.aslr))
    if conditions.memory is not None:
        bad = conditions.memory < MEMORY_LEAST
        yield Check(
            "free memory",
            "limited" if bad else "ok",
            f"{conditions.memory / GIB:.1f} GiB are free"
            + ("; a simulation takes about twice what the workload does" if bad else ""),
            "free memory, or raise the container's limit (docker run --memory)" if bad else None,
        )
    if conditions.swapped:
        yield Check(
            "swap",
            "limited",
            f"{conditions.swapped} pages went to or from swap while profkit looked",
            "stop what takes the memory, or: " + superuser_command("swapoff -a"),
        )


def _judge_load(conditions: MachineConditions) -> Check:
    parts: list[str] = []
    bad = False
    if conditions.others is not None:
        parts.append(f"other processes use {100 * conditions.others:.0f} % of the cores")
        bad = bad or conditions.others > OTHERS_MOST
    if conditions.pressure is not None:
        parts.append(f"tasks waited for a core in {conditions.pressure:.1f} % of the last 10 s")
        bad = bad or conditions.pressure > PRESSURE_MOST
    if conditions.load is not None:
        parts.append(f"load {conditions.load:.2f} on {plural(conditions.cores, 'core')}")
        # The load is a minute old and counts what we did ourselves: alone it accuses nobody below all cores.
        bad = bad or conditions.load > conditions.cores
    if not parts:
        return Check("quiet machine", "limited", "this system does not show how busy it is")
    fix = "stop other work on this machine (see: top), or measure when it is idle"
    return Check("quiet machine", "limited" if bad else "ok", "; ".join(parts), fix if bad else None)


def _judge_clock(conditions: MachineConditions) -> Iterator[Check]:
    if conditions.slowed is not None:
        held = "; ".join(conditions.slowed)
        yield Check(
            "clocks",
            "limited" if held else "ok",
            f"held down: {held}" if held else "macOS holds none down: no thermal pressure, no low power mode",
            "let the Mac cool down; System Settings > Battery > Low Power Mode: Never" if held else None,
        )
    elif conditions.governor is not None:
        steady = conditions.governor == "performance"
        yield Check(
            "frequency governor",
            "ok" if steady else "limited",
            f"{conditions.governor}{'' if steady else ': the clock follows the load, so a short run is slower'}",
            None if steady else superuser_command("cpupower frequency-set -g performance"),
        )
    else:
        yield Check(
            "frequency governor",
            "ok",
            "not visible here: the host or the firmware sets the clock",
        )
    if conditions.turbo is not None:
        words = (
            "on: the clock depends on temperature and on how many cores work" if conditions.turbo else "off"
        )
        yield Check("turbo", "ok", words)
    if conditions.smt is not None:
        words = "on: two threads of one core share its caches and units" if conditions.smt else "off"
        yield Check("simultaneous multithreading", "ok", words)
    if conditions.on_battery:
        yield Check("power", "limited", "on battery: the clock is held down", "plug the machine in")


def _core_range(cores: int) -> str:
    return "0" if cores == 1 else f"0-{cores - 1}"


def _describe_layout(level: int) -> str:
    if level == 0:
        return "not randomized: every process has the same memory layout, which may be a lucky one"
    return "randomized: timing takes several processes, since each has another memory layout"
