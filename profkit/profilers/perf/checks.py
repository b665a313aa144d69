"""perf as the doctor tells it: may it count, which hardware counters are real, does a region switch it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

from profkit.core.types import Check, Counter
from profkit.hardware import tree
from profkit.hardware.system import superuser_command
from profkit.profilers.perf.faults import NO_PMU_FIX, PARANOID_FIX
from profkit.profilers.perf.probe import PerfAbility, probe_perf
from profkit.profilers.programs import install_line
from profkit.profilers.region_trial import perf_region

# How each state of an event is called on the screen, the good one first.
_WORDS = {
    "measured": "real",
    "multiplexed": "multiplexed",
    "hard-zero": "hard zero",
    "not-counted": "not counted",
    "not-supported": "not supported",
}


def perf_checks() -> Iterator[Check]:
    """Try perf, and tell what came of it; where perf is absent there is one check that says so."""
    if platform.system() != "Linux":
        yield Check("perf", "missing", "perf exists only on Linux; simulation and timing do without it")
        return
    ability = probe_perf()
    yield from judge_perf(ability)
    if ability.path is not None and ability.software_ok:
        yield perf_region(ability.path)


def judge_perf(ability: PerfAbility, root: Path = Path("/")) -> Iterator[Check]:
    """What the probe's answers mean, check by check. `root` is read for the distribution and the kernel."""
    fault = ability.fault
    if ability.path is None:
        reason = fault.reason if fault else "perf is not installed"
        # A wrapper without a perf for this kernel is cured by the same package as no perf at all.
        yield Check("perf", "missing", f"{reason}: no trace, no counters", install_line("perf", root))
        return
    level = "" if ability.paranoid is None else f" (kernel.perf_event_paranoid = {ability.paranoid})"
    if not ability.software_ok:
        reason, fix = (fault.reason, fault.fix) if fault else ("it counts nothing", None)
        yield Check("perf", "refused", reason + level, fix, ability.path, ability.version)
        return
    kernel = tree.read_text(root, "proc/sys/kernel/osrelease") or platform.release()
    detail = f"counts software events on kernel {kernel}{level}"
    yield Check("perf", "ok", detail, path=ability.path, version=ability.version)
    yield _hardware_check(ability)
    if ability.user_only:
        yield Check("perf kernel side", "limited", f"only user space is counted{level}", PARANOID_FIX)
    yield _record_check(ability)
    if ability.hardware_ok and tree.read_number(root, "proc/sys/kernel/nmi_watchdog"):
        detail = "on: it holds one hardware counter, so one event fewer fits at a time"
        yield Check("NMI watchdog", "limited", detail, superuser_command("sysctl kernel.nmi_watchdog=0"))


def format_census(census: tuple[Counter, ...]) -> str:
    """`real: cycles, instructions; hard zero: cache-misses`: which event is in which state."""
    by_state: dict[str, list[str]] = {}
    for counter in census:
        by_state.setdefault(counter.state, []).append(counter.name)
    known = [state for state in _WORDS if state in by_state]
    return "; ".join(f"{_WORDS[state]}: {', '.join(by_state[state])}" for state in known)


def _hardware_check(ability: PerfAbility) -> Check:
    name = "perf hardware counters"
    states = format_census(ability.census)
    if not ability.counting:
        simulated = "cache, branch and instruction figures are simulated instead"
        return Check(
            name, "missing", f"this machine shows no hardware counters; {simulated} ({states})", NO_PMU_FIX
        )
    if len(ability.counting) == len(ability.census):
        return Check(name, "ok", states)
    if not ability.hardware_ok:
        return Check(name, "limited", states, NO_PMU_FIX)
    fix = "use the vendor's own events, or a machine that shows its whole PMU"
    return Check(name, "limited", f"{states}; what depends on the others is unavailable", fix)


def _record_check(ability: PerfAbility) -> Check:
    if ability.record_ok:
        return Check("perf record", "ok", "samples by the kernel's timer")
    fault = ability.record_fault
    return Check(
        "perf record", "refused", fault.reason if fault else "made no recording", fault.fix if fault else None
    )
