"""The backend of the processor: perf and a simulation on Linux, Instruments on macOS."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.backends import Backend, CheckGroup, RunContext, profiler_group
from profkit.core.types import Depth, Gpu, RunDocument, Summary

if TYPE_CHECKING:
    from profkit.backends.passes import BackendRun, Pass


class CpuBackend(Backend):
    """The processor of this machine, which is always there."""

    name = "cpu"
    host_peaks = True
    # On a busy machine more seconds in one process say little: processes differ more than their samples.
    sampling: Mapping[Depth, float] = {**Backend.sampling, "standard": 3.0}
    profilers: tuple[str, ...] = ("perf", "valgrind", "stacks", "cprofile", "xctrace")
    targets: Path | None = Path(__file__).with_name("targets.yaml")

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:  # noqa: ARG002
        """Return the tools of this system at work on one run."""
        if context.machine.system == "Darwin":
            from profkit.backends.instruments import MacRun

            return MacRun(context)
        from profkit.backends.cpu.linux import LinuxRun

        return LinuxRun(context)

    def pass_kinds(self) -> tuple[type[Pass], ...]:
        """Return the passes of Linux: a Mac has no others."""
        from profkit.backends.cpu.linux import LINUX_PASSES

        return (*super().pass_kinds(), *LINUX_PASSES)

    def check_groups(self) -> tuple[CheckGroup, ...]:
        """Return the checks of this system's tools."""
        tools = ("xctrace",) if platform.system() == "Darwin" else ("perf", "valgrind")
        return tuple(map(profiler_group, tools))

    def enrich(self, document: RunDocument) -> RunDocument:
        """Add what follows from the counters of a processor."""
        from profkit.analysis.summaries.compose import enrich_cpu

        return enrich_cpu(document, simulator="valgrind")

    def summarize(self, document: RunDocument) -> list[Summary]:
        """Return the summaries of counters, limits, Python, memory, and where the time goes."""
        from profkit.analysis.summaries.compose import summarize_cpu

        return summarize_cpu(document)


CPU = CpuBackend()
