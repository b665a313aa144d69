"""Which kernel of one run is which of the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from profkit.analysis.kernel_names import same_name
from profkit.core.types import GpuTrace, Kernel, KernelTime, RunDocument

_LONGEST = 20_000  # characters of a name that are looked at


@dataclass(frozen=True)
class KernelPair:
    """One kernel in both runs; `reshaped`: launched with another grid or block."""

    before: KernelTime
    after: KernelTime
    reshaped: bool = False

    @property
    def baseline(self) -> Kernel:
        """Of the baseline."""
        return self.before.kernel

    @property
    def candidate(self) -> Kernel:
        """Of the candidate."""
        return self.after.kernel


@dataclass(frozen=True)
class Matched:
    """The kernels of two runs: those of both, and those of one alone."""

    pairs: tuple[KernelPair, ...]
    vanished: tuple[KernelTime, ...]
    appeared: tuple[KernelTime, ...]


def match_kernels(baseline: RunDocument, candidate: RunDocument) -> Matched:
    """By name and shape as they stand; else by the mangled name, or the name spelled alike, and shape.

    What is left then and has one namesake alone on the other side is the same kernel launched in another shape. The
    time it takes grows with the number of kernels.
    """
    before, after = list(_times(baseline.trace)), list(_times(candidate.trace))
    pairs: list[KernelPair] = []
    keys: tuple[Callable[[Kernel], Hashable | None], ...] = (_whole, _mangled, _spelled)
    for key in keys:
        before, after = _join(before, after, key, pairs, reshaped=False)
    for key in (_mangled_name, _spelled_name):
        before, after = _join(before, after, key, pairs, reshaped=True)
    return Matched(tuple(pairs), tuple(before), tuple(after))


def _times(trace: GpuTrace | None) -> Sequence[KernelTime]:
    return trace.kernels if trace is not None else ()


def _join(
    before: Sequence[KernelTime],
    after: Sequence[KernelTime],
    key: Callable[[Kernel], Hashable | None],
    pairs: list[KernelPair],
    *,
    reshaped: bool,
) -> tuple[list[KernelTime], list[KernelTime]]:
    """Add to `pairs` what has the same key; the rest of both sides.

    Several of one key are paired in their order, largest first; in another shape only what is alone on both sides is.
    """
    if not before or not after:
        return list(before), list(after)
    first, second = _by(before, key), _by(after, key)
    taken: set[int] = set()
    for name, members in first.items():
        others = second.get(name, [])
        if reshaped and (len(members) > 1 or len(others) > 1):
            continue
        for one, other in zip(members, others, strict=False):
            pairs.append(KernelPair(one, other, reshaped))
            taken |= {id(one), id(other)}
    return [k for k in before if id(k) not in taken], [k for k in after if id(k) not in taken]


def _by(
    times: Sequence[KernelTime], key: Callable[[Kernel], Hashable | None]
) -> dict[Hashable, list[KernelTime]]:
    found: dict[Hashable, list[KernelTime]] = {}
    for time in times:
        name = key(time.kernel)
        if name is not None:
            found.setdefault(name, []).append(time)
    return found


def _whole(kernel: Kernel) -> Hashable:
    return kernel.name, kernel.grid, kernel.block


def _mangled(kernel: Kernel) -> Hashable | None:
    return (kernel.mangled, kernel.grid, kernel.block) if kernel.mangled else None


def _spelled(kernel: Kernel) -> Hashable | None:
    return same_name(kernel.name[:_LONGEST]), kernel.grid, kernel.block


def _mangled_name(kernel: Kernel) -> Hashable | None:
    return kernel.mangled


def _spelled_name(kernel: Kernel) -> Hashable | None:
    return same_name(kernel.name[:_LONGEST])
