"""Launches and times of each launch configuration, in what counts and before it, and the order of the first ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profkit.analysis.timeline.medians import Medians
from profkit.analysis.timeline.records import Columns, Configuration
from profkit.core.types import Kernel, KernelTime

MOST_ORDER = 2048  # launches whose order is told
MOST_SETUP = 1024  # configurations that were launched in the set-up alone
_NEVER = 1 << 62


@dataclass
class _Launches:
    """Of one configuration. Times in ns; `setup` counts launches before what counts."""

    count: int = 0
    total: int = 0
    least: int = _NEVER
    most: int = 0
    first: int = _NEVER
    setup: int = 0
    graph: bool = False


@dataclass(frozen=True)
class SummedKernels:
    """`times` most time first; `order`: which of them the first launches were; `setup`: launched only before.

    `setup_seconds` is the time of all kernels before what counts; None where there were none.
    """

    times: tuple[KernelTime, ...]
    order: tuple[int, ...]
    setup: tuple[KernelTime, ...]
    setup_seconds: float | None


class KernelSums:
    """Fed with kernels in the order of their starts."""

    def __init__(self, configurations: list[Configuration]) -> None:
        self._table = configurations
        self._kernels: dict[int, _Launches] = {}
        self._medians = Medians()
        self._order: list[int] = []  # the configurations of the first launches that count
        self._setup = 0  # ns of kernels before what counts
        self._before = False  # whether there were any

    def add(self, rows: Columns, ordinal: Any) -> None:
        """Kernels that count (columns ACTIVITY), each with its number among all kernels."""
        import numpy as np

        what, spent = rows["what"], rows["end"] - rows["start"]
        self._order += what[: MOST_ORDER - len(self._order)].tolist()
        order = np.argsort(what, kind="stable")
        cuts = np.flatnonzero(np.r_[True, what[order][1:] != what[order][:-1]])
        ordered = spent[order]
        columns = (
            what[order][cuts],
            np.diff(np.r_[cuts, len(order)]),
            np.add.reduceat(ordered, cuts),
            np.minimum.reduceat(ordered, cuts),
            np.maximum.reduceat(ordered, cuts),
            ordinal[order][cuts],
            np.logical_or.reduceat(rows["graph"][order], cuts),
        )
        for number, count, total, least, most, first, graph in zip(
            *map(np.ndarray.tolist, columns), strict=True
        ):
            kernel = self._kernels.setdefault(number, _Launches())
            kernel.count += count
            kernel.total += total
            kernel.least, kernel.most = min(kernel.least, least), max(kernel.most, most)
            kernel.first = min(kernel.first, first)
            kernel.graph |= graph
        self._medians.add(what, spent)

    def add_setup(self, rows: Columns) -> None:
        """Kernels before what counts."""
        import numpy as np

        self._before = True
        self._setup += int((rows["end"] - rows["start"]).sum())
        whats, counts = np.unique(rows["what"], return_counts=True)
        for what, count in zip(whats.tolist(), counts.tolist(), strict=True):
            self._kernels.setdefault(what, _Launches()).setup += count

    def summed(self, ranges: Mapping[int, tuple[str, ...]]) -> SummedKernels:
        """All of it; `ranges` are those that each configuration was launched in."""
        ranked = sorted(self._kernels.items(), key=self._rank)
        counted = [(number, found) for number, found in ranked if found.count]
        places = {number: place for place, (number, _) in enumerate(counted)}
        medians = self._medians.medians()
        return SummedKernels(
            tuple(
                KernelTime(
                    _kernel(self._table[number]),
                    found.count,
                    found.total / 1e9,
                    medians[number] / 1e9,
                    found.least / 1e9,
                    found.most / 1e9,
                    found.first,
                    ranges.get(number, ()),
                    found.setup,
                    found.graph,
                )
                for number, found in counted
            ),
            tuple(places[number] for number in self._order),
            tuple(
                KernelTime(_kernel(self._table[number]), 0, 0.0, setup_launches=found.setup)
                for number, found in [item for item in ranked if not item[1].count][:MOST_SETUP]
            ),
            self._setup / 1e9 if self._before else None,
        )

    def _rank(self, item: tuple[int, _Launches]) -> tuple[int, int, str, str]:
        """Most time first, then most launches of the set-up."""
        kernel = _kernel(self._table[item[0]])
        return -item[1].total, -item[1].setup, kernel.name, kernel.id


def _kernel(configuration: Configuration) -> Kernel:
    return Kernel(
        configuration.name,
        configuration.grid,
        configuration.block,
        configuration.mangled,
        configuration.registers,
        configuration.shared,
    )
