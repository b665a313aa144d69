"""What a rule is, and how it states what it found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from profkit.analysis.insights.evidence import KernelEvidence, RunEvidence
from profkit.core.formatting import format_percent
from profkit.core.types import Gain, Insight, Place

FindInsights: TypeAlias = Callable[[RunEvidence], Iterable[Insight]]


@dataclass(frozen=True)
class Rule:
    """A rule by name. `find` yields an insight for each place where it applies, and nothing where
    it knows too little."""

    name: str
    find: FindInsights


def insight_on(
    rule: str,
    kernel: KernelEvidence,
    title: str,
    evidence: str,
    change: str,
    gain: Gain | None,
    metrics: Sequence[str] = (),
    where: Place | None = None,
) -> Insight:
    """An insight on one kernel, at `where` in it; its name and share of the GPU time are those of the place."""
    return Insight(
        rule,
        title,
        evidence,
        change,
        where or kernel.place,
        gain,
        readings=kernel.readings(*metrics),
    )


def bounded_gain(run: RunEvidence, kernel: KernelEvidence, fraction: float, bound: str) -> Gain:
    """At most `fraction` (0..1) of the kernel's own time, as a share of the whole (Amdahl's law)."""
    part = kernel.share * run.gpu_share
    return Gain(part * min(1.0, max(0.0, fraction)), run.time_name, bound)


def percent_text(value: float) -> str:
    """A share for a sentence: `45 %`, `6.3 %`."""
    return f"{format_percent(value)} %" if value < 9.95 else f"{value:.0f} %"
