"""In which performance state an Apple GPU worked in a run, and whether heat held it down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from profkit.analysis.comparability.fingerprint import holds_down
from profkit.core.formatting import percent
from profkit.core.types import KernelChange, MetalState, RunDocument

# Of the time that is told. A device that changes its state with its load is in each for some of it, and what it is in
# for most of it is what a mean of the times speaks of.
MOSTLY = 0.6
HOT = 0.1
# From slow to fast, as Instruments names them; of other names the order is not known.
ORDER = ("Minimum", "Low", "Medium", "High", "Maximum")


@dataclass(frozen=True)
class WorkedIn:
    """The state that the GPU was in for most of the work of the process, and its share of it, 0..1."""

    name: str
    share: float

    def __str__(self) -> str:
        return f"{self.name} {percent(100 * self.share)} % of its work"


def state_of(document: RunDocument) -> WorkedIn | None:
    """The performance state that it mostly worked in; None where none is that, or none is told while it worked."""
    states = document.metal.performance if document.metal is not None else ()
    worked = [(one.name, one.busy) for one in states if one.busy]
    total = sum(seconds for _, seconds in worked)
    found = max(worked, key=lambda one: one[1], default=None)
    if found is None or found[1] < MOSTLY * total:
        return None
    return WorkedIn(found[0], found[1] / total)


def heat(document: RunDocument) -> str | None:
    """`thermal state Fair in 43 % of the trace`, where another one than Nominal held for a tenth of it or more."""
    states: Sequence[MetalState] = document.metal.thermal if document.metal is not None else ()
    total = sum(one.seconds for one in states)
    hot = [one for one in states if holds_down(one.name)]
    share = sum(one.seconds for one in hot) / total if total > 0 else 0.0
    if share < HOT:
        return None
    longest = max(hot, key=lambda one: one.seconds)
    return f"thermal state {longest.name} in {percent(100 * share)} % of the trace"


def unsure(
    changes: Sequence[KernelChange], baseline: RunDocument, candidate: RunDocument
) -> tuple[KernelChange, ...]:
    """The encoders' changes, not decided where the state of the GPU may have made them."""
    return tuple(_unsure(change, baseline, candidate) for change in changes)


def _unsure(change: KernelChange, baseline: RunDocument, candidate: RunDocument) -> KernelChange:
    if change.word not in ("slower", "faster"):
        return change
    reason = explains(baseline, candidate, 2.0 if change.word == "slower" else 0.5)
    if reason is None:
        return change
    return replace(change, word="ambiguous", reason=f"{change.reason}; but {reason}")


def explains(baseline: RunDocument, candidate: RunDocument, ratio: float) -> str | None:
    """Why a time that became `ratio` times what it was may be the state's doing; None where it cannot be.

    Only where the state is another one and a faster one does not come with a longer time.
    """
    before, after = state_of(baseline), state_of(candidate)
    if before is None or after is None or before.name == after.name:
        return None
    if before.name in ORDER and after.name in ORDER:
        faster = ORDER.index(after.name) > ORDER.index(before.name)
        if faster == (ratio > 1):
            return None
    return f"the GPU worked mostly in the performance state {before.name}, then in {after.name}"
