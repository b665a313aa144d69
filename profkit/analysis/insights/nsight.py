"""What NVIDIA's own rules concluded, beside ours.

A rule of Nsight Compute estimates a speed-up from one metric. What no rule can change is how near the busiest unit of
the kernel is to its peak: an estimate ends at what that leaves.
"""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.insights.evidence import KernelEvidence, RunEvidence
from profkit.core.types import Gain, Insight, ToolRule

LEAST_ESTIMATE = 0.1  # of the kernel's time
MOST_RULES = 3  # of a kernel, the largest estimate first
SURE = 60.0  # %: below it a unit is not what limits a kernel


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
    busiest = kernel.busiest or 0.0
    left = 1 - busiest / 100 if busiest >= SURE else 1.0
    bound = (
        "NVIDIA's estimate" if rule.speedup <= left else "what the busiest unit leaves of NVIDIA's estimate"
    )
    return Insight(
        rule.name,
        rule.title,
        rule.text.split(". ")[0].rstrip("."),
        rule.text,
        kernel.place,
        Gain(kernel.share * run.gpu_share * min(rule.speedup, left), run.time_name, bound),
        "nsight",
    )
