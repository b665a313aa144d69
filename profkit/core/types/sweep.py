"""A sweep: operations over shapes, dtypes and implementations, and what was found of each case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

SweepDirection = Literal["forward", "backward"]
# `measured` is right and timed; `wrong` was timed by nobody. `unavailable`: this implementation is not to be had here.
LARGEST_NUMBER = 1e30  # of any unit here
CaseState = Literal["measured", "wrong", "unavailable", "too large", "failed", "crashed", "timed out"]


@dataclass(frozen=True)
class GridPoint:
    """One place of the grid: what every implementation is asked to do. x has batch x sequence x dimension elements."""

    operation: str
    batch: int
    sequence: int
    dimension: int
    dtype: str = "float32"
    direction: SweepDirection = "forward"

    @property
    def name(self) -> str:
        """`LayerNorm forward float32 16x256x64`."""
        return f"{self.operation} {self.direction} {self.dtype} {self.shape}"

    @property
    def elements(self) -> int:
        """Of x."""
        return self.batch * self.sequence * self.dimension

    @property
    def shape(self) -> str:
        """`16x256x64`."""
        return f"{self.batch}x{self.sequence}x{self.dimension}"


@dataclass(frozen=True)
class MeasuredCeilings:
    """The most that the device was measured to do, right before the sweep: bytes/s and FLOP/s of float32."""

    bandwidth: float | None = None
    flops: float | None = None
    method: str = ""


@dataclass(frozen=True)
class CaseResult:
    """One implementation at one point. Times in seconds; what is None was not measured.

    `seconds` are samples of single calls: the device's own time where there is a device, else the wall clock's.
    """

    point: GridPoint
    implementation: str
    state: CaseState
    reason: str | None = None  # why there is no time
    fix: str | None = None
    median: float | None = None
    half_width: float | None = None  # of the median's 95 % interval, as a share of it
    samples: int = 0
    calls: int = 1  # of which each sample is the mean
    precise: bool = False  # the interval is as narrow as was asked
    seconds: tuple[float, ...] = ()  # some of the samples in their order, spread evenly
    cache: Literal["warm", "cold"] | None = None  # as in a run: Python keeps one order of a Literal
    clock: Literal["wall", "cuda-events", "mps-synchronized"] | None = None
    first: float | None = None  # the very first call: compiling and tuning are in it
    memory: int | None = None  # bytes: the inputs, and the most that a call allocated at a time beside them
    flops: float | None = None  # of one call, as the operation declares them
    bytes: float | None = None  # that one call must move
    # The largest error as a share of what rounding explains; at most 1 where it is right
    error: float | None = None
    clocks: tuple[float, ...] = ()  # the device's clock in Hz, between samples
    throttled: tuple[str, ...] = ()  # why the device held its clock down meanwhile
    device: int | None = None  # which one
    spent: float = 0.0  # wall seconds that the case took, the check included
    remarks: tuple[str, ...] = ()
    profile: str | None = None  # the folder of its own `profkit profile`, below the sweep's
    place: str | None = None  # where it ran, as `--on` says it; None: where profkit was called

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that nobody can have measured: a file may say anything."""
        numbers = (self.median, self.half_width, self.first, self.memory, self.flops, self.bytes, self.spent)
        ends = (min(self.seconds), max(self.seconds)) if self.seconds else ()
        if any(number is not None and not 0 <= number < LARGEST_NUMBER for number in (*numbers, *ends)):
            raise ValueError("a number of the case is negative, or too large for one")


@dataclass(frozen=True)
class SweepDocument:
    """All of a sweep. `complete` is False while it goes on, and after it was interrupted."""

    started: str  # ISO 8601, UTC
    device: str
    results: tuple[CaseResult, ...]
    roofs: MeasuredCeilings = MeasuredCeilings()
    versions: Mapping[str, str] = field(default_factory=dict)
    planned: int = 0  # cases
    complete: bool = False
    seconds: float = 0.0  # wall time of all sittings together
