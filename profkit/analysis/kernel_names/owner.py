"""Whose code a kernel is, by its name: only its owner can change it, everybody else changes the call."""

from __future__ import annotations

import re
from functools import lru_cache
from math import prod
from typing import Literal

from profkit.core.types import GpuTrace, Kernel

KernelOwner = Literal[
    "user",
    "cublas",
    "cudnn",
    "cufft",
    "cusparse",
    "cutlass",
    "flash-attention",
    "aten",
    "nccl",
    "inductor",
    "xla",
    "random",
    "cub",
    "cupy",
]
# With what people call them. In this order: a random initialiser of ATen is first of all that.
_PATTERNS: tuple[tuple[KernelOwner, str, str], ...] = (
    ("nccl", "NCCL", r"nccl(Dev)?Kernel|^nccl|nvshmem"),
    (
        "random",
        "a random number generator",
        r"distribution_(nullary_)?elementwise|distribution_.*grid_stride|generate_seed_pseudo|gen_sequenced"
        r"|curand_?(Philox|XORWOW|MRG|MTGP)?.*gen_|fused_dropout",
    ),
    ("inductor", "torch.compile (Inductor)", r"^triton_(poi|per|red|tem|for|mm|spl)_"),
    ("xla", "XLA", r"^(\w+_fusion\w*|fusion(_\d+)?|wrapped_\w+|triton_(softmax|gemm)\w*|gemm_fusion\w*)$"),
    (
        "flash-attention",
        "a flash attention library",
        r"flash_(fwd|bwd)|fmha_|FlashAttn|attention_kernel_batched|pytorch_flash",
    ),
    (
        "cudnn",
        "cuDNN",
        r"cudnn|xmma_(fprop|dgrad|wgrad|implicit)|implicit_convolve|winograd|(nchwToNhwc|nhwcToNchw)Kernel"
        r"|conv2d_c1_k1|convolve_",
    ),
    (
        "cublas",
        "cuBLAS",
        r"^nvjet_|xmma_gemm|_(s|d|c|z|h|i|scudnn_)?gemm_\d+x\d+|^(volta|turing|ampere|maxwell|hopper)_.*gemm|cublas"
        r"|cutlass_\d+_|gemv(NSP|2N|2T|x)?_?kernel|gemvx::|splitK_?reduce|magma_.?gemm|dot_kernel<|gemmk1_kernel"
        r"|gemmSN_",
    ),
    (
        "cufft",
        "cuFFT",
        r"cufft|\b(multi_)?(regular|vector|prime|bluestein|composite_2way|composite_4way)_fft(_factor)?(_r2c|_c2r)?<"
        r"|\b[sdh]p(Radix|Vector|RealComplex)\w*::|(pack|unpack)(R2C|C2R)_kernel|[rR]eal_?[cC]omplex_(args_t|ST|st)\b"
        r"|\bEPT<|loadstore_modifier_t",
    ),
    ("cusparse", "cuSPARSE", r"\bcusparse"),
    ("cutlass", "CUTLASS", r"cutlass::|cute::"),
    ("cub", "CUB or Thrust", r"\bcub::|\bthrust::"),
    ("cupy", "CuPy", r"^cupyx?_\w"),
    (
        "aten",
        "PyTorch (ATen)",
        r"\bat::(native|cuda)|\bat_cuda_detail|\bc10::|vectorized_elementwise_kernel|multi_tensor_apply"
        r"|softmax_warp_(for|back)ward|cunn_SoftMax|CatArrayBatchedCopy|indexSelect(Large|Small)Index",
    ),
)
_OWNERS = tuple((owner, re.compile(pattern)) for owner, _, pattern in _PATTERNS)
OWN_CODE: tuple[KernelOwner, ...] = ("user", "inductor", "cutlass")  # made from the user's own source


# What Thrust and CUB do by a function of the program for each element, whose accesses are the program's.
_FOR_EACH = re.compile(r"for_each|parallel_?for|transform|tabulate|generate", re.IGNORECASE)


@lru_cache(maxsize=1 << 12)  # a trace has few names and many launches
def kernel_owner(name: str) -> KernelOwner:
    """Return whose kernel this is; `user` where the name is that of no library known here."""
    plain = name.strip()
    plain = plain.removeprefix("void ").removeprefix("static ")
    return next((owner for owner, pattern in _OWNERS if pattern.search(plain)), "user")


def launched_owner(name: str, operation: str | None) -> KernelOwner:
    """Return whose kernel this is, by its name and by the operation that launched it.

    What an operation of PyTorch launches was written for it, whatever its name says.
    """
    owner = kernel_owner(name)
    return "aten" if owner == "user" and (operation or "").startswith("aten::") else owner


def runs_own_functions(name: str, owner: KernelOwner) -> bool:
    """Return whether a kernel is made of functions of the program, be it by CUB or Thrust for each element."""
    return owner in OWN_CODE or (owner == "cub" and _FOR_EACH.search(name) is not None)


# Kernels that only choose or time others. XLA's autotuner holds the device back until all candidates are queued,
# repeats their inputs, writes zones around their results, and compares these; older versions use no namespaces.
_OF_TUNERS = re.compile(
    r"^(?:void )?(?:(?:stream_executor|xla)::gpu::(?:<unnamed>::|\(anonymous namespace\)::)?)?"
    r"(?:DelayKernel|RepeatBufferKernel\w*|RedzoneAllocatorKernel\w*|redzone_checker|(?:__)?xla_\w+_comparison)\b"
)
# Before each call that it times, triton.testing.do_bench fills 256 MiB of 32-bit integers, so that the caches are cold.
_FILL, _FILLED = re.compile(r"FillFunctor<int>"), 1 << 26
_EACH = (4, 8, 16)  # elements of a thread, by the version of PyTorch


def is_tuning_kernel(name: str) -> bool:
    """Return whether a kernel is launched only while others are chosen or timed, by its name alone."""
    return _OF_TUNERS.match(name.strip()) is not None


def tuning_kernels(trace: GpuTrace) -> frozenset[Kernel]:
    """Return the kernels of a trace that are launched only while others are chosen or timed: no work of the program.

    A fill of the size with which caches are flushed is one where a kernel follows each that is no library's.
    """
    kernels = [time.kernel for time in (*trace.kernels, *trace.setup)]
    found = {kernel for kernel in kernels if is_tuning_kernel(kernel.name)}
    followers: dict[Kernel, set[KernelOwner]] = {}
    for at, after in zip(trace.order, trace.order[1:], strict=False):
        followers.setdefault(kernels[at], set()).add(kernel_owner(kernels[after].name))
    return frozenset(
        found
        | {
            kernel
            for kernel in kernels
            if _flushes_caches(kernel)
            and followers.get(kernel, set())
            and followers[kernel] <= {"user", "inductor"}
        }
    )


def _flushes_caches(kernel: Kernel) -> bool:
    threads = prod(kernel.grid) * prod(kernel.block)
    return _FILL.search(kernel.name) is not None and any(threads * each == _FILLED for each in _EACH)


def is_initialiser(name: str) -> bool:
    """Return whether it is a kernel of PyTorch that fills a tensor with random numbers: the set-up of a program."""
    return (
        kernel_owner(name) == "random" and re.search(r"distribution_(nullary_|elementwise)", name) is not None
    )


def owner_title(owner: KernelOwner) -> str:
    """Return the owner as people call it."""
    return next((title for name, title, _ in _PATTERNS if name == owner), "your own")


def computes_products(name: str) -> bool:
    """Return whether the kernel does what takes the time of a matrix product or of attention, and not a part beside
    it.
    """
    if kernel_owner(name) == "flash-attention" or re.search(r"sdpa|fmha|attention", name, re.IGNORECASE):
        return re.search(r"convert|combine|dot_do_o|preprocess|reduce", name, re.IGNORECASE) is None
    return is_matrix_product(name) and re.search(r"splitK_?reduce", name, re.IGNORECASE) is None


def is_cudnn_attention(name: str) -> bool:
    """Return whether the kernel is one of those that cuDNN makes for attention: `cudnn_generated_..._sdpa_...`."""
    return (
        kernel_owner(name) == "cudnn" and re.search(r"sdpa|fmha|attention", name, re.IGNORECASE) is not None
    )


def is_matrix_product(name: str) -> bool:
    """Return whether the name is that of a library's matrix product."""
    return kernel_owner(name) in ("cublas", "cutlass") and re.search(r"gemm|nvjet|cutlass", name) is not None
