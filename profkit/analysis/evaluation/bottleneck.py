"""What limits a test, and what to change, by its own run."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.core.formatting import format_percent
from profkit.core.types import Reading, RunDocument

# As the targets of a run have it: from these shares of a measured peak, in %, the one or the other is what limits.
MEMORY_LIMITS, ARITHMETIC_LIMITS = 60.0, 50.0
SHOWN_PLACES = 5


def bottleneck_of(document: RunDocument) -> str | None:
    """`memory, 82 % of its peak`; None where the run does not tell.

    Of a GPU what limits the kernel with the largest share of its time.
    """
    if document.kernels:
        kernel = document.kernels[0]
        return kernel.reason or kernel.bound
    memory, arithmetic = (_largest(document, name) for name in ("bandwidth.dram.share", "flops.share"))
    by_memory = memory / MEMORY_LIMITS if memory is not None else 0.0
    by_arithmetic = arithmetic / ARITHMETIC_LIMITS if arithmetic is not None else 0.0
    if max(by_memory, by_arithmetic) < 1:
        return None
    if by_memory >= by_arithmetic:
        return f"memory, {format_percent(memory or 0.0)} % of its peak"
    return f"arithmetic, {format_percent(arithmetic or 0.0)} % of its peak"


@dataclass(frozen=True)
class HotPlaces:
    """Where a run spends most: names with their shares (0..1) of what `of` says."""

    of: str  # "the GPU time", "the time", "the instructions"
    shares: tuple[tuple[str, float], ...]


def hottest_places(document: RunDocument) -> HotPlaces | None:
    """Where the time goes: kernels of a GPU, else the functions of the best profile there is; None without any.

    Samples of compiled functions come before Python's functions, and these before simulated instructions.
    """
    if document.kernels:
        rows = [(kernel.scope.name or "", kernel.share) for kernel in document.kernels]
        known = tuple((name, share) for name, share in rows if share is not None)
        return HotPlaces("the GPU time", known[:SHOWN_PLACES])
    for kind, of in (
        ("functions", "the time"),
        ("own-time", "the time"),
        ("counted-functions", "the instructions"),
    ):
        profile = next((one for one in document.profiles if one.kind == kind and one.total > 0), None)
        if profile is not None and profile.hotspots:
            spots = sorted(profile.hotspots, key=lambda one: -one.own)[:SHOWN_PLACES]
            return HotPlaces(of, tuple((spot.function, spot.own / profile.total) for spot in spots))
    return None


def insight_of(document: RunDocument) -> str | None:
    """The first thing to change with the most that it can win; None where nothing was found."""
    if not document.insights:
        return None
    insight = document.insights[0]
    gain = insight.gain
    at_most = f" (at most {format_percent(100 * gain.at_most)} % of {gain.of})" if gain is not None else ""
    return insight.title + at_most


def _largest(document: RunDocument, metric: str) -> float | None:
    values = [r.value for r in document.readings if r.metric == metric and _belongs_to_call(r)]
    return max((value for value in values if value is not None), default=None)


def _belongs_to_call(reading: Reading) -> bool:
    return reading.scope.kind in ("region", "run")
