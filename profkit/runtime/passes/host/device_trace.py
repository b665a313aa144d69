"""torch's own profiler over a whole program that marks nothing: every kernel from the first use of CUDA to the end.

Where the program enters a region after all, only its regions are in the trace. OUT is a prefix: the trace is
`OUT.<pid>.json`, a Chrome trace (see profkit/runtime/region/torch_profiler.py, which is a module of this host too: it
also runs where profkit is not installed). Nothing is traced in forked children.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from .after_import import call_after_import

NO_CUDA = "the program did not use CUDA through torch, so torch's profiler saw nothing"


class DeviceTracer:
    """The switch of a trace by torch."""

    def __init__(self, out: str) -> None:
        self._profiler: Any = importlib.import_module(f"{__package__}.torch_profiler").TorchProfilerSwitch(
            out
        )
        self._whole = self._marked = False

    @property
    def reason(self) -> str | None:
        """What went wrong."""
        return self._profiler.reason  # type: ignore[no-any-return]

    @property
    def remarks(self) -> list[str]:
        """What is worth knowing."""
        return self._profiler.remarks  # type: ignore[no-any-return]

    def start(self) -> None:
        """Wait for torch, and then for its first use of CUDA; neither is hurried."""
        call_after_import("torch", self._torch_is_there)

    def prepare(self) -> None:
        """Warm-up of a benchmark begins: what came before it is no region."""
        self._begin_marked()
        self._profiler.prepare()

    def enter(self, name: str) -> None:
        """Trace this region."""
        self._begin_marked()
        self._profiler.enter(name)

    def exit(self, name: str) -> None:
        """Until here."""
        self._profiler.exit(name)

    def forget(self) -> None:
        """In a forked child: trace nothing."""
        self._whole, self._marked = False, True
        self._profiler.forget()

    def end_early(self, reason: str) -> None:  # noqa: ARG002
        """Write what was traced until now."""
        self.finish()

    def finish(self) -> None:
        """Write the trace, and say on stderr why there is none."""
        if self._whole:
            self._whole = False
            self._profiler.exit(None)
        self._profiler.save()
        remarks = [self.reason] if self.reason else list(self.remarks)
        for text in remarks or ([] if self._marked or self._profiler.traced else [NO_CUDA]):
            print(f"profkit: {text}", file=sys.stderr)

    # ------------------------------------------------------------ inside

    def _torch_is_there(self, torch: ModuleType) -> None:
        later = getattr(getattr(torch, "cuda", None), "_lazy_call", None)
        if later is None:
            self._begin_whole()
        else:
            later(self._begin_whole)  # called when torch initialises CUDA: in the thread that does

    def _begin_whole(self) -> None:
        if not self._marked and not self._whole:
            self._whole = True
            self._profiler.enter(None)

    def _begin_marked(self) -> None:
        self._marked = True
        if self._whole:
            self._whole = False
            self._profiler.drop()
