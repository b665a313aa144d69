"""The choice of the kernels to count: the fewest configurations that make up the region's GPU time.

Their first warm launches are counted. ncu has two ways to pick launches, and each matched launch that it does
not count costs 10 ms (H200, ncu 2025.3):

- one of each configuration, by a number that is the same for all (`per-launch-config`). The count of none is ever full,
  so launches cost to the end of the program: for regions, in which the profiler is on for few launches.
- a number in a row, from one on (`global`). When they are done, the program runs on freely: for programs that mark
  nothing, where the first stretch of launches is taken that has each configuration in it.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from profkit.analysis.kernel_names import same_name
from profkit.analysis.kernel_names.owner import tuning_kernels
from profkit.analysis.metrics.derive import derive
from profkit.analysis.metrics.formulas import formula_table
from profkit.backends import PassFindings, RunContext
from profkit.backends.cuda.program_source import line_table_definitions
from profkit.backends.passes import read_region_work
from profkit.core.errors import UnreadableReport
from profkit.core.types import (
    Counter,
    Fact,
    GpuTrace,
    Kernel,
    KernelTime,
    PassPlan,
    Reading,
    Report,
    Scope,
)
from profkit.profilers.ncu.command import function_name
from profkit.profilers.registry import recognise_format

# ../docs/cuda.md, "the plan": the tail beyond it is many kernels that no target can matter for.
COVERED = 0.95  # of the GPU time of what can be counted
MAX_KERNELS = 10  # launch configurations
# A collective waits for its partners: replayed alone it hangs (NVIDIA/nccl issues 466, 536).
_COLLECTIVE = re.compile(r"nccl|nvshmem|AllReduce|one_shot_all|two_shot_all|multimem_", re.IGNORECASE)
# What fills tensors with numbers. In a marked region it is the workload's own (dropout is one), and counted.
_INITIALISER = re.compile(
    r"distribution_(elementwise|nullary)|curand|philox_|random_(from_to|kernel)|FillFunctor|generate_seed|memset"
    r"|randperm|arange_cuda|eye_kernel",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ChosenKernels:
    """The kernels to count, largest total first; `seconds` is the GPU time of all kernels, counted or not."""

    kernels: tuple[KernelTime, ...]
    seconds: float
    notes: tuple[Fact, ...] = ()

    def share(self, kernel: KernelTime) -> float:
        """Return the kernel's share of the region's GPU time, 0..1."""
        return kernel.total / self.seconds if self.seconds > 0 else 0.0


def choose_kernels(trace: GpuTrace, most: int = MAX_KERNELS) -> ChosenKernels:
    """Choose the launch configurations that make up 95 % of the GPU time, at most `most`.

    Notes say what is left out.
    """
    of_tuners = tuning_kernels(trace)
    candidates = [timed for timed in trace.kernels if timed.kernel not in of_tuners]
    seconds = sum(kernel.total for kernel in candidates)
    left = len(trace.kernels) - len(candidates)
    notes = [Fact.of("tuning-not-counted", count=left)] if left else []
    for pattern in (_COLLECTIVE,) if trace.marked else (_COLLECTIVE, _INITIALISER):
        dropped = [k for k in candidates if pattern.search(k.kernel.name)]
        remaining = [k for k in candidates if not pattern.search(k.kernel.name)]
        if not dropped or (not remaining and pattern is _INITIALISER):
            continue  # a workload that only draws random numbers is one
        candidates = remaining
        amount = {"share": _share(dropped, seconds), "count": len(dropped)}
        is_collective = pattern is _COLLECTIVE
        notes.append(
            Fact.of("collectives-not-counted" if is_collective else "initialisers-not-counted", **amount)
        )
    candidates.sort(key=lambda kernel: -kernel.total)
    wanted = COVERED * sum(kernel.total for kernel in candidates)
    chosen: list[KernelTime] = []
    for kernel in candidates:
        if sum(k.total for k in chosen) >= wanted:
            break
        chosen.append(kernel)
    if len(chosen) > most:
        share = _share(chosen[:most], seconds)
        notes.append(Fact.of("largest-counted", all=len(chosen), covered=COVERED, count=most, share=share))
    return ChosenKernels(tuple(chosen[:most]), seconds, tuple(notes))


def _share(kernels: list[KernelTime], seconds: float) -> float:
    """Return the share of these kernels in `seconds`, 0..1."""
    return sum(k.total for k in kernels) / seconds if seconds > 0 else 0.0


WARMED = 1  # launches of a benchmark's region passed over; its warm-up came before
SEEN = 2  # launches of each configuration after which it is taken to be warm
MATCHED_SECONDS = 0.010  # of a launch that is matched and not counted
COUNTED_SECONDS = 0.05  # of one that is counted, in one replay pass: 26 to 54 ms
WIDEST = 100  # launches of a window


@dataclass(frozen=True)
class CountedLaunches:
    """The launches that a run of the workload under ncu counts.

    That is each of `kernels` at its launch number `launch`, or all launches in `window`: how many to skip, and
    how many to count, of those that match the names of the kernels that it is `over`.
    """

    kernels: tuple[KernelTime, ...]
    launch: int = 0
    window: tuple[int, int] | None = None
    over: tuple[KernelTime, ...] = ()

    def seconds(self, replays: int | None) -> float:
        """Return the seconds that ncu adds to the program, for the counted launches and the skipped ones."""
        passed, counted = self.window if self.window is not None else (0, len(self.kernels))
        own = sum(kernel.total / max(1, kernel.launches) for kernel in self.kernels)
        return (replays or 1) * (counted * COUNTED_SECONDS + own) + passed * MATCHED_SECONDS


def count_in_benchmark(kernels: Sequence[KernelTime], traced: int) -> tuple[CountedLaunches, int]:
    """Return what to count in a benchmark's region that was traced for `traced` iterations, and its iterations.

    It runs until each configuration was launched often enough, where that is possible.
    """
    rarest = min((kernel.launches for kernel in kernels), default=traced)
    iterations = max(1, min(traced, -(-traced * (WARMED + 1) // max(1, rarest))))
    there = max(1, rarest * iterations // max(1, traced))
    return CountedLaunches(tuple(kernels), min(WARMED, there - 1)), iterations


def entries_needed(kernels: Sequence[KernelTime], entries: int, processes: int) -> tuple[int, int]:
    """Return how many of a process's entries of a region to skip, and how many to count.

    Each configuration should come up in them. Launches are those of all `processes`.
    """
    rarest = min((kernel.launches for kernel in kernels), default=1)
    looked = max(1, min(entries, -(-entries * max(1, processes) // max(1, rarest))))
    return min(SEEN, max(0, entries - looked)), looked


def count_in_program(
    trace: GpuTrace,
    kernels: Sequence[KernelTime],
    matches: Callable[[Kernel], bool],
    *,
    replays: int = 1,
    max_seconds: float = inf,
) -> CountedLaunches:
    """Return the first stretch of warm launches with all of `kernels`, in a program that runs as it was traced.

    Where there is none, or it takes longer than `max_seconds`, the stretch with most GPU time. `matches`:
    whether ncu's name filter takes a kernel. A kernel that is not in the trace's order is launched too late to be
    waited for.
    """
    order = [number for number in trace.order if matches(trace.kernels[number].kernel)]
    wanted = {number for number, k in enumerate(trace.kernels) if k in kernels} & set(order)
    # ncu counts from the begin of the marked part, else of the program
    set_up = () if trace.marked else (*trace.kernels, *trace.setup)
    before = sum(k.setup_launches for k in set_up if matches(k.kernel))

    def seconds(begin: int, end: int) -> float:
        return MATCHED_SECONDS * (before + begin) + COUNTED_SECONDS * replays * (end - begin)

    places = _warm_places(order, wanted)
    best: dict[int, int] = {}
    for first, (begin, _) in enumerate(places):
        if best and (len(best) == len(wanted) or seconds(begin, begin + 1) > max_seconds):
            break
        there: dict[int, int] = {}  # number -> where it was last
        whole: dict[int, int] = {}  # the same when the last of them had come
        for at, number in places[first : first + WIDEST]:
            too_far = at - begin >= WIDEST or seconds(begin, at + 1) > max_seconds
            if len(there) == len(wanted) or (there and too_far):
                break
            is_new = number not in there
            there[number] = at
            whole = dict(there) if is_new else whole
        if _gpu_seconds(trace, whole) > _gpu_seconds(trace, best):
            best = whole
    if not best:
        return CountedLaunches(())
    begin, end = min(best.values()), max(best.values()) + 1
    counted = tuple(sorted((trace.kernels[number] for number in best), key=lambda k: -k.total))
    return CountedLaunches(counted, 0, (before + begin, end - begin), tuple(kernels))


def _gpu_seconds(trace: GpuTrace, numbers: Iterable[int]) -> float:
    """Return the GPU time of these kernels, in seconds."""
    return sum(trace.kernels[number].total for number in sorted(numbers))


def _warm_places(order: Sequence[int], wanted: set[int]) -> list[tuple[int, int]]:
    """Return where each of `wanted` was launched, in order, without its first two; its last launch always stays."""
    left = collections.Counter(number for number in order if number in wanted)
    passed = {number: min(SEEN, count - 1) for number, count in left.items()}
    places: list[tuple[int, int]] = []
    for at, number in enumerate(order):
        if number in wanted:
            if passed[number]:
                passed[number] -= 1
            else:
                places.append((at, number))
    return places


# ------------------------------------------------------------ what ncu left, under the names of the trace

# The two tools spell a kernel differently: ncu says `<unnamed>::f<2>`, nsys `(anonymous namespace)::f<(int)2>`. Under
# one name a kernel's share of time and its counters meet.

_WORD = re.compile(r"[^<(]*?(\w+)\s*(?:<|\(|$)")
_LONGEST = 20_000  # characters of a name that are looked at


def match_kernels(
    traced: Sequence[Kernel], counted: Sequence[Kernel], *, launched_alike: bool = True
) -> dict[Scope, Scope]:
    """Return the traced scope of every counted configuration that was traced.

    By the mangled name where both tools give it; else by the demangled one, spelled alike; else by its last word,
    where only one of each is left with that word, grid and block. Where they were not `launched_alike`, finally
    by the name alone, where one of each has it.
    """
    scopes: dict[Scope, Scope] = {}
    free, left = list(dict.fromkeys(traced)), list(dict.fromkeys(counted))
    keys: tuple[Callable[[Kernel], str | None], ...] = (
        lambda kernel: kernel.mangled,
        lambda kernel: same_name(kernel.name),
        _last_word,
    )
    for key in keys:
        pairs: list[tuple[Kernel, Kernel]] = []
        for kernel in left:
            alike = [k for k in free if _may_be(k, kernel) and key(k) is not None and key(k) == key(kernel)]
            if len({k.scope for k in alike}) == 1:
                pairs.append((kernel, alike[0]))
        if key is _last_word:  # it tells instances of a template apart no more
            pairs = [pair for pair in pairs if sum(other_pair[1] == pair[1] for other_pair in pairs) == 1]
        scopes |= {kernel.scope: match.scope for kernel, match in pairs}
        left = [kernel for kernel in left if kernel.scope not in scopes]
        taken = set(scopes.values())
        free = [kernel for kernel in free if kernel.scope not in taken]
    for kernel in left if not launched_alike else ():
        name = same_name(kernel.name)
        named, others = ([k for k in some if same_name(k.name) == name] for some in (traced, counted))
        if len(named) == len(others) == 1:
            scopes[kernel.scope] = named[0].scope
    return scopes


def _may_be(traced: Kernel, counted: Kernel) -> bool:
    """Return whether shape, and mangled name where both have one, allow that the kernels are the same."""
    if (traced.grid, traced.block) != (counted.grid, counted.block):
        return False
    return traced.mangled is None or counted.mangled is None or traced.mangled == counted.mangled


def _last_word(kernel: Kernel) -> str | None:
    """Return the bare name of a kernel, such as `softmax_warp_forward`."""
    name = kernel.name[:_LONGEST].replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    match = _WORD.match(name)
    return match[1] if match is not None else None


# Facts of one pass, which differ between the counters and what explains them.
_NAMED = 5
_OF_PASS = ("replay passes", "sections/metrics", "clocks", "cache control", "replay")


def read_counters(context: RunContext, plan: PassPlan) -> PassFindings:
    """Read counters and readings of each launch configuration.

    The pass that explains reads the counters of the earlier pass as well, since some formulas need both. Raises
    UnreadableReport where the run left no report.
    """
    (step,) = plan.steps
    report = _with_traced_names(_read_report(context.folder / step.artifacts[0]), plan)
    before = [] if plan.name == "counters" else _earlier_reports(context, plan)
    fresh = _merge_counters(report.counters)
    here = {counter.scope for counter in fresh}
    known = _merge_counters(
        [*fresh, *(c for _, earlier in before for c in earlier.counters if c.scope in here)]
    )
    facts = report.facts
    if plan.name == "explain":
        facts = {f"{name} (explain)": value for name, value in facts.items() if name in _OF_PASS}
    _require_planned(plan, fresh)
    notes = [*report.warnings, *read_region_work(context.folder, step.name).notes]
    gone = _missing_note(plan, fresh)
    if gone:
        notes.append(gone)
    if plan.name == "counters" and not plan.kernels:
        notes.append(Fact("shares-of-one-launch"))
    return PassFindings(
        counters=fresh,
        readings=_derive_readings(known, [(step.artifacts[0], report), *before]),
        gpus=report.gpus,
        trace=report.trace if plan.name == "counters" else None,
        instructions=report.instructions,
        kernel_lines=line_table_definitions(report.instructions),
        rules=report.rules,
        facts=facts,
        notes=tuple(dict.fromkeys(notes)),
    )


def _read_report(path: Path) -> Report:
    """Read a report of ncu. Raises UnreadableReport if there is none, or nothing was counted."""
    if not path.is_file():
        raise UnreadableReport(f"ncu left no report: no launch of a planned kernel was seen ({path.name})")
    report = recognise_format(path).read(path)
    if not report.counters:
        raise UnreadableReport(f"{path.name} holds no counted kernel")
    return report


# Under ncu 2025.3 a program of JAX 0.11 whose steps are CUDA graphs ends with SIGSEGV. This is added to what the user
# has set. The kernels are the same, each launched by itself.
XLA_FLAGS, NO_GRAPHS = "XLA_FLAGS", "--xla_gpu_enable_command_buffer="
# It also crashes now and then while several threads of XLA compile: the same program, three times in a row, twice. With
# one compilation at a time it did not; that takes longer, so it is the second try.
ONE_COMPILATION = "--xla_gpu_force_compilation_parallelism=1"


def _with_traced_names(report: Report, plan: PassPlan) -> Report:
    """Return the report with the names of the plan, which are the trace's."""
    kernels = [k.kernel for k in report.trace.kernels] if report.trace is not None else []
    alike = all(NO_GRAPHS not in step.env.get(XLA_FLAGS, "") for step in plan.steps)
    planned = [planned_kernel.kernel for planned_kernel in plan.kernels]
    same = match_kernels(planned, kernels, launched_alike=alike)
    counters = tuple(replace(c, scope=same.get(c.scope, c.scope)) for c in report.counters)
    return replace(report, counters=counters)


def _earlier_reports(context: RunContext, plan: PassPlan) -> list[tuple[str, Report]]:
    """Return the reports of the counters pass of this run, as far as they can be read."""
    reports = []
    for path in sorted((context.folder / "artifacts").glob("counters*.ncu-rep")):
        try:
            reports.append((f"artifacts/{path.name}", _with_traced_names(_read_report(path), plan)))
        except UnreadableReport:
            continue
    return reports


def _merge_counters(counters: Iterable[Counter]) -> tuple[Counter, ...]:
    """Return each counter of a kernel once: with a value where any report has one, else the first."""
    merged: dict[tuple[object, str], Counter] = {}
    for counter in counters:
        place = (counter.scope, counter.name)
        before = merged.get(place)
        if before is None or (before.value is None and counter.value is not None):
            merged[place] = counter
    return tuple(merged.values())


def _derive_readings(counters: tuple[Counter, ...], reports: list[tuple[str, Report]]) -> tuple[Reading, ...]:
    """Return the readings, each with the report that holds its counters."""
    table = formula_table("ncu")
    places = {(c.scope, c.name): artifact for artifact, r in reversed(reports) for c in r.counters}
    readings = derive(counters, table, "ncu", reports[0][0])
    return tuple(
        replace(
            r, source=replace(r.source, artifact=places.get((r.scope, r.source.counter or ""), reports[0][0]))
        )
        for r in readings
    )


def _require_planned(plan: PassPlan, counters: tuple[Counter, ...]) -> None:
    """Raise UnreadableReport where ncu counted other functions only, and none of the planned ones."""
    wanted = {function_name(planned.kernel.name) for planned in plan.kernels}
    there = {function_name(c.scope.name or "") for c in counters if c.scope.kind == "kernel"}
    if wanted and there and not wanted & there:
        names = ", ".join(sorted(there)[:_NAMED])
        raise UnreadableReport(
            f"ncu counted none of the planned kernels, but others: {names}",
            "if the workload chooses its kernels anew in each process, make it always choose the same ones",
        )


def _missing_note(plan: PassPlan, counters: tuple[Counter, ...]) -> Fact | None:
    """Return a note of the planned kernels that no report has."""
    there = {counter.scope for counter in counters}
    gone = [planned for planned in plan.kernels if planned.kernel.scope not in there]
    if not gone:
        return None
    return Fact.of("kernels-not-seen", count=len(gone), share=sum(planned.share for planned in gone))
