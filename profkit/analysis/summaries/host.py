"""Readings of the host: times of an iteration, a processor's counters, a Python process's time and memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.analysis.summaries.readings import TOOL, unavailable_reading
from profkit.core import statistics
from profkit.core.inference import Centre, combine_processes
from profkit.core.types import (
    RUN,
    Allocations,
    Counter,
    Fact,
    Hotspot,
    Profile,
    ProfileKind,
    Quality,
    Reading,
    RunDocument,
    Scope,
    Source,
    TimeSplit,
    Timing,
)

if TYPE_CHECKING:
    from profkit.core.process_tree import TreeUse  # psutil behind it costs 20 ms

CACHE = (
    "cache.l1.miss_rate",
    "cache.l2.miss_rate",
    "cache.l3.miss_rate",
    "cache.last.miss_rate",
    "cache.l1i.miss_rate",
    "cache.l1i.mpki",
)
BRANCHES = ("branch.count", "branch.miss_rate")
INSTRUCTIONS = (
    "instructions",
    "cycles",
    "ipc",
    "frequency",
    "simd.utilization",
    "stalls.frontend",
    "stalls.backend",
    "tlb.data.miss_rate",
)
HOTTEST = 5  # functions that are judged: each of their verdicts is something to work on
WORTH = 0.05  # share of the whole below which a function's verdict would not pay the work
SAMPLED = ("functions", "python-functions", "libraries", "threads")


def counted_profile(profiles: Sequence[Profile]) -> Profile | None:
    """Return the profile whose functions carry instruction counts, or None."""
    return next(
        (profile for profile in profiles if any("Ir" in spot.counters for spot in profile.hotspots)), None
    )


def function_readings(profiles: Sequence[Profile], tool: str) -> tuple[Reading, ...]:
    """Return metrics of the hottest functions, from the counters that `tool` simulated for each; empty without any."""
    profile = counted_profile(profiles)
    if profile is None:
        return ()
    hottest = sorted(profile.hotspots, key=lambda spot: -spot.own)[:HOTTEST]
    counters = [
        Counter(
            name,
            value,
            "measured",
            scope=Scope("function", spot.function, spot.library or spot.file),
            doubt=profile.doubt,
        )
        for spot in hottest
        if profile.total > 0 and spot.own >= WORTH * profile.total
        for name, value in spot.counters.items()
    ]
    return derive(counters, formula_table(tool), tool) if counters else ()


# What simulated work costs on a processor. An access to memory: from the load to the value, of servers and desktops
# alike 80 to 120 ns (Intel's Memory Latency Checker). A mispredicted branch: 15 to 20 cycles on all big cores (Agner
# Fog, "The microarchitecture of Intel, AMD and VIA CPUs").
MEMORY_SECONDS, MISPREDICTION_CYCLES = 90e-9, 15
UNDER_WAY = 10  # lines that one core waits for at a time: its line fill buffers, 10 to 16 of big cores
EACH_MISSES = 0.5  # of the loads of a line of source; in order, at most one of 8 does
EACH_CYCLE = 3.0  # instructions of code that waits for nothing
USUAL_CLOCK = 3e9  # Hz, where the machine's own is not known
MIN_SIMULATED = 0.1  # of a run: what less of it shows is not said of the run
# Of a part that began late: enough to fill the caches, and half of the time where the run's samples are. A column sum
# of numpy had 0.78 of its samples and 0.61 of its instructions in numpy's library.
MIN_INSTRUCTIONS, ALIKE = 10e6, 0.5
_PARTS = {"simulated-part", "simulated-beginning", "simulated-hot-place"}


def clock_of(document: RunDocument) -> float:
    """Return the processor's clock in Hz."""
    machine = document.machine
    return machine.max_mhz * 1e6 if machine is not None and machine.max_mhz else USUAL_CLOCK


def simulated_cycles(document: RunDocument, counts: Mapping[str, float]) -> dict[str, float]:
    """Return what the counts of a simulation (Ir, DLmr, Bcm) cost about: cycles of `work`, of `memory` and of
    `branches`.
    """
    misses = counts.get("DLmr", 0.0)
    return {
        "work": counts.get("Ir", 0.0) / EACH_CYCLE,
        "memory": misses
        * MEMORY_SECONDS
        * clock_of(document)
        / (1 if is_chained(document, misses) else UNDER_WAY),
        "branches": counts.get("Bcm", 0.0) * MISPREDICTION_CYCLES,
    }


# Bytes in a cycle that a big core moves into its caches while it streams: low values of what is usual, so that fewer
# misses are called hidden. They were not measured here.
FROM_L2, FROM_L3 = 25.0, 10.0


def refill_readings(document: RunDocument) -> tuple[Reading, ...]:
    """Return cache.refill.ratio of the run and of each function whose missed lines and FLOPs were simulated.

    Levels refill at once, so the slowest counts; a core cannot compute faster than the measured peak of one thread.
    Nothing where the next address comes with each value from memory: then a core waits, however little it moves.
    """
    peaks, names = document.peaks, ("cache.l1.refill", "cache.l2.refill", "arithmetic_intensity")
    misses = sum(c.value or 0.0 for c in document.counters if c.name in ("I3mr", "D3mr", "D3mw"))
    if peaks is None or not peaks.flops_f32_one or not peaks.bandwidth_one or is_chained(document, misses):
        return ()
    known = {(r.metric, r.scope): r.value for r in document.readings if r.value is not None}
    readings = []
    for scope in dict.fromkeys(scope for metric, scope in known if metric == "cache.l1.refill"):
        of_l1, of_l2, intensity = (known.get((name, scope)) for name in names)
        if of_l1 is None or of_l2 is None:
            continue
        clock = clock_of(document)
        of_memory = (
            1 / intensity / peaks.bandwidth_one if intensity else 0.0
        )  # without: nothing came from there
        seconds = max(of_l1 / FROM_L2 / clock, of_l2 / FROM_L3 / clock, of_memory)
        formula = "longest of the refills from L2, L3 and memory of a FLOP * float32 peak of one thread"
        source = Source(TOOL, counter=", ".join(names), formula=formula)
        ratio = seconds * peaks.flops_f32_one
        readings.append(Reading("cache.refill.ratio", ratio, "x", "estimated", scope, source))
    return tuple(readings)


def is_chained(document: RunDocument, misses: float) -> bool:
    """Return whether the next address comes with each value that is loaded from memory, as far as that was counted."""
    return misses > 0 and _counted_loads(document, "chained") >= EACH_MISSES * misses


def is_strided(document: RunDocument, misses: float) -> bool:
    """Return whether loads that are a large, equal step apart are as many as those that miss, as far as that was
    counted.
    """
    return misses > 0 and _counted_loads(document, "strided") >= EACH_MISSES * misses


def _counted_loads(document: RunDocument, name: str) -> float:
    return next((c.value or 0.0 for c in document.counters if c.name == name and c.scope == RUN), 0.0)


def simulated_share(document: RunDocument) -> float | None:
    """Return the approximate share (0..1) of the run's work in a partial simulation; None if it saw all."""
    if not any(_is_of_part(reading) for reading in document.readings):
        return None
    counts = {c.name: c.value for c in document.counters if c.scope == RUN and c.value is not None}
    split = document.time_split
    seconds = (split.cpu or split.wall) if split is not None else 0.0
    seen = sum(simulated_cycles(document, counts).values()) / clock_of(document)
    return min(1.0, seen / seconds) if seconds > 0 else 0.0


def _is_of_part(reading: Reading) -> bool:
    reason = reading.reason
    return reason is not None and bool(_PARTS & {reason.code, *(part.code for part in reason.parts)})


def without_small_part(document: RunDocument, tool: str) -> RunDocument:
    """Return the document without the values that `tool` simulated, if the simulation saw too little of the run.

    That is less than a tenth of the run, unless it began late and was where the run's time is: in the same libraries.
    """
    share = simulated_share(document)
    if share is None or share >= MIN_SIMULATED or _is_typical(document):
        return document
    why = Fact.of("little-simulated", share=share)
    readings = (
        replace(reading, value=None, quality="unavailable", share=None, reason=why)
        if reading.source.tool == tool and reading.value is not None
        else reading
        for reading in document.readings
    )
    return replace(document, readings=tuple(readings))


def _is_typical(document: RunDocument) -> bool:
    """Return whether what was simulated is neither the beginning nor a moment, and ran where perf's samples of the run
    are.
    """
    whys = [reading.reason for reading in document.readings if _is_of_part(reading)]
    if any(
        "simulated-beginning" in (why.code, *(p.code for p in why.parts)) for why in whys if why is not None
    ):
        return False
    sampled = next(
        (profile for profile in document.profiles if profile.kind == "libraries" and profile.total > 0), None
    )
    counted = next((profile for profile in document.profiles if profile.kind == "counted-functions"), None)
    if sampled is None or counted is None or counted.total < MIN_INSTRUCTIONS:
        return False
    there: dict[str, float] = {}
    for spot in counted.hotspots:
        name = (spot.library or "").rpartition("/")[2]
        there[name] = there.get(name, 0.0) + spot.own / counted.total
    return (
        sum(min(spot.own / sampled.total, there.get(spot.library or "", 0.0)) for spot in sampled.hotspots)
        >= ALIKE
    )


def is_sampled(profile: Profile) -> bool:
    """Return whether a profile consists of samples that were added up, by function, library or thread."""
    counted = any("Ir" in spot.counters for spot in profile.hotspots) or profile.unit == "instructions"
    return profile.kind in SAMPLED and not counted


# Values from the cProfile reader; times in seconds.
CPROFILE_KINDS: tuple[ProfileKind, ...] = ("own-time", "imports")


def has_samples(profiles: Sequence[Profile]) -> bool:
    """Return whether Python stacks were sampled."""
    return any(profile.kind == "sampled-functions" for profile in profiles)


def has_cprofile(profiles: Sequence[Profile]) -> bool:
    """Return whether cProfile's results are there."""
    return any(profile.kind in CPROFILE_KINDS for profile in profiles)


def python_readings(profiles: Sequence[Profile]) -> tuple[Reading, ...]:
    """Return time.python and time.import (s): by cProfile if it saw the whole run, else by sampled stacks.

    cProfile slows Python code and not native code: its times are not those of the timing pass. What it saw of a run
    that went on without it is less than the whole, and an import may have been cut.
    """
    kinds = {profile.kind: profile for profile in profiles}
    own, imports = kinds.get("own-time"), kinds.get("imports")
    cut = own is not None and own.partial
    if own is not None and not (cut and "sampled-functions" in kinds):
        early = Fact.of("ended-early", name="cProfile", seconds=own.total) if cut else None
        imported = imports.total if imports is not None else 0.0
        formula = "own time of all functions - import time"
        readings = [
            _reading(
                "time.python",
                max(0.0, own.total - imported),
                "s",
                formula,
                "cprofile",
                doubt=own.doubt or early,
            )
        ]
        if imports is not None:
            formula = "cumulative time of the import system"
            readings.append(
                _reading("time.import", imports.total, "s", formula, "cprofile", doubt=imports.doubt or early)
            )
        return tuple(readings)
    functions, sampled = kinds.get("sampled-functions"), kinds.get("sampled-imports")
    if functions is None or (has_cprofile(profiles) and not cut):
        return ()
    seconds = sum(spot.own for spot in functions.hotspots)
    formula = "processor time sampled outside of imports"
    readings = [_reading("time.python", seconds, "s", formula, "stacks", "estimated")]
    if sampled is not None:
        formula = "wall time sampled in imports"
        readings.append(_reading("time.import", sampled.total, "s", formula, "stacks", "estimated"))
    return tuple(readings)


def _reading(
    name: str,
    value: float,
    unit: str,
    formula: str,
    tool: str,
    quality: Quality = "measured",
    doubt: Fact | None = None,
) -> Reading:
    return Reading(name, value, unit, quality, RUN, Source(tool, formula=formula), doubt=doubt)


def allocation_readings(allocations: Allocations) -> tuple[Reading, ...]:
    """Return memory.python_peak (B, of the region if one was marked) and memory.python_growth (B/iteration).

    Growth is the part that is certain: the lower end of the 95 % interval of the Theil-Sen slope, at least 0.
    """
    growth, name = allocations.growth, "memory.python_growth"
    peak = allocations.region_peak if allocations.region_peak is not None else allocations.peak
    where = "in the region" if allocations.region_peak is not None else "of the whole process"
    formula = f"largest traced size {where}"
    # What ended before its program did has not seen the most that it held.
    early = next((note for note in allocations.notes if note.code == "ended-early"), None)
    of_peak = _reading("memory.python_peak", float(peak), "B", formula, "tracemalloc", doubt=early)
    if growth.low is None:
        return of_peak, unavailable_reading(name, RUN, growth.reason, source=Source("tracemalloc"))
    formula = "lower end of the 95 % interval of bytes held per iteration, at least 0"
    return of_peak, _reading(name, max(0.0, growth.low), "B/iteration", formula, "tracemalloc")


FEW_RUNS, MIN_SAMPLING = 4.0, 10  # of the median in each of three processes, and seconds, for an interval
FOR_P95, FOR_P99 = 20, 100  # samples; with fewer the percentile is the slowest sample under another name


# Of the time: from here on a rate over the time, or a share of a peak, is as much the other programs' as this one's.
MIN_SHARE_OF_OTHERS = 0.1


def share_of_others(document: RunDocument) -> float:
    """Return the share (0..1) of the run in which it could have run, and other programs had the processors."""
    split = document.time_split
    if split is None or not split.queued or split.wall <= 0:
        return 0.0
    return split.queued / split.wall


def is_disturbed(document: RunDocument) -> bool:
    """Return whether other programs had the processors for so long that its times say little of itself."""
    return share_of_others(document) >= MIN_SHARE_OF_OTHERS


_WAITING = re.compile(
    r"gomp_(team_barrier|barrier|mutex|sem|thread)|GOMP_barrier|do_spin|__?kmp|blas_thread_server|sched_yield|"
    r"mkl_serv_.*(wait|barrier)|exec_blas|rayon_core::(sleep|registry)"
)
# What these do for themselves is to start threads and to let them wait; their functions have no names where stripped.
_OPENMP = re.compile(r"lib(gomp|iomp5|omp)\b")


def share_of_functions(document: RunDocument, names: re.Pattern[str]) -> float:
    """Return the share (0..1) of the processor time in native functions of such a name, by their samples."""
    return _share_of_profile(document, "functions", lambda hotspot: hotspot.function, names)


INTERPRETER = re.compile(r"\b(lib)?python\d", re.IGNORECASE)  # Python's own code
# The libraries that compute products of matrices.
LINEAR_ALGEBRA = re.compile(
    r"lib(\w*openblas\w*|mkl\w*|blis|cblas|torch_cpu|lapack)\b|accelerate", re.IGNORECASE
)


def share_of_libraries(document: RunDocument, names: re.Pattern[str]) -> float:
    """Return the same of libraries."""
    return _share_of_profile(document, "libraries", lambda hotspot: hotspot.library or "", names)


def share_of_waiting_threads(document: RunDocument) -> float:
    """Return the share (0..1) of the processor time in which threads of OpenMP or BLAS wait for each other."""
    return max(share_of_functions(document, _WAITING), share_of_libraries(document, _OPENMP))


def _share_of_profile(
    document: RunDocument, kind: ProfileKind, name: Callable[[Hotspot], str], names: re.Pattern[str]
) -> float:
    profile = next(
        (profile for profile in document.profiles if profile.kind == kind and profile.unit == "s"), None
    )
    if profile is None or profile.total <= 0:
        return 0.0
    return sum(hotspot.own for hotspot in profile.hotspots if names.search(name(hotspot))) / profile.total


def scope_of(timing: Timing) -> Scope:
    """Return the region that was timed, or the run where the whole process was."""
    return RUN if timing.kind == "process" else Scope("region", timing.name)


def time_readings(timing: Timing) -> tuple[Reading, ...]:
    """Return every time.* metric of one timing: seconds per iteration, or per cent of the median.

    The median is that of the processes' medians, the interval 95 % by order statistics with the effective
    sample size (`combine_processes`). Unavailable, with the reason, where there are too few samples.
    """
    scope = scope_of(timing)
    samples = [s for process in timing.processes for s in process.seconds]
    centre = combine_processes(tuple(process.seconds for process in timing.processes))
    if centre is None or centre.median <= 0:
        return (unavailable_reading("time.median", scope, Fact("no-sample")),)
    median = centre.median

    def reading(name: str, value: float, unit: str, formula: str) -> Reading:
        return Reading(name, value, unit, "measured", scope, Source(TOOL, "seconds", formula=formula))

    readings = [
        reading("time.median", median, "s", "median of the processes' medians"),
        reading("time.mean", sum(samples) / len(samples), "s", "mean of all samples"),
        reading("time.minimum", min(samples), "s", "smallest sample"),
        reading("time.maximum", max(samples), "s", "largest sample"),
        _interval_reading(timing, scope, centre, len(samples)),
    ]
    if len(samples) > 1:
        width = statistics.percentile(samples, 75) - statistics.percentile(samples, 25)
        readings.append(reading("time.spread", 100 * width / median, "%", "100 * (p75 - p25) / median"))
    for name, percent_, least in (("time.p95", 95, FOR_P95), ("time.p99", 99, FOR_P99)):
        if len(samples) >= least:
            formula = f"{percent_}th percentile of all samples"
            readings.append(reading(name, statistics.percentile(samples, percent_), "s", formula))
    first = [process.warmup[0] for process in timing.processes if process.warmup]
    if first:
        formula = "median of the processes' first iterations"
        readings.append(reading("time.first", statistics.median(first), "s", formula))
    if centre.between_spread is not None:
        formula = "100 * (largest - smallest median of a process) / median"
        readings.append(reading("time.processes", 100 * centre.between_spread, "%", formula))
    return tuple(readings)


def _interval_reading(timing: Timing, scope: Scope, centre: Centre, count: int) -> Reading:
    if centre.low is None or centre.high is None:
        few = Fact.of("no-interval", samples=count, processes=len(timing.processes))
        seconds = max(MIN_SAMPLING, ceil(FEW_RUNS * centre.median))
        return unavailable_reading("time.interval", scope, few, f"--sampling {seconds}")
    half = 100 * (centre.high - centre.low) / 2 / centre.median
    source = Source(TOOL, "seconds", formula="100 * half the 95 % interval of the median / median")
    return Reading("time.interval", half, "%", "measured", scope, source)


# ------------------------------------------------------------ where the wall time went

WINDOW = 0.25  # s: the kernel counts processor time in steps of 10 ms, so a shorter one cannot show waiting
UNSURE = 0.05  # of a window: what is missing to a whole one is no wait


def time_split(
    usage: Sequence[tuple[float, float, float]], startup: float | None = None, use: TreeUse | None = None
) -> TimeSplit | None:
    """Return the split of one process by looks at it (see `core.process.ProcessOutcome.usage`).

    In a window in which less processor time was used than wall time went by, the difference was spent waiting: for a
    processor as far as threads stood in its queue, else for something else. `startup`: seconds before the part that
    counts, `use`: what else it used. None if nothing was observed. If a run is shorter than a window, it is not known
    what it waited for: it may have ended before the first look at the queues.
    """
    if not usage or usage[-1][0] <= 0:
        return None
    wall, cpu, _ = usage[-1]
    waiting = queued = 0.0
    before = (0.0, 0.0, 0.0)
    for look in usage:
        gone, spent, stood = (now - then for now, then in zip(look, before, strict=True))
        if gone < WINDOW and look[0] < wall:
            continue
        missing = gone - spent
        if missing > UNSURE * gone:
            for_processor = min(missing, max(0.0, stood))
            queued += for_processor
            waiting += missing - for_processor
        before = look
    known = wall >= WINDOW
    working = max(1e-9, wall - waiting - queued)
    return TimeSplit(
        wall,
        startup=startup,
        steady=max(0.0, wall - startup) if startup is not None else None,
        waiting=min(wall, waiting) if known else None,
        queued=min(wall, queued) if known else None,
        cpu=cpu,
        threads=cpu / working if known and cpu > 0.01 * wall else None,
        thread_count=use.threads or None if use is not None else None,
        read=float(use.read) if use is not None and use.calls else None,
        written=float(use.written) if use is not None and use.calls else None,
        io_calls=use.calls or None if use is not None else None,
        faults=use.faults or None if use is not None else None,
        kernel=use.kernel if use is not None and use.faults else None,
    )
