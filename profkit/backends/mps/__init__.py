"""The backend of Apple GPUs: Metal System Trace, and counters where the chip gives any; by xctrace."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.backends import Backend, CheckGroup, DeviceCandidate, RunContext, profiler_group
from profkit.core.errors import MachineError
from profkit.core.types import Depth, Fact, Gpu, Report, RunDocument, Summary, Workload

if TYPE_CHECKING:
    from profkit.backends.passes import BackendRun, Pass

# What a program that uses an Apple GPU names. `torch` alone runs on the CPU.
_NAMES = re.compile(r"\b(?:mps|mlx(?:_lm)?|coremltools|metal|MTLDevice|current_accelerator)\b|\bMetal\b")


class MpsBackend(Backend):
    """The GPU of a Mac."""

    name = "mps"
    has_device = True
    work = "encoder"  # a trace of Metal tells no smaller one, and no counter speaks of one alone
    report_concerns = frozenset({"gpu", "occupancy", "bandwidth"})
    sampling: Mapping[Depth, float] = {"quick": 1.0, "gate": 1.0, "standard": 3.0, "full": 20.0}
    # Nobody has measured yet what Instruments costs.
    allowances: Mapping[Depth, tuple[float, float]] = {}
    profilers: tuple[str, ...] = ("xctrace",)
    targets: Path | None = Path(__file__).with_name("targets.yaml")

    def claims(self, report: Report) -> bool:
        """Return whether the report has Metal's tables."""
        return report.metal is not None

    def possible(self) -> bool:
        """Return whether this is macOS, since Metal exists only there."""
        return platform.system() == "Darwin"

    def candidate(self, workload: Workload) -> DeviceCandidate | None:
        """Return the GPU, where the workload seems to use it and this is Apple silicon, for torch and mlx."""
        evidence = mps_evidence(workload)
        if evidence is None:
            return None
        gpus = self.devices()
        if any(gpu.name.startswith("Apple") for gpu in gpus):
            return DeviceCandidate(evidence, gpus)
        return DeviceCandidate(evidence, missing="this Mac has no GPU of Apple's")

    def devices(self) -> tuple[Gpu, ...]:
        """Return the GPUs of this Mac. Raises MachineError on another system."""
        if not self.possible():
            raise MachineError(
                f"--backend mps: Metal exists only on macOS, and this is {platform.system() or 'another system'}",
                "record on a Mac (wrappers/xctrace.sh), bring the exported tables, then: profkit summarize FOLDER",
            )
        from profkit.hardware.macos import read_apple_gpus

        return read_apple_gpus()

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:
        """Return xctrace at work on one run."""
        from profkit.backends.instruments import MpsRun

        return MpsRun(context, gpus)

    def pass_kinds(self) -> tuple[type[Pass], ...]:
        """Return the passes, including the recordings of Instruments."""
        from profkit.backends.instruments import METAL_PASSES

        return (*super().pass_kinds(), *METAL_PASSES)

    def check_groups(self) -> tuple[CheckGroup, ...]:
        """Return the checks of Xcode, on a Mac, and of the GPU."""
        from profkit.backends.instruments import mps_checks

        instruments = (profiler_group("xctrace"),) if self.possible() else ()
        return (*instruments, CheckGroup("mps", mps_checks))

    def enrich(self, document: RunDocument) -> RunDocument:
        """Add what follows from the trace and the counters of the GPU."""
        from profkit.analysis.summaries.metal import enrich_metal

        return enrich_metal(document)

    def summarize(self, document: RunDocument) -> list[Summary]:
        """Return the summaries of the GPU, then of the CPU's hot spots of the same recording."""
        from profkit.analysis.summaries.compose import summarize_mps

        return summarize_mps(document)


def mps_evidence(workload: Workload) -> Fact | None:
    """Return why the workload seems to use the GPU of a Mac; None where nothing says so."""
    from profkit.backends.passes import first_mention

    for word in workload.command[1:]:
        if re.fullmatch(r"(?:-\w|--[\w-]+=)?(?:cpu|cuda(?::\d+)?)", word):
            return None
        if re.fullmatch(r"(?:--[\w-]+=)?(?:mps(?::0)?|gpu)", word):
            return Fact.of("arguments-say", word=word)
    return first_mention(workload, _NAMES)


MPS = MpsBackend()
