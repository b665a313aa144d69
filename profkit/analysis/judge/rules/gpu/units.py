"""Rules on arithmetic that runs on the wrong unit: FP64 where it is slow, no tensor cores,
unaligned matrix products."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from profkit.analysis.evidence import KernelEvidence, RunEvidence, unit_utilization
from profkit.analysis.judge.rule import MEMORY_UNITS, PIPES, bounded_gain, insight_on
from profkit.analysis.judge.words import words, words_for
from profkit.analysis.kernel_names.owner import is_matrix_product
from profkit.analysis.timeline.products import product_share
from profkit.core.formatting import percent_text, plural
from profkit.core.types import Insight, KernelTime

# FP64 instructions per cycle of a multiprocessor over those in FP32, by compute capability (CUDA C++ Programming Guide,
# table "Throughput of Native Arithmetic Instructions").
_FP64_RATE = {
    **dict.fromkeys(("6.0", "7.0", "8.0", "9.0"), 1 / 2),
    **dict.fromkeys(("6.1", "6.2", "7.2", "7.5"), 1 / 32),
    **dict.fromkeys(("8.6", "8.7", "8.9", "10.3", "11.0", "12.0", "12.1"), 1 / 64),
    "10.0": 1 / 2,
}
# Dense TF32 over FP32 FLOP/s of the chips where that is worth it (NVIDIA's data sheets of A100, H100, B200); on
# 8.6, 8.9 and 12.0 both are about the same.
_TF32_SPEED = {"8.0": 8.0, "9.0": 7.4, "10.0": 14.0}
_FP64 = ("the FP64 pipe", "instruction issue")
SLOW_FP64 = 1 / 8  # of the FP32 rate: below it a few instructions in FP64 are enough to limit a kernel
_OF_FP32 = re.compile(
    r"(^|_|::)sgemm|simt_sgemm|_f32f32_f32f32_f32_(?!.*tf32)|gemm_f32f32_f32_f32|ffma|magma_sgemm"
    r"|convolve_sgemm|scudnn|_fprop_sgemm|conv\w*_fp32",
    re.IGNORECASE,
)
_DOUBLE_PRODUCT = re.compile(r"<double\b|\bdouble[,>]|dgemm|_f64|d884gemm|DMMA", re.IGNORECASE)
# The first type that a kernel of PyTorch names is that of its elements. What comes behind it may be its scalars: those
# of an optimizer are doubles beside any tensors.
_ELEMENT = re.compile(
    r"[<(](?:const )?(double|float|c10::(?:BFloat16|Half|complex<double>|complex<float>))\b"
)
OF_DOUBLES = 0.5  # of the GPU time: with less, single results are summed in it
_INSIDE = re.compile(r"aten::_?(?:linalg_(?!matmul|multi_dot)|lu_|cholesky|triangular_|ormqr|geqrf|lstsq)")
# cuDNN names convolutions of 16 bits that run on FP32 units after those of FP32: the type is an argument.
_OF_16_BITS = re.compile(r"bfloat16|__half|\bhalf\b|bf16|f16f16|fp16", re.IGNORECASE)
_OF_TF32 = re.compile(r"tf32|tensorop|s1688|s16816", re.IGNORECASE)
_ALIGNMENT = re.compile(r"align(1|2)(?!\d)")
_SHAPES = re.compile(r"\[([\d,]*)\]")
_ONE_BLOCK = tuple(f"1x1x1 of {threads}x1x1" for threads in (32, 64, 128, 256, 512, 1024))
_MATRIX = re.compile(r"(\d+),(\d+)\]")  # the last two dimensions of a shape: the others are batches
_FLASH_2 = re.compile(r"flash::flash_(fwd|bwd)\w*kernel|Flash_(fwd|bwd)_kernel_traits")
_RECENT = re.compile(r"(^|\W)nvjet_|sm90")
_QUERIES = re.compile(r"flash_attention\w* \[\d+,(\d+),(\d+),\d+\]")  # heads and rows, or rows and heads
FEW_QUERIES = 8
FLASH_GAIN = 0.5  # of its time


def slow_fp64(run: RunEvidence) -> Iterator[Insight]:
    """Find FP64 arithmetic on a chip that does 32 or 64 times as much in FP32; on any chip where the arguments are
    float.
    """
    for kernel in run.kernels:
        rate, name = fp64_rate(kernel), kernel.row.scope.name or ""
        floats = "float" in name and "double" not in name
        busy = kernel.values.get("pipe.fp64.utilization", 0.0)
        if rate is None or kernel.owner not in ("user", "cutlass") or busy < 20:
            continue
        if rate > SLOW_FP64 and not floats:
            continue
        units = unit_utilization(kernel)
        # Divisions and square roots of doubles are made of conversions and many instructions.
        with_it = (*_FP64, "the special function pipe") if floats else _FP64[:1]
        rest = max((value for title, value in units.items() if title not in with_it), default=0.0)
        busy = units.get("the FP64 pipe", busy)
        if busy <= max(rest, 20.0):
            continue
        floor = max(rest, busy * rate)
        yield insight_on(
            "slow-fp64",
            kernel,
            f"Compute in FP32: {'its arguments are float, its arithmetic is double' if floats else 'FP64 is slow'}",
            f"this GPU does 1/{1 / rate:.0f} as much in FP64; the FP64 pipe is busy for {percent_text(busy)} of the "
            f"time, every other unit {'that does not feed it ' if floats else ''}for at most {percent_text(rest)}",
            bounded_gain(
                run,
                kernel,
                1 - floor / 100 if floats else (busy - floor) / 100,
                "the kernel's time until the next unit is as busy",
                with_it,
            ),
            ("pipe.fp64.utilization", "flops.share.f64"),
        )


def double_precision(run: RunEvidence) -> Iterator[Insight]:
    """Find pyTorch's operations in float64, which is there mostly because numpy made it."""
    kernels = [kernel for kernel in run.kernels if _has_double_elements(kernel)]
    share = sum(kernel.share for kernel in kernels)
    if share < OF_DOUBLES:
        return
    placed = [kernel for kernel in kernels if kernel.place.file is not None]
    speed = _TF32_SPEED.get(kernels[0].gpu.capability or "", 2.0) if kernels[0].gpu is not None else 2.0
    products = sum(kernel.share for kernel in kernels if kernel.owner != "aten")
    yield insight_on(
        "double-precision",
        max(placed or kernels, key=lambda kernel: kernel.share),
        "Compute in float32: these tensors are float64",
        f"kernels for float64 take {percent_text(100 * share)} of the GPU time; its numbers have 8 bytes instead of 4",
        run.gain(
            ((share - products) / 2 + products * (1 - 1 / speed)) * run.gpu_share,
            "half the bytes; products as fast as TF32",
        ),
        change=words("double-precision", "torch"),
    )


def _has_double_elements(kernel: KernelEvidence) -> bool:
    """Return whether it is a library's kernel that works on many elements of FP64, as far as its name tells."""
    name = kernel.row.scope.name or ""
    if kernel.owner != "aten":
        return kernel.owner in ("cublas", "cutlass", "cudnn") and _DOUBLE_PRODUCT.search(name) is not None
    element, shapes = _ELEMENT.search(name), _SHAPES.findall(kernel.operation or "")
    # Of a single element next to nothing is moved; where no shape is known, one block may be for it.
    sizes = [size for shape in shapes for size in shape.split(",") if size]
    alone = all(size == "1" for size in sizes) if sizes else kernel.row.scope.id in _ONE_BLOCK
    return element is not None and element[1].endswith(("double", "double>")) and not alone


def fp64_rate(kernel: KernelEvidence) -> float | None:
    """Return FP64 over FP32 FLOP/s of the device, as counted or by its compute capability; None if neither is known."""
    single, double = kernel.values.get("flops.peak.f32"), kernel.values.get("flops.peak.f64")
    if single and double:
        return double / single
    return _FP64_RATE.get(kernel.gpu.capability or "") if kernel.gpu is not None else None


def no_tensor_cores(run: RunEvidence) -> Iterator[Insight]:
    """Find a library's FP32 products and convolutions on a chip whose tensor cores are far faster in TF32."""
    kernels = [kernel for kernel in run.kernels if _is_plain_fp32(kernel)]
    speed = (
        _TF32_SPEED.get(kernels[0].gpu.capability or "") if kernels and kernels[0].gpu is not None else None
    )
    if speed is None:
        return
    first = max(kernels, key=lambda kernel: (kernel.place.line is not None, kernel.share))
    left = sum(kernel.share * (1 - _tf32_floor(kernel, speed)) for kernel in kernels)
    share = sum(kernel.share for kernel in kernels)
    convolves = first.owner == "cudnn"
    what = "convolution" if convolves else "matrix product"
    yield insight_on(
        "no-tensor-cores",
        first,
        f"Let FP32 {what}s use the tensor cores (TF32), or use bfloat16",
        f"{plural(len(kernels), what)} in FP32 without tensor cores, {percent_text(100 * share)} of the "
        "GPU time",
        run.gain(left * run.gpu_share, f"TF32 is {speed:.0f} times as fast as FP32 on this chip"),
        ("tensor.utilization", "pipe.fp32.utilization", "flops.share.f32"),
        change=words_for(run, f"no-tensor-cores{'.convolutions' if convolves else ''}"),
    )


_ARITHMETIC = 5.0  # % of the tensor cores' peak: with less, the kernel's products are not what takes its time


def widened_product(run: RunEvidence) -> Iterator[Insight]:
    """Find products of a Triton kernel of which both operands are numbers of 16 bits that it makes float32 before."""
    profile = run.profile("widened-products")
    for spot in profile.hotspots if profile is not None else ():
        if spot.counters.get("exact"):
            continue
        named = (kernel for kernel in run.kernels if kernel.row.scope.name == spot.function)
        kernel = max(named, key=lambda candidate: candidate.share, default=None)
        if (
            kernel is None
            or kernel.language != "triton"
            or not kernel.above("tensor.utilization", _ARITHMETIC)
        ):
            continue
        busy = kernel.values["tensor.utilization"]
        yield insight_on(
            "widened-product",
            kernel,
            f"Multiply the blocks as they are in memory: {spot.library} instead of float32",
            f"both operands of tl.dot are {spot.library} that .to(tl.float32) widens: the tensor cores multiply them "
            "as TF32, at half the rate and with twice the bytes in shared memory, and are busy for "
            f"{percent_text(busy)}",
            bounded_gain(
                run,
                kernel,
                1 - busy / 200,
                "half of the tensor cores' time",
                (*PIPES, "L1", "shared memory", "the load/store pipe"),
            ),
            ("tensor.utilization", "shared.bank_conflicts.share"),
            replace(kernel.place, file=spot.file, line=spot.line, function=spot.function),
        )


_FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
_LANES = 32
# Of a kernel's instructions and passes: a product on FMA units is made of multiply-adds of what shared memory holds.
OF_PRODUCTS, OF_SHARED, NO_TENSOR = 0.6, 10.0, 1.0


def fma_product(run: RunEvidence) -> Iterator[Insight]:
    """Find products of a Triton kernel that FP32's multiply-add units compute, on a chip with fast tensor cores.

    Most of its instructions are multiply-adds, and their operands come from shared memory, in which Triton keeps those
    of `tl.dot`: all that is slow about that memory is due to how the product is computed.
    """
    profile = run.profile("widened-products")
    spots = {
        spot.function: spot
        for spot in (profile.hotspots if profile is not None else ())
        if spot.counters.get("exact")
    }
    for kernel in run.kernels:
        spot = spots.get(kernel.row.scope.name or "")
        part = kernel.counters.get(_FFMA, 0.0) / _LANES / max(1.0, kernel.values.get("instructions", 0.0))
        speed = _TF32_SPEED.get(kernel.gpu.capability or "") if kernel.gpu is not None else None
        is_product = spot is not None or kernel.above("bandwidth.shared.share", OF_SHARED)
        if kernel.language != "triton" or speed is None or part < OF_PRODUCTS or not is_product:
            continue
        if not kernel.below("tensor.utilization", NO_TENSOR) or "tensor.utilization" not in kernel.values:
            continue
        where = kernel.place_of(kernel.instructions)
        why = ""
        if spot is not None:
            where = replace(where, file=spot.file, line=spot.line, function=spot.function)
            narrow = f", although memory holds {spot.library}" if spot.library else ""
            why = f"; this tl.dot asks for all digits of float32{narrow}, which tensor cores do not have"
        yield insight_on(
            "fma-product",
            kernel,
            "Let tl.dot use the tensor cores: it multiplies in float32 without them",
            f"{percent_text(100 * part)} of its instructions are multiply-adds in float32, and the tensor cores do "
            f"nothing{why}",
            bounded_gain(
                run,
                kernel,
                1 - 1 / speed,
                f"TF32 is {speed:.0f} times as fast as FP32 on this chip",
                (*PIPES, "L1", "shared memory", "the load/store pipe"),
            ),
            ("tensor.utilization", "flops.share.f32", "shared.bank_conflicts.share"),
            where,
        )


def _is_plain_fp32(kernel: KernelEvidence) -> bool:
    name = kernel.row.scope.name or ""
    inside = _INSIDE.match(kernel.operation or "")  # of a solver, which sets its own precision
    product = not inside and (is_matrix_product(name) or kernel.owner == "cudnn")
    fp32 = product and _OF_FP32.search(name) and not (_OF_TF32.search(name) or _OF_16_BITS.search(name))
    return bool(fp32) and not kernel.above("tensor.utilization", 10.0)


def _tf32_floor(kernel: KernelEvidence, speed: float) -> float:
    """Return the share of its time that the product needs at least on tensor cores, 0..1."""
    moving = max(kernel.values.get("bandwidth.dram.share", 0.0), kernel.values.get("bandwidth.l2.share", 0.0))
    return min(1.0, max(1 / speed, moving / 100))


def unaligned_matrix_product(run: RunEvidence) -> Iterator[Insight]:
    """Find matrix products with operands that are not aligned to 16 bytes: the library has only slow kernels for them.

    All of them in one: it is one dimension that is odd. L1 is busy with the small loads themselves, so what bounds them
    is DRAM, or the tensor cores; of these, such kernels use instructions that do half as much.
    """
    kernels = [
        kernel
        for kernel in run.kernels
        if kernel.owner in ("cublas", "cutlass", "cudnn") and _is_unaligned(kernel)
    ]
    if not kernels:
        return
    first = kernels[0]
    share = sum(kernel.share for kernel in kernels)
    left = sum(kernel.share * (1 - _aligned_floor(kernel)) for kernel in kernels)
    busy = first.values.get("tensor.utilization")
    reached = product_share(first.row.time, first.gpu) if first.row.time is not None else None
    how = f", and keep the tensor cores busy for {percent_text(busy)}" if busy is not None else ""
    if reached is not None and busy is None:
        how = f", and the first reaches {percent_text(100 * reached)} of the peak of the tensor cores"
    odd = _odd_dimension(kernels)
    padded = _padded_dimension(odd) if odd is not None else 0
    yield insight_on(
        "unaligned-matrix-product",
        first,
        "Pad the sizes of the matrix product to a multiple of 8, better 64"
        if odd is None
        else f"Pad the dimension of {odd:,} to {padded:,}",
        f"{percent_text(100 * share)} of the GPU time is in {plural(len(kernels), 'matrix product')} of which the "
        f"kernels load single elements, since rows are not aligned to 16 bytes{how}",
        run.gain(left * run.gpu_share, "these products, until DRAM or the tensor cores limit them"),
        ("tensor.utilization", "bandwidth.dram.share"),
        change=words("unaligned-matrix-product")
        if odd is None
        else words("unaligned-matrix-product.known").format(padded=padded),
    )


def _is_unaligned(kernel: KernelEvidence) -> bool:
    """Return whether it is unaligned, by its name, and by its shapes if known.

    Kernels without tensor cores are all called align1.
    """
    name = kernel.row.scope.name or ""
    if _ALIGNMENT.search(name) is None or re.search(r"simt|sgemm|dgemm", name):
        return False
    sizes = [int(size) for pair in _MATRIX.findall(kernel.operation or "") for size in pair]
    return " x " not in (kernel.operation or "") or any(map(_is_odd, sizes))


def _odd_dimension(kernels: Sequence[KernelEvidence]) -> int | None:
    """Return the dimension of the products' operands that no 16 bytes divide; None if none is known, or
    several are.
    """
    of_products = [
        {int(size) for pair in _MATRIX.findall(kernel.operation) for size in pair if _is_odd(int(size))}
        for kernel in kernels
        if kernel.operation is not None and " x " in kernel.operation
    ]
    common = set.intersection(*of_products) if of_products else set()
    return common.pop() if len(common) == 1 else None


def _is_odd(size: int) -> bool:
    return size > 8 and size % 8 != 0


def _padded_dimension(size: int) -> int:
    step = 64 if size > 1024 else 8
    return -(-size // step) * step


def _aligned_floor(kernel: KernelEvidence) -> float:
    """Return the share of its time that the same product needs at least, as far as its units tell, 0..1."""
    tensor = kernel.values.get("tensor.utilization", 0.0) / 200
    time = kernel.row.time
    reached = (product_share(time, kernel.gpu) if time is not None else None) or 0.0
    return min(1.0, max(tensor, reached, kernel.values.get("bandwidth.dram.share", 0.0) / 100))


def old_attention(run: RunEvidence) -> Iterator[Insight]:
    """Find FlashAttention-2, which was written for Ampere, on Hopper and later."""
    for kernel in run.kernels:
        name = kernel.row.scope.name or ""
        time = kernel.row.time
        if not _FLASH_2.search(name) or not _is_recent(run, kernel) or _decodes(time):
            continue
        reached = product_share(time, kernel.gpu) if time is not None else None
        yield insight_on(
            "old-attention",
            kernel,
            "Use an attention kernel made for this GPU (cuDNN, FlashAttention-3)",
            "attention runs in FlashAttention-2, made for GPUs before Hopper",
            bounded_gain(
                run,
                kernel,
                min(FLASH_GAIN, 1 - (reached or 0.0)),
                "FlashAttention-3 is 1.5 to 2 times as fast on an H100 (arXiv 2407.08608)",
                (*MEMORY_UNITS, *PIPES),
            ),
            ("tensor.utilization",),
            change=words("old-attention", "torch"),
        )


def _decodes(time: KernelTime | None) -> bool:
    """Return whether attention has few queries, as in decoding: then it reads keys and values, and little else."""
    shape = _QUERIES.search((time.operation or "") if time is not None else "")
    return shape is not None and min(int(shape[1]), int(shape[2])) < FEW_QUERIES


def _is_recent(run: RunEvidence, kernel: KernelEvidence) -> bool:
    """Return whether the device is a Hopper or later: by what it is, else by kernels that run on no other."""
    if kernel.gpu is not None and kernel.gpu.capability is not None:
        return kernel.gpu.capability.split(".")[0] in ("9", "10")
    return any(_RECENT.search(other.row.scope.name or "") for other in run.kernels)


def debug_build(run: RunEvidence) -> Iterator[Insight]:
    """Find kernels that were compiled for the debugger: without any optimisation. No other rule looks at them."""
    if not run.debug_kernels:
        return
    first = run.debug_kernels[0]
    share = sum(kernel.share for kernel in run.debug_kernels)
    yield insight_on(
        "debug-build",
        first,
        "Compile without -G",
        f"it was compiled for debugging (-G), without optimisation; such kernels have {percent_text(100 * share)} "
        "of the GPU time",
        run.gain(share * run.gpu_share, "the whole time of these kernels"),
    )
