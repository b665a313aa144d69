"""The trace pass: perf record over the region; where time goes by function and library, as tables and flame graphs."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from profkit.analysis.stacks.files import write_collapsed, write_speedscope
from profkit.analysis.stacks.merge import by_function, by_library, keep_python_frames
from profkit.backends import Findings, Site
from profkit.core.errors import UnreadableReport
from profkit.core.status import status_wrapper
from profkit.core.types import Directive, PassPlan, PassResult, Step, Switch
from profkit.profilers.perf.command import inject_argv, python_frames, record_argv, script_argv
from profkit.profilers.perf.perf_data import recorded_pids, remove_leftovers
from profkit.profilers.perf.probe import PerfAbility
from profkit.profilers.perf.script import read_script

SECONDS = 2.0  # of region: about 2,000 samples a core, a function of 1 % is known to a fifth of itself
_DATA, _JIT, _TEXT = "trace.perf.data", "trace.jit.data", "trace.script.txt"


def plan_trace(site: Site, perf: PerfAbility, python: tuple[int, int] | None, *, marked: bool) -> PassPlan:
    """One recording, restricted to the region where the workload marks one."""
    if not perf.record_ok:
        fault = perf.record_fault
        reason = fault.reason if fault else "perf record does not work here"
        return PassPlan("trace", "perf", skipped=reason, fix=fault.fix if fault else None)
    program = str(perf.path)
    folder = site.folder / "artifacts"
    marked = marked and perf.control_fifo_ok
    frames = python_frames(python)
    control, ack = str(folder / "trace.control"), str(folder / "trace.ack")
    status = str(folder / "trace.status")
    data, jit, text = folder / _DATA, folder / _JIT, folder / _TEXT
    argv = record_argv(
        status_wrapper(site.workload.command, status),
        data,
        event="cycles" if perf.hardware_ok else "cpu-clock",
        call_graph=frames.call_graph,
        control=control if marked else None,
        ack=ack if marked else None,
        perf=program,
    )
    after = [script_argv(jit if frames.inject else data, text, perf=program)]
    if frames.inject:
        after.insert(0, inject_argv(data, jit, perf=program))
    step = Step(
        "trace",
        argv,
        (f"artifacts/{_TEXT}",),
        env={**frames.env},
        directive=Directive(
            "trace",
            str(folder / "trace.region"),
            switch=Switch("perf-control", control, ack) if marked else None,
            seconds=SECONDS,
        ),
        fifos=(control, ack) if marked else (),
        tool="perf",
        workload_status=status,
        after=tuple(after),
    )
    return PassPlan(
        "trace",
        "perf",
        (step,),
        cost=1.5,
        cost_note="sampling itself costs a few per cent; reading the stacks comes after it",
        notes=(frames.note,) if frames.note else (),
    )


def find_trace(site: Site, result: PassResult) -> Findings:
    """Functions, libraries and stacks; leaves a speedscope and a collapsed-stack file beside the text.

    The recording itself is removed: its copies of the stack hold the process's environment.
    """
    folder = site.folder / "artifacts"
    _tidy(folder / _DATA, result.seconds)
    for name in (_DATA, _JIT):
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    report = read_script(folder / _TEXT)
    if not report.stacks:
        return Findings(notes=report.warnings)
    stacks = report.stacks[0]
    write_speedscope(report.stacks, folder / "trace.speedscope.json", site.workload.name)
    write_collapsed(stacks, folder / "trace.collapsed.txt")
    python = keep_python_frames(stacks)
    profiles = [by_function(stacks), by_library(stacks)]
    if python is not None:
        profiles.append(replace(by_function(python), title=f"{stacks.title} by Python function"))
    return Findings(
        profiles=tuple(profiles),
        stacks=report.stacks,
        notes=report.warnings,
        artifacts=("artifacts/trace.speedscope.json", "artifacts/trace.collapsed.txt"),
    )


def _tidy(recording: Path, seconds: float) -> None:
    """Remove what CPython and perf left in the temporary folder for the recorded processes."""
    with contextlib.suppress(UnreadableReport):
        remove_leftovers(recorded_pids(recording), time.time() - seconds - 1)
