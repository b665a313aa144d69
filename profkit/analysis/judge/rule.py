"""A rule, and the parts of a finding: a place, the numbers that prove it, what to change, and a bound."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from profkit.analysis.evidence import KernelEvidence, RunEvidence, unit_utilization
from profkit.analysis.judge.words import OF_PROGRAMS, change_in, texts_by_language, words
from profkit.core.formatting import percent_text
from profkit.core.types import (
    Gain,
    Insight,
    Place,
)

FindInsights: TypeAlias = Callable[[RunEvidence], Iterable[Insight]]


@dataclass(frozen=True)
class Rule:
    """A rule by name, and what its findings are about.

    `find` yields an insight for each place where it applies, and nothing where it knows too little. `of_host`: it is
    not only about the work of a GPU. `about`: why a device has nothing to do ("cause"), only that it has nothing
    ("waiting"), counters of the processor, which describe the place that was counted, or the whole program; it decides
    which of several findings on the same time is kept. `includes`: the rules whose findings are dropped with its own,
    at its place or, if one has no place, anywhere; with `anywhere` always; with `includes_kernels` also those on
    kernels. `traceless`: stacks and compilers prove it, so that it needs no timeline. `also`: other names of what it
    finds. `explains`: the targets that are missed where it applies. `wasted`: the time that it saves was no part of the
    operation's work, so that the account does not count it as needed.
    """

    name: str
    find: FindInsights
    of_host: bool = False
    about: Literal["end", "program", "cause", "waiting", "counters", "work"] = "work"
    includes: tuple[str, ...] = ()
    anywhere: bool = False
    includes_kernels: bool = False
    traceless: bool = False
    also: tuple[str, ...] = ()
    explains: tuple[str, ...] = ()
    wasted: bool = False


def insight_on(
    rule: str,
    kernel: KernelEvidence,
    title: str,
    evidence: str,
    gain: Gain | None,
    metrics: Sequence[str] = (),
    where: Place | None = None,
    change: str = "",
) -> Insight:
    """Return an insight on one kernel, at `where` in it, with the kernel's name and share of the GPU time.

    Without a `change`, the rule's own is used.
    """
    change = change_in(kernel.language, rule, change or words(rule))
    place = where or kernel.place
    return Insight(rule, title, evidence, change, place, gain, readings=kernel.readings(*metrics))


def insight_at(
    rule: str, title: str, evidence: str, where: Place | None = None, gain: Gain | None = None
) -> Insight:
    """Return an insight on a line of the program or on all of it; what to change is stated by its rule."""
    change = next(
        texts[rule] for kind, texts in texts_by_language().items() if kind in OF_PROGRAMS and rule in texts
    )
    return Insight(rule, title, evidence, change, where or Place(), gain)


WORTH_NAMING = 0.2  # of its peak: a unit that is less busy is not worth naming as the next limit
MEMORY_UNITS = ("DRAM", "L2", "L1", "shared memory", "the load/store pipe", "instruction issue")
PIPES = (
    "the tensor cores", "the FP64 pipe", "the FP32 pipe", "the FP16 pipe", "the integer pipe",
    "the special function pipe", "instruction issue",
)  # fmt: skip


def next_roof(kernel: KernelEvidence, relieves: Collection[str]) -> tuple[str, float]:
    """Return the busiest of the units whose work a change leaves as it is, and how busy it is (0..1)."""
    units = {title: busy for title, busy in unit_utilization(kernel).items() if title not in relieves}
    title = max(units, key=lambda unit: units[unit], default="")
    return title, min(1.0, units.get(title, 0.0) / 100)


def bounded_gain(
    run: RunEvidence, kernel: KernelEvidence, fraction: float, bound: str, relieves: Collection[str] = ()
) -> Gain:
    """Return a gain of at most `fraction` (0..1) of the kernel's own time, as a share of the whole (Amdahl's law).

    It is limited by what the next unit leaves, unless the change relieves that (`relieve`).
    """
    part = kernel.share * run.gpu_share
    title, busy = next_roof(kernel, relieves)
    if fraction > 1 - busy and busy < WORTH_NAMING:
        fraction = 1 - busy
    elif fraction > 1 - busy:
        fraction, bound = (
            1 - busy,
            f"until {title} limits it, which is at {percent_text(100 * busy)} of its peak now",
        )
    return Gain(part * min(1.0, max(0.0, fraction)), run.time_name, bound)
