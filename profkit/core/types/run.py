"""A run, from the command to the verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.types.answers import Summary, Verdict
from profkit.core.types.gpu import Gpu, GpuTrace, KernelClass
from profkit.core.types.machine import Machine, Moment, Peaks
from profkit.core.types.metal import MetalTrace
from profkit.core.types.plan import PassResult, Plan
from profkit.core.types.time import Timing
from profkit.core.types.triton import TritonWork
from profkit.core.types.values import Counter, Profile, Reading
from profkit.core.types.words import BackendName, RunState


@dataclass(frozen=True)
class Workload:
    """The command being profiled, as the user typed it."""

    command: tuple[str, ...]
    name: str
    folder: str  # working folder the command runs in
    python: str | None = None  # the interpreter, where the command is a Python program


@dataclass(frozen=True)
class Revision:
    """What git says of the folder that the workload's script lies in, else runs in; no remote, no author, no path.

    What is None was not told.
    """

    commit: str | None = None  # 40 or 64 hexadecimal digits; None before the first commit
    branch: str | None = None  # None where the head is detached
    dirty: bool | None = None  # tracked files differ from the commit; None where that took too long to tell
    reason: str | None = None  # why there is less than that: no git here, no repository, an empty one


@dataclass(frozen=True)
class RunDocument:
    """All of run.json. Grows while a run goes on; every state of it is a valid document."""

    name: str
    backend: BackendName
    state: RunState
    workload: Workload
    started: str  # ISO 8601, UTC
    machine: Machine | None = None
    plan: Plan | None = None
    tools: Mapping[str, str] = field(default_factory=dict)
    peaks: Peaks | None = None
    passes: tuple[PassResult, ...] = ()
    timings: tuple[Timing, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    trace: GpuTrace | None = None
    metal: MetalTrace | None = None
    triton: tuple[TritonWork, ...] = ()  # one for each process that told of it, in the order of the passes
    kernels: tuple[KernelClass, ...] = ()  # what limits each, largest share of GPU time first
    facts: Mapping[str, str] = field(
        default_factory=dict
    )  # of the tools' sessions: what decides comparability
    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    summaries: tuple[Summary, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    failure: str | None = None
    revision: Revision | None = None  # None: not asked (a report, an older run)
    moments: tuple[Moment, ...] = ()  # the machine right before and right after the timing pass
    # Versions in the workload's own process: "python", "torch", "triton", "numpy"; only what it had loaded.
    packages: Mapping[str, str] = field(default_factory=dict)
