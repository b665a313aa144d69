"""Rules on what a program asks of the driver or of a library again and again: memory, small copies, copies on the
device, sums into few places, factorisations, lengths of FFTs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import prod

from profkit.analysis.insights.evidence import (
    RunEvidence,
    idle_share,
    launch_place,
    launching_lines,
    outwards,
    percent_text,
)
from profkit.analysis.insights.gpu_lines import LEAST, MANY, OFTEN, looping_place, place_of_line
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import Gain, GpuTrace, HostCalls, Insight, KernelTime, Place

MUCH = 0.1  # of the time: a kernel with less of it is not what a program does
SMALL, SEVERAL = 1 << 16, 4  # bytes of a copy, and such copies at a line in each step
PROGRAMS, KERNELS = 5, 20  # of JAX, and in each step: fewer are a step that is compiled in pieces
FEW = 1000  # times as many elements are added as there are places for them
_ALLOCATING = re.compile(r"^cu(?:da)?(?:Malloc|MemAlloc)(?:Pitch|Managed|Host)?(?:_v\d)?$|^cudaHostAlloc$")
_FREEING = re.compile(r"^cu(?:da)?(?:Mem)?Free(?:Host)?(?:_v\d)?$")
_ADDING = re.compile(r"^aten::(?:index_add|scatter_add|scatter_reduce|_?index_put(?:_impl)?)_? \[")
_FACTORING = re.compile(
    r"^aten::(?:_?linalg_)?(lu_factor|solve|inv|cholesky|eigh|svd|qr|det|slogdet)(?:_ex)?_? \["
)
_SHAPE = re.compile(r"\[([\d,]+)\]")
_TRANSFORM = re.compile(r"^aten::_fft_(r2c|c2c|c2r) \[(?:\d+,)*(\d+)\]")
_COPYING = re.compile(r"direct_copy_kernel|CatArrayBatchedCopy")
_MODULE = re.compile(r"hlo_module=(jit_\w+)")
_OF_COPIES = (
    (
        re.compile(r"\.at\["),
        "An update outside of jax.jit makes a new array each time: put the loop into jax.lax.scan, or update in a "
        "jitted function with donate_argnums.",
    ),
    (
        re.compile(r"expand|repeat|tile\("),
        "expand() is free until a copy is asked for: let operations broadcast. Attention with fewer key heads takes "
        "them as they are: scaled_dot_product_attention(..., enable_gqa=True).",
    ),
    (
        re.compile(r"\b(?:cat|stack|concatenate|append)\(|aten::cat "),
        "Allocate the whole tensor once and write each part into its slice.",
    ),
)
_KEEP_LAYOUT = (
    "Keep the layout that the next operation reads (no .contiguous(), .clone() or permuted copy in the loop), and "
    "write in place what is written in part."
)


def device_allocations(run: RunEvidence) -> Iterator[Insight]:
    """Memory of the device that is allocated and freed in each step: the second waits for all kernels."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or not trace.span or idle is None or not trace.repeats:
        return
    made = [one for one in trace.api if _ALLOCATING.match(one.name)]
    freed = [one for one in trace.api if _FREEING.match(one.name)]
    share = min(idle, sum(one.seconds for one in (*made, *freed)) / trace.span)
    least = max(MANY, OFTEN * trace.repeats)
    if share < LEAST or min(_calls(made), _calls(freed)) < least:
        return
    emptied = _sampled_line(run, re.compile(r"empty_cache\("))
    # Of a program of machine code those lines that neither copy nor wait allocate.
    calling = [one for one in trace.lines if not trace.lines_of and not one.transfers and not one.waits]
    native = place_of_line(max(calling, key=lambda one: one.seconds)) if calling else Place()
    yield Insight(
        "device-allocations",
        "Keep the device's memory: it is allocated and freed again in each step",
        f"{_calls(made):,} allocations and {_calls(freed):,} releases in {trace.repeats:,} steps take "
        f"{percent_text(100 * share)} of the time; a release waits until all kernels are done",
        "Take torch.cuda.empty_cache() out of the loop: what is freed is kept for the next step."
        if emptied.file is not None
        else "Allocate once before the loop, or from a pool (cudaMallocAsync, cudaFreeAsync). PyTorch keeps what it "
        "frees, unless the sizes change: pad them, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
        emptied if emptied.file is not None else native if native.file is not None else looping_place(run),
        Gain(share, run.time_name, "the time that the host spends in these calls"),
    )


def _calls(calls: Sequence[HostCalls]) -> int:
    return sum(one.calls for one in calls)


def _sampled_line(run: RunEvidence, pattern: re.Pattern[str]) -> Place:
    """The line of the program with most samples whose text matches."""
    spots = (
        spot for spot in run.document.hot_spots if spot.code is not None and pattern.search(spot.code.text)
    )
    return next((spot.where for spot in spots), Place())


def small_copies(run: RunEvidence) -> Iterator[Insight]:
    """A line that sends many small pieces to the device in each step: each is a call that waits."""
    trace, idle = run.trace, idle_share(run)
    if trace is None or idle is None or not trace.line_span or not trace.lines_of or not trace.repeats:
        return
    sent_in_all = sum(one.count for one in trace.transfers if one.kind == "host to device")
    recorded = sum(
        one.count for line in trace.lines for one in line.transfers if one.kind == "host to device"
    )
    for line in sorted(trace.lines, key=lambda one: -one.seconds):
        sent = [one for one in line.transfers if one.kind == "host to device"]
        count, size = sum(one.count for one in sent), sum(one.bytes for one in sent)
        share = min(idle, line.seconds / trace.line_span)
        each = sent_in_all * count / recorded / trace.repeats if recorded else 0.0
        if count < MANY or each < SEVERAL or size > SMALL * count or share < LEAST:
            continue
        yield Insight(
            "small-copies",
            f"This line copies to the GPU {each:,.0f} times in each step",
            f"{format_quantity(size / count, 'B')} each: the calls take {percent_text(100 * share)} of the time, and "
            f"the GPU is idle for {percent_text(100 * idle)} of it",
            "Make one array of all of them on the host (np.stack, torch.from_numpy) and copy it once, or keep the data "
            "on the device and index it there.",
            place_of_line(line),
            Gain(share, run.time_name, "as if these calls were not made"),
        )
        return


def operations_one_by_one(run: RunEvidence) -> Iterator[Insight]:
    """A step of JAX that is not compiled: each operation is a program of its own, and is launched by itself."""
    trace, idle = run.trace, idle_share(run)
    if run.framework != "jax" or trace is None or idle is None or not trace.repeats or idle < LEAST:
        return
    programs = {found[1] for one in trace.kernels for name in one.ranges if (found := _MODULE.search(name))}
    each = trace.launches / trace.repeats
    if len(programs) < PROGRAMS or each < KERNELS:
        return
    yield Insight(
        "not-compiled",
        "Put jax.jit around the whole step: its operations run one by one",
        f"{each:.0f} kernels in each step, of {len(programs)} programs that each do one operation "
        f"({', '.join(sorted(programs)[:3])}, ...); the GPU is idle for {percent_text(100 * idle)} of the time",
        "@jax.jit on the function that makes one step, with donate_argnums for what it replaces; numbers that change "
        "stay arguments. Then jax.lax.scan, where several steps need no Python between them.",
        _repeated_call(run),
        Gain(idle, run.time_name, "the time in which the GPU waits for the host"),
    )


def _repeated_call(run: RunEvidence) -> Place:
    """From the place with most time outwards: the last line in a loop, which calls all the rest."""
    spots = (one for one in run.document.hot_spots if one.kind in ("python", "library", "lock", "waiting"))
    first = next((one.where for one in spots if one.code is not None), Place())
    found = first
    for place, here in outwards(run, first):
        if any(one.line == place.line and one.code is not None and one.code.loop is not None for one in here):
            found = place
    return found


def is_copy(kernel: KernelTime) -> bool:
    """Whether a kernel of ATen only copies, without changing the type."""
    name = kernel.kernel.name
    return _COPYING.search(name) is not None and "WithCast" not in name


def device_copies(run: RunEvidence) -> Iterator[Insight]:
    """A line that copies whole arrays within the device."""
    trace = run.trace
    if trace is None or not trace.span or not trace.repeats:
        return
    total = sum(one.total for one in trace.kernels)
    by_kernels = [one for one in trace.kernels if is_copy(one)]
    by_driver = [one for one in trace.transfers if one.kind == "device to device"]
    share = sum(one.total for one in by_kernels) / total * run.gpu_share if total > 0 else 0.0
    share += min(trace.copying or 0.0, sum(one.seconds for one in by_driver)) / trace.span
    count = sum(one.launches for one in by_kernels) + sum(one.count for one in by_driver)
    if share < MUCH or count < OFTEN * trace.repeats:
        return
    moved = sum(one.bytes for one in by_driver)
    largest = max(by_kernels, key=lambda one: one.total, default=None)
    of_what = f", most of {largest.operation}" if largest is not None and largest.operation else ""
    size = f", {format_quantity(moved, 'B')}" if moved and largest is None else ""
    place, by_line = looping_place(run), _copying_lines(trace, by_kernels)
    of_line = ""
    if trace.lines:
        place = max(by_line, key=lambda one: by_line[one], default=Place())
    if place in by_line:
        of_line = f"; this line makes {percent_text(100 * by_line[place] / sum(by_line.values()))} of them"
    text = f"{_text_at(run, place)} {largest.operation if largest is not None else ''}"
    yield Insight(
        "device-copies",
        "Whole arrays are copied on the GPU",
        f"{plural(count, 'copy', 'copies')}{size}{of_what} take {percent_text(100 * share)} of the time: each reads "
        f"and writes all of its data{of_line}",
        next((change for known, change in _OF_COPIES if known.search(text)), _KEEP_LAYOUT),
        place,
        Gain(share, run.time_name, "as if nothing were copied"),
    )


def _copying_lines(trace: GpuTrace, kernels: Sequence[KernelTime]) -> dict[Place, float]:
    seconds = launching_lines(kernels)
    for line in trace.lines:
        copied = sum(one.seconds for one in line.transfers if one.kind == "device to device")
        if copied:
            seconds[place_of_line(line)] = seconds.get(place_of_line(line), 0.0) + copied
    return seconds


def _text_at(run: RunEvidence, place: Place) -> str:
    """The source of a line, where it was sampled."""
    lines = (line for sampled in run.document.sampled for line in sampled.lines if line.code is not None)
    texts = (one.code.text for one in lines if one.code and (one.file, one.line) == (place.file, place.line))
    return next(texts, "")


def _by_operation(run: RunEvidence, is_one: Callable[[KernelTime], bool]) -> tuple[KernelTime, float] | None:
    """The largest kernel that is one, and the share of the time of all of them; None where that is not much."""
    trace = run.trace
    own = [one for one in trace.kernels if is_one(one)] if trace is not None else []
    total = sum(one.total for one in trace.kernels) if trace is not None else 0.0
    share = sum(one.total for one in own) / total * run.gpu_share if total > 0 else 0.0
    return (max(own, key=lambda one: one.total), share) if own and share >= MUCH else None


def atomic_contention(run: RunEvidence) -> Iterator[Insight]:
    """Sums of many rows into few: the additions to one address wait for each other."""
    found = _by_operation(run, _adds_into_few)
    if found is None:
        return
    largest, share = found
    shapes = _shapes(largest.operation)
    yield Insight(
        "atomic-contention",
        "Sum without atomics: many rows are added into few",
        f"{(largest.operation or '').split(' ')[0]} adds {max(shapes):,} numbers into {shapes[0]:,} places, in "
        f"{percent_text(100 * share)} of the time: additions to the same address wait for each other",
        "Sum by a matrix product (one_hot(labels).T @ rows) or with a mask for each place; or sort by the index first "
        "and use torch.segment_reduce; or sum into several copies and add these up.",
        launch_place(largest),
        Gain(share, run.time_name, "the time of these kernels"),
    )


def _shapes(operation: str | None) -> list[int]:
    return [prod(map(int, found.split(","))) for found in _SHAPE.findall(operation or "")]


def _adds_into_few(kernel: KernelTime) -> bool:
    if not _ADDING.match(kernel.operation or ""):
        return False
    shapes = _shapes(kernel.operation)
    return 0 < FEW * shapes[0] <= max(shapes)


def repeated_factorisation(run: RunEvidence) -> Iterator[Insight]:
    """A matrix that is factorised in each step."""
    found = _by_operation(run, lambda one: _FACTORING.match(one.operation or "") is not None)
    if found is None or run.trace is None or not run.trace.repeats:
        return
    largest, share = found
    word = _FACTORING.match(largest.operation or "")
    yield Insight(
        "repeated-factorisation",
        f"A matrix is factorised in each step ({word[1] if word is not None else ''})",
        f"{largest.operation} and the like take {percent_text(100 * share)} of the time",
        "Where the matrix stays the same, factorise it once before the loop (torch.linalg.lu_factor, or cholesky where "
        "it is symmetric and positive definite) and call lu_solve or cholesky_solve in it. Where it changes little, an "
        "iterative solver that begins with the last solution needs few products.",
        launch_place(largest),
        Gain(share, run.time_name, "as if it were factorised once"),
    )


def fft_lengths(run: RunEvidence) -> Iterator[Insight]:
    """FFTs of a length with a large prime factor, which cuFFT computes as convolutions of a greater length."""
    found = _by_operation(run, lambda one: "bluestein" in one.kernel.name)
    if found is None or run.trace is None:
        return
    largest, share = found
    inputs = [size for one in run.trace.kernels if (size := _TRANSFORM.match(one.operation or ""))]
    lengths = [
        2 * int(one[2]) - 1 if one[1] == "c2r" else int(one[2]) for one in inputs
    ]  # of c2r that, or one less
    bad = next((length for length in lengths if next_fast_length(length) != length), None)
    padded = f"; the next one is {next_fast_length(bad):,}" if bad is not None else ""
    yield Insight(
        "fft-length",
        "Pad the length of the FFT: it has a large prime factor",
        f"kernels of Bluestein's algorithm take {percent_text(100 * share)} of the time: cuFFT uses it where the "
        "length has a prime factor above 127, and computes several longer transforms instead",
        f"Pad to a product of 2, 3, 5 and 7 (scipy.fft.next_fast_len){padded}, and cut the result.",
        launch_place(largest),
        Gain(share, run.time_name, "as if the padded transform cost nothing"),
    )


def next_fast_length(length: int) -> int:
    """The smallest product of 2, 3, 5 and 7 that is not below `length`."""
    candidate = length
    while True:
        rest = candidate
        for prime in (2, 3, 5, 7):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return candidate
        candidate += 1
