"""PyTorch's profiler, as profkit uses it: its Chrome traces are read."""

from __future__ import annotations

from collections.abc import Iterable

from profkit.core.types import Check
from profkit.profilers.profiler import Format, lazy_function


class TorchProfiler:
    """torch.profiler. It is no program: `profkit profile` runs it inside of the workload."""

    name = "torch_profiler"
    formats = (
        Format(
            "torch-chrome-trace",
            name,
            "torch.profiler Chrome trace",
            lazy_function("profkit.profilers.torch_profiler.chrome_trace.looks_like_chrome_trace"),
            lazy_function("profkit.profilers.torch_profiler.chrome_trace.read_chrome_trace"),
            facts_are_conditions=True,
        ),
    )
    recorder = None
    explain = None

    def checks(self) -> Iterable[Check]:
        """It comes with torch, which the doctor checks with the other packages."""
        return ()
