"""A plan: passes, steps, and what the workload is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.types.exchange import Directive
from profkit.core.types.gpu import Kernel
from profkit.core.types.readings import BackendName, Depth, PassName, PassState


@dataclass(frozen=True)
class Step:
    """One execution of the workload under one instrument, as data: it can be printed, stored and run."""

    name: str
    argv: tuple[str, ...]
    artifacts: tuple[str, ...] = ()  # paths inside the run's folder
    env: Mapping[str, str] = field(default_factory=dict)  # set on top of the caller's environment
    directive: Directive | None = None
    fifos: tuple[str, ...] = ()  # made before the step, removed after it
    # Path -> text, written before the step: its tool's options
    files: Mapping[str, str] = field(default_factory=dict)
    tool: str | None = None
    workload_status: str | None = None  # file in which the wrapped workload's own wait status is written
    signals_as_codes: bool = False  # the tool ends with the number of a signal as with an exit code
    after: tuple[tuple[str, ...], ...] = ()  # conversions to run afterwards (perf inject), each an argv
    after_limit: float = 300.0  # seconds that one of them may take
    # How long the tool takes to finish its report once its own time limit came, or once it is asked to end: then SIGINT
    # goes to it alone, since it ends the workload itself. 0: the whole tree is asked, as of a workload without a tool.
    finish: float = 0.0
    own_limit: bool = False  # the tool is told its time limit, and keeps to it by itself
    end_signal: int = 2  # which signal asks the tool to end; 2 is SIGINT
    cut: bool = False  # its time limit is no fault: what was written until then is what is wanted
    fine: tuple[int, ...] = ()  # exit codes of the tool, beside 0, after which all is there
    # The option by which the tool is told a variable (`--env`), where somebody else starts the workload for it.
    tells: str | None = None


@dataclass(frozen=True)
class KernelPlan:
    """One launch configuration that is to be counted, and what that costs."""

    kernel: Kernel
    share: float  # of the region's GPU time, 0..1
    replays: int | None = None  # expected replay passes; None if unknown
    launch: int | None = None  # which of its launches, 0 the first
    seconds: float | None = None  # what counting it is expected to take; None if unknown


@dataclass(frozen=True)
class PassPlan:
    """One pass: its steps, the counters each collects, and what it is expected to cost."""

    name: PassName
    tool: str | None
    steps: tuple[Step, ...] = ()
    counters: tuple[str, ...] = ()
    cost: float | None = None  # expected wall time as a multiple of one plain run; None if unknown
    seconds: float | None = None  # expected wall seconds, where more is known than a multiple
    cost_note: str = ""  # where the figure comes from
    limit: float | None = None  # wall seconds one step may take; None: as long as it needs
    parallel: bool = False  # its steps do not disturb each other (simulation)
    simulated: bool = False
    skipped: str | None = None  # why it will not run, and
    fix: str | None = None  # the line that would let it
    kernels: tuple[KernelPlan, ...] = ()  # GPU: what is counted; empty until the trace has shown it
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """The passes of one run, in order."""

    backend: BackendName
    depth: Depth
    passes: tuple[PassPlan, ...]
    notes: tuple[str, ...] = ()  # what the place adds: what it may cost


@dataclass(frozen=True)
class PassResult:
    """How one pass ended."""

    name: PassName
    tool: str | None
    state: PassState
    reason: str | None = None
    fix: str | None = None
    seconds: float = 0.0
    cost: float | None = None  # as a multiple of one plain run, measured
    artifacts: tuple[str, ...] = ()
    log: str | None = None
    code: str | None = None  # which fault it was, where that decides what follows
