"""Adds up what counts in a trace, block by block, into a `GpuTrace`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from profkit.model import ApiCall, GpuRange, GpuTrace, Kernel, KernelTime, Transfer
from profkit.timeline.idle import Idle, together
from profkit.timeline.medians import Medians
from profkit.timeline.paths import Paths
from profkit.timeline.records import KERNEL, TRANSFER, Columns, Configuration, Recording
from profkit.timeline.windows import Windows

MOST_RANGES = 256  # by name, those with most GPU time; programs that number their ranges have one per step
MOST_ORDER = 2048  # launches whose order is told
MOST_SETUP = 1024  # configurations that were launched in the set-up alone
MOST_NAMES = 32  # ranges that are named with one kernel
_KINDS = ("launches", "total", "least", "most", "first", "setup", "graph")
_LATENCY, _CALL = 0, 1  # groups of host-side medians


class Sums:
    """Fed with all activities in the order of their starts, then with all calls."""

    def __init__(self, recording: Recording, windows: Windows, paths: Paths) -> None:
        self._recording, self._windows, self._paths = recording, windows, paths
        self._kernels: dict[int, list[int]] = {}  # by configuration: the columns of _KINDS
        self._transfers: dict[int, list[int]] = {}  # by kind: count, bytes, ns
        self._calls: dict[int, list[int]] = {}  # by name: count, ns
        self._inside: Counter[tuple[int, int]] = Counter()  # launches by path and configuration
        self._path_time: Counter[int] = Counter()  # kernel ns by path
        self._devices: dict[int, Idle] = {}
        self._computing: dict[int, Idle] = {}  # the same without copies, and memsets
        self._working: set[int] = set()  # devices that ran kernels
        self._medians, self._host = Medians(), Medians()
        self._order: list[int] = []  # the configurations of the first launches that count
        self._seen = 0  # kernels so far, in the order of their starts
        self._setup = 0  # ns of kernels before what counts
        self._before = False  # whether there were any

    def add(self, block: Columns) -> None:
        """Activities (columns ACTIVITY), joined with their launches."""
        import numpy as np

        when = np.where(block["launch"] >= 0, block["launch"], block["start"])
        window = self._windows.number(when)
        counts = window >= 0
        kernels = block["kind"] == KERNEL
        ordinal = self._seen + np.cumsum(kernels) - 1
        self._seen += int(np.count_nonzero(kernels))
        early = kernels & (when < self._windows.begin)
        if early.any():
            self._add_setup(block[early])
        chosen = kernels & counts
        if chosen.any():
            self._add_kernels(block[chosen], ordinal[chosen], when[chosen])
            self._working.update(np.unique(block["device"][chosen]).tolist())
        moved = counts & (block["kind"] == TRANSFER)
        for kind in np.unique(block["what"][moved]).tolist():
            rows = block[moved & (block["what"] == kind)]
            row = self._transfers.setdefault(kind, [0, 0, 0])
            row[0] += len(rows)
            row[1] += int(rows["bytes"].sum())
            row[2] += int((rows["end"] - rows["start"]).sum())
        for device in np.unique(block["device"][counts]).tolist():
            rows = counts & (block["device"] == device)
            idle = self._devices.setdefault(device, Idle(self._windows))
            idle.add(block["start"][rows], block["end"][rows], block["launch"][rows], window[rows])
            rows &= block["kind"] != TRANSFER
            if rows.any():
                computing = self._computing.setdefault(device, Idle(self._windows))
                untold = np.full(np.count_nonzero(rows), -1)
                computing.add(block["start"][rows], block["end"][rows], untold, window[rows])

    def _add_setup(self, rows: Columns) -> None:
        import numpy as np

        self._before = True
        self._setup += int((rows["end"] - rows["start"]).sum())
        for what, count in zip(*np.unique(rows["what"], return_counts=True), strict=True):
            self._row(int(what))[5] += int(count)

    def _row(self, what: int) -> list[int]:
        return self._kernels.setdefault(what, [0, 0, 1 << 62, 0, 1 << 62, 0, 0])

    def _add_kernels(self, rows: Columns, ordinal: Any, when: Any) -> None:
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
        for number, launches, total, least, most, first, graph in zip(
            *map(np.ndarray.tolist, columns), strict=True
        ):
            row = self._row(number)
            row[0] += launches
            row[1] += total
            row[2], row[3], row[4] = min(row[2], least), max(row[3], most), min(row[4], first)
            row[6] |= graph
        self._medians.add(what, spent)
        self._add_host(rows)
        if self._paths:
            path = self._paths.find(when, rows["process"], rows["thread"])
            pairs, counts = np.unique((path << 32) | what, return_counts=True)
            for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
                self._inside[pair >> 32, pair & 0xFFFFFFFF] += count
            for number in np.unique(path).tolist():
                self._path_time[number] += int(spent[path == number].sum())

    def _add_host(self, rows: Columns) -> None:
        """Latency and cost of the launches. One launch of a graph starts many kernels: the first of them counts."""
        import numpy as np

        rows = rows[rows["launch"] >= 0]
        graphs = rows["graph"]
        if graphs.any():
            first = np.zeros(len(rows), dtype=bool)
            first[np.unique(rows["key"], return_index=True)[1]] = True
            rows = rows[~graphs | first]
        self._host.add(np.full(len(rows), _LATENCY), rows["start"] - rows["launch"])
        self._host.add(np.full(len(rows), _CALL), rows["call"])

    def add_calls(self, block: Columns) -> None:
        """Calls of the host (columns CALL)."""
        import numpy as np

        rows = block[self._windows.number(block["start"]) >= 0]
        if not len(rows):
            return
        size = len(self._recording.tables.calls)
        counts = np.bincount(rows["name"], minlength=size)
        spent = np.bincount(rows["name"], rows["end"] - rows["start"], minlength=size)
        for name in np.flatnonzero(counts).tolist():
            row = self._calls.setdefault(name, [0, 0])
            row[0] += int(counts[name])
            row[1] += int(spent[name])

    def trace(self, *, repeats: int | None, compile_seconds: float | None) -> GpuTrace:
        """All of it. Of several devices `span` and `busy` are the mean: a device that waits for others is idle."""
        working = sorted(
            self._working or self._devices
        )  # one that only got a copy is not one that should work
        devices = [self._devices[number] for number in working]
        windows = together(devices)
        spans = [device.among(windows) for device in devices]
        judged = sum(device.judged for device in devices)
        computing = sum(self._computing[n].worked() for n in working if n in self._computing)
        host = self._host.medians()
        numbers = sorted(self._kernels, key=self._rank)
        timed = [number for number in numbers if self._kernels[number][0]]
        kernels = self._kernel_times(timed)
        places = {number: place for place, number in enumerate(timed)}
        only_before = [number for number in numbers if number not in places]
        return GpuTrace(
            self._recording.tool,
            kernels,
            span=sum(span for span, _ in spans) / len(spans) / 1e9 if spans else None,
            busy=sum(busy for _, busy in spans) / len(spans) / 1e9 if spans else None,
            launches=sum(k.launches for k in kernels),
            transfers=tuple(
                Transfer(self._recording.tables.transfers[kind], count, size, ns / 1e9)
                for kind, (count, size, ns) in sorted(self._transfers.items(), key=lambda t: -t[1][2])
            ),
            ranges=self._ranges(),
            api=tuple(
                ApiCall(self._recording.tables.calls[name], count, ns / 1e9)
                for name, (count, ns) in sorted(self._calls.items(), key=lambda c: -c[1][1])
            ),
            launch_latency=_seconds(host.get(_LATENCY)),
            launch_call=_seconds(host.get(_CALL)),
            starved=sum(device.starved for device in devices) / judged if judged else None,
            largest_gap=max(device.largest for device in devices) / 1e9 if devices else None,
            copying=max(0.0, (sum(busy for _, busy in spans) - computing) / len(spans) / 1e9)
            if spans
            else None,
            device_busy=tuple(busy / span if span else 0.0 for span, busy in spans) if len(spans) > 1 else (),
            marked=self._windows.marked,
            repeats=repeats,
            setup_seconds=self._setup / 1e9 if self._before or repeats is not None else None,
            compile_seconds=compile_seconds,
            order=tuple(places[number] for number in self._order),
            setup=self._setup_only(only_before[:MOST_SETUP]),
        )

    def _rank(self, number: int) -> tuple[float, int, str, str]:
        """Most time first, then most launches of the set-up."""
        row, kernel = self._kernels[number], _kernel(self._recording.tables.configurations[number])
        return -row[1], -row[5], kernel.name, kernel.id

    def _setup_only(self, numbers: Sequence[int]) -> tuple[KernelTime, ...]:
        table = self._recording.tables.configurations
        return tuple(
            KernelTime(_kernel(table[n]), 0, 0.0, setup_launches=self._kernels[n][5]) for n in numbers
        )

    def _kernel_times(self, numbers: Sequence[int]) -> tuple[KernelTime, ...]:
        table, medians = self._recording.tables.configurations, self._medians.medians()
        names: dict[int, dict[str, None]] = {}
        for path, what in self._inside:
            names.setdefault(what, {}).update((name, None) for name, _ in self._paths.names[path])
        return tuple(
            KernelTime(
                _kernel(table[what]),
                row[0],
                row[1] / 1e9,
                _seconds(medians.get(what)),
                row[2] / 1e9,
                row[3] / 1e9,
                row[4],
                tuple(names.get(what, {}))[:MOST_NAMES],
                row[5],
                bool(row[6]),
            )
            for what, row in ((number, self._kernels[number]) for number in numbers)
        )

    def _ranges(self) -> tuple[GpuRange, ...]:
        """By name and domain, in what counts; most GPU time first."""
        launched, spent = Counter[tuple[str, str | None]](), Counter[tuple[str, str | None]]()
        per_path = Counter[int]()
        for (path, _), count in self._inside.items():
            per_path[path] += count
        for path, count in per_path.items():
            for key in self._paths.names[path]:
                launched[key] += count
                spent[key] += self._path_time[path]
        entries, seconds = Counter[tuple[str, str | None]](), Counter[tuple[str, str | None]]()
        for entry in self._recording.ranges:
            key = (entry.name, entry.domain)
            end = self._end_of(entry.start, entry.end)
            if end is not None:
                entries[key] += 1
                seconds[key] += end - entry.start
        ranked = sorted(entries, key=lambda key: (-spent[key], -seconds[key], key[0]))[:MOST_RANGES]
        return tuple(
            GpuRange(
                name,
                domain,
                entries[name, domain],
                seconds[name, domain] / 1e9,
                launched[name, domain],
                spent[name, domain] / 1e9,
            )
            for name, domain in ranked
        )

    def _end_of(self, start: int, end: int | None) -> int | None:
        """The end of a range that touches what counts; None for one that does not."""
        last = start if end is None else end
        touches = any(begin <= last and start <= bound for begin, bound in self._windows.bounds)
        return last if touches else None


def _kernel(configuration: Configuration) -> Kernel:
    return Kernel(
        configuration.name,
        configuration.grid,
        configuration.block,
        configuration.mangled,
        configuration.registers,
        configuration.shared,
    )


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
