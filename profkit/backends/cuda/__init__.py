"""The backend of NVIDIA GPUs: nsys (or torch's profiler) says where the time goes, ncu says why."""

from __future__ import annotations

import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.backends import Backend, CheckGroup, DeviceCandidate, RunContext
from profkit.core.errors import MachineError
from profkit.core.types import Depth, Fact, Gpu, GpuToolLines, Report, RunDocument, Summary, Workload

if TYPE_CHECKING:
    from profkit.backends.passes import BackendRun, Pass

# What a program that uses an NVIDIA GPU names, in its text or its arguments.
_NAMES = re.compile(
    r"\b(?:cuda\w*|cupy|pycuda|triton|nvcc|cutlass|cute|numba\.cuda|tensorrt|deepspeed|vllm|gpus?)\b",
    re.IGNORECASE,
)
_OPTION = "--backend cuda: "
_LAUNCHERS = {"torchrun", "accelerate", "deepspeed"}
# What the linker leaves in a program that was made with CUDA.
_FATBIN = (b".nv_fatbin", b"libcudart.so", b"libcuda.so", b"cuLaunchKernel")


class CudaBackend(Backend):
    """The NVIDIA GPUs of this machine."""

    name = "cuda"
    has_device = True
    per_kernel = True
    work = "kernel"
    # A kernel's time is known to ±1 % within a second, or its clocks vary for as long as one looks.
    sampling: Mapping[Depth, float] = {"quick": 1.0, "gate": 1.0, "standard": 3.0, "full": 20.0}
    allowances: Mapping[Depth, tuple[float, float]] = {"gate": (5.0, 20.0), "standard": (5.0, 20.0)}
    profilers: tuple[str, ...] = ("nsys", "ncu", "torch_profiler", "jax_profiler")
    tool_lines = GpuToolLines(
        trace="nsys profile -t cuda,nvtx COMMAND, or profkit profile --backend cuda -- COMMAND",
        count="profkit profile --backend cuda -- COMMAND, or ncu --set full on the same command",
        count_all="ncu --set full, or profkit profile --backend cuda --depth full -- COMMAND",
        count_other="ncu --kernel-name regex:NAME, or --launch-skip N",
    )
    targets: Path | None = Path(__file__).with_name("targets.yaml")

    def claims(self, report: Report) -> bool:
        """Return whether a tool of this backend wrote the report, and it has a device's trace or kernels."""
        kernels = any(counter.scope.kind == "kernel" for counter in report.counters)
        return report.tool in self.profilers and (report.trace is not None or bool(report.gpus) or kernels)

    def possible(self) -> bool:
        """Return whether this is not macOS, which has had no driver since 2019."""
        return platform.system() != "Darwin"

    def candidate(self, workload: Workload) -> DeviceCandidate | None:
        """Return the devices, where the workload seems to use one."""
        evidence = cuda_evidence(workload)
        if evidence is None:
            return None
        try:
            return DeviceCandidate(evidence, self.devices())
        except MachineError as fault:
            return DeviceCandidate(evidence, missing=fault.message.removeprefix(_OPTION))

    def devices(self) -> tuple[Gpu, ...]:
        """Return the devices that the driver shows. Raises MachineError if there is none."""
        from profkit.hardware import nvidia  # a run on the CPU asks no driver

        gpus = nvidia.read_gpus()
        if gpus:
            return gpus
        fault = nvidia.driver_fault()
        reason = fault.reason if fault is not None else "no device is visible"
        raise MachineError(
            f"{_OPTION}{reason}", (fault.fix if fault is not None else None) or "--backend cpu"
        )

    def device_ids(self) -> tuple[str, ...]:
        """Return the UUIDs of the devices that the driver shows."""
        from profkit.hardware.nvidia import read_gpu_uuids

        return read_gpu_uuids()

    def start(self, context: RunContext, gpus: tuple[Gpu, ...]) -> BackendRun:
        """Return nsys and ncu at work on one run."""
        from profkit.backends.cuda.run import CudaRun

        return CudaRun(context, gpus)

    def pass_kinds(self) -> tuple[type[Pass], ...]:
        """Return the passes, including those of nsys and ncu."""
        from profkit.backends.cuda.run import CUDA_PASSES

        return (*super().pass_kinds(), *CUDA_PASSES)

    def check_groups(self) -> tuple[CheckGroup, ...]:
        """Return the checks of the devices, their driver, and the tools."""
        from profkit.backends.cuda.run import cuda_checks

        return (CheckGroup("cuda", cuda_checks),)

    def enrich(self, document: RunDocument) -> RunDocument:
        """Add what follows from the trace and the counters of the GPU."""
        from profkit.analysis.summaries.gpu import enrich_gpu

        return enrich_gpu(document, self.tool_lines)

    def summarize(self, document: RunDocument) -> list[Summary]:
        """Return the summaries of the GPU, then of the host's Python and memory."""
        from profkit.analysis.summaries.gpu import summarize_gpu

        return summarize_gpu(document)


def cuda_evidence(workload: Workload) -> Fact | None:
    """Return why the workload seems to use an NVIDIA GPU; None where nothing says so.

    Its arguments come first: `--backend cpu` of a script that could use both means the CPU.
    """
    from profkit.backends.passes import first_mention, head_of

    for word in workload.command[1:]:
        if re.fullmatch(r"(?:-\w|--[\w-]+=)?(?:cpu|mps)", word):
            return None
        if re.fullmatch(r"(?:--[\w-]+=)?(?:cuda(?::\d+)?|gpu|triton)", word):
            return Fact.of("arguments-say", word=word)
    program = workload.command[0]
    if Path(program).name in _LAUNCHERS:
        return Fact.of("started-by", name=Path(program).name)
    mention = first_mention(workload, _NAMES)
    if mention is not None or workload.python is not None:
        return mention
    path = shutil.which(program)
    content = head_of(Path(path)) if path is not None else b""
    mark = next((mark for mark in _FATBIN if mark in content), None)
    if mark is None or not content.startswith(b"\x7fELF"):
        return None
    return Fact.of("program-holds", name=Path(path or program).name, mark=mark.decode())


CUDA = CudaBackend()
