"""Finds changes that may make a program faster and that can be tried, from the document of its run.

Each hypothesis states what makes it likely, and the settings to try. A new hypothesis is a function and a row of
HYPOTHESES. Below the threshold shares, the gain could not be distinguished from noise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from profkit.analysis.account.step_places import is_loader
from profkit.analysis.evidence import evidence_of
from profkit.analysis.judge.rules.gpu.host import launches_cudnn_attention
from profkit.analysis.judge.rules.spot_values import calls_collector
from profkit.analysis.kernel_names.owner import is_cudnn_attention, kernel_owner
from profkit.analysis.summaries.host import (
    LINEAR_ALGEBRA,
    share_of_functions,
    share_of_libraries,
    share_of_waiting_threads,
)
from profkit.core.types import NOWHERE, CodeSpot, Fact, Place, RunDocument, TrialName

LIKELY = 0.05  # of the time
ALLOCATING = 0.1  # of the time
PAGE = 4096  # bytes: larger pages make fewer faults, which are counted as if they were small
AGAIN = (
    4.0  # times the peak of its memory: a program that got so much from the kernel had given most of it back
)
WRITING = 0.1  # of the time, in lines that print
MIN_WRITES, MAX_WRITE_BYTES = 5_000, 512.0  # calls, and bytes of each, that count as many short writes
MIN_ALGEBRA_SHARE = 0.3  # of the processor time in its libraries
# Of all cores, that other programs used during the normal runs: beside so many, threads that wait for each other lose
# whenever one of them has no core, and fewer are faster for that reason alone.
CROWDED = 0.25
ONE_THREAD = 1.3  # working threads on average: below, only one works most of the time
PLANNING = 2e-4  # idle seconds for each kernel that a line launches: a launch itself takes some 10 us
FEW_ARGUMENTS = 0.5  # different arguments, as a share of the calls that were sampled
MIN_LOOKS = 8

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# glibc: blocks up to 1 GiB come from the heap and stay in it, and it is shared by as many threads as there are cores.
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(4 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
_PRINTS = re.compile(r"\bprint\(|\.write\(|\bflush\b")
_ALLOCATION = re.compile(
    r"^_*(int_)?(malloc|free|realloc|calloc|cfree)(_consolidate)?$|^(malloc|free|unlink)_chunk|^sysmalloc|^systrim|"
    r"^_*munmap|^_*mmap|^madvise|page_fault|clear_page|^(do_)?anonymous_page|operator (new|delete)|"
    r"zap_pte_range|free_unref|alloc_pages"
)


@dataclass(frozen=True)
class Experiment:
    """One setting to try: variables of the environment, and changes inside a Python program."""

    name: TrialName
    because: Fact
    share: float  # of the time: the most that it can save
    environment: Mapping[str, str] = field(default_factory=dict)
    intervention: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    where: Place = NOWHERE

    @property
    def settings(self) -> Mapping[str, str]:
        """Return what was set, to be shown and kept."""
        inside = {name: " ".join(options.values()) for name, options in self.intervention.items()}
        return {**self.environment, **inside}


def experiments(document: RunDocument) -> list[Experiment]:
    """Return the experiments that the document makes likely, the largest possible gain first."""
    likely = [experiment for find in HYPOTHESES for experiment in find(document)]
    return sorted(likely, key=lambda experiment: -experiment.share)


def _collector(document: RunDocument) -> Iterator[Experiment]:
    sampled = next((sampled_time for sampled_time in document.sampled if not sampled_time.native), None)
    if sampled is None or sampled.wall <= 0:
        return
    forced = sum(line.collecting for line in sampled.lines if calls_collector(line))
    share = (sampled.collecting - forced) / sampled.wall
    if share >= LIKELY:
        because = Fact.of("trial-collector", share=share)
        yield Experiment("collector", because, share, intervention={"collector": {}})


def _threads(document: RunDocument) -> Iterator[Experiment]:
    cores = document.machine.cores if document.machine is not None else os.cpu_count() or 1
    if cores < 2:
        return
    spinning = share_of_waiting_threads(document)
    if spinning >= LIKELY:
        if _cores_of_others(document) >= CROWDED * cores:
            return
        for count in sorted({1, cores // 2} - {0, cores}):
            because = Fact.of("trial-threads-wait", share=spinning, count=count)
            yield Experiment("threads", because, spinning, dict.fromkeys(THREAD_VARIABLES, str(count)))
        return
    split = document.time_split
    alone = split is not None and split.threads is not None and split.threads < ONE_THREAD
    limited = any(os.environ.get(name) == "1" for name in THREAD_VARIABLES)
    share = share_of_libraries(document, LINEAR_ALGEBRA)
    if alone and limited and share >= MIN_ALGEBRA_SHARE:
        because = Fact.of("trial-one-thread", share=share)
        yield Experiment("threads", because, share / 2, dict.fromkeys(THREAD_VARIABLES, str(cores)))


def _cores_of_others(document: RunDocument) -> float:
    """Return how many cores other programs used during the normal runs, as far as it is known."""
    seconds = sum(disturbance.seconds for disturbance in document.disturbances)
    others = sum(disturbance.others or 0.0 for disturbance in document.disturbances)
    return others / seconds if seconds > 0 else 0.0


def _allocator(document: RunDocument) -> Iterator[Experiment]:
    """Yield the allocator's settings where allocation and page faults take time, by samples or by the plain run.

    What a sampler allocates at the top of the heap can keep glibc from giving memory back: 1.9 s of arrays freed
    together took 1.0 s while they were sampled, and had next to no page faults there.
    """
    if document.machine is None or document.machine.system != "Linux":
        return
    share = share_of_functions(document, _ALLOCATION)
    because = Fact.of("trial-allocator", share=share)
    split, peak = document.time_split, _peak_memory(document)
    if split is not None and split.cpu and split.faults and split.kernel is not None and peak:
        times, of_kernel = split.faults * PAGE / peak, split.kernel / split.cpu
        if times >= AGAIN and of_kernel > share:
            share, because = of_kernel, Fact.of("trial-page-faults", share=of_kernel, times=times)
    if share >= ALLOCATING:
        yield Experiment("allocator", because, share, ALLOCATOR)


def _peak_memory(document: RunDocument) -> float | None:
    """Return the largest resident memory in bytes of the plain runs."""
    peaks = (reading.value for reading in document.readings if reading.metric == "memory.rss_peak")
    return next((peak for peak in peaks if peak is not None), None)


def _memoise(document: RunDocument) -> Iterator[Experiment]:
    """Yield a function of the program that is called with few different arguments, and takes time itself."""
    for spot in document.hot_spots:
        few = spot.arguments is not None and spot.looks >= MIN_LOOKS
        if (
            not few
            or spot.share < LIKELY
            or spot.kind not in ("python", "library")
            or spot.where.file is None
            or not (spot.arguments or 0) <= FEW_ARGUMENTS * spot.looks
        ):
            continue
        name = (spot.where.function or "").rpartition(".")[2]
        if not name.isidentifier():
            continue
        because = Fact.of("trial-memoise", looks=spot.looks, arguments=spot.arguments or 0, name=name)
        function = {"file": spot.where.file, "function": name, "line": str(spot.where.line or 0)}
        again = 1 - (spot.arguments or 0) / spot.looks  # share of the calls whose arguments came before
        yield Experiment("memoise", because, spot.share * again, {}, {"memoise": function}, spot.where)
        return  # one place: with two the effects could not be separated


def _output(document: RunDocument) -> Iterator[Experiment]:
    """Yield an experiment where printing takes much of the time, in many small writes."""
    split = document.time_split
    printing = [
        spot
        for spot in document.hot_spots
        if spot.code is not None and _PRINTS.search(spot.code.text) is not None
    ]
    share = sum(spot.share for spot in printing)
    if split is None or not split.io_calls or split.written is None or share < WRITING:
        return
    bytes_per_write = split.written / split.io_calls
    if split.io_calls >= MIN_WRITES and bytes_per_write <= MAX_WRITE_BYTES:
        because = Fact.of("trial-output", count=split.io_calls, each=bytes_per_write)
        yield Experiment("output", because, share, intervention={"output": {}}, where=printing[0].where)


# ------------------------------------------------------------ on a device

_CONVOLUTION = re.compile(r"(^|::)_?(cudnn_)?convolution")
_PRODUCT = re.compile(
    r"^(aten::)?(mm|addmm|bmm|baddbmm|matmul|linear|einsum|convolution\w*|cudnn_convolution\w*)\b"
)


# The limits of a product that fills the FP32 units: the units, or the schedulers that feed them.
_WITHOUT_TENSOR_CORES = ("fp32", "issue", "compute")
_WITH_WORKERS = "_MultiProcessing"  # in the names of what reads from a loader's workers
_ALLOCATES = ("cudaMalloc", "cudaFree", "cuMemAlloc_v2", "cuMemFree_v2")


def _tf32(document: RunDocument) -> Iterator[Experiment]:
    share = _kernel_share(document, _PRODUCT, limits=_WITHOUT_TENSOR_CORES)
    if share >= LIKELY:
        yield Experiment("tf32", Fact.of("trial-tf32", share=share), share, {"NVIDIA_TF32_OVERRIDE": "1"})


def _convolutions(document: RunDocument) -> Iterator[Experiment]:
    share = _kernel_share(document, _CONVOLUTION)
    if share >= 2 * LIKELY:
        because = Fact.of("trial-convolutions", share=share)
        yield Experiment("convolutions", because, share / 2, intervention={"convolutions": {}})


def _attention(document: RunDocument) -> Iterator[Experiment]:
    """Yield attention without cuDNN where the device is idle at a line that launches cuDNN's kernels of it.

    A line that only launches takes microseconds for each kernel: it would gain nothing.
    """
    account, run = document.account, evidence_of(document)
    if account is None or account.seconds <= 0 or run.trace is None:
        return
    if not any(is_cudnn_attention(time.kernel.name) for time in run.trace.kernels):
        return
    slow = [
        row
        for row in account.rows
        if row.kind == "idle" and row.where.file and row.launches and row.seconds >= PLANNING * row.launches
    ]
    attending = [row for row in slow if launches_cudnn_attention(run, row.where)]
    share = sum(row.seconds for row in attending) / account.seconds
    if share >= LIKELY:
        because = Fact.of("trial-attention", share=share)
        where = attending[0].where
        yield Experiment("attention", because, share, intervention={"attention": {}}, where=where)


def _loader(document: RunDocument) -> Iterator[Experiment]:
    """Yield workers for a loader of torch that has none; for a loader with workers, that they persist."""
    waits = [spot for spot in document.hot_spots if _is_in_loader(spot)]
    share = sum(spot.share for spot in waits)
    if share < LIKELY:
        return
    beside = any(_WITH_WORKERS in frame.function for spot in waits for frame in spot.below)
    name: TrialName = "workers" if beside else "loader"
    because = Fact.of(f"trial-{name}", share=share)
    yield Experiment(name, because, share, intervention={name: {}}, where=waits[0].where)


def _is_in_loader(spot: CodeSpot) -> bool:
    """Return whether a loader of torch works at a place: its functions were seen below it, or the line names one."""
    if any(is_loader(frame.file) for frame in spot.below):
        return True
    loaders = [name for name, held in spot.variables.items() if held.type.endswith("DataLoader")]
    return spot.code is not None and any(
        re.search(rf"\b{re.escape(name)}\b", spot.code.text) for name in loaders
    )


def _device_memory(document: RunDocument) -> Iterator[Experiment]:
    """Yield expandable segments where torch's allocator takes time, and the program does not empty its cache."""
    trace = document.trace
    if trace is None or not trace.span:
        return
    by_torch = any(kernel_owner(time.kernel.name) == "aten" for time in trace.kernels)
    emptied = any(spot.code is not None and "empty_cache(" in spot.code.text for spot in document.hot_spots)
    if not by_torch or emptied:
        return
    share = sum(call.seconds for call in trace.api if call.name in _ALLOCATES) / trace.span
    if share >= LIKELY:
        setting = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        yield Experiment("device-memory", Fact.of("trial-device-memory", share=share), share, setting)


def _kernel_share(
    document: RunDocument, names: re.Pattern[str], limits: tuple[str, ...] | None = None
) -> float:
    """Return the share of a step in kernels of these operations, with one of these limits."""
    account = document.account
    if account is None or account.seconds <= 0:
        return 0.0
    rows = (
        row
        for row in account.rows
        if row.kind == "kernel" and names.search(row.what) and (limits is None or row.limit in limits)
    )
    return sum(row.seconds for row in rows) / account.seconds


HYPOTHESES: tuple[Callable[[RunDocument], Iterator[Experiment]], ...] = (
    _collector,
    _threads,
    _allocator,
    _memoise,
    _output,
    _tf32,
    _convolutions,
    _attention,
    _loader,
    _device_memory,
)
