"""Whether a region really switches an instrument: a tiny workload, most of whose work is outside its region.

If the switch works, the instrument has counted about the region's work; if not, nothing or everything.

Whether the peaks can be measured that bandwidth and roofline are held against: a short try on one core.

perf as the doctor tells it: may it count, which hardware counters are real, does a region switch it.

valgrind as the doctor tells it: does it simulate, is it repeatable, does a region switch it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from profkit.backends.checks import Trial, install_line, try_command
from profkit.core.errors import ProfkitError, UnreadableReport
from profkit.core.types import Cache, Check, Counter, Directive, Peaks, Report, Switch
from profkit.hardware import tree
from profkit.hardware.caches import data_cache, instruction_cache
from profkit.hardware.machine import read_machine
from profkit.hardware.peaks import peaks_argv, peaks_environment, read_peaks
from profkit.hardware.superuser import as_superuser
from profkit.profilers.perf.probe import PerfAbility, probe_perf
from profkit.profilers.valgrind.probe import ValgrindAbility, probe_valgrind

_NAME = "doctor"
# Much more work outside than inside; plain integers, since no package is sure to be there.
_WORKLOAD = (
    "import profkit\n"
    "def work(steps):\n"
    "    total = 0\n"
    "    for step in range(steps):\n"
    "        total += step * step\n"
    "work({outside})\n"
    "with profkit.region('doctor'):\n"
    "    work({inside})\n"
    "work({outside})\n"
)
_CLOCK = "task-clock"  # counted by the kernel's clock, so it is there without a PMU


def perf_region(perf: str) -> Check:
    """Switch `perf stat` on and off from inside a workload, through its control pipes."""
    from profkit.profilers.perf.stat_command import STAT_ENV, stat_argv
    from profkit.profilers.perf.stat_csv import read_stat_csv

    title = "perf region switch"
    with tempfile.TemporaryDirectory(prefix="profkit-") as name:
        folder = Path(name)
        control, ack, output = folder / "control", folder / "ack", folder / "counts"
        for pipe in (control, ack):
            os.mkfifo(pipe)
        directive = _directive(folder, Switch("perf-control", str(control), str(ack)))
        argv = stat_argv(_workload(20_000, 400_000), output, [_CLOCK], control=control, ack=ack, perf=perf)
        trial = try_command(argv, {**STAT_ENV, **_environment(directive)})
        if not trial.ok:
            return _failed(title, trial, "perf")
        try:
            counted = _value(read_stat_csv(output), _CLOCK)
            inside, notes = _recorded(folder)
        except (ProfkitError, OSError) as error:
            return Check(title, "refused", f"perf ran, but its counts are not there: {error}", path=perf)
    if notes:
        return Check(title, "refused", f"the region could not switch perf: {notes}", path=perf)
    if counted is None or inside is None or not 0 < counted <= 2 * inside * 1e3 + 5:
        told = "nothing" if not counted else f"{counted:.1f} ms"
        return Check(
            title, "refused", f"perf counted {told} of a region of {(inside or 0) * 1e3:.1f} ms", path=perf
        )
    detail = f"works: {counted:.1f} ms counted in a region of {inside * 1e3:.1f} ms, and nothing around it"
    return Check(title, "ok", detail, path=perf)


def valgrind_region(valgrind: str) -> Check:
    """Switch callgrind on and off from inside a workload, by valgrind's client requests."""
    from profkit.profilers.valgrind.callgrind_file import read_callgrind
    from profkit.profilers.valgrind.command import callgrind_argv, outputs, single_thread_env

    title, inside = "valgrind region switch", 2_000
    machine = read_machine()
    first = data_cache(machine, 1) or Cache(1, 32 * 1024, 8, source="assumed")
    last = data_cache(machine, 2) or first
    with tempfile.TemporaryDirectory(prefix="profkit-") as name:
        folder = Path(name)
        directive = _directive(folder, Switch("valgrind"))
        argv = callgrind_argv(
            _workload(inside, 60_000),
            folder / "callgrind",
            i1=instruction_cache(machine),
            d1=first,
            last=last,
            region=True,
            instructions=False,
            valgrind=valgrind,
        )
        trial = try_command(argv, {**single_thread_env(), **_environment(directive)}, seconds=30.0)
        if not trial.ok:
            return _failed(title, trial, "valgrind")
        try:
            files = outputs(folder / "callgrind")
            if not files:
                raise UnreadableReport("it wrote no file")
            executed = _value(read_callgrind(*files), "Ir")
            _, notes = _recorded(folder)
        except (ProfkitError, OSError) as error:
            return Check(
                title, "refused", f"callgrind ran, but its counts are not there: {error}", path=valgrind
            )
    if notes:
        return Check(title, "refused", f"the region could not switch callgrind: {notes}", path=valgrind)
    # CPython takes 30 (optimised) to 700 (built without optimisation) instructions for a round of the loop.
    # The work around the region is 60 times as much, and the interpreter's start 10 million more.
    if not 20 * inside <= (executed or 0) <= 2_000 * inside:
        told = f"callgrind counted {executed or 0:.0f} instructions for {inside} rounds of a loop"
        return Check(title, "refused", f"{told}: not the region's", path=valgrind)
    detail = (
        f"works: {executed:.0f} instructions counted for {inside} rounds of a loop, and nothing around it"
    )
    return Check(title, "ok", detail, path=valgrind)


def _workload(inside: int, outside: int) -> tuple[str, ...]:
    # -S and -s leave the user's site packages and start-up files out: a trial of the tool, not of them
    return (sys.executable, "-S", "-s", "-c", _WORKLOAD.format(inside=inside, outside=outside))


def _directive(folder: Path, switch: Switch) -> Directive:
    return Directive("counters", str(folder / "record"), switch)


def _environment(directive: Directive) -> dict[str, str]:
    here = str(Path(__file__).resolve().parents[3])
    return {"PROFKIT_DIRECTIVE": json.dumps(asdict(directive)), "PYTHONPATH": here, "PYTHONSAFEPATH": "1"}


def _recorded(folder: Path) -> tuple[float | None, str]:
    """Seconds the workload itself measured in its region, and what went wrong in it, in words."""
    from profkit.runtime.region.record import decode

    records = [decode(path.read_text("utf-8")) for path in folder.glob("record.*.json")]
    seconds = [sum(region.seconds) for record in records for region in record.regions]
    if not seconds:
        return None, "the workload left no record of its region"
    return sum(seconds), "; ".join(note for record in records for note in record.notes)


def _value(report: Report, name: str) -> float | None:
    """The count of one event over the run, in the event's unit."""
    return next((c.value for c in report.counters if c.name == name and c.scope.kind == "run"), None)


def _failed(title: str, trial: Trial, tool: str) -> Check:
    from profkit.profilers.faults import explain

    fault = explain(tool, trial.output, trial.returncode)
    if fault is not None:
        return Check(title, "refused", fault.reason, fault.fix)
    return Check(title, "refused", f"{tool} {trial.ending}: {trial.last_line[:160]}")


# A core with fused multiply-add on 8 lanes does 16 float32 operations a cycle per unit: 32 GFLOP/s at 2 GHz.
# A library below a quarter of that is built for no processor in particular (reference BLAS: 1 to 3).
_SLOW = 8e9


def peaks_checks() -> tuple[Check, ...]:
    """Measure bandwidth and arithmetic of one core for a third of a second in a fresh process."""
    trial = try_command(peaks_argv(1, 0.3), peaks_environment(1), seconds=30.0)
    try:
        peaks = read_peaks(trial.output)
    except ProfkitError as error:
        reason = error.message if trial.ok or trial.returncode == 3 else f"{trial.ending}: {trial.last_line}"
        return (
            Check("measured peaks", "missing", f"{reason}; bandwidth has no peak to stand beside", error.fix),
        )
    return (judge_peaks(peaks, vector_multiply_add="fma" in read_machine().features),)


def judge_peaks(peaks: Peaks, vector_multiply_add: bool) -> Check:
    """Tell the rates of one core; `vector_multiply_add` says that the processor has FMA."""
    if peaks.bandwidth_one is None or peaks.flops_f32_one is None:
        return Check("measured peaks", "limited", peaks.method, "free memory, or raise the container's limit")
    told = (
        f"one core in a short try: {peaks.bandwidth_one / 1e9:.1f} GB/s, "
        f"{peaks.flops_f32_one / 1e9:.1f} GFLOP/s in float32"
    )
    if vector_multiply_add and peaks.flops_f32_one < _SLOW:
        detail = f"{told}: numpy computes with a library that does not use this processor ({peaks.method})"
        return Check("measured peaks", "limited", detail, "pip install --force-reinstall numpy")
    return Check("measured peaks", "ok", told)


# How each state of an event is called on the screen, the good one first.
_WORDS = {
    "measured": "real",
    "multiplexed": "multiplexed",
    "hard-zero": "hard zero",
    "not-counted": "not counted",
    "not-supported": "not supported",
}
_MISMATCH = "wrapper that has no perf for kernel"


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
    first = ability.faults[0] if ability.faults else None
    if ability.path is None:
        reason = first.reason if first else "perf is not installed"
        # A wrapper without a perf for this kernel is cured by the same package as no perf at all.
        known = first is None or "not installed" in reason or _MISMATCH in reason
        fix = install_line("perf", root) if first is None or known else first.fix
        yield Check("perf", "missing", f"{reason}: no trace, no counters", fix)
        return
    level = "" if ability.paranoid is None else f" (kernel.perf_event_paranoid = {ability.paranoid})"
    if not ability.software_ok:
        reason = first.reason if first else "it counts nothing"
        yield Check(
            "perf", "refused", reason + level, first.fix if first else None, ability.path, ability.version
        )
        return
    kernel = tree.text(root, "proc/sys/kernel/osrelease") or platform.release()
    detail = f"counts software events on kernel {kernel}{level}"
    yield Check("perf", "ok", detail, path=ability.path, version=ability.version)
    yield _hardware(ability)
    if ability.user_only:
        fix = next((f.fix for f in ability.faults if "user space" in f.reason), None)
        yield Check("perf kernel side", "limited", f"only user space is counted{level}", fix)
    yield _recording(ability)
    if ability.hardware_ok and tree.number(root, "proc/sys/kernel/nmi_watchdog"):
        detail = "on: it holds one hardware counter, so one event fewer fits at a time"
        yield Check("NMI watchdog", "limited", detail, as_superuser("sysctl kernel.nmi_watchdog=0"))


def format_census(census: tuple[Counter, ...]) -> str:
    """`real: cycles, instructions; hard zero: cache-misses`: which event is in which state."""
    by_state: dict[str, list[str]] = {}
    for counter in census:
        by_state.setdefault(counter.state, []).append(counter.name)
    known = [state for state in _WORDS if state in by_state]
    return "; ".join(f"{_WORDS[state]}: {', '.join(by_state[state])}" for state in known)


def _hardware(ability: PerfAbility) -> Check:
    name = "perf hardware counters"
    told = format_census(ability.census)
    fault = next((f for f in ability.faults if "hardware counters" in f.reason), None)
    if not ability.counting:
        reason = fault.reason if fault else "no hardware event counts"
        simulated = "cache, branch and instruction figures are simulated instead"
        return Check(name, "missing", f"{reason}; {simulated} ({told})", fault.fix if fault else None)
    dead = [counter.name for counter in ability.census if counter.value is None]
    if not dead:
        return Check(name, "ok", told)
    detail = f"{told}; what depends on the others is unavailable" if ability.hardware_ok else told
    fix = "use the vendor's own events, or a machine that shows its whole PMU" if fault is None else fault.fix
    return Check(name, "limited", detail, fix)


def _recording(ability: PerfAbility) -> Check:
    if ability.record_ok:
        return Check("perf record", "ok", "samples by the kernel's timer")
    fault = next((f for f in ability.faults if "record" in f.reason or "locked memory" in f.reason), None)
    if fault is None:
        fault = next((f for f in ability.faults if "hardware" not in f.reason), None)
    reason = fault.reason if fault else "made no recording"
    return Check("perf record", "refused", reason, fault.fix if fault else None)


def valgrind_checks() -> Iterator[Check]:
    """Try valgrind, and tell what came of it; where it is absent there is one check that says so."""
    ability = probe_valgrind()
    yield from judge_valgrind(ability)
    if ability.works and ability.path is not None:
        yield valgrind_region(str(ability.path))


def judge_valgrind(ability: ValgrindAbility, root: Path = Path("/")) -> Iterator[Check]:
    """What the probe's answers mean. `root` is read for the distribution."""
    path = None if ability.path is None else str(ability.path)
    if path is None:
        detail = f"{ability.reason}: without hardware counters there are no cache, branch or SIMD figures"
        yield Check("valgrind", "missing", detail, install_line("valgrind", root) if ability.fix else None)
    elif not ability.works:
        detail = ability.reason or "it does not work"
        yield Check("valgrind", "refused", detail, ability.fix, path, ability.version)
    else:
        yield Check("valgrind", "ok", "simulates a program and counts", path=path, version=ability.version)
        if ability.setarch is None:
            yield Check(
                "repeatable addresses",
                "limited",
                "setarch -R is absent or forbidden: simulated conflict misses vary a little between runs",
                "docker run --security-opt seccomp=unconfined (in a container), or install util-linux",
            )
