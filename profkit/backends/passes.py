"""A pass, and what the runs of all backends share: timing, Python's own instruments, counts per iteration."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, get_args

from profkit.analysis.stacks.files import write_speedscope
from profkit.backends import PassFindings, PlanState, RunContext
from profkit.backends.source_lines import split_notes, with_source
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import open_regular
from profkit.core.types import (
    CountedLine,
    Counter,
    Depth,
    Directive,
    Fact,
    Gpu,
    LineCount,
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
from profkit.profilers.chrome.jax_lines import read_jax_compilations, read_jax_lines
from profkit.profilers.cprofile import is_partial, read_cprofile, read_pass_notes, with_growth
from profkit.profilers.host.line_counts import read_line_counts
from profkit.profilers.host.loader_workers import read_started_workers
from profkit.profilers.host.stacks import read_stacks
from profkit.profilers.host.torch_lines import read_torch_lines
from profkit.runtime.passes.command import host_command, program_words, start_up_environment
from profkit.runtime.passes.read import read_raises, read_record, read_tracemalloc

ALL_PASSES: tuple[PassName, ...] = ("timing", "stacks", "cprofile", "tracemalloc", "trace", "counters")
# Beside a device: sampled stacks say where its host spends the time, and slow nothing down.
DEVICE_PASSES: tuple[PassName, ...] = tuple(name for name in ALL_PASSES if name != "cprofile")

PassTable: TypeAlias = "Mapping[Depth, tuple[PassName, ...]]"


class Pass(ABC):
    """The workload under one instrument: it plans its steps by what is known so far, and reads their artifacts.

    It plans when a run begins, and again whenever another pass has found something new. A second try is a plan of
    its own.
    """

    name: PassName
    tool: str | None = None
    # How its steps are called, and what it may leave in `artifacts/` beside the records of each step; # is a number.
    # What ends with / is a folder of files that only its tool knows. Nothing else comes back from another machine.
    step_names: ClassVar[tuple[str, ...]] = ()
    leaves: ClassVar[tuple[str, ...]] = ()

    def __init__(self, context: RunContext) -> None:
        self.context, self.folder = context, context.folder / "artifacts"

    @abstractmethod
    def plan(self, state: PlanState) -> list[PassPlan]:
        """Return the steps of each try, or why there are none."""

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read what a try left. Raises UnreadableReport where it cannot be read."""
        return PassFindings()

    def planned(self, steps: Sequence[Step], **more: Any) -> list[PassPlan]:
        """Return a list with one plan of these steps."""
        return [PassPlan(self.name, self.tool, tuple(steps), **more)]

    def skip(self, reason: Fact | str | None, fix: str | None = None, **more: Any) -> list[PassPlan]:
        """Return a plan that only says why nothing is done; a text is the fault of a tool."""
        fact = Fact.message(reason) if isinstance(reason, str) else reason
        return [PassPlan(self.name, self.tool, **more).skip(fact, fix)]

    def no_python(self, code: str | None) -> Fact:
        """Return the fact why the workload has no Python to look into."""
        return Fact.of(code or "no-command", program=Path(self.context.workload.command[0]).name)

    def directive(self, step: str, switch: Switch | None = None, **more: Any) -> Directive:
        """Return the directive for the workload's process in a step."""
        return Directive(self.name, str(self.folder / f"{step}.region"), switch, **more)


class AbsentPass(Pass):
    """A pass that this backend never has, and why."""

    def __init__(self, context: RunContext, name: PassName, reason: Fact, fix: str | None = None) -> None:
        super().__init__(context)
        self.name, self._reason, self._fix = name, reason, fix

    def plan(self, state: PlanState) -> list[PassPlan]:  # noqa: ARG002
        """Return a plan that only says why there is none."""
        return self.skip(self._reason, self._fix)


class BackendRun:
    """A backend at work on one run. Tools are tried once, when the first plan is made.

    A backend adds the passes of its own tools.
    """

    name: ClassVar[str]
    # What each depth asks for. Passes run in this order: first what needs no tool, last what takes longest.
    passes: ClassVar[PassTable] = {
        "quick": ("timing", "stacks", "trace"),
        "gate": ("timing", "counters"),
        "standard": ALL_PASSES,
        "full": ALL_PASSES,
    }
    # of the timing pass
    processes: ClassVar[Mapping[Depth, int]] = {"quick": 1, "gate": 1, "standard": 3, "full": 5}
    # of a device, at whose work a region's ends wait while it is timed
    switch: ClassVar[Switch | None] = None
    on_device: ClassVar[bool] = False  # the work is a GPU's
    order: ClassVar[tuple[PassName, ...]] = get_args(PassName)

    def __init__(self, context: RunContext, gpus: tuple[Gpu, ...] = ()) -> None:
        self.context, self.gpus = context, gpus  # the devices that the workload may use
        self._made: dict[str, Pass | None] = {}

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return the names of the passes that the user or the depth wants."""
        return self.context.wanted or self.passes[self.context.depth]

    def tool_versions(self) -> Mapping[str, str | None]:
        """Return the version of each tool that the wanted passes use; None where it does not work."""
        return {}

    def plan(self, state: PlanState) -> Plan:
        """Return all passes in order, as far as is known; what cannot run stands there with its reason."""
        planned = tuple(plan for each in self.wanted_passes() for plan in self.plans_of(each, state))
        return Plan(self.name, self.context.depth, planned)

    def wanted_passes(self) -> list[Pass]:
        """Return the wanted passes that this backend has, in the order in which they run."""
        wanted = (self.pass_named(name) for name in self.order if name in self.wanted)
        return [each for each in wanted if each is not None]

    def plans_of(self, each: Pass, state: PlanState) -> list[PassPlan]:
        """Return the tries of a pass, first to last, by what is known; a backend may add to their steps."""
        return each.plan(state)

    def after_failure(self, message: str) -> PassPlan | None:  # noqa: ARG002
        """Return the pass that explains why the workload failed, by what it printed; None if there is none."""
        return None

    def findings(self, plan: PassPlan, result: PassResult) -> PassFindings:
        """Read the artifacts of one pass. Raises UnreadableReport where they cannot be read."""
        own_pass = self.pass_named(plan.name)
        return own_pass.read(plan, result) if own_pass is not None else PassFindings()

    def pass_named(self, name: PassName) -> Pass | None:
        """Return the pass of this name, made once; None where this backend has none."""
        if name not in self._made:
            self._made[name] = self.make_pass(name)
        return self._made[name]

    def make_pass(self, name: PassName) -> Pass | None:
        """Make timing and Python's own instruments; a backend adds those of its tools: trace, counters, explain."""
        if name == "timing":
            return TimingPass(self.context, self.processes[self.context.depth], self.switch)
        if name == "cprofile":
            return CallsPass(self.context)
        if name == "tracemalloc":
            return AllocationsPass(self.context, device=self.on_device)
        return StacksPass(self.context) if name == "stacks" else None


class TimingPass(Pass):
    """The workload alone: one step per process; a program without a region is timed whole, as often as needed."""

    name = "timing"
    step_names = ("timing-#",)

    def __init__(self, context: RunContext, processes: int, switch: Switch | None = None) -> None:
        super().__init__(context)
        self._processes, self._switch = processes, switch

    def plan(self, state: PlanState) -> list[PassPlan]:  # noqa: ARG002
        """Plan the steps, for which nothing needs to be known."""
        context = self.context
        directive = Directive(
            "timing", "", self._switch, precision=context.precision, sampling=context.sampling
        )
        names = [f"timing-{number}" for number in range(1, self._processes + 1)]
        steps = tuple(
            Step(name, context.workload.command, directive=replace(directive, record=str(self.folder / name)))
            for name in names
        )
        precision = Fact.of("asked-precision", precision=context.precision, seconds=context.sampling)
        return self.planned(steps, cost=float(self._processes), notes=(precision,))


class PythonPass(Pass):
    """An instrument inside the workload's Python. A benchmark is repeated for `seconds` under it."""

    file: str  # what it leaves
    seconds = 1.0
    least, most = 1, 100_000  # iterations
    fixed = 0.4  # wall seconds beside the program's own: the instrument's start, and reading what it left
    longest = 60.0  # seconds, for the sake of the least
    # Wall seconds after which the instrument stops: so many normal runs, and some seconds. A program that marks nothing
    # ends with it, unless its lines are still counted.
    cap: tuple[float, float] | None = (1.5, 0.5)

    def one_step(
        self,
        state: PlanState,
        argv: Sequence[str] | None,
        reason: str | None,
        cost: float,
        env: Mapping[str, str] | None = None,
        lines: tuple[CountedLine, ...] = (),
    ) -> list[PassPlan]:
        """Plan the workload under the instrument by `argv`, or say by `reason` why it has no Python to look into.

        `cost`: its wall time against a normal run, as measured on the workloads in benchmark/.
        """
        if argv is None:
            return self.skip(self.no_python(reason))
        once, iterations, longest = state.iteration_seconds, None, None
        if once is not None and once > 0:
            wanted = max(self.least, min(self.most, int(self.seconds / once)))
            iterations = max(1, min(wanted, int(self.longest / once)))
        if self.context.depth != "full" and state.plain_seconds is not None and self.cap is not None:
            longest = self.cap[0] * state.plain_seconds + self.cap[1]
            if state.marked:  # its region may come late: the window holds all of the program
                longest = max(longest, 2 * cost * state.plain_seconds)
            else:
                cost = min(cost, longest / state.plain_seconds)
        if state.benchmark and state.start_seconds is not None:
            seconds = cost * (state.start_seconds + self.seconds)
            cost = plain_runs(seconds, state)
            if longest is not None:  # the start is slower under it, and its iterations are what counts
                longest = max(longest, 2 * seconds)
        directive = replace(
            self.directive(self.name, iterations=iterations, seconds=self.seconds, longest=longest),
            stops_program=longest is not None and not state.marked,
            lines=lines,
        )
        step = Step(self.name, tuple(argv), (f"artifacts/{self.file}",), env=env or {}, directive=directive)
        return self.planned((step,), cost=cost + plain_runs(self.fixed, state))


# Of Python code under cProfile, as a multiple of a plain run: 1 to 4.8 (docs/measurements.md). Its window ends most of
# them before.
CALLS_COST = 2.0


class CallsPass(PythonPass):
    """The calls by cProfile."""

    name, file = "cprofile", "cprofile.prof"
    step_names, leaves = ("cprofile",), (file, "cprofile.setup.prof", "cprofile.json", "cprofile.lines.json")

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan one step with cProfile in the workload's Python."""
        argv, reason = host_command(self.context.workload.command, "cprofile", self.folder / self.file)
        # Compiled code is not slowed down, nor what other processes do while the main thread waits for them. For a
        # marked region it is not known: half of it is taken to be Python's.
        share = state.python_share if state.python_share is not None else 1.0
        python = 0.5 if state.marked else state.main_share * share
        return self.one_step(state, argv, reason, 1.0 + (CALLS_COST - 1.0) * python, lines=state.lines)

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read functions and their callers."""
        report = read_cprofile(self.folder / self.file)
        facts = self.folder / "cprofile.json"
        lines = self.folder / "cprofile.lines.json"
        notes = (*report.warnings, *read_pass_notes(facts), *read_pass_notes(lines))
        partial = is_partial(facts)
        counted = tuple(with_growth(replace(p, partial=partial), facts) for p in report.profiles)
        raised = read_raises(facts)
        return PassFindings(
            profiles=(*counted, *((raised,) if raised is not None else ())),
            line_counts=self._by_iteration(read_line_counts(lines)),
            notes=notes,
        )

    def _by_iteration(self, counts: tuple[LineCount, ...]) -> tuple[LineCount, ...]:
        """Return the counts with the iterations of the only entered region: a benchmark has several per entry."""
        work = read_region_work(self.context.folder, self.name)
        known = work.iterations if work.odd is None and work.processes == 1 else 0
        return tuple(replace(line_count, entries=known if line_count.entries else 0) for line_count in counts)


class AllocationsPass(PythonPass):
    """The allocations by tracemalloc. `device`: the workload is a GPU's, and not about Python's memory."""

    name, file = "tracemalloc", "tracemalloc.json"
    step_names, leaves = ("tracemalloc",), (file,)
    least, most = 32, 2_000  # a leak is a slope, which takes some points

    def __init__(self, context: RunContext, *, device: bool) -> None:
        super().__init__(context)
        self._device = device

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan one step with tracemalloc; for a GPU's program only where it is wanted, or at full depth."""
        context = self.context
        if self._device and context.wanted is None and context.depth != "full":
            return self.skip(Fact("memory-of-a-gpu"), "--passes tracemalloc")
        argv, reason = host_command(context.workload.command, "tracemalloc", self.folder / self.file)
        return self.one_step(state, argv, reason, 3.0)

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read peaks, growth, and lines that hold most."""
        raised = read_raises(self.folder / self.file)
        return PassFindings(
            allocations=read_tracemalloc(self.folder / self.file),
            profiles=(raised,) if raised is not None else (),
        )


# Runs of a program that marks nothing; the processor seconds that they take together at least; what further runs may
# take where these are there, so that the first answer comes within 2 T + 3 s; and what all may on a busy machine.
MAX_RUNS, SHORT_SECONDS, MORE_SECONDS, BUSY_SECONDS = 15, 2.4, 1.8, 4.5


def sampled_runs(plain: float, own: float) -> int:
    """Return how often a program of `plain` seconds is sampled, of which it has a processor for `own`.

    A share of a third has a standard error of 2 points in 550 samples, and one run of a second has some 300. A sampler
    sees only what has a processor: on a busy machine it takes more runs.
    """
    own = min(plain, max(own, 1e-3))
    short = min(int(SHORT_SECONDS / own), int(BUSY_SECONDS / plain))
    return max(1, min(MAX_RUNS, max(short, 1 + int(MORE_SECONDS / plain))))


# Processor time of the sampled run as a multiple of a plain one: up to 1.14 was measured while a program has fewer than
# 1,000 samples (docs/measurements.md). More samples are worth it: no other pass has its times from this run.
SAMPLED_COST = 1.15
AGAIN_SECONDS = 0.05  # that each further run of a short program takes beside its own: the sampler's start


class StacksPass(PythonPass):
    """The sampled stacks of every Python process of the workload."""

    name, file = "stacks", "stacks.jsonl"
    step_names = ("stacks", "stacks-#")
    leaves: ClassVar[tuple[str, ...]] = (
        file,
        "stacks-#.jsonl",
        "stacks.speedscope.json",
        "stacks.jsonl.operations",
        "stacks.operations.json",
        "stacks-#.operations.json",
        "stacks.xla.#-#.json.gz",
        "stacks-#.xla.#-#.json.gz",
        "stacks.xla.operations",
        "stacks-#.xla.operations",
    )
    seconds = 2.0  # 200 samples
    most = 10_000_000
    cap = None

    def plan(self, state: PlanState) -> list[PassPlan]:
        """Plan the workload as it is, with the variables by which each Python below it samples itself."""
        command = self.context.workload.command
        env, reason = start_up_environment(command, "stacks", self.folder / self.file)
        plans = self.one_step(state, command if env is not None else None, reason, SAMPLED_COST, env)
        if state.marked or not state.plain_seconds or not plans[0].steps:
            return plans
        count = sampled_runs(state.plain_seconds, state.own_seconds or state.plain_seconds)
        first = plans[0].steps[0]
        more = [self._again(first, number) for number in range(2, count + 1)]
        return [
            replace(
                plans[0],
                steps=(first, *more),
                cost=count * SAMPLED_COST + plain_runs(self.fixed + (count - 1) * AGAIN_SECONDS, state),
            )
        ]

    def _again(self, step: Step, number: int) -> Step:
        """Return another run of a short program, into a file of its own: one run has too few samples."""
        name = f"{self.name}-{number}"
        env, _ = start_up_environment(self.context.workload.command, "stacks", self.folder / f"{name}.jsonl")
        artifacts = (f"artifacts/{name}.jsonl",)
        directive = self.directive(name)
        return replace(
            step, name=name, artifacts=artifacts, env={**step.env, **(env or {})}, directive=directive
        )

    def read(self, plan: PassPlan, result: PassResult) -> PassFindings:  # noqa: ARG002
        """Read functions, lines, imports and stacks of the Python processes; leaves files for flame graphs."""
        workload = self.context.workload
        if not (self.folder / self.file).exists():
            if workload.python is None:
                return PassFindings(absent=self.no_python("no-python-program"))
            raise UnreadableReport("no Python process of the workload was sampled for as long as 0.1 s")
        more = sorted(self.folder.glob("stacks-*.jsonl"))
        report = read_stacks(self.folder / self.file, more)
        compiler_lines = (
            read_torch_lines(self.folder / "stacks.operations.json"),
            read_jax_lines(self.folder, "stacks"),
            read_jax_compilations(self.folder / f"{self.file}.operations"),
            read_started_workers(self.folder / f"{self.file}.operations"),
        )
        lines = with_source(report, workload)
        return PassFindings(
            profiles=(*report.profiles, *(profile for profile in compiler_lines if profile is not None)),
            stacks=report.stacks,
            sampled=lines,
            timeline=report.timeline,
            notes=(*report.warnings, *split_notes(lines)),
            artifacts=leave_stacks(self.context, report.stacks, "stacks"),
        )


def leave_stacks(context: RunContext, stacks: Sequence[Stacks], name: str) -> tuple[str, ...]:
    """Write a file called `name` for viewers of flame graphs; return its place in the run's folder, if any."""
    if not stacks:
        return ()
    place = f"artifacts/{name}.speedscope.json"
    write_speedscope(stacks, context.folder / place, context.workload.name)
    return (place,)


# What every backend has: timing, and what looks into Python.
PYTHON_PASSES: tuple[type[Pass], ...] = (TimingPass, CallsPass, AllocationsPass, StacksPass)
PLAIN_SECONDS = 5.0  # of a Python program that imports torch, where none was timed yet


def start_seconds(state: PlanState) -> float:
    """Return the wall seconds of a run of a device's workload without the samples that timing took."""
    return state.start_seconds if state.start_seconds is not None else PLAIN_SECONDS


def plain_runs(seconds: float, state: PlanState) -> float:
    """Convert seconds to a multiple of one normal run."""
    return seconds / (state.plain_seconds or PLAIN_SECONDS)


_NOT_COUNTS = ("line_bytes",)  # properties of the machine among the counters


@dataclass(frozen=True)
class RegionWork:
    """The work of one step inside the region.

    `seconds` is its wall time, None where nothing was marked or processes overlap. `notes` are what the
    workload's processes remarked; `shared`: several of them were in the region at once, so that the window is not
    known to be theirs. `entries`: the fewest entries into regions of any of the `processes`.
    """

    iterations: int = 1
    seconds: float | None = None
    odd: Fact | None = None
    marked: bool = False
    notes: tuple[Fact, ...] = ()
    shared: bool = False
    entries: int = 0
    processes: int = 0


def read_region_work(folder: Path, step: str) -> RegionWork:
    """Read how often and how long `step` ran what counts. Raises UnreadableReport for a damaged record."""
    files = sorted((folder / "artifacts").glob(f"{step}.region.*.json"))
    written = [read_record(path) for path in files]
    records = [record for record in written if record.regions or record.benchmarks]
    notes = tuple(dict.fromkeys(note for record in records for note in record.notes))
    shared = any(note.code == "other-process-in-region" for note in notes)
    entries = min((sum(r.entries for r in record.regions) for record in records), default=0)
    per_name: dict[str, int] = {}
    seconds = 0.0
    for record in records:
        for region in record.regions:
            per_name[region.name] = per_name.get(region.name, 0) + region.iterations
            seconds += sum(region.seconds) * region.every
    several = len(per_name) > 1
    return RegionWork(
        iterations=1 if several else max(1, sum(per_name.values())),
        seconds=seconds if seconds and len(records) == 1 else None,
        odd=Fact.of("regions-together", names=", ".join(per_name)) if several else None,
        marked=bool(per_name),
        notes=notes,
        shared=shared,
        entries=entries,
        processes=len(records),
    )


def divide_counters(counters: Sequence[Counter], count: int) -> tuple[Counter, ...]:
    """Divide the counters by `count`; properties of the machine stay as they are."""
    if count == 1:
        return tuple(counters)
    return tuple(
        counter
        if counter.value is None or counter.name in _NOT_COUNTS
        else replace(counter, value=counter.value / count)
        for counter in counters
    )


def divide_profile(profile: Profile, count: int) -> Profile:
    """Divide the profile by `count`; calls stay whole, since there is no half call."""
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


def first_mention(workload: Workload, pattern: re.Pattern[str]) -> Fact | None:
    """Return where the text of a script, or the program after `-c`, matches; None where none does."""
    # A script that Python runs needs no suffix.
    scripts = program_words(workload.command)[:1] if workload.python is not None else ()
    for word in workload.command:
        path = Path(workload.folder, word)
        if (word.endswith(".py") or word in scripts) and path.is_file():
            match = pattern.search(head_of(path).decode("utf-8", "replace"))
            if match is not None:
                return Fact.of("script-names", name=path.name, word=match[0])
    for before, word in zip(workload.command, workload.command[1:], strict=False):
        if before == "-c" and (match := pattern.search(word)) is not None:
            return Fact.of("program-names", word=match[0])
    return None


def head_of(path: Path) -> bytes:
    """Read the first 64 MiB of a file; empty where it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(_LARGEST)
    except OSError:
        return b""
