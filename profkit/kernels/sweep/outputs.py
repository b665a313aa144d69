"""The files of a sweep beside its journal: a record for each case, a run like any other, and reports.

In the run each case has one timing, so that history, compare and load can read it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from profkit.analysis.ranking import FILE as RESULTS
from profkit.analysis.ranking import faulty_cases, guide_records
from profkit.core.errors import MachineError, UsageError, writing
from profkit.core.files.safe_folder import write_whole
from profkit.core.formatting import plural
from profkit.core.run_folder import write_run
from profkit.core.statistics import geometric_mean
from profkit.core.types import (
    RUN,
    CaseResult,
    Fact,
    Gpu,
    Machine,
    Reading,
    RunDocument,
    SampleSet,
    Scope,
    Source,
    SweepDocument,
    Timing,
    Workload,
)
from profkit.hardware.machine import read_machine
from profkit.kernels.campaign import working_directory
from profkit.kernels.sweep.request import SweepGrid

ON_CUDA = "cuda-events"  # the clock of cases on a GPU
CACHE = "cache before each call"  # the fact that tells cold times from warm ones


def write_results(
    folder: Path, document: SweepDocument, grid: SweepGrid, precision: float, name: str
) -> tuple[str, ...]:
    """Write benchmark_results.json, run.json and the reports; return why a report is missing.

    Each file is written whole or not at all. Raises MachineError where the disk is full.
    """
    again = f"make room, then: profkit sweep --resume {folder}"
    write_records(folder / RESULTS, document, again)
    command = ("profkit", "sweep", *grid.arguments())
    run = sweep_as_run(
        document, command, name, working_directory(), read_machine(), _gpus(document), precision
    )
    write_run(folder, run)
    from profkit.reporting.report_files import write_sweep_reports

    return write_sweep_reports(folder, document)


def check_writable(path: Path) -> None:
    """Raise UsageError or MachineError where no records can be written to `path`, before hours of work."""
    if path.is_dir() or not path.name:
        raise UsageError(f"{path} is a folder", shlex.quote(str(path / RESULTS)))
    if not path.parent.is_dir():
        raise MachineError(
            f"{path} cannot be written: No such file or directory",
            f"mkdir -p {shlex.quote(str(path.parent))}",
        )
    if not os.access(path if path.exists() and not path.is_file() else path.parent, os.W_OK):
        raise MachineError(
            f"{path} cannot be written: no permission", f"ls -ld {shlex.quote(str(path.parent))}"
        )


def write_records(path: Path, document: SweepDocument, fix: str = "make room, and call it again") -> None:
    """Write one record for each case, whole or not at all. Raises MachineError where it cannot be written."""
    text = json.dumps(guide_records(document), indent=1, allow_nan=False) + "\n"
    with writing(path, fix):
        write_whole(path, (text,), sync=True)


def _gpus(document: SweepDocument) -> tuple[Gpu, ...]:
    """Return the devices that measured, which decide what the run may be compared with."""
    if not any(result.clock == ON_CUDA for result in document.results):
        return ()
    from profkit.hardware.nvidia import read_gpus

    used = {result.device for result in document.results if result.device is not None}
    alike = [gpu for gpu in read_gpus() if gpu.name == document.device]
    return tuple(alike[: max(1, len(used))])


def sweep_as_run(
    document: SweepDocument,
    command: tuple[str, ...],
    name: str,
    folder: str,
    machine: Machine | None,
    gpus: tuple[Gpu, ...],
    precision: float,
) -> RunDocument:
    """Return the sweep as a run: times of what was measured, and how many cases are not right."""
    measured = [result for result in document.results if result.median]
    caches = sorted({result.cache for result in measured if result.clock == ON_CUDA and result.cache})
    return RunDocument(
        name=name,
        backend="cuda" if any(r.clock == ON_CUDA for r in document.results) else "cpu",
        state="complete" if document.complete else "interrupted",
        workload=Workload(command, name, folder),
        started=document.started,
        machine=machine,
        timings=tuple(_timing(result, precision) for result in measured),
        gpus=gpus,
        facts={CACHE: ", ".join(caches)} if caches else {},
        readings=(
            _fault_reading(document),
            *_mean_readings(measured),
            *(
                Reading(
                    "time.median",
                    result.median,
                    "s",
                    "measured",
                    Scope("region", _case_name(result)),
                    Source("profkit", "seconds", formula=f"median of {result.samples} samples"),
                )
                for result in measured
            ),
        ),
        packages=dict(document.versions),
    )


def _case_name(result: CaseResult) -> str:
    """Return the name of a case in the run."""
    return f"{result.implementation}: {result.point.name}"


def _fault_reading(document: SweepDocument) -> Reading:
    """Return a reading of how many cases are not right, and which is the first."""
    cases = faulty_cases(document)
    fact = None
    if cases:
        first = cases[0]
        name = f"{first.implementation}, {first.point.name}"
        fact = Fact.of("first-fault", *filter(None, [first.reason]), name=name, state=first.state)
    source = Source("profkit", "cases", formula="cases that are wrong by float64, failed, crashed or hung")
    return Reading("cases.faulty", float(len(cases)), "count", "measured", RUN, source, reason=fact)


def _series_name(result: CaseResult) -> str:
    """Return the name of a series: an implementation of an operation in a direction and dtype."""
    point = result.point
    return f"{result.implementation}: {point.operation} {point.direction} {point.dtype}"


def _mean_readings(measured: Sequence[CaseResult]) -> Iterator[Reading]:
    """Yield the mean of each implementation of an operation over all timed shapes: a series in a history.

    The number of shapes is part of its name, so that means over different numbers are never compared.
    """
    groups: dict[str, list[float]] = defaultdict(list)
    for result in measured:
        groups[_series_name(result)].append(result.median or 0.0)
    for name, medians in groups.items():
        scope = Scope("region", f"{name}, {plural(len(medians), 'shape')}")
        source = Source("profkit", "seconds", formula="geometric mean of the shapes' medians")
        mean = geometric_mean(medians)
        yield Reading("time.geometric_mean", mean, "s", "measured", scope, source)


def _timing(result: CaseResult, precision: float) -> Timing:
    """Return the timing of a case."""
    samples = SampleSet(
        seconds=result.seconds,
        loops=result.calls,
        precise=result.precise,
        clock=result.clock or "wall",
        clocks=result.clocks,
        throttle_reasons=result.throttled,
        remarks=result.remarks,
    )
    # What the work is stands in the command. Declared for each case it would be part of what must be alike in two runs:
    # one case that is missing in one of them, and nothing could be compared.
    return Timing(_case_name(result), "benchmark", (samples,), precision, group=_series_name(result))
