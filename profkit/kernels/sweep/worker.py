"""What a sweep's processes do: one measures the cases of its device, others compile what it will need.

A worker that measures lives through wrong results and refusals; what ends it (a segmentation fault, a device that
answers no more) costs the case that was running.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from profkit.core import codec
from profkit.core.types import GridPoint, Json
from profkit.execution.job import Job
from profkit.execution.worker import JobFinished, JobStarted, JobStep
from profkit.kernels.sweep.files import run_file

NICE = 10  # whoever measures has the processors first


class MeasuringWorker:
    """Measures implementations on `device`, after it has run the `files` of users."""

    def __init__(self, device: str, *files: str) -> None:
        from profkit.kernels.sweep.device import TorchState

        settings = TorchState()  # before anybody's file has run: what one replaces is put back
        for file in files:
            run_file(Path(file))
        self._device, self._changed = device, settings.put_back()
        self._bench: Any = None

    def open(self, settings: dict[str, Any]) -> Json:
        """What the device is, and where this is the first worker what it can do at most."""
        from profkit.kernels.sweep.bench import Bench
        from profkit.kernels.sweep.device import describe_device, measure_ceilings
        from profkit.kernels.sweep.request import TimingOptions

        timing = TimingOptions(**settings["timing"])
        self._bench = Bench(self._device, timing, float(settings.get("share", 1.0)))
        device = self._bench.device
        ceilings = codec.to_plain_data(measure_ceilings(device)) if settings["first"] else None
        return {**describe_device(device), "roofs": ceilings, "changed": list(self._changed)}

    def run(self, shared: Json, jobs: Sequence[Job]) -> Iterator[JobStep]:
        """Every implementation that is asked for at one point. Raises DeviceError."""
        point = codec.from_plain_data(GridPoint, shared)
        for name, result in self._bench.run(point, [job.key for job in jobs]):
            yield JobStarted(name) if result is None else JobFinished(name, codec.to_plain_data(result))


class CompileWorker:
    """Compiles what workers will need by Inductor, and neither calls nor times anything.

    The device's context is made at the start, while the workers make theirs, too, and nothing is timed yet.
    """

    def __init__(self, device: str) -> None:
        with suppress(OSError, AttributeError):
            os.nice(NICE)
        import torch

        self._device = torch.device(device)
        if self._device.type == "cuda":
            torch.empty(1, device=self._device)

    def open(self, settings: dict[str, Any]) -> Json:
        """Load Inductor."""
        from profkit.kernels.operations.pytorch import load_compilers

        del settings
        load_compilers()
        return None

    def run(self, shared: Json, jobs: Sequence[Job]) -> Iterator[JobStep]:
        """Compile at one point. A fault is told by the worker that needs it."""
        from profkit.kernels.operations.pytorch import compile_ahead
        from profkit.kernels.operations.registry import OPERATIONS

        point = codec.from_plain_data(GridPoint, shared)
        for job in jobs:
            yield JobStarted(job.key)
            with suppress(Exception):
                compile_ahead(OPERATIONS[point.operation], point, self._device)
            yield JobFinished(job.key, None)
