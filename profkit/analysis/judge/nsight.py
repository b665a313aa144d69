"""Findings of NVIDIA's own rules on the kernels, from a report of Nsight Compute."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.analysis.evidence import KernelEvidence, RunEvidence
from profkit.core.types import Insight, ToolRule

MIN_ESTIMATE = 0.1  # of the kernel's time
MAX_RULES = 3  # of a kernel, the largest estimate first
SURE = 60.0  # %: a unit that is less busy does not limit a kernel


def nsight_findings(run: RunEvidence) -> Iterator[Insight]:
    """Yield the rules with the largest estimated speed-ups, for kernels that take enough of the time.

    They speak of how a kernel is written, which nobody here can change of a library's.
    """
    for kernel in run.kernels:
        if not kernel.own_functions:
            continue
        rules = [
            rule
            for rule in run.document.rules
            if rule.kernel == kernel.row.scope and rule.whole and rule.speedup >= MIN_ESTIMATE
        ]
        for rule in sorted(rules, key=lambda rule: -rule.speedup)[:MAX_RULES]:
            yield _of_rule(run, kernel, rule)


def _of_rule(run: RunEvidence, kernel: KernelEvidence, rule: ToolRule) -> Insight:
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
        run.gain(kernel.share * run.gpu_share * min(rule.speedup, left), bound),
        "nsight",
    )
