"""Stands in for torch with CUDA in tests: what profkit's host uses of it, and a trace as Kineto writes it.

`torch.use()` is the first use of CUDA, `torch.kernel(name)` a kernel. $STAND_IN_TORCH makes a part fail: "start",
"export".
"""

import json
import os
import time
from types import SimpleNamespace

_broken = os.environ.get("STAND_IN_TORCH", "")
_waiting = []
_state = {"cuda": False, "profile": None, "capturing": False}
BASE = 1_000_000_000_000_000_000


class profile:  # noqa: N801
    def __init__(self, activities, acc_events=False):
        self.activities, self.kernels = activities, []

    def start(self):
        if _broken == "start" or _state["profile"] is not None:
            raise RuntimeError("Profiler is already enabled on this thread\nwith a second line")
        _state["profile"], self.began = self, time.time_ns()

    def stop(self):
        _state["profile"] = None

    def export_chrome_trace(self, path):
        if _broken == "export":
            raise OSError(28, "No space left on device")
        events = [
            {
                "ph": "X",
                "cat": "kernel",
                "name": name,
                "ts": (at - BASE) / 1e3,
                "dur": 5.0,
                "args": {"grid": [1, 1, 1]},
            }
            for name, at in self.kernels
        ]
        with open(path, "w") as file:
            json.dump({"baseTimeNanoseconds": BASE, "host_name": "box", "traceEvents": events}, file)


def use():
    if not _state["cuda"]:
        for act in _waiting:
            act()
        _state["cuda"] = True


def kernel(name):
    use()
    if _state["profile"] is not None:
        _state["profile"].kernels.append((name, time.time_ns()))


def _lazy_call(act):
    act() if _state["cuda"] else _waiting.append(act)


cuda = SimpleNamespace(
    _lazy_call=_lazy_call,
    is_initialized=lambda: _state["cuda"],
    is_current_stream_capturing=lambda: _state["capturing"],
    device_count=lambda: 2,
    current_device=lambda: 0,
    memory_reserved=lambda device: 0,
    synchronize=lambda device: None,
)
profiler = SimpleNamespace(
    profile=profile,
    ProfilerActivity=SimpleNamespace(CPU="cpu", CUDA="cuda"),
    supported_activities=lambda: {"cpu", "cuda"},
)
