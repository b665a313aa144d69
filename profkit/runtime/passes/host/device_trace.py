"""torch's own profiler over a whole program: every kernel from the first use of CUDA to the end, where nsys is absent.

Only the devices' activities are asked for (kernels, copies, the calls that launched them): torch's operators on the CPU
would cost the host some microseconds each and say nothing of a kernel.

OUT is a prefix: the trace is `OUT.<pid>.json`, a Chrome trace as torch exports it. Each entry of a region is added as
an event of category `user_annotation`, with `{"domain": "profkit"}` in its `args`. torch is used where the workload has
imported it, never imported; nothing is traced in forked children.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from types import ModuleType
from typing import Any

from .everywhere import call_after_import
from .session import fact

NO_CUDA = "the program did not use CUDA through torch, so torch's profiler saw nothing"
MOST_MARKS = 20_000  # entries of regions; later ones are not marked
DOMAIN = "profkit"


class DeviceTracer:
    """The switch of a trace by torch. `reason` says what went wrong."""

    any_thread = False

    def __init__(self, out: str) -> None:
        self._out = out
        self._profile: Any = None
        self._entered = 0
        self._marks: list[tuple[str, int, int]] = []
        self._is_child = False
        self.reason: dict[str, Any] | None = None

    def start(self) -> None:
        """Wait for torch, where it is not there yet, and then for its first use of CUDA; neither is hurried."""
        if "torch" in sys.modules:
            self._torch_is_there(sys.modules["torch"])
        else:
            call_after_import("torch", self._torch_is_there)

    def enter(self, name: str) -> None:  # noqa: ARG002
        """A region begins, once the devices have done what was left before."""
        _wait_for_devices()
        self._entered = time.time_ns()

    def exit(self, name: str) -> None:
        """Its own work is done, and it ends."""
        _wait_for_devices()
        if len(self._marks) < MOST_MARKS:
            self._marks.append((name, self._entered, time.time_ns()))

    def forget(self) -> None:
        """In a forked child: trace nothing."""
        self._profile, self._is_child = None, True

    def finish(self, early: float | None = None) -> None:  # noqa: ARG002
        """Write the trace, whole or not at all, and say on stderr why there is none."""
        profile, self._profile = self._profile, None
        try:
            if profile is not None:
                _wait_for_devices()
                profile.stop()
                self._save(profile)
        except Exception as error:
            self._fail(error)
        if self.reason or profile is None:
            failed = self.reason and f"torch's profiler cannot be used: {self.reason['names']['name']}"
            print(f"profkit: {failed or NO_CUDA}", file=sys.stderr)

    # ------------------------------------------------------------ inside

    def _torch_is_there(self, torch: ModuleType) -> None:
        later = getattr(getattr(torch, "cuda", None), "_lazy_call", None)
        if later is None:
            self._begin()
        else:
            later(self._begin)  # called when torch initialises CUDA: in the thread that does

    def _begin(self) -> None:
        torch: Any = sys.modules["torch"]
        if self._profile is not None or self._is_child:
            return
        try:
            kinds = torch.profiler.ProfilerActivity
            wanted = {kinds.CUDA} & torch.profiler.supported_activities() or {kinds.CPU}
            try:  # else it warns on stderr that it keeps nothing
                profile = torch.profiler.profile(activities=wanted, acc_events=True)
            except TypeError:  # before torch 2.5
                profile = torch.profiler.profile(activities=wanted)
            profile.start()
            self._profile = profile
        except Exception as error:
            self._fail(error)

    def _save(self, profile: Any) -> None:
        path = f"{self._out}.{os.getpid()}.json"
        try:
            profile.export_chrome_trace(f"{path}.tmp")
            with open(f"{path}.tmp", encoding="utf-8") as file:
                trace: dict[str, Any] = json.load(file)
            # times are microseconds since this; torch before 2.4 wrote them since 1970
            base = int(trace.get("baseTimeNanoseconds", 0))
            trace["traceEvents"] += [
                {
                    "ph": "X",
                    "cat": "user_annotation",
                    "name": name,
                    "pid": os.getpid(),
                    "tid": threading.get_native_id(),
                    "ts": (begin - base) / 1e3,
                    "dur": (end - begin) / 1e3,
                    "args": {"domain": DOMAIN},
                }
                for name, begin, end in self._marks
            ]
            trace.pop("host_name", None)  # nothing that names the machine goes into a run
            with open(f"{path}.tmp", "w", encoding="utf-8") as file:
                json.dump(trace, file)
            os.replace(f"{path}.tmp", path)
        finally:
            if os.path.exists(f"{path}.tmp"):
                os.unlink(f"{path}.tmp")

    def _fail(self, error: Exception) -> None:
        text = str(error).strip().split("\n")[0]
        self.reason = fact("torch-profiler-not-usable", f"{type(error).__name__}: {text}")


def _wait_for_devices() -> None:
    """Until every device that this process uses is idle; the others are not touched, that would make a context.

    Not while a CUDA graph is recorded: to wait would spoil it.
    """
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized() or cuda.is_current_stream_capturing():
        return
    for device in range(cuda.device_count()):
        if cuda.memory_reserved(device) or device == cuda.current_device():
            cuda.synchronize(device)
