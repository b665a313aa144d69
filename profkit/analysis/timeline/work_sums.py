"""What each operation of a framework took on the devices, beside the least work that its calls need."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from profkit.analysis.kernel_names.owner import computes_products
from profkit.analysis.necessary_work.calls import type_of_kernel
from profkit.analysis.necessary_work.formulas import necessary_work
from profkit.analysis.necessary_work.work import NecessaryWork
from profkit.analysis.timeline.origins import LaunchOrigin, OriginIndex
from profkit.analysis.timeline.range_names import SourceLine
from profkit.analysis.timeline.records import Columns, distinct_pairs
from profkit.core.types import GpuOperation, Kernel, SourcePlace

MAX_OPERATIONS = 512
_CONVOLUTION = re.compile(
    r"fprop|dgrad|wgrad|convolve|conv_depthwise|conv2d_|winograd(?!.*(?:generate|transform))", re.I
)


def multiplies(kernel: str) -> bool:
    """Return whether a kernel does the main work of a product, of attention or of a convolution."""
    return computes_products(kernel) or _CONVOLUTION.search(kernel) is not None


@dataclass
class _Sum:
    """What the calls of one origin launched: by configuration launches and ns; the calls themselves."""

    launches: Counter[int] = field(default_factory=Counter)
    spent: Counter[int] = field(default_factory=Counter)
    calls: set[int] = field(default_factory=set)


class _Row(NamedTuple):
    operation: str
    backward_of: str | None
    line: SourceLine | None
    work: NecessaryWork | None
    below: SourceLine | None
    typed: bool


class WorkSums:
    """Sums up kernels by operation, fed with those that count, their origins and their calls' numbers."""

    def __init__(self, origins: OriginIndex, configurations: Sequence[Kernel]) -> None:
        self._origins, self._table = origins, configurations
        self._sums: dict[int, _Sum] = {}

    def add(self, rows: Columns, origin: Any, call: Any) -> None:
        """Add kernels (columns ACTIVITY), each with the numbers of its origin and its operation's call."""
        import numpy as np

        known = origin > 0
        if not known.any():
            return
        rows, origin, call = rows[known], origin[known], call[known]
        first, second, where, counts = distinct_pairs(origin, rows["what"])
        spent = np.bincount(where, weights=rows["end"] - rows["start"])
        for number, what, count, ns in zip(
            first.tolist(), second.tolist(), counts.tolist(), spent.tolist(), strict=True
        ):
            sums = self._sums.setdefault(number, _Sum())
            sums.launches[what] += count
            sums.spent[what] += int(ns)
        numbers, calls, _, _ = distinct_pairs(origin, call)
        starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
        for number, entered in zip(numbers[starts].tolist(), np.split(calls, starts[1:]), strict=True):
            self._sums[number].calls.update(entered.tolist())

    def summed(self) -> tuple[GpuOperation, ...]:
        """Return the operations, most time first.

        Calls that need the same work and differ only in a value are one row.
        """
        rows: dict[_Row, _Sum] = {}
        for number, sums in self._sums.items():
            origin = self._origins.origins[number]
            if origin.operation is None:
                continue
            typed = origin.call is not None and origin.call.typed
            row = rows.setdefault(
                _Row(
                    origin.operation, origin.backward_of, origin.line, self._work(number), origin.below, typed
                ),
                _Sum(),
            )
            row.launches.update(sums.launches)
            row.spent.update(sums.spent)
            row.calls |= sums.calls
        ranked = sorted(rows.items(), key=lambda item: (-item[1].spent.total(), item[0].operation))
        return tuple(self._operation(row, sums) for row, sums in ranked[:MAX_OPERATIONS])

    def flops(self, origins: Sequence[tuple[int, int]]) -> float | None:
        """Return the FLOP of one launch of a product, as the mean over `origins` (number, launches).

        A call that launches several such kernels shares its FLOP among them. None where some origin has no product of
        known work.
        """
        total, launches = 0.0, 0
        for number, count in origins:
            work, sums = self._work(number), self._sums.get(number)
            if work is None or work.unit != "tensor" or sums is None:
                return None
            products = sum(n for what, n in sums.launches.items() if multiplies(self._table[what].name))
            total += work.flop * len(sums.calls) * count / products if products else 0.0
            launches += count
        return total / launches if launches else None

    def _work(self, number: int) -> NecessaryWork | None:
        """Return the least work of a call of an origin; None where its arguments are not known.

        Where the tensors' type was not recorded, it is taken from the names of the kernels.
        """
        origin: LaunchOrigin = self._origins.origins[number]
        sums = self._sums.get(number)
        if origin.call is None or sums is None:
            return None
        names = [self._table[what].name for what in sorted(sums.launches)]
        # Other kernels beside a product convert, or add in FP32.
        products = [name for name in names if multiplies(name)]
        return necessary_work(origin.call, type_of_kernel(" ".join(products or names)))

    def _operation(self, row: _Row, sums: _Sum) -> GpuOperation:
        work = row.work
        file, line, function = row.line or (None, None, None)
        return GpuOperation(
            row.operation,
            len(sums.calls),
            sums.launches.total(),
            sums.spent.total() / 1e9,
            self._table[sums.spent.most_common(1)[0][0]].name,
            work.type if work is not None else None,
            work.unit if work is not None else None,
            work.flop if work is not None else None,
            work.bytes if work is not None else None,
            row.backward_of,
            file,
            line,
            function,
            SourcePlace(*row.below) if row.below is not None else None,
            row.typed,
        )
