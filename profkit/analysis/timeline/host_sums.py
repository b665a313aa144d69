"""What the host did for the devices: its calls into CUDA, and how long a launch takes to become a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.analysis.timeline.medians import Medians
from profkit.analysis.timeline.records import Columns
from profkit.core.types import ApiCall

_LATENCY, _CALL = 0, 1  # groups of medians


class HostSums:
    """Fed with the kernels that count, and with the calls that do."""

    def __init__(self) -> None:
        self._medians = Medians()
        self._calls: dict[int, list[int]] = {}  # by name: count, ns

    def add_launches(self, rows: Columns) -> None:
        """Kernels (columns ACTIVITY). One launch of a graph starts many of them: the first counts."""
        import numpy as np

        rows = rows[rows["launch"] >= 0]
        graphs = rows["graph"]
        if graphs.any():
            first = np.zeros(len(rows), dtype=bool)
            first[np.unique(rows["key"], return_index=True)[1]] = True
            rows = rows[~graphs | first]
        self._medians.add(np.full(len(rows), _LATENCY), rows["start"] - rows["launch"])
        self._medians.add(np.full(len(rows), _CALL), rows["call"])

    def add_calls(self, rows: Columns) -> None:
        """Calls (columns CALL)."""
        import numpy as np

        if not len(rows):
            return
        counts = np.bincount(rows["name"])
        spent = np.bincount(rows["name"], rows["end"] - rows["start"])
        for name in np.flatnonzero(counts).tolist():
            row = self._calls.setdefault(name, [0, 0])
            row[0] += int(counts[name])
            row[1] += int(spent[name])

    def latencies(self) -> tuple[float | None, float | None]:
        """Medians in ns: from the begin of a launch call to that of its kernel, and of the call itself."""
        medians = self._medians.medians()
        return medians.get(_LATENCY), medians.get(_CALL)

    def api(self, names: Sequence[str]) -> tuple[ApiCall, ...]:
        """The calls by name, most time first."""
        ranked = sorted(self._calls.items(), key=lambda call: -call[1][1])
        return tuple(ApiCall(names[name], count, ns / 1e9) for name, (count, ns) in ranked)
