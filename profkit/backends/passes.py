"""What the runs of all backends share: timing, Python's own instruments, and counts of a region per iteration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, get_args

from profkit.analysis.stacks.files import write_collapsed, write_speedscope
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import (
    Counter,
    Depth,
    Directive,
    Gpu,
    PassName,
    PassPlan,
    PassResult,
    Plan,
    Profile,
    Stacks,
    Step,
    Switch,
    Workload,
)
from profkit.profilers.cprofile.read import read_cprofile, read_pass_notes
from profkit.profilers.stacks.read import read_stacks
from profkit.runtime.passes.command import host_command, sampling_environment
from profkit.runtime.passes.read import read_records, read_tracemalloc
from profkit.runtime.region.perf_control import OTHER_PROCESS_IN_REGION

ALL_PASSES: tuple[PassName, ...] = ("timing", "stacks", "cprofile", "tracemalloc", "trace", "counters")
# Beside a device: sampled stacks say where its host spends the time, and slow nothing down.
DEVICE_PASSES: tuple[PassName, ...] = tuple(name for name in ALL_PASSES if name != "cprofile")

PassTable: TypeAlias = "Mapping[Depth, tuple[PassName, ...]]"


class PlannedRun:
    """A run with timing, cProfile and tracemalloc. A backend adds its own passes.

    Those that `plan_pass` plans are read by `read_pass`.
    """

    name: ClassVar[str]
    # What each depth asks for. Passes run in this order: first what needs no tool, last what takes longest.
    passes: ClassVar[PassTable] = {
        "gate": ("timing", "counters"),
        "standard": ALL_PASSES,
        "full": ALL_PASSES,
    }
    processes: ClassVar[Mapping[Depth, int]] = {"gate": 1, "standard": 3, "full": 5}  # of the timing pass
    # of a device, at whose work a region's ends wait while it is timed
    switch: ClassVar[Switch | None] = None
    late_allocations: ClassVar[bool] = False  # tracemalloc begins with the region

    def __init__(self, context: RunContext, gpus: tuple[Gpu, ...] = ()) -> None:
        self.context, self.gpus = context, gpus

    @property
    def wanted(self) -> tuple[str, ...]:
        """The names of the passes that were asked for."""
        return self.context.wanted or self.passes[self.context.depth]

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the tools that the asked passes use."""
        return {name: version for name, version in self.tool_versions().items() if version is not None}

    def tool_versions(self) -> Mapping[str, str | None]:
        """The version of each tool that the asked passes use; None where it does not work."""
        return {}

    def plan(self, state: PlanState) -> Plan:
        """The passes in order; what cannot run stands there with its reason."""
        planned = [p for name in get_args(PassName) if name in self.wanted for p in self._plan(name, state)]
        return Plan(self.name, self.context.depth, tuple(planned))

    def _plan(self, name: PassName, state: PlanState) -> list[PassPlan]:
        if name == "timing":
            return [plan_timing(self.context, self.processes[self.context.depth], self.switch)]
        if name == "cprofile" or name == "tracemalloc":
            return [plan_python(self.context, state, name, late=self.late_allocations)]
        if name == "stacks":
            return [plan_stacks(self.context, state)]
        return self.plan_pass(name, state)

    def plan_pass(self, name: PassName, state: PlanState) -> list[PassPlan]:  # noqa: ARG002
        """The passes of this name under the backend's own tools: trace, counters or explain."""
        return []

    def findings(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """What the artifacts of one pass say."""
        artifacts = self.context.folder / "artifacts"
        if plan.name == "cprofile":
            report = read_cprofile(artifacts / _FILE["cprofile"])
            notes = (*report.warnings, *read_pass_notes(artifacts / "cprofile.json"))
            return PassFindings(profiles=report.profiles, notes=notes)
        if plan.name == "tracemalloc":
            return PassFindings(allocations=read_tracemalloc(artifacts / _FILE["tracemalloc"]))
        if plan.name == "stacks":
            return read_samples(self.context)
        return PassFindings() if plan.name == "timing" else self.read_pass(plan, result)

    def read_pass(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """What a pass of `plan_pass` left. Raises UnreadableReport where it cannot be read."""
        return PassFindings()


def plan_timing(context: RunContext, processes: int, switch: Switch | None = None) -> PassPlan:
    """One step per process; a workload that marks nothing is timed whole, as often as it takes.

    `switch`: for a device, at whose work a region's ends wait.
    """
    steps = tuple(
        Step(
            f"timing-{number}",
            context.workload.command,
            directive=Directive(
                "timing",
                str(context.folder / "artifacts" / f"timing-{number}"),
                switch,
                precision=context.precision,
                budget=context.sampling,
                cold=context.cold,
            ),
        )
        for number in range(1, processes + 1)
    )
    return PassPlan(
        "timing",
        None,
        steps,
        cost=float(processes),
        cost_note="one plain run each",
        notes=(
            f"±{100 * context.precision:g} % asked, up to {context.sampling:g} s of samples in each process",
            *(("cold: the device's L2 is flushed before each call",) if context.cold else ()),
        ),
    )


# Wall time against a plain run, as measured on the workloads in benchmark/: tracemalloc notes every allocation.
_COST = {"stacks": 1.05, "cprofile": 1.5, "tracemalloc": 2.5, "region": 1.1}
# How long a benchmarked function is repeated, where its time is known by then; 200 samples of a stack.
_SECONDS = {"cprofile": 1.0, "tracemalloc": 1.0, "stacks": 2.0}
_LEAST = {
    "cprofile": 1,
    "tracemalloc": 32,
    "stacks": 1,
}  # iterations; a leak is a slope, which takes some points
_MOST = {"cprofile": 100_000, "tracemalloc": 2_000, "stacks": 10_000_000}
_LONGEST = 60.0  # but never longer than this for the sake of the least
# Wall seconds after which the instrument stops while the program goes on: so many plain runs, and some seconds.
_CAPS = {"cprofile": (1.5, 0.5), "tracemalloc": (1.5, 0.5)}
_FILE = {"cprofile": "cprofile.prof", "tracemalloc": "tracemalloc.json", "stacks": "stacks.jsonl"}


def plan_python(
    context: RunContext, state: PlanState, kind: Literal["cprofile", "tracemalloc"], *, late: bool = False
) -> PassPlan:
    """One step under Python's own instrument, or the reason why the workload has no Python to look into.

    `late`: where a region is marked, allocations are traced from there on. Importing torch under tracemalloc takes
    three times as long, and a GPU's workload is not about it.
    """
    out = context.folder / "artifacts" / _FILE[kind]
    if late and kind == "tracemalloc" and not state.marked and _may_leave_out(context):
        return PassPlan(
            kind,
            None,
            skipped="no region is marked, and a program that imports torch starts three times as slowly under it",
            fix="mark a step with profkit.region, or --passes tracemalloc",
        )
    late = late and state.marked and kind == "tracemalloc"
    argv, reason = host_command(context.workload.command, "tracemalloc-region" if late else kind, out)
    if argv is None:
        return PassPlan(kind, None, skipped=reason)
    record = str(context.folder / "artifacts" / f"{kind}.region")
    directive = Directive(
        kind,
        record,
        iterations=_iterations(kind, state.iteration_seconds),
        seconds=_SECONDS[kind],
        longest=_longest(context, state, kind),
    )
    step = Step(kind, tuple(argv), (f"artifacts/{_FILE[kind]}",), directive=directive)
    cost = _COST["region" if late else kind]
    note = "typical; grows with calls and allocations"
    return PassPlan(
        kind, None, (step,), cost=cost, seconds=_benchmark_seconds(state, kind, cost), cost_note=note
    )


def _benchmark_seconds(
    state: PlanState, kind: Literal["cprofile", "tracemalloc", "stacks"], factor: float
) -> float | None:
    """What a pass over a benchmark takes, which is repeated for so long; None: as long as a plain run and its cost."""
    if not state.benchmark or state.start_seconds is None:
        return None
    return factor * (state.start_seconds + _SECONDS[kind])


def _may_leave_out(context: RunContext) -> bool:
    """Whether the passes are those of a depth that is short of time, and not asked for by name."""
    return context.wanted is None and context.depth != "full"


def _longest(context: RunContext, state: PlanState, kind: Literal["cprofile", "tracemalloc"]) -> float | None:
    """Wall seconds that the instrument may look; None where it is asked for all, or nobody knows how long a run is."""
    if context.depth == "full" or state.plain_seconds is None:
        return None
    runs, seconds = _CAPS[kind]
    return runs * state.plain_seconds + seconds


def _iterations(kind: Literal["cprofile", "tracemalloc", "stacks"], seconds: float | None) -> int | None:
    if seconds is None or seconds <= 0:
        return None
    wanted = max(_LEAST[kind], min(_MOST[kind], int(_SECONDS[kind] / seconds)))
    return max(1, min(wanted, int(_LONGEST / seconds)))


def plan_stacks(context: RunContext, state: PlanState) -> PassPlan:
    """One step in which every Python process of the workload samples its stacks, or why none will."""
    artifacts = context.folder / "artifacts"
    env, reason = sampling_environment(context.workload.command, artifacts / _FILE["stacks"])
    if env is None:
        return PassPlan("stacks", None, skipped=reason)
    directive = Directive(
        "stacks",
        str(artifacts / "stacks.region"),
        iterations=_iterations("stacks", state.iteration_seconds),
        seconds=_SECONDS["stacks"],
    )
    step = Step(
        "stacks", context.workload.command, (f"artifacts/{_FILE['stacks']}",), env=env, directive=directive
    )
    note = "a hundred samples a second, in all Python processes"
    cost = _COST["stacks"]
    seconds = _benchmark_seconds(state, "stacks", cost)
    return PassPlan("stacks", None, (step,), cost=cost, seconds=seconds, cost_note=note)


def read_samples(context: RunContext) -> PassFindings:
    """Functions, lines, imports and stacks of the Python processes; leaves files for viewers of flame graphs.

    Raises UnreadableReport where the file is damaged.
    """
    folder = context.folder / "artifacts"
    if not (folder / _FILE["stacks"]).exists():
        if context.workload.python is None:
            return PassFindings(absent=f"not a Python program: {Path(context.workload.command[0]).name}")
        raise UnreadableReport("no Python process of the workload was sampled for as long as 0.1 s")
    report = read_stacks(folder / _FILE["stacks"])
    return PassFindings(
        profiles=report.profiles,
        stacks=report.stacks,
        notes=report.warnings,
        artifacts=leave_stacks(context, report.stacks, "stacks"),
    )


def leave_stacks(context: RunContext, stacks: Sequence[Stacks], name: str) -> tuple[str, ...]:
    """Files for viewers of flame graphs, called `name`; their places in the run's folder. None where nothing is."""
    if not stacks:
        return ()
    folder = context.folder / "artifacts"
    write_speedscope(stacks, folder / f"{name}.speedscope.json", context.workload.name)
    write_collapsed(stacks[0], folder / f"{name}.collapsed.txt")
    return f"artifacts/{name}.speedscope.json", f"artifacts/{name}.collapsed.txt"


PLAIN_SECONDS = 5.0  # of a Python program that imports torch, where none was timed yet


def start_seconds(state: PlanState) -> float:
    """Wall seconds of one run of a device's workload without the samples that timing took."""
    return state.start_seconds if state.start_seconds is not None else PLAIN_SECONDS


def plain_runs(seconds: float, state: PlanState) -> float:
    """Seconds as a multiple of one plain run."""
    return seconds / (state.plain_seconds or PLAIN_SECONDS)


def known_seconds(seconds: float, state: PlanState) -> float | None:
    """What a pass is expected to take; None where no run of the workload was timed yet."""
    return seconds if state.plain_seconds is not None else None


_NOT_COUNTS = ("line_bytes",)  # properties of the machine among the counters


@dataclass(frozen=True)
class RegionWork:
    """What one step did inside the region.

    `seconds` is its wall time, None where nothing was marked or processes overlap. `notes` are what the workload's
    processes remarked; `shared`: several of them marked at once, so that the window is not known to be theirs.
    `entries`: how often the process that did it least entered regions, of so many `processes`.
    """

    iterations: int = 1
    seconds: float | None = None
    odd: str | None = None
    marked: bool = False
    notes: tuple[str, ...] = ()
    shared: bool = False
    entries: int = 0
    processes: int = 0


def read_region_work(folder: Path, step: str) -> RegionWork:
    """How often and how long `step` ran what counts. Raises UnreadableReport for a damaged record."""
    written = read_records(sorted((folder / "artifacts").glob(f"{step}.region.*.json")))
    records = [record for record in written if record.regions or record.benchmarks]
    notes = tuple(dict.fromkeys(note for record in records for note in record.notes))
    shared = any(OTHER_PROCESS_IN_REGION in note for note in notes)
    entries = min((sum(r.entries for r in record.regions) for record in records), default=0)
    per_name: dict[str, int] = {}
    seconds = 0.0
    for record in records:
        for region in record.regions:
            per_name[region.name] = per_name.get(region.name, 0) + region.iterations
            seconds += sum(region.seconds) * region.every
    if len(per_name) > 1:
        names = ", ".join(sorted(per_name))
        odd = f"the workload marks several regions ({names}): counts are of all in one process"
        return RegionWork(
            1, seconds if len(records) == 1 else None, odd, True, notes, shared, entries, len(records)
        )
    alone = seconds if seconds and len(records) == 1 else None
    return RegionWork(
        max(1, sum(per_name.values())), alone, None, bool(per_name), notes, shared, entries, len(records)
    )


def divide_counters(counters: Sequence[Counter], count: int) -> tuple[Counter, ...]:
    """The counters divided by `count`; states and ratios between them stay as they are."""
    if count == 1:
        return tuple(counters)
    return tuple(
        counter
        if counter.value is None or counter.name in _NOT_COUNTS
        else replace(counter, value=counter.value / count)
        for counter in counters
    )


def divide_profile(profile: Profile, count: int) -> Profile:
    """The profile divided by `count`; calls stay whole, since half a call is none."""
    if count == 1:
        return profile
    hotspots = tuple(
        replace(
            hotspot,
            own=hotspot.own / count,
            total=hotspot.total / count if hotspot.total is not None else None,
            counters={name: value / count for name, value in hotspot.counters.items()},
        )
        for hotspot in profile.hotspots
    )
    return replace(profile, total=profile.total / count, hotspots=hotspots)


_LARGEST = 64 * 1024 * 1024  # bytes of a program that are looked at


def first_mention(workload: Workload, pattern: re.Pattern[str]) -> str | None:
    """Where the text of a script, or the program after `-c`, matches; in words, None where none does."""
    for word in workload.command:
        path = Path(workload.folder, word)
        if word.endswith(".py") and path.is_file():
            match = pattern.search(head_of(path).decode("utf-8", "replace"))
            if match is not None:
                return f"{path.name} names {match[0]}"
    for before, word in zip(workload.command, workload.command[1:], strict=False):
        if before == "-c" and (match := pattern.search(word)) is not None:
            return f"its program names {match[0]}"
    return None


def head_of(path: Path) -> bytes:
    """The first 64 MiB of a file; empty where it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
