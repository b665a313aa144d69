"""Time by operation of a trace that holds the CPU alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from profkit.core.types import Hotspot, Profile

MOST = 1 << 18  # operations that are kept: 30 MB


@dataclass
class Operations:
    """Operators of the CPU with their threads and times in ns, in any order."""

    _spans: list[tuple[int, int, int, str]] = field(default_factory=list)
    left_out: int = 0

    def add(self, thread: int, start: int, end: int, name: str) -> None:
        """One call of an operator."""
        if len(self._spans) >= MOST:
            self.left_out += 1
        else:
            self._spans.append((thread, start, -end, name))

    def profile(self) -> Profile:
        """Seconds by operator, the largest own time first; what an operator calls is not in its own."""
        own: dict[str, int] = defaultdict(int)
        total: dict[str, int] = defaultdict(int)
        calls: dict[str, int] = defaultdict(int)
        callers: list[tuple[int, int, str]] = []  # thread, end, name: those that are not over yet
        under_way = Counter[str]()  # how many of them have the name
        for thread, start, negative_end, name in sorted(self._spans):
            end = -negative_end
            while callers and (callers[-1][0] != thread or callers[-1][1] <= start):
                under_way[callers.pop()[2]] -= 1
            own[name] += end - start
            calls[name] += 1
            if callers:
                own[callers[-1][2]] -= end - start
            if not under_way[name]:  # a recursive one counts once
                total[name] += end - start
            callers.append((thread, end, name))
            under_way[name] += 1
        hotspots = tuple(
            Hotspot(name, max(0, own[name]) * 1e-9, total[name] * 1e-9, calls[name])
            for name in sorted(own, key=lambda name: (-own[name], name))
        )
        return Profile(
            "CPU time by operation", "s", sum(spot.own for spot in hotspots), hotspots, "operations"
        )
