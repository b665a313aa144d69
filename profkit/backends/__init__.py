"""One file per backend: which passes, which tools, which counters, in what order, and how what they left is read.

A run (`live_run.py`) knows only what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from profkit.core.types import (
    Backend,
    Counter,
    Depth,
    Gpu,
    GpuTrace,
    Machine,
    MetalTrace,
    PassPlan,
    PassResult,
    Plan,
    Profile,
    Reading,
    Stacks,
    Verdict,
    Workload,
)
from profkit.runtime.passes.read_tracemalloc import Allocations


@dataclass(frozen=True)
class Site:
    """What a plan is made for: the workload, the machine, the folder of the run, and what may be spent."""

    workload: Workload
    machine: Machine
    folder: Path
    depth: Depth
    wanted: tuple[str, ...] | None  # names of passes; None: what the depth asks for
    precision: float  # half-width of the median's interval as a share
    budget: float  # wall seconds for timing in one process
    cold: bool = False  # timing on a device flushes its L2 before each call
    timeout: float | None = (
        None  # wall seconds that one step may take: for a tool with a time limit of its own
    )


@dataclass(frozen=True)
class Known:
    """What a plan can build on once something ran: does the workload mark a region, how long is one iteration."""

    marked: bool
    iteration_seconds: float | None = None
    benchmark: bool = False  # the region is that of `profkit.benchmark`: the pass says how often it is run
    plain_seconds: float | None = None  # wall time of one process of the workload alone, and
    start_seconds: float | None = None  # what of it is no sampling: start-up, set-up and end
    passes: tuple[PassResult, ...] = ()  # those that were carried out, in order
    trace: GpuTrace | None = None  # what the trace pass saw of the devices
    failed: str | None = None  # how the workload ended where its first run failed and another plan may help
    verdicts: tuple[Verdict, ...] | None = None  # of the judge, once the counters pass was read; None before


@dataclass(frozen=True)
class Findings:
    """What one pass found, as plain data."""

    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    stacks: tuple[Stacks, ...] = ()
    allocations: Allocations | None = None
    gpus: tuple[Gpu, ...] = ()
    trace: GpuTrace | None = None
    metal: MetalTrace | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()  # files made from what the pass left


class BackendRoom(Protocol):
    """What every backend offers a run."""

    name: Backend
    host_peaks: bool  # what this machine's processor can do at best says something about the workload

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The devices that the workload may use."""

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the tools that the asked passes use."""

    def plan(self, known: Known) -> Plan:
        """The passes for this site, as far as `known` tells; asked again after each that tells something new.

        A new plan begins with the passes that were carried out already. What comes after them may differ.
        """

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What the artifacts of a pass say. Raises UnreadableReport where they cannot be read."""
