"""The account of a step: what takes its time, row by row, and how near each row is to what the hardware allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from profkit.core.types.hot_spots import NOWHERE, Place, SpotKind
from profkit.core.types.readings import Bound

AccountUnit = Literal[
    "step",  # what repeats
    "region",  # one entry of what is marked
    "call",  # one of equal calls in it
    "iteration",  # one of a loop of the program, under which most of its time lies
    "trace",  # all that was recorded
    "run",  # the whole program
]
AccountRowKind = Literal[
    "kernel",  # kernels of one operation at one line, or of one name
    "copy",  # copies and memsets while no kernel ran
    "idle",  # the device had nothing to do; the line is where the host was meanwhile
    "host",  # a place of a program without a device; `does` says what kind
    "rest",
]


@dataclass(frozen=True)
class AccountRow:
    """One part of a step: its seconds, and the least that the hardware allows for what it does.

    `what` is the operation with its shapes, a kernel's short name, a kind of copy, or what a place of the host
    calls. `busy` is how near (0..1) the busiest unit, `limit`, is to its peak. `needs` is the unit that `least` is of,
    where that follows from shapes. `estimated`: the seconds were divided among rows by the shares that another run
    showed.
    """

    kind: AccountRowKind
    seconds: float
    where: Place = NOWHERE
    what: str = ""
    launches: float | None = None  # of kernels, of copies, or of what the place calls, in one step
    library: str | None = None  # whose kernels they are, where they are not the program's own
    limit: Bound | None = None
    busy: float | None = None
    least: float | None = None  # seconds; None: not known
    needs: Bound | None = None  # "tensor" or "dram"; None: the counted work at its own unit's peak
    # `busy` of the data sheet's peak, where the clock makes over 5 % of a difference.
    of_sheet: float | None = None
    estimated: bool = False
    does: SpotKind | None = None  # of a place of the host
    below: Place = NOWHERE  # the line of a library, to which most of it leads from the line of the program
    type: str | None = None  # of an operation's operands: "bf16", "tf32"; None: not told, or of several types


@dataclass(frozen=True)
class AccountClock:
    """The SM clock of a device during the run and its highest, in Hz, and why it was held below that if known."""

    seen: float  # median over the samples
    highest: float | None = None
    held_by: tuple[str, ...] = ()  # "power limit", "temperature, by the driver"


@dataclass(frozen=True)
class LoopGrowth:
    """A loop whose iterations take longer and longer: seconds of one in the first and in the last eighth of them."""

    where: Place
    iterations: int
    first: float  # seconds
    last: float


@dataclass(frozen=True)
class Account:
    """The rows of one step, the largest first; their seconds add up to `seconds`."""

    unit: AccountUnit
    seconds: float
    rows: tuple[AccountRow, ...]
    repeats: int = 1  # steps that were seen
    clock: AccountClock | None = None  # None: nothing was sampled
    # Share (0..1) of the processor time in which threads of OpenMP and BLAS wait for each other.
    waiting_threads: float = 0.0
    # The largest places of what came before it, which `seconds` do not hold.
    start: tuple[AccountRow, ...] = ()
    loop: Place = NOWHERE  # whose iterations it is of
    outside: float = 0.0  # seconds of the run before and after that loop
    growth: LoopGrowth | None = None

    @property
    def known(self) -> float:
        """Return the seconds of the rows whose least is known; of idle time that is 0."""
        return sum(row.seconds for row in self.rows if row.least is not None)

    @property
    def least(self) -> float:
        """Return the seconds that would be left at the hardware's limits; rows without a known least count in full."""
        return sum(row.seconds if row.least is None else row.least for row in self.rows)
