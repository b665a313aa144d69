"""What Triton does in a workload's process beside the work itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """The configuration that Triton's autotuner chose for one kernel and one key, and what choosing took."""

    kernel: str
    module: str
    key: str  # what it was tuned for: "M 4096, N 11008, fp16"
    best: str  # "BLOCK_M 128, BLOCK_N 64, 8 warps, 3 stages"
    configurations: int | None = (
        None  # how many were tried; None where some were sorted out and not told which
    )
    failed: int = 0  # of them did not compile, or did not fit the device
    # Wall seconds, compiling of the candidates included. Triton keeps those of the last key of a kernel alone.
    seconds: float | None = None
    cached: bool = False  # not tuned by this process but read from Triton's cache on disk


@dataclass(frozen=True)
class TritonWork:
    """What Triton did in one process of one pass."""

    pass_name: str
    pid: int
    tunings: tuple[Tuning, ...] = ()
    left_out: int = 0  # tunings beyond those that are kept
    binaries: int = 0  # kernels as compiled for their types and configurations
    cached: int | None = (
        None  # of them, those that lay in Triton's cache when the process began; None: not told
    )
    # Seconds that compiling the others took, at least (by the times of their files); None: not told.
    compile_seconds: float | None = None
