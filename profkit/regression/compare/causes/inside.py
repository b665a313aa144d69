"""A kernel works less well: lanes idle, sectors half used, banks in each other's way, registers spilled."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.types import Cause
from profkit.regression.compare.causes.words import became, kernel
from profkit.regression.compare.view import View

# The metric, whether more of it is the worse, and what it means for the kernel.
_SIGNS = (
    ("memory.spill.loads", True, "reloads registers that did not fit"),
    ("memory.spill.stores", True, "spills registers to memory"),
    ("shared.bank_conflicts", True, "has more bank conflicts in shared memory"),
    ("memory.coalescing", False, "uses less of the sectors that it loads"),
    ("warp.execution_efficiency", False, "leaves more lanes of its warps idle"),
)


def find(view: View) -> Iterator[Cause]:
    """For each kernel that became slower and shows such a sign."""
    for metric, rises, says in _SIGNS:
        for change in view.different(metric):
            if (change.candidate.value > change.baseline.value) != rises:
                continue
            fate = view.fate(change.scope)
            if fate is not None and fate.word == "slower":
                yield Cause(
                    metric.rpartition(".")[2],
                    f"{kernel(change.scope.name or '')} {says}.",
                    change.scope,
                    (became(metric, change.baseline.value, change.candidate.value, change.unit),),
                )
