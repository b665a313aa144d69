"""Whether a region really switches an instrument: a tiny workload, most of whose work is outside its region.

If the switch works, the instrument has counted about the region's work; if not, nothing or everything.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from profkit.core.errors import Fault, ProfkitError, UnreadableReport
from profkit.core.types import Cache, Check, Directive, Report, Switch
from profkit.hardware.machine import read_machine
from profkit.hardware.processor import data_cache, instruction_cache
from profkit.profilers.programs import CommandTrial, try_command

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
    from profkit.profilers.perf.command import STAT_ENV, stat_argv
    from profkit.profilers.perf.faults import explain
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
            return _failed_check(title, trial, "perf", explain)
        try:
            counted = _event_count(read_stat_csv(output), _CLOCK)
            inside, notes = _read_record(folder)
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
    from profkit.profilers.valgrind.command import callgrind_argv, callgrind_outputs, single_thread_env
    from profkit.profilers.valgrind.faults import explain
    from profkit.profilers.valgrind.read import read_callgrind

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
            return _failed_check(title, trial, "valgrind", explain)
        try:
            files = callgrind_outputs(folder / "callgrind")
            if not files:
                raise UnreadableReport("it wrote no file")
            executed = _event_count(read_callgrind(*files), "Ir")
            _, notes = _read_record(folder)
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
    here = str(Path(__file__).resolve().parents[2])
    return {"PROFKIT_DIRECTIVE": json.dumps(asdict(directive)), "PYTHONPATH": here, "PYTHONSAFEPATH": "1"}


def _read_record(folder: Path) -> tuple[float | None, str]:
    """Seconds the workload itself measured in its region, and what went wrong in it, in words."""
    from profkit.runtime.region.record import decode_record

    records = [decode_record(path.read_text("utf-8")) for path in folder.glob("record.*.json")]
    seconds = [sum(region.seconds) for record in records for region in record.regions]
    if not seconds:
        return None, "the workload left no record of its region"
    return sum(seconds), "; ".join(note for record in records for note in record.notes)


def _event_count(report: Report, name: str) -> float | None:
    """The count of one event over the run, in the event's unit."""
    return next((c.value for c in report.counters if c.name == name and c.scope.kind == "run"), None)


def _failed_check(
    title: str, trial: CommandTrial, tool: str, explain: Callable[[str, int], Fault | None]
) -> Check:
    fault = explain(trial.output, trial.returncode)
    if fault is not None:
        return Check(title, "refused", fault.reason, fault.fix)
    return Check(title, "refused", f"{tool} {trial.ending}: {trial.last_line[:160]}")
