"""Matrix products in a trace: their floating-point operations by shapes, and what tensor cores can do at most."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.timeline.origins import LaunchOrigin
from profkit.analysis.timeline.range_names import SourceLine
from profkit.core.types import RUN, Gpu, GpuTrace, KernelTime, Reading, Source

# FLOP/s with 16-bit operands and without sparsity, by NVIDIA's data sheets; the first that is in the name counts.
TENSOR_PEAKS: tuple[tuple[str, float], ...] = (
    (r"\bB200\b|\bGB200\b", 2250e12),
    (r"\bH20\b", 148e12),
    (r"\bH100 NVL\b", 835e12),
    (r"\bH100 PCIe\b", 756e12),
    (r"\b(H100|H200|H800|GH200)\b", 989.4e12),
    (r"\b(A100|A800)\b", 312e12),
    (r"\bA30\b", 165e12),
    (r"\bA40\b", 149.7e12),
    (r"\bA10\b", 125e12),
    (r"\bRTX A6000\b", 154.8e12),
    (r"\bL40S\b", 362e12),
    (r"\bL40\b", 181e12),
    (r"\bL4\b", 121e12),
    (r"\bV100\b", 125e12),
    (r"\bT4\b", 65e12),
)
# Of a kernel's name: what its operands are, and their rate over that of 16 bits.
_TYPES: tuple[tuple[str, str, float], ...] = (
    (r"e4m3|e5m2|fp8|nvjet_(?:sm\d+_)?q", "FP8", 2.0),
    (r"tf32|_f32f32_|sgemm|nvjet_(?:sm\d+_)?s(?!m\d)", "TF32", 0.5),
)
SIXTEEN_BITS = "16 bits"


def operand_type(kernel: str) -> str:
    """Return the type of a matrix product's operands, by the name of its kernel."""
    return next((title for pattern, title, _ in _TYPES if re.search(pattern, kernel)), SIXTEEN_BITS)


def tensor_peak(gpu: Gpu | None, operands: str = SIXTEEN_BITS) -> float | None:
    """Return the FLOP/s of a device's tensor cores for such operands, by NVIDIA's data sheets.

    None where it is not known, and for a part of a device (MIG or a virtual GPU).
    """
    if gpu is None or gpu.mig or gpu.virtual is not None:
        return None
    peak = next((peak for pattern, peak in TENSOR_PEAKS if re.search(pattern, gpu.name)), None)
    rate = next((rate for _, title, rate in _TYPES if title == operands), 1.0)
    return peak * rate if peak is not None else None


def product_share(time: KernelTime, gpu: Gpu | None) -> float | None:
    """Return the share (0..1) of the tensor cores' peak that a kernel's products reach; None if not known.

    The name of a kernel of XLA's own does not have the type of its operands.
    """
    if kernel_owner(time.kernel.name) == "xla":
        return None
    peak = tensor_peak(gpu, operand_type(time.kernel.name))
    if time.flops is None or peak is None or time.total <= 0:
        return None
    return time.flops * time.launches / time.total / peak


def mfu_readings(trace: GpuTrace, gpus: Sequence[Gpu]) -> list[Reading]:
    """Return gpu.mfu in %: FLOP of the products in the span over what the tensor cores could do meanwhile.

    The FLOP follow from the shapes of the operations, the peak is that of the operand type with most FLOP.
    Estimated: attention counts half where a trace does not show whether it is causal. Empty where no shapes or no
    peak are known.
    """
    done: Counter[str] = Counter()
    total = 0.0
    for time in trace.kernels:
        if time.flops is not None:
            total += time.flops * time.launches
            done[operand_type(time.kernel.name)] += int(time.flops * time.launches)
    if not total or not trace.span:
        return []
    operands = done.most_common(1)[0][0]
    peak = tensor_peak(gpus[0] if gpus else None, operands)
    if peak is None:
        return []
    devices = max(1, len(trace.device_busy))
    most = f"{devices} x {peak / 1e12:g} TFLOP/s ({operands})"
    formula = f"100 * FLOP of matrix products, attention and convolutions by shapes / (span * {most})"
    share = total / trace.span / devices / peak
    return [Reading("gpu.mfu", 100 * share, "%", "estimated", RUN, Source(trace.tool, formula=formula))]


MIN_SIZES = 10  # sizes of one product: fewer are the lengths of some batches
_WEIGHTED = re.compile(r"^aten::(?:mm|addmm) .*\[(\d+),\d+\] x (\[\d+,\d+\])$")


def growing_rows(origins: Sequence[LaunchOrigin]) -> dict[SourceLine, tuple[int, int, int]]:
    """Return the lines whose products with the same weights get more rows each time.

    Of its last MIN_SIZES sizes each has the rows of the first, of the last, and their number. `origins` are in the
    order in which they were first seen.
    """
    rows: dict[tuple[SourceLine, str], list[int]] = {}
    for origin in origins:
        found = _WEIGHTED.match(origin.operation or "") if origin.backward_of is None else None
        if found is not None and origin.line is not None:
            rows.setdefault((origin.line, found[2]), []).append(int(found[1]))
    growing = {}
    for (line, _), sizes in rows.items():
        steps = {after - before for before, after in itertools.pairwise(sizes[-MIN_SIZES:])}
        if (
            len(sizes) >= MIN_SIZES
            and len(steps) == 1
            and 0 < min(steps) <= min(sizes[-MIN_SIZES:]) / MIN_SIZES
        ):
            growing[line] = sizes[-MIN_SIZES], sizes[-1], MIN_SIZES
    return growing
