"""The kinds of hardware that profkit profiles, each an object that is listed once, in `BACKENDS`.

Whatever differs between them is a property of the object: `backend_named(document.backend)`. No other package
compares a backend's name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from profkit.core.codec import map_text
from profkit.core.errors import UsageError
from profkit.core.types import (
    Allocations,
    Check,
    CountedLine,
    Counter,
    Depth,
    Fact,
    Gpu,
    GpuLine,
    GpuToolLines,
    GpuTrace,
    KernelInstruction,
    LineCount,
    Machine,
    MemorySeries,
    MetalTrace,
    PassResult,
    Profile,
    Reading,
    Report,
    RunDocument,
    SampledTime,
    Stacks,
    Summary,
    Timeline,
    ToolRule,
    Verdict,
    Workload,
)
from profkit.profilers.registry import PROFILERS
from profkit.runtime.passes.secrets import hide_values

if TYPE_CHECKING:
    from profkit.backends.passes import BackendRun, Pass

_T = TypeVar("_T")


@dataclass(frozen=True)
class RunContext:
    """What a plan is made for: the workload, the machine, the folder of the run, and the time that may be spent."""

    workload: Workload
    machine: Machine
    folder: Path
    depth: Depth
    wanted: tuple[str, ...] | None  # names of passes; None: what the depth asks for
    precision: float  # half-width of the median's interval as a share
    sampling: float  # wall seconds for timing in one process
    timeout: float | None = None  # wall seconds that one step may take: for a tool with a limit of its own
    budget: float | None = None  # wall seconds for the whole run; None: what the backend allows
    # secrets among the workload's arguments, which nothing that is written shows
    hidden: tuple[str, ...] = ()
    name: Path | None = None  # what the folder is called, where `folder` is the path of an open handle
    given: Path | None = None  # what each run of the workload reads at its standard input

    def shown(self, value: _T) -> _T:
        """Return plain data, or dataclasses, as they may be written: without secrets, the folder by its name."""
        value = hide_values(value, self.hidden)
        held, name = str(self.folder), self.name
        return value if name is None else map_text(value, lambda text: text.replace(held, str(name)))


@dataclass(frozen=True)
class PlanState:
    """What is known of the workload so far. It grows with each pass; a plan is made from it."""

    marked: bool  # the workload marks a region
    iteration_seconds: float | None = None
    entries: int | None = None  # how often a process entered it, where the program enters one as it likes
    benchmark: bool = False  # the region is that of `profkit.benchmark`: the pass says how often it is run
    plain_seconds: float | None = None  # wall time of one process of the workload alone, and
    own_seconds: float | None = None  # the same without waiting for a processor
    main_seconds: float | None = None  # the same without that of the main thread alone
    start_seconds: float | None = None  # what of it is no sampling: start-up, set-up and end
    import_seconds: float | None = None  # what loading modules took under a profiler, where one saw it
    product_share: float = 0.0  # of the processor time, in libraries of linear algebra
    python_share: float | None = None  # of the processor time, in Python's interpreter; None: not known
    main_share: float = 1.0  # of a normal run, in which the main thread did not sleep
    hottest: str | None = None  # the address of a program of machine code that has most samples
    lines: tuple[CountedLine, ...] = ()  # whose executions are worth counting
    passes: tuple[PassResult, ...] = ()  # those that were carried out, in order
    trace: GpuTrace | None = None  # what the trace pass saw of the devices
    verdicts: tuple[Verdict, ...] | None = None  # once the counters pass was read; None before


@dataclass(frozen=True)
class PassFindings:
    """The findings of one pass, as plain data."""

    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    stacks: tuple[Stacks, ...] = ()
    sampled: SampledTime | None = None
    timeline: Timeline | None = None  # of the program's threads
    line_counts: tuple[LineCount, ...] = ()
    allocations: Allocations | None = None
    memory: tuple[MemorySeries, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    trace: GpuTrace | None = None
    launched: GpuTrace | None = None  # whose times do not count: what launched each kernel, and lines
    # that a compiler says its kernels stand for: name and module of the kernel, the line
    kernel_lines: tuple[tuple[str, str, GpuLine], ...] = ()
    metal: MetalTrace | None = None
    instructions: tuple[KernelInstruction, ...] = ()
    rules: tuple[ToolRule, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Fact, ...] = ()
    artifacts: tuple[str, ...] = ()  # files made from what the pass left
    absent: Fact | None = None  # why there was nothing that the pass could look at: it counts as skipped


@dataclass(frozen=True)
class CheckGroup:
    """A subject of the doctor: its title for the progress line, and its checks."""

    title: str
    run: Callable[[], Iterable[Check]]


def profiler_group(name: str) -> CheckGroup:
    """Return the checks of a profiler, which is loaded when they are run."""

    def run() -> Iterable[Check]:
        profiler = PROFILERS.get(name)
        return profiler.checks() if profiler is not None else ()

    return CheckGroup(name, run)


@dataclass(frozen=True)
class DeviceCandidate:
    """Why a workload seems to use a device, with the devices that are here, or the reason why there is none."""

    evidence: Fact
    gpus: tuple[Gpu, ...] = ()
    missing: str | None = None


class Backend(Protocol):
    """A kind of hardware: plain data, and methods that load what they need when they are called.

    A class that inherits from this one gets these defaults, and overrides what differs.
    """

    name: str
    has_device: bool = False  # work runs on a device beside the processor
    per_kernel: bool = False  # its tools count single kernels, which have readings and verdicts of their own
    host_peaks: bool = False  # what this machine's processor can do at best says something about the workload
    work: str = "function"  # what one piece of its work is called: kernel, encoder, function
    report_concerns: frozenset[str] = frozenset()  # summaries of a report that are shown without a value, too
    # Wall seconds for warm-up and samples in one process.
    sampling: Mapping[Depth, float] = {"quick": 2.0, "gate": 5.0, "standard": 5.0, "full": 30.0}
    # What a whole run may take where the user says nothing: so many normal runs, and seconds; else as long as it needs.
    allowances: Mapping[Depth, tuple[float, float]] = {"gate": (10.0, 15.0), "standard": (5.0, 10.0)}
    profilers: tuple[str, ...] = ()  # those that it starts; the doctor asks no other about them
    tool_lines: GpuToolLines = GpuToolLines()
    targets: Path | None = None  # the YAML file of its default targets

    def claims(self, report: Report) -> bool:  # noqa: ARG002
        """Return whether a report was recorded on this hardware; a report that no backend claims is the CPU's."""
        return False

    def possible(self) -> bool:
        """Return whether this kind of system can have such hardware at all. Asks no driver."""
        return True

    def candidate(self, workload: Workload) -> DeviceCandidate | None:  # noqa: ARG002
        """Return, for `auto`, a candidate if the workload seems to use this device.

        This is a guess from its text; nothing is run.
        """
        return None

    def devices(self) -> tuple[Gpu, ...]:
        """Return the devices here. Raises MachineError where this backend cannot profile on this machine."""
        return ()

    def device_ids(self) -> tuple[str, ...]:
        """Return the ids of the devices that a run uses, which it locks: no other run measures on them meanwhile."""
        return ()

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:
        """Return the backend at work on one run."""

    def pass_kinds(self) -> tuple[type[Pass], ...]:
        """Return the passes that a run may have: only their files come back from another machine."""
        from profkit.backends.passes import PYTHON_PASSES

        return PYTHON_PASSES

    def check_groups(self) -> tuple[CheckGroup, ...]:
        """Return the doctor's checks beyond those of every backend."""
        return ()

    def enrich(self, document: RunDocument) -> RunDocument:
        """Add the readings that follow from those of this hardware to the document."""
        return document

    def summarize(self, document: RunDocument) -> list[Summary]:  # noqa: ARG002
        """Return the summaries besides that of the time."""
        return []


def _cuda() -> Backend:
    """Load the CUDA backend."""
    from profkit.backends.cuda import CUDA

    return CUDA


def _mps() -> Backend:
    """Load the MPS backend."""
    from profkit.backends.mps import MPS

    return MPS


def _cpu() -> Backend:
    """Load the CPU backend."""
    from profkit.backends.cpu import CPU

    return CPU


DEFAULT = "cpu"  # what `auto` takes where no device is used
# A backend is loaded when it is first asked for. `auto` asks in this order.
BACKENDS: dict[str, Callable[[], Backend]] = {"cuda": _cuda, "mps": _mps, DEFAULT: _cpu}


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends."""
    return tuple(BACKENDS)


def backend_named(name: str) -> Backend:
    """Return the backend of this name. Raises UsageError if there is none."""
    if name not in BACKENDS:
        raise UsageError(f"no backend is called {name!r}; there are {', '.join(sorted(BACKENDS))}")
    return BACKENDS[name]()


def backend_of_report(report: Report) -> Backend:
    """Return the backend on whose hardware a report was recorded."""
    loaded = (backend_named(name) for name in backend_names())
    return next((backend for backend in loaded if backend.claims(report)), backend_named(DEFAULT))


def kernel_word(name: str) -> str:
    """Return what one piece of a device's work is called in results of the backend `name`, even an unknown one."""
    backend = backend_named(name) if name in BACKENDS else None
    return backend.work if backend is not None and backend.has_device else "kernel"


@dataclass(frozen=True)
class Choice:
    """The backend of a run, its devices, and why it was chosen where that was left to profkit."""

    backend: Backend
    gpus: tuple[Gpu, ...] = ()
    reason: Fact | None = None


def choose_backend(name: str, workload: Workload) -> Choice:
    """Return the backend called `name`; for `auto`, that of a device that the workload seems to use, or the CPU.

    Raises MachineError where the named backend cannot profile here.
    """
    choice = _choose_for(workload) if name == "auto" else None
    if choice is None:
        backend = backend_named(name)
        choice = Choice(backend, backend.devices())
    return choice


def _choose_for(workload: Workload) -> Choice:
    """Choose the backend of the first device here that the workload seems to use, or the CPU.

    Where a device that it seems to use is missing, the next backend is asked; the reason is that of the first one.
    """
    usual = backend_named(DEFAULT)
    without: Fact | None = None
    for backend in map(backend_named, backend_names()):
        candidate = backend.candidate(workload) if backend.possible() else None
        if candidate is None:
            continue
        if candidate.missing is not None:
            missing = Fact.message(candidate.missing)
            why = Fact.of("backend-without-device", candidate.evidence, missing, name=usual.name)
            without = without or why
            continue
        why = Fact.of("backend-chosen", candidate.evidence, name=backend.name, other=usual.name)
        return Choice(backend, candidate.gpus, why)
    return Choice(usual, reason=without)
