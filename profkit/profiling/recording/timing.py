"""Carries out the timing pass: alone, one process after the other, until the median is known well enough.

The planned processes show how far processes differ (memory layout, placement). Where the median of all of them is not
known well enough yet, processes are added until it is or the time is spent. A workload that marks nothing is one sample
a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from profkit.core.errors import UnreadableReport, WorkloadError
from profkit.core.process import ProcessOutcome, describe_status
from profkit.core.statistics import combine
from profkit.core.types import PassPlan, PassResult, SampleSet, Step, Timing
from profkit.profiling.recording.passes import Setting
from profkit.profiling.recording.step import Recorded, record_step
from profkit.runtime.passes.read_records import read_record
from profkit.runtime.passes.read_records import timings as timings_of
from profkit.runtime.passes.sampling import is_enough
from profkit.runtime.region.record import RegionRecord

MOST_PROCESSES = 200  # a 20 ms program reaches ±1 % long before


@dataclass(frozen=True)
class TimingRecord:
    """What the timing pass found. `plain_seconds` is the wall time of one process: what the other passes are held
    against. `outcomes` carry what the operating system counted (CPU seconds, largest resident set).
    """

    result: PassResult
    timings: tuple[Timing, ...]
    plain_seconds: float
    outcomes: tuple[ProcessOutcome, ...]
    notes: tuple[str, ...] = ()


def record_timing(
    plan: PassPlan,
    setting: Setting,
    precision: float,
    budget: float,
    seen: Callable[[tuple[Timing, ...]], None],
) -> TimingRecord:
    """Time the workload.

    `budget` is the wall seconds for processes beyond the planned ones. `seen` is told what is known after each
    process, so that a run which dies here keeps it. Raises WorkloadError when the workload itself
    fails: there is nothing to profile then.
    """
    begin = time.monotonic()
    outcomes: list[ProcessOutcome] = []
    step = plan.steps[0]
    for step in plan.steps:
        outcomes.append(_timed(step, setting).outcome)
        timings = _timings(setting.folder, outcomes, precision)
        seen(timings)
        if timings[0].kind == "process" and _known(timings[0], begin, precision, budget):
            break  # a program of several minutes is not run three times to learn what one more run cannot say
    alone = len(plan.steps) == 1 and timings[0].kind == "benchmark"  # it samples until it knows, by itself
    while not alone and not _known(timings[0], begin, precision, budget):
        if len(outcomes) >= MOST_PROCESSES:
            break
        outcomes.append(_timed(_another(step, len(outcomes) + 1), setting).outcome)
        timings = _timings(setting.folder, outcomes, precision)
        seen(timings)
    seconds = time.monotonic() - begin
    artifacts = tuple(sorted(str(p.relative_to(setting.folder)) for p in _records(setting.folder)))
    result = PassResult(
        plan.name,
        None,
        "finished",
        seconds=seconds,
        artifacts=artifacts,
        log=f"logs/{plan.steps[0].name}.log",
    )
    return TimingRecord(
        result,
        timings,
        sorted(o.seconds for o in outcomes)[len(outcomes) // 2],
        tuple(outcomes),
        _readable(setting.folder)[1],
    )


def _timed(step: Step, setting: Setting) -> Recorded:
    recorded = record_step(step, setting.folder, cwd=setting.cwd, timeout=setting.timeout, tick=setting.tick)
    if recorded.workload_ok:
        return recorded
    if recorded.outcome.timed_out:
        raise WorkloadError(
            f"the workload {recorded.outcome.ending()}", "give it more time: --timeout SECONDS"
        )
    last = "\n".join(recorded.text().strip().splitlines()[-12:])
    said = f"; it said:\n{last}" if last else "; it printed nothing"
    raise WorkloadError(f"the workload {describe_status(recorded.status)}{said}")


def _timings(folder: Path, outcomes: list[ProcessOutcome], precision: float) -> tuple[Timing, ...]:
    """What is known so far: by the workload's own marks, else by whole processes."""
    marked = timings_of(_readable(folder)[0])
    if marked:
        return marked
    whole = SampleSet(
        tuple(o.seconds for o in outcomes), spent=sum(o.seconds for o in outcomes), warm=len(outcomes) > 1
    )
    return (Timing("process", "process", (whole,), precision),)


def _known(timing: Timing, begin: float, precision: float, budget: float) -> bool:
    gone = time.monotonic() - begin
    if timing.kind == "process":
        return is_enough(timing.processes[0].seconds, precision, gone, budget)
    centre = combine([process.seconds for process in timing.processes])
    if centre is None or centre.low is None or centre.high is None:
        return gone >= budget
    return gone >= budget or (centre.high - centre.low) / 2 <= precision * centre.median


def _readable(folder: Path) -> tuple[list[RegionRecord], tuple[str, ...]]:
    """The records of the workload's processes, and a remark on each that is none: a workload may write there, too."""
    records, remarks = [], []
    for path in _records(folder):
        try:
            records.append(read_record(path))
        except UnreadableReport as error:
            remarks.append(f"passed over: {error.message}")
    return records, tuple(remarks)


def _records(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted((folder / "artifacts").glob("timing*.json")))


def _another(step: Step, number: int) -> Step:
    """The same step once more, under its own name."""
    name = f"timing-{number}"
    directive = step.directive
    if directive is not None:
        directive = replace(directive, record=str(Path(directive.record).with_name(name)))
    return replace(step, name=name, directive=directive)
