"""What a reader made of one artifact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from profkit.core.types.gpu import Gpu, GpuTrace
from profkit.core.types.metal import MetalTrace
from profkit.core.types.values import Counter, Profile, Stacks


@dataclass(frozen=True)
class Report:
    """What a reader made of one artifact, whoever recorded it. `facts` decide what may be compared."""

    tool: str
    format: str
    version: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    counters: tuple[Counter, ...] = ()
    profiles: tuple[Profile, ...] = ()
    stacks: tuple[Stacks, ...] = ()
    trace: GpuTrace | None = None
    metal: MetalTrace | None = None
    gpus: tuple[Gpu, ...] = ()
    warnings: tuple[str, ...] = ()
