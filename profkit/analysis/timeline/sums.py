"""Adds up what counts in a trace, block by block, into a `GpuTrace`."""

from __future__ import annotations

from profkit.analysis.timeline.host_sums import HostSums
from profkit.analysis.timeline.idle import Idle, together
from profkit.analysis.timeline.kernel_sums import KernelSums
from profkit.analysis.timeline.range_sums import RangeSums
from profkit.analysis.timeline.records import KERNEL, TRANSFER, Columns, Recording
from profkit.analysis.timeline.windows import Windows
from profkit.core.types import GpuTrace, Transfer


class Sums:
    """Fed with all activities in the order of their starts, then with all calls."""

    def __init__(self, recording: Recording, windows: Windows) -> None:
        self._recording, self._windows = recording, windows
        self._kernels = KernelSums(recording.tables.configurations)
        self._ranges = RangeSums(recording.ranges, windows)
        self._host = HostSums()
        self._transfers: dict[int, list[int]] = {}  # by kind: count, bytes, ns
        self._devices: dict[int, Idle] = {}
        self._computing: dict[int, Idle] = {}  # the same without copies, and memsets
        self._working: set[int] = set()  # devices that ran kernels
        self._seen = 0  # kernels so far, in the order of their starts

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
            self._kernels.add_setup(block[early])
        chosen = kernels & counts
        if chosen.any():
            rows = block[chosen]
            self._kernels.add(rows, ordinal[chosen])
            self._host.add_launches(rows)
            self._ranges.add(rows, when[chosen])
            self._working.update(np.unique(rows["device"]).tolist())
        self._add_transfers(block[counts & (block["kind"] == TRANSFER)])
        self._add_devices(block[counts], window[counts])

    def _add_transfers(self, moved: Columns) -> None:
        import numpy as np

        for kind in np.unique(moved["what"]).tolist():
            rows = moved[moved["what"] == kind]
            row = self._transfers.setdefault(kind, [0, 0, 0])
            row[0] += len(rows)
            row[1] += int(rows["bytes"].sum())
            row[2] += int((rows["end"] - rows["start"]).sum())

    def _add_devices(self, block: Columns, window: Columns) -> None:
        import numpy as np

        # A kernel is queued when its call is done, or has begun before that: one that loads code first queues nothing.
        done = np.minimum(block["launch"] + np.maximum(block["call"], 0), block["start"])
        launched = (block["kind"] == KERNEL) & (block["launch"] >= 0)
        queued = np.where(launched, np.maximum(done, block["launch"]), block["launch"])
        for device in np.unique(block["device"]).tolist():
            rows = block["device"] == device
            idle = self._devices.setdefault(device, Idle(self._windows))
            idle.add(block["start"][rows], block["end"][rows], queued[rows], window[rows])
            rows &= block["kind"] != TRANSFER
            if rows.any():
                computing = self._computing.setdefault(device, Idle(self._windows))
                untold = np.full(np.count_nonzero(rows), -1)
                computing.add(block["start"][rows], block["end"][rows], untold, window[rows])

    def add_calls(self, block: Columns) -> None:
        """Calls of the host (columns CALL)."""
        self._host.add_calls(block[self._windows.number(block["start"]) >= 0])

    def trace(self, *, repeats: int | None, compile_seconds: float | None) -> GpuTrace:
        """All of it. Of several devices `span` and `busy` are the mean: a device that waits for others is idle."""
        # One that only got a copy is not one that should work.
        working = sorted(self._working or self._devices)
        devices = [self._devices[number] for number in working]
        windows = together(devices)
        spans = [device.among(windows) for device in devices]
        judged = sum(device.judged for device in devices)
        computing = sum(self._computing[n].worked() for n in working if n in self._computing)
        latency, call = self._host.latencies()
        kernels = self._kernels.summed(self._ranges.names())
        return GpuTrace(
            self._recording.tool,
            kernels.times,
            span=sum(span for span, _ in spans) / len(spans) / 1e9 if spans else None,
            busy=sum(busy for _, busy in spans) / len(spans) / 1e9 if spans else None,
            launches=sum(k.launches for k in kernels.times),
            transfers=tuple(
                Transfer(self._recording.tables.transfers[kind], count, size, ns / 1e9)
                for kind, (count, size, ns) in sorted(self._transfers.items(), key=lambda t: -t[1][2])
            ),
            ranges=self._ranges.ranges(),
            api=self._host.api(self._recording.tables.calls),
            launch_latency=_seconds(latency),
            launch_call=_seconds(call),
            starved=sum(device.starved for device in devices) / judged if judged else None,
            largest_gap=max(device.largest for device in devices) / 1e9 if devices else None,
            copying=max(0.0, (sum(busy for _, busy in spans) - computing) / len(spans) / 1e9)
            if spans
            else None,
            device_busy=tuple(busy / span if span else 0.0 for span, busy in spans) if len(spans) > 1 else (),
            marked=self._windows.marked,
            repeats=repeats,
            setup_seconds=0.0
            if kernels.setup_seconds is None and repeats is not None
            else kernels.setup_seconds,
            compile_seconds=compile_seconds,
            order=kernels.order,
            setup=kernels.setup,
        )


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
