"""The switch for torch's own profiler: what CUPTI sees of the devices inside the region, as a Chrome trace.

It serves where nsys is absent. Only the devices' activities are asked for (kernels, copies, the calls that launched
them): torch's operators on the CPU would cost the host some microseconds each and say nothing of a kernel.

One file per process, `<output>.<pid>.json`, as torch exports it. What this module adds to it:

- each entry of the region as an event of category `user_annotation`, with `{"domain": "profkit"}` in its `args`;
- the events of later entries, with their times moved to the first entry's zero.

This file needs only the standard library and imports nothing of profkit: the host of Python passes loads it by its
path into interpreters that have no profkit. torch is used where the workload has imported it, never imported.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from typing import Any

MOST_EVENTS = 1_000_000  # in one process, about 1 GB while it is written; entries after that are not traced
DOMAIN = "profkit"


class TorchProfilerSwitch:
    """Traces regions. `reason` says what went wrong, `remarks` what is only worth knowing."""

    def __init__(self, output: str) -> None:
        self.reason: str | None = None
        self.remarks: list[str] = []
        self._output = output
        self._begin_process()
        atexit.register(self.save)

    def _begin_process(self) -> None:
        self._pid = os.getpid()
        self._profile: Any = None
        self._name: str | None = None
        self._start = 0
        self._trace: dict[str, Any] | None = None
        self._off = False
        self._warm = False

    def prepare(self) -> None:
        """Load the tracer: the first start in a process takes a second or more."""
        torch = self._torch()
        if torch is not None and not self._warm:
            self._warm = True
            try:
                profile = self._new(torch)
                profile.start()
                profile.stop()
            except Exception as error:
                self._fail(error)

    def enter(self, name: str | None) -> None:
        """Trace from here, once the devices have done what was left before; without a name, nothing is marked."""
        torch = self._torch()
        if torch is None or self._profile is not None:
            return
        self.prepare()
        if self._off or self._full():
            return
        try:
            if _is_capturing_graph(torch):  # nothing runs there, and to wait would spoil the recording
                self._remark(
                    "a region inside the recording of a CUDA graph is not traced: nothing runs there"
                )
                return
            _wait_for_devices(torch)
            profile = self._new(torch)
            profile.start()
        except Exception as error:
            self._fail(error)
            return
        self._profile, self._name, self._start = profile, name, time.time_ns()

    def exit(self, name: str | None) -> None:  # noqa: ARG002
        """Trace no further, once the region's own work is done."""
        torch, profile = self._torch(), self._profile
        if torch is None or profile is None:
            return
        self._profile = None
        try:
            _wait_for_devices(torch)
            end = time.time_ns()
            profile.stop()
            self._add(profile, end)
        except Exception as error:
            self._fail(error)

    def drop(self) -> None:
        """End an entry without keeping what it traced."""
        profile, self._profile = self._profile, None
        try:
            if profile is not None:
                profile.stop()
        except Exception as error:
            self._fail(error)

    def forget(self) -> None:
        """In a forked child: the trace and the devices are the parent's."""
        self._begin_process()
        self._off = True

    @property
    def traced(self) -> bool:
        """Whether there is a trace."""
        return self._trace is not None

    def save(self) -> None:
        """Write what was traced so far, whole or not at all."""
        if self._trace is None or self._pid != os.getpid():
            return
        path = f"{self._output}.{self._pid}.json"
        try:
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:
                json.dump(self._trace, file)
            os.replace(f"{path}.tmp", path)
        except (OSError, ValueError) as error:
            self._fail(error)

    # ------------------------------------------------------------ inside

    def _torch(self) -> Any:
        if self._off:
            return None
        torch = sys.modules.get("torch")
        if torch is None:
            self._remark("the region was entered before torch was imported, so torch's profiler saw nothing")
        return torch

    def _new(self, torch: Any) -> Any:
        kinds = torch.profiler.ProfilerActivity
        supported = torch.profiler.supported_activities()
        wanted = {kinds.CUDA} & supported
        if not wanted:
            self._remark("this torch cannot trace CUDA: only its operators on the CPU are in the trace")
        options: dict[str, Any] = {"activities": wanted or {kinds.CPU}}
        try:
            return torch.profiler.profile(
                **options, acc_events=True
            )  # else it warns on stderr that it keeps nothing
        except TypeError:  # before torch 2.5
            return torch.profiler.profile(**options)

    def _full(self) -> bool:
        full = self._trace is not None and len(self._trace["traceEvents"]) >= MOST_EVENTS
        if full:
            self._remark(f"later entries of the region are not traced: {MOST_EVENTS:,} events are enough")
        return full

    def _add(self, profile: Any, end: int) -> None:
        path = f"{self._output}.{self._pid}.part"
        try:
            profile.export_chrome_trace(path)
            with open(path, encoding="utf-8") as file:
                trace: dict[str, Any] = json.load(file)
        finally:
            if os.path.exists(path):
                os.unlink(path)
        # times are microseconds since this; torch before 2.4 wrote them since 1970
        base = int(trace.get("baseTimeNanoseconds", 0))
        events = trace["traceEvents"]
        if self._name is not None:
            events.append(
                {
                    "ph": "X",
                    "cat": "user_annotation",
                    "name": self._name,
                    "pid": self._pid,
                    "tid": threading.get_native_id(),
                    "ts": (self._start - base) / 1e3,
                    "dur": (end - self._start) / 1e3,
                    "args": {"domain": DOMAIN},
                }
            )
        trace.pop("host_name", None)  # nothing that names the machine goes into a run
        if self._trace is None:
            self._trace = trace
        else:
            shift = (base - int(self._trace.get("baseTimeNanoseconds", 0))) / 1e3
            for event in events:
                if shift and "ts" in event:
                    event["ts"] += shift
            self._trace["traceEvents"] += events

    def _fail(self, error: Exception) -> None:
        text = str(error).strip().split("\n")[0]
        self.reason, self._off = f"torch's profiler cannot be used: {type(error).__name__}: {text}", True

    def _remark(self, text: str) -> None:
        if text not in self.remarks:
            self.remarks.append(text)


def _wait_for_devices(torch: Any) -> None:
    """Until every device that this process uses is idle; the others are not touched, that would make a context."""
    if not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        if torch.cuda.memory_reserved(device) or device == torch.cuda.current_device():
            torch.cuda.synchronize(device)


def _is_capturing_graph(torch: Any) -> bool:
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())
