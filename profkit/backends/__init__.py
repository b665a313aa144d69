"""One file per backend: which passes, which tools, which counters, in what order, and how what they left is read.

A run (`live_run.py`) knows only what stands here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from profkit.model import (
    Backend,
    Counter,
    Depth,
    Machine,
    PassPlan,
    PassResult,
    Plan,
    Profile,
    Reading,
    Stacks,
    Workload,
)
from profkit.passes.read_tracemalloc import Allocations


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


@dataclass(frozen=True)
class Known:
    """What a plan can build on once something ran: does the workload mark a region, how long is one iteration."""

    marked: bool
    iteration_seconds: float | None = None


@dataclass(frozen=True)
class Findings:
    """What one pass found, as plain data."""

    counters: tuple[Counter, ...] = ()
    readings: tuple[Reading, ...] = ()
    profiles: tuple[Profile, ...] = ()
    stacks: tuple[Stacks, ...] = ()
    allocations: Allocations | None = None
    notes: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()  # files made from what the pass left


class BackendRoom(Protocol):
    """What every backend offers a run."""

    name: Backend

    @property
    def tools(self) -> dict[str, str]:
        """Versions of the tools that the asked passes use."""

    def plan(self, known: Known) -> Plan:
        """The passes for this site, as far as `known` tells; asked again after the timing pass."""

    def findings(self, plan: PassPlan, result: PassResult) -> Findings:
        """What the artifacts of a pass say. Raises UnreadableReport where they cannot be read."""
