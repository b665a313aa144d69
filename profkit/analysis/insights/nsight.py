"""What NVIDIA's own rules concluded, beside ours, and where the two disagree.

A rule of Nsight Compute estimates a speed-up from one metric. What no rule can change is how near the busiest unit of
the kernel is to its peak: an estimate above what that leaves is contradicted.
"""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.insights.evidence import KernelEvidence, RunEvidence, percent_text
from profkit.analysis.summaries.kernels import BOTTLENECK_TITLES
from profkit.core.types import Gain, Insight, ToolRule

LEAST_ESTIMATE = 0.1  # of the kernel's time
MOST_RULES = 3  # of a kernel, the largest estimate first
SURE = 60.0  # %: below it a unit is not what limits a kernel, and contradicts nobody
TOLERANCE = 0.05


def nsight_insights(run: RunEvidence) -> Iterator[Insight]:
    """The rules with the largest estimates, of the kernels that are worth a conclusion."""
    for kernel in run.kernels:
        rules = [
            rule
            for rule in run.document.rules
            if rule.kernel == kernel.row.scope and rule.whole and rule.speedup >= LEAST_ESTIMATE
        ]
        for rule in sorted(rules, key=lambda rule: -rule.speedup)[:MOST_RULES]:
            yield _insight(run, kernel, rule)


def _insight(run: RunEvidence, kernel: KernelEvidence, rule: ToolRule) -> Insight:
    part = kernel.share * run.gpu_share
    return Insight(
        rule.name,
        rule.title,
        rule.text.split(". ")[0].rstrip("."),
        rule.text,
        kernel.place,
        Gain(part * rule.speedup, run.time_name, "NVIDIA's estimate", contradiction(kernel, rule)),
        "nsight",
    )


def contradiction(kernel: KernelEvidence, rule: ToolRule) -> str | None:
    """Why the estimate cannot be reached: `profkit: at most 11 %, since ...`; None where nothing contradicts it."""
    bottleneck = kernel.row.bound
    if bottleneck is None or bottleneck.nearest is None or bottleneck.nearest < SURE:
        return None
    left = 1 - bottleneck.nearest / 100
    if rule.speedup <= left + TOLERANCE:
        return None
    unit = BOTTLENECK_TITLES[bottleneck.busiest or bottleneck.bound]
    at_most = f"profkit: at most {percent_text(100 * left)} of the kernel"
    return f"{at_most}, since {unit} is at {percent_text(bottleneck.nearest)} of its peak"
