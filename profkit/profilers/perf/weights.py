"""What the weight of a sample means, and the table by thread."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.types import Hotspot, Profile

# Software clocks sample by time; their period is in nanoseconds (kernel/events/core.c, perf_swevent_hrtimer).
_CLOCKS = frozenset({"cpu-clock", "task-clock"})
_MODIFIERS = frozenset("ukhHGDIpPSWeb")


def base_event(event: str) -> str:
    """The event without its modifiers: `cycles:u` -> `cycles`; `cpu_core/cycles/`, `sched:switch` stay."""
    name, colon, modifiers = event.rpartition(":")
    return name if colon and name and modifiers and set(modifiers) <= _MODIFIERS else event


def is_user_only(event: str) -> bool:
    """True where a modifier leaves the kernel out; perf adds `:u` by itself for unprivileged users."""
    name = base_event(event)
    modifiers = event[len(name) :] if name != event else event.rpartition("/")[2] if "/" in event else ""
    return "u" in modifiers and "k" not in modifiers


def scale_of(event: str, *, with_period: bool) -> tuple[str, float]:
    """Unit of a sample's weight, and the divisor into it: seconds for clocks, else the event or `samples`."""
    if not with_period:
        return "samples", 1
    base = base_event(event)
    return ("s", 1e9) if base in _CLOCKS else (base, 1)


def by_thread(title: str, unit: str, weights: Mapping[str, float], per: float = 1) -> Profile:
    """The table by thread name. A thread has no callers, so own and inclusive weight are the same."""
    rows = sorted(weights.items(), key=lambda row: (-row[1], row[0]))
    hotspots = tuple(Hotspot(name, own=weight / per, total=weight / per) for name, weight in rows)
    return Profile(f"{title} by thread", unit, sum(weights.values()) / per, hotspots)
