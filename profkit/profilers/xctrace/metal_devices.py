"""Which GPUs a recording saw, and what each of them did."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from profkit.analysis.timeline.spans import union
from profkit.core.types import Gpu, MetalDevice
from profkit.profilers.xctrace.metal_read import MetalTables
from profkit.profilers.xctrace.metal_states import GpuInfos

if TYPE_CHECKING:
    from profkit.profilers.xctrace.metal_part import Part

_APPLE = re.compile(r"[MA]\d+\b")  # how Instruments calls Apple's own, without the maker


def full_name(name: str, vendor: str = "") -> str:
    """`Apple M1` of `M1`: as the machine itself calls it."""
    vendor = vendor or ("Apple" if _APPLE.match(name) else "")
    return name if not vendor or name.lower().startswith(vendor.lower()) else f"{vendor} {name}"


def gpus_of(infos: GpuInfos, names: Sequence[str]) -> Iterator[Gpu]:
    """All GPUs by name."""
    for index, name in enumerate(dict.fromkeys((*(name for name in names if name), *infos.found))):
        yield Gpu(full_name(name, infos.found.get(name, ("", None))[0]), index)


def recommended(infos: GpuInfos, gpu: str | None) -> int | None:
    """Bytes that Metal recommends to use on a GPU at most; of the only one, where its name is not told."""
    if gpu in infos.found:
        return infos.found[gpu][1]
    return next(iter(infos.found.values()))[1] if len(infos.found) == 1 and not gpu else None


def devices_in(tables: MetalTables, part: Part) -> Iterator[MetalDevice]:
    """Each GPU in the part that counts: when it was active, and when it worked for the target."""
    import numpy as np

    work, states = tables.gpu_work.best, tables.told_states
    rows = work.table()
    own = np.isin(rows["process"], sorted(part.target.numbers))
    for name in part.gpus:
        there = np.isin(rows["gpu"], [n for n, other in enumerate(work.gpus.all) if other == name])
        mine = union(rows["start"][there & own], rows["end"][there & own]) & part.counted
        active = states.active(name).spans() & part.counted if name in states.gpus else None
        yield MetalDevice(full_name(name), None if active is None else active.total / 1e9, mine.total / 1e9)
