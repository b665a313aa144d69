"""Trials of a program under changed conditions: what was set, how the times differ, whether the output does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from profkit.core.types.hot_spots import NOWHERE, Place
from profkit.core.types.readings import RUN, Fact, Scope

TrialName = Literal[
    "collector",  # garbage is looked for a hundred times more rarely
    "threads",  # of OpenMP and the libraries of linear algebra
    "allocator",  # freed memory is kept
    "memoise",  # one function's results are kept
    "output",  # standard output is written when its buffer is full
    "tf32",  # FP32 products on the tensor cores
    "convolutions",  # cuDNN tries its algorithms
    "loader",  # torch's DataLoader has workers and pinned memory
    "workers",  # a DataLoader's workers stay from one pass over the data to the next
    "attention",  # torch's attention leaves cuDNN out
    "device-memory",  # torch's allocator grows its segments
]
TrialState = Literal[
    "faster",
    "slower",
    "same",
    "undecided",  # the first run was faster, and the pairs that fitted into the budget do not decide
    "other-output",
    "failed",
    "without-hold",  # the change did not reach the program
    "interrupted",
    "left-out",  # no time was left for it
]
# Of a run with the change: `varies` where runs without it do not print the same either.
OutputWord = Literal["same", "varies", "different"]


@dataclass(frozen=True)
class TriedChange:
    """One change that was tried. Seconds are of `scope` in one run; `ratio` is after over before."""

    name: TrialName
    state: TrialState
    because: Fact  # what made it likely
    settings: Mapping[str, str] = field(default_factory=dict)  # what was set, as variables or as intervention
    where: Place = NOWHERE  # of the program, where the change is about one place
    scope: Scope = RUN
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    low: float | None = None  # the interval of the ratio
    high: float | None = None
    pairs: int = 0  # 0: one run beside the plain ones
    output: OutputWord | None = None
    memory: float | None = None  # peak resident memory, after over before
    reason: Fact | None = None
    seconds: float = 0.0  # that the trial took
