"""Builds the .cu files of this folder for one device and one set of constants, and launches their kernels.

This chooses how a kernel is laid over a device: constants by dtype, width and size, blocks, and scratch
memory. It also makes the kernels into implementations of the operations.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from pathlib import Path
from typing import Any

import torch

from profkit.core.types import Fact
from profkit.kernels import disk_cache
from profkit.kernels.operations.cuda.compiler import Compiler, load_compiler
from profkit.kernels.operations.definitions import EPS, Call, Problem, Tensor, Unavailable, check_inputs

HERE = Path(__file__).parent
HEADER = "values.cuh"
# How a kernel's parameters are described: pointer, 32-bit number, 64-bit number, float.
KINDS: dict[str, Any] = {
    "p": ctypes.c_void_p,
    "u": ctypes.c_uint32,
    "l": ctypes.c_uint64,
    "f": ctypes.c_float,
}


class LaunchFailed(Exception):
    """The driver refused a call; the message names the call."""


class CudaKernel:
    """A kernel; calling it launches it and returns at once. Its parameters lie in the same place at every call."""

    def __init__(self, driver: ctypes.CDLL, function: ctypes.c_void_p, kinds: str) -> None:
        self._driver, self._function = driver, function
        self._slots: list[Any] = [KINDS[kind]() for kind in kinds]
        self._places = (ctypes.c_void_p * len(kinds))(*(ctypes.addressof(slot) for slot in self._slots))
        self._launch = driver.cuLaunchKernel
        self._launch.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]

    def __call__(self, blocks: int, threads: int, stream: int, *values: float) -> None:
        """Launch on `stream`, a CUstream as a number. Raises LaunchFailed."""
        for slot, value in zip(self._slots, values, strict=True):
            slot.value = value
        code = self._launch(self._function, blocks, 1, 1, threads, 1, 1, 0, stream, self._places, None)
        if code != 0:
            raise LaunchFailed(f"cuLaunchKernel: {error_name(self._driver, code)}")

    def resident(self, threads: int) -> int:
        """Return how many of its blocks of that many threads a multiprocessor runs at a time, at least 1."""
        count = ctypes.c_int()
        self._driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(count), self._function, threads, ctypes.c_size_t(0)
        )
        return max(1, count.value)


class CudaModule:
    """A compiled program, loaded into the current context.

    Raises Unavailable without NVRTC or a driver, DoesNotCompile, and LaunchFailed.
    """

    def __init__(self, file: str, capability: tuple[int, int], constants: Mapping[str, int]) -> None:
        try:
            self._driver = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Unavailable(Fact.of("no-cuda-driver", said=str(error))) from None
        tool = load_compiler()
        options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}", "--std=c++17"]
        options += [f"-D{name}={value}" for name, value in sorted(constants.items())]
        program, name = program_of(tool, file, options)
        self._module = ctypes.c_void_p()
        code = self._driver.cuModuleLoadData(ctypes.byref(self._module), program)
        if code == 0:
            return
        disk_cache.remove_cached(name)
        raise LaunchFailed(f"cuModuleLoadData: {error_name(self._driver, code)} of what {tool.name} compiles")

    def kernel(self, name: str, kinds: str) -> CudaKernel:
        """Return the kernel of that name; `kinds` has a letter for each parameter. Raises LaunchFailed."""
        function = ctypes.c_void_p()
        if code := self._driver.cuModuleGetFunction(ctypes.byref(function), self._module, name.encode()):
            raise LaunchFailed(f"cuModuleGetFunction({name}): {error_name(self._driver, code)}")
        return CudaKernel(self._driver, function, kinds)


def program_of(tool: Compiler, file: str, options: list[str]) -> tuple[bytes, str]:
    """Return the compiled program, from the cache if it is there, and its name in it. Raises DoesNotCompile."""
    text, header = ((HERE / name).read_text(encoding="utf-8") for name in (file, HEADER))
    name = disk_cache.cache_key(text, header, options, tool.name)
    program = disk_cache.read_cached(name)
    if program is None:
        program = tool.compile(text, {HEADER: header}, options)
        disk_cache.write_cached(name, program)
    return program, name


def error_name(driver: ctypes.CDLL, code: int) -> str:
    """Return the name of an error, `CUDA_ERROR_INVALID_IMAGE`, or its number where the driver has no name for it."""
    text = ctypes.c_char_p()
    if driver.cuGetErrorName(code, ctypes.byref(text)) or not text.value:
        return f"CUDA error {code}"
    return text.value.decode("ascii", "replace")


ELEMENT = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # ELEMENT in values.cuh
WIDE = {torch.float32: 4, torch.float16: 8, torch.bfloat16: 8}  # elements in 16 bytes
FLAT, SUMMING, ROWS, COLUMNS = 128, 512, 256, 128  # threads of a block
# Of rows.cu: for layer norm smaller blocks, of which a multiprocessor's registers hold more.
ROWS_BY = {"layer_norm": 128, "layer_norm_backward": 128}
WARP = 32
PER_THREAD = 2  # packs of a row that a thread holds, before a warp is wholly used
# Numbers of a row that a thread may hold: layer norm keeps three of each, five in its backward pass, of 255 registers;
# with more than 32 of a row a multiprocessor would run no second block.
HELD, HELD_BY = 64, {"layer_norm": 32, "layer_norm_backward": 32}
MAX_RESIDENT = 32  # blocks per multiprocessor, on any chip

_FLAT = {"gelu": "ppl", "gelu_backward": "pppl", "swish": "ppl", "swish_backward": "pppl"}
_FLAT |= {"mse": "ppppplf", "mse_backward": "pppplf", "column_sums": "ppplu"}
_ROWS = {"layer_norm": "pppppplf", "layer_norm_backward": "pppppppl"}
_ROWS |= {"cross_entropy": "ppppplf", "cross_entropy_backward": "pppplf"}
_WIDE = {"layer_norm": "ppppppllf", "layer_norm_backward": "ppppppll", "layer_norm_columns": "ppppplllu"}
_WIDE |= {"cross_entropy": "pppppllf", "cross_entropy_backward": "ppppllf"}
_KINDS = {"flat.cu": _FLAT, "rows.cu": _ROWS, "wide.cu": _WIDE}


@dataclass(frozen=True)
class KernelLaunch:
    """A kernel with its grid. Calling it launches it on torch's current stream."""

    kernel: CudaKernel
    blocks: int
    threads: int

    def __call__(self, *values: float) -> None:
        """Launch with these arguments: addresses and numbers."""
        self.kernel(self.blocks, self.threads, current_stream(), *values)


@lru_cache(maxsize=8)
def device_of(index: int) -> tuple[tuple[int, int], int]:
    """Return compute capability and number of multiprocessors."""
    properties = torch.cuda.get_device_properties(index)
    return (properties.major, properties.minor), properties.multi_processor_count


def current_stream() -> int:
    """Return torch's current stream as the driver knows it."""
    return int(torch.cuda.current_stream().cuda_stream)


@lru_cache(maxsize=512)
def kernel_of(index: int, file: str, name: str, constants: tuple[tuple[str, int], ...]) -> CudaKernel:
    """Return a kernel of one of the files, built for these constants and this device."""
    return _module(index, file, constants).kernel(name, _KINDS[file][name])


@lru_cache(maxsize=256)
def _module(index: int, file: str, constants: tuple[tuple[str, int], ...]) -> CudaModule:
    """Return the module of a file, built for these constants and this device."""
    with torch.cuda.device(index):
        return CudaModule(file, device_of(index)[0], dict(constants))


def flat_launch(name: str, x: Any, arrays: Iterable[Any]) -> KernelLaunch:
    """Return a launch of a kernel of flat.cu over all of `x`; `arrays` are all arrays that it reads in packs.

    `mse` runs only the blocks that fit the device, which loop; the others have a block for each part.
    """
    count, index = x.numel(), x.device.index
    pack = WIDE[x.dtype] if are_aligned(arrays) and count >= WIDE[x.dtype] else 1
    threads = SUMMING if name == "mse" else FLAT
    constants = _constants(x.dtype, PACK=pack, STEPS=1, TAIL=count % pack > 0)
    kernel = kernel_of(index, "flat.cu", name, constants)
    blocks = max(1, -(-(count // pack) // threads))
    if name == "mse":
        blocks = min(blocks, device_of(index)[1] * kernel.resident(threads))
    return KernelLaunch(kernel, blocks, threads)


def column_sums_launch(w: Any) -> KernelLaunch:
    """Return a launch that adds up the blocks' partial sums for weight and bias."""
    constants = _constants(w.dtype, PACK=WIDE[w.dtype], STEPS=1, TAIL=0)
    kernel = kernel_of(w.device.index, "flat.cu", "column_sums", constants)
    return KernelLaunch(kernel, -(-2 * w.numel() // 8), 1024)


def row_layout(name: str, x: Any, arrays: Iterable[Any]) -> tuple[int, int, int] | None:
    """Return pack, lanes and packs per thread if a warp can hold a row in registers; None for wider rows."""
    width = x.shape[-1]
    pack = pack_of(x, arrays)
    packs, lanes = -(-width // pack), 1
    while lanes < WARP and packs > lanes * PER_THREAD:
        lanes *= 2
    each = -(-packs // lanes)
    return (pack, lanes, each) if each * pack <= HELD_BY.get(name, HELD) else None


def rows_launch(name: str, x: Any, arrays: Iterable[Any], walks: bool = False) -> KernelLaunch | None:
    """Return a launch of a kernel of rows.cu over the rows of `x`, None where they are too wide for it.

    A kernel that `walks` over rows gets at most the blocks that run at a time, and fewer where each would have
    less than four rows for all of its warps, since the partial sums of blocks have to be added up.
    """
    shape = row_layout(name, x, arrays)
    if shape is None:
        return None
    pack, lanes, packs = shape
    width, index, threads = x.shape[-1], x.device.index, ROWS_BY.get(name, ROWS)
    constants = _constants(x.dtype, PACK=pack, LANES=lanes, PACKS=packs, WIDTH=width, WARPS=threads // WARP)
    kernel = kernel_of(index, "rows.cu", name, constants)
    blocks = max(1, -(-(x.numel() // width) * lanes // threads))
    if walks:
        processors = device_of(index)[1]
        max_blocks = min(processors * kernel.resident(threads), max(2 * processors, blocks // 4))
        blocks = min(blocks, max_blocks)
    return KernelLaunch(kernel, blocks, threads)


def wide_launch(name: str, x: Any, arrays: Iterable[Any]) -> KernelLaunch:
    """Return a launch of a kernel of wide.cu, whose blocks read a row several times, row after row."""
    width, index = x.shape[-1], x.device.index
    kernel = kernel_of(index, "wide.cu", name, _constants(x.dtype, PACK=pack_of(x, arrays)))
    threads = ROWS if width <= 8192 else 2 * ROWS
    blocks = min(x.numel() // width, device_of(index)[1] * kernel.resident(threads))
    return KernelLaunch(kernel, blocks, threads)


def columns_launch(x: Any, arrays: Iterable[Any]) -> tuple[KernelLaunch, int, int, int]:
    """Return layer_norm_columns' launch, rows of each part, blocks across the columns, and number of parts."""
    arrays = tuple(arrays)
    width, index, pack = x.shape[-1], x.device.index, pack_of(x, arrays)
    kernel = kernel_of(index, "wide.cu", "layer_norm_columns", _constants(x.dtype, PACK=pack))
    count, across = x.numel() // width, -(-width // (COLUMNS * pack))
    each = max(8, -(-count * across // (device_of(index)[1] * kernel.resident(COLUMNS))))
    parts = -(-count // each)
    return KernelLaunch(kernel, across * parts, COLUMNS), each, across, parts


def pack_of(x: Any, arrays: Iterable[Any]) -> int:
    """Return how many elements are loaded together: the most, in 16 bytes, to which all rows are aligned."""
    size = int(x.element_size())
    step = gcd(16, x.shape[-1] * size, *(array.data_ptr() for array in arrays))
    return max(1, step // size)


def are_aligned(arrays: Iterable[Any]) -> bool:
    """Return whether each array begins at a multiple of 16 bytes. torch's own memory does; a slice may not."""
    return all(array.data_ptr() % 16 == 0 for array in arrays)


@lru_cache(maxsize=8)
def scratch_memory(index: int) -> tuple[int, int]:
    """Return the addresses of the blocks' partial sums, and of the count of finished blocks.

    The count is 0 between kernels. All calls on a device share this memory: they must follow one another on one
    stream.
    """
    memory = torch.zeros(
        device_of(index)[1] * MAX_RESIDENT + 1, dtype=torch.float32, device=cuda_device(index)
    )
    _kept.append(memory)
    return memory.data_ptr() + 4, memory.data_ptr()


_kept: list[Any] = []  # scratch memory lives as long as the process


def cuda_device(index: int) -> torch.device:
    """Return the device of that number."""
    return torch.device("cuda", index)


def _constants(dtype: Any, **more: int) -> tuple[tuple[str, int], ...]:
    """Return the constants of a compilation, sorted, with the dtype's."""
    return tuple(sorted({"ELEMENT": ELEMENT[dtype], **{k: int(v) for k, v in more.items()}}.items()))


# ---------------------------------------------------------------- implementations of the operations


def build(problem: Problem) -> Call:
    """Build the call and its kernels.

    Raises Unavailable without a GPU or NVRTC, and for inputs that are not dense.
    """
    if problem.inputs[0].device.type != "cuda":
        raise Unavailable(Fact("needs-nvidia-gpu"))
    return build_calls(problem)


def build_calls(problem: Problem) -> Call:
    """Build the call for inputs on any device: a test runs the kernels on the CPU."""
    check_inputs(problem)
    return _BUILDERS[problem.operation.name, problem.backward](problem)


def _map(name: str) -> Callable[[Problem], Call]:
    """Return a builder of an elementwise kernel: the value of x, or its gradient."""

    def build(problem: Problem) -> Call:
        x, empty = problem.inputs[0], torch.empty_like
        arrays: tuple[Tensor, ...] = (problem.above, x) if problem.backward else (x,)
        kernel, count = flat_launch(name, x, arrays), x.numel()

        def call() -> Tensor:
            y = empty(x)  # torch's memory begins at multiples of 512 bytes
            kernel(*(a.data_ptr() for a in arrays), y.data_ptr(), count)
            return y

        return (lambda: (call(),)) if problem.backward else call

    return build


def _mse(problem: Problem) -> Call:
    """Build the mean squared error."""
    x, target = problem.inputs
    return _mean(x, flat_launch("mse", x, (x, target)), target, x.numel(), 1 / x.numel())


def _mse_backward(problem: Problem) -> Call:
    """Build the gradient of the mean squared error."""
    (x, target), above = problem.inputs, problem.above
    kernel, empty = flat_launch("mse_backward", x, (x, target)), torch.empty_like
    count, share = x.numel(), 1 / x.numel()

    def call() -> tuple[Tensor]:
        dx = empty(x)
        kernel(x.data_ptr(), target.data_ptr(), above.data_ptr(), dx.data_ptr(), count, share)  # type: ignore[union-attr]
        return (dx,)

    return call


def _mean(x: Tensor, kernel: Any, target: Tensor, *numbers: float) -> Call:
    """Return a call that computes a mean over everything: the block that ends last adds up all partial sums."""
    partial, done = scratch_memory(x.device.index)

    def call() -> Tensor:
        out = torch.empty((), dtype=x.dtype, device=x.device)
        kernel(x.data_ptr(), target.data_ptr(), partial, done, out.data_ptr(), *numbers)
        return out

    return call


def _layer_norm(problem: Problem) -> Call:
    """Build layer norm."""
    x, w, b = problem.inputs
    kernel, sizes = _over_rows("layer_norm", x, (x, w, b))
    empty = torch.empty_like

    def call() -> Tensor:
        y = empty(x)
        kernel(x.data_ptr(), w.data_ptr(), b.data_ptr(), y.data_ptr(), 0, 0, *sizes, EPS)
        return y

    return call


def _layer_norm_backward(problem: Problem) -> Call:
    """Build the gradients of layer norm, with the statistics of a forward call."""
    x, w, b = problem.inputs
    above: Tensor = problem.above
    width, arrays = x.shape[-1], (x, w, b, above)
    count = x.numel() // width
    mean, rstd = (torch.empty(count, dtype=torch.float32, device=x.device) for _ in range(2))
    forward, sizes = _over_rows("layer_norm", x, arrays)  # leaves what this one needs
    y = torch.empty_like(x)
    forward(
        x.data_ptr(), w.data_ptr(), b.data_ptr(), y.data_ptr(), mean.data_ptr(), rstd.data_ptr(), *sizes, EPS
    )
    kernel = rows_launch("layer_norm_backward", x, arrays, walks=True)
    if kernel is None:
        return _wide_layer_norm_backward(problem, mean, rstd)
    sums = column_sums_launch(w)

    def call() -> tuple[Tensor, Tensor, Tensor]:
        dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
        partial = torch.empty((kernel.blocks, 2 * width), dtype=torch.float32, device=x.device)
        kernel(above.data_ptr(), x.data_ptr(), w.data_ptr(), mean.data_ptr(), rstd.data_ptr(), dx.data_ptr(),
               partial.data_ptr(), count)  # fmt: skip
        sums(partial.data_ptr(), dw.data_ptr(), db.data_ptr(), width, kernel.blocks)
        return dx, dw, db

    return call


def _wide_layer_norm_backward(problem: Problem, mean: Tensor, rstd: Tensor) -> Call:
    """Build the gradients for rows that no warp holds: one kernel for the rows, another one for the columns."""
    x, w, b = problem.inputs
    above: Tensor = problem.above
    width, arrays = x.shape[-1], (x, w, b, above)
    count = x.numel() // width
    along = wide_launch("layer_norm_backward", x, arrays)
    down, each, across, parts = columns_launch(x, arrays)
    sums = column_sums_launch(w)

    def call() -> tuple[Tensor, Tensor, Tensor]:
        dx, dw, db = torch.empty_like(x), torch.empty_like(w), torch.empty_like(b)
        partial = torch.empty((parts, 2 * width), dtype=torch.float32, device=x.device)
        dy, values, means, rstds = above.data_ptr(), x.data_ptr(), mean.data_ptr(), rstd.data_ptr()
        along(dy, values, w.data_ptr(), means, rstds, dx.data_ptr(), count, width)
        down(dy, values, means, rstds, partial.data_ptr(), count, width, each, across)
        sums(partial.data_ptr(), dw.data_ptr(), db.data_ptr(), width, parts)
        return dx, dw, db

    return call


def _cross_entropy(problem: Problem) -> Call:
    """Build cross entropy."""
    x, labels = problem.inputs
    kernel, sizes = _over_rows("cross_entropy", x, (x,), walks=True)
    return _mean(x, kernel, labels, *sizes, 1 / sizes[0])


def _cross_entropy_backward(problem: Problem) -> Call:
    """Build the gradient of cross entropy."""
    (x, labels), above = problem.inputs, problem.above
    kernel, sizes = _over_rows("cross_entropy_backward", x, (x,))
    part, empty = 1 / sizes[0], torch.empty_like

    def call() -> tuple[Tensor]:
        dx = empty(x)
        kernel(x.data_ptr(), labels.data_ptr(), above.data_ptr(), dx.data_ptr(), *sizes, part)  # type: ignore[union-attr]
        return (dx,)

    return call


def _over_rows(
    name: str, x: Tensor, arrays: tuple[Tensor, ...], walks: bool = False
) -> tuple[Any, tuple[int, ...]]:
    """Return the kernel for rows as wide as x's, and its sizes: rows, and the width unless that is a constant."""

    width = x.shape[-1]
    held = rows_launch(name, x, arrays, walks)
    if held is not None:
        return held, (x.numel() // width,)
    return wide_launch(name, x, arrays), (x.numel() // width, width)


_BUILDERS: dict[tuple[str, bool], Callable[[Problem], Call]] = {
    ("LayerNorm", False): _layer_norm,
    ("LayerNorm", True): _layer_norm_backward,
    ("GELU", False): _map("gelu"),
    ("GELU", True): _map("gelu_backward"),
    ("Swish", False): _map("swish"),
    ("Swish", True): _map("swish_backward"),
    ("MSE", False): _mse,
    ("MSE", True): _mse_backward,
    ("CrossEntropy", False): _cross_entropy,
    ("CrossEntropy", True): _cross_entropy_backward,
}
