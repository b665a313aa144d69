"""Rules on what a program asks of the driver or of a library again and again: memory, small copies, copies on the
device, sums into few places, factorisations, lengths of FFTs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from math import prod

from profkit.analysis.insights.evidence import (
    RunEvidence,
    idle_share,
    launch_place,
    launching_lines,
    main_line,
    outwards,
    part_text,
    percent_text,
    text_at,
)
from profkit.analysis.insights.gpu_lines import LEAST, MANY, OFTEN, looping_place, place_of_line, product_dims
from profkit.analysis.timeline.products import operand_type
from profkit.core.formatting import format_quantity, plural
from profkit.core.types import ApiCall, Gain, GpuTrace, Insight, KernelTime, Place

MUCH = 0.1  # of the time: a kernel with less of it is not what a program does
SMALL, SEVERAL = 1 << 16, 4  # bytes of a copy, and such copies at a line in each step
PROGRAMS, KERNELS = 5, 20  # of JAX, and in each step: fewer are a step that is compiled in pieces
CLASSES = 64  # fewer columns of a one-hot matrix are no table
SIZES = {"TF32": 4, "FP8": 1}  # bytes of a number, where it has not 16 bits
TIMES_FEWER, MOST_PRODUCTS = 3, 64  # multiplications in the other order; products that are looked at
MORE_ROWS, MOSTLY = 10, 0.3  # times those of a step; of the time
FEW = 1000  # times as many elements are added as there are places for them
_ALLOCATING = re.compile(r"^cu(?:da)?(?:Malloc|MemAlloc)(?:Pitch|Managed|Host)?(?:_v\d)?$|^cudaHostAlloc$")
_FREEING = re.compile(r"^cu(?:da)?(?:Mem)?Free(?:Host)?(?:_v\d)?$")
_ADDING = re.compile(r"^aten::(?:index_add|scatter_add|scatter_reduce|_?index_put(?:_impl)?)_? \[")
_FACTORING = re.compile(
    r"^aten::(?:_?linalg_)?(lu_factor|solve|inv|cholesky|eigh|svd|qr|det|slogdet)(?:_ex)?_? \["
)
_SHAPE = re.compile(r"\[([\d,]+)\]")
_TRANSFORM = re.compile(r"^aten::_fft_(r2c|c2c|c2r) \[(?:\d+,)*(\d+)\]")
_ONE_HOT = re.compile(r"^aten::scatter_ \[((?:\d+,)*)(\d+)\], \[(?:\1)1\]")
_ROWS = re.compile(r"(aten::\w+ (?:\[\d+\] \+ )?\[)(\d+)(,.*)")
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
    codes = ((one.where, one.code.text) for one in run.document.hot_spots if one.code is not None)
    emptied = next((where for where, text in codes if "empty_cache(" in text), Place())
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


def _calls(calls: Sequence[ApiCall]) -> int:
    return sum(one.calls for one in calls)


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
    by_kernels = [one for one in trace.kernels if is_copy(one)]
    by_driver = [one for one in trace.transfers if one.kind == "device to device"]
    share = run.kernel_share(by_kernels)
    share += min(trace.copying or 0.0, sum(one.seconds for one in by_driver)) / trace.span
    count = sum(one.launches for one in by_kernels) + sum(one.count for one in by_driver)
    if share < MUCH or count < OFTEN * trace.repeats:
        return
    moved = sum(one.bytes for one in by_driver)
    largest = max(by_kernels, key=lambda one: one.total, default=None)
    of_what = f", most of {largest.operation}" if largest is not None and largest.operation else ""
    size = f", {format_quantity(moved, 'B')}" if moved and largest is None else ""
    place, by_line = looping_place(run), _copying_lines(trace, by_kernels)
    if trace.lines:
        place = max(by_line, key=by_line.__getitem__, default=Place())
    of_line = f"; this line makes {part_text(by_line, place)} of them" if place in by_line else ""
    text = f"{text_at(run, place)} {largest.operation if largest is not None else ''}"
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


def _by_operation(
    run: RunEvidence, is_one: Callable[[KernelTime], bool]
) -> Iterator[tuple[KernelTime, float, Place]]:
    """Where they take much of the time: the largest kernel that is one, the share of all of them, and their line."""
    own = [one for one in run.times if is_one(one)]
    share = run.kernel_share(own)
    if own and share >= MUCH:
        yield own[0], share, main_line(own)


def atomic_contention(run: RunEvidence) -> Iterator[Insight]:
    """Sums of many rows into few: the additions to one address wait for each other."""
    for largest, share, place in _by_operation(run, _adds_into_few):
        shapes = _shapes(largest.operation)
        yield Insight(
            "atomic-contention",
            "Sum without atomics: many rows are added into few",
            f"{(largest.operation or '').split(' ')[0]} adds {max(shapes):,} numbers into {shapes[0]:,} places, in "
            f"{percent_text(100 * share)} of the time: additions to the same address wait for each other",
            "Sum by a matrix product (one_hot(labels).T @ rows) or with a mask for each place; or sort by the index "
            "first and use torch.segment_reduce; or sum into several copies and add these up.",
            place,
            Gain(share, run.time_name, "the time of these kernels"),
        )


def _shapes(operation: str | None) -> list[int]:
    return [prod(map(int, found.split(","))) for found in _SHAPE.findall(operation or "")]


def _adds_into_few(kernel: KernelTime) -> bool:
    if not _ADDING.match(kernel.operation or ""):
        return False
    shapes = _shapes(kernel.operation)
    return 0 < FEW * shapes[0] <= max(shapes)


def one_hot_products(run: RunEvidence) -> Iterator[Insight]:
    """Rows of a matrix that are picked by its product with a one-hot matrix."""
    every = [(one, product_dims(one)) for one in run.times if one.backward_of is None]
    taken = {(prod(dims[:3]), dims[2]): one for one, dims in every if dims is not None}
    for made in filter(None, (_ONE_HOT.match(one.operation or "") for one in run.times)):
        size, classes = prod(map(int, (made[1] + made[2]).split(","))), int(made[2])
        for _, share, place in _by_operation(run, functools.partial(_works_on, size)):
            if (size, classes) not in taken or classes < CLASSES:
                break
            yield Insight(
                "one-hot-product",
                "Pick rows by their index: torch.nn.functional.embedding(index, weight)",
                f"{taken[size, classes].operation} multiplies a one-hot matrix of {size // classes:,} x {classes:,} "
                f"({format_quantity(4 * size, 'B')} in FP32), of which each row has one number that is not 0: to make "
                f"and to multiply it takes {percent_text(100 * share)} of the time",
                "embedding(index, weight) reads these rows alone, and its backward pass adds to them alone: "
                "torch.nn.Embedding in place of one_hot and Linear (its weight is that of Linear, transposed).",
                place,
                Gain(share, run.time_name, "all that is done to the one-hot matrix"),
            )
            return


def _works_on(size: int, kernel: KernelTime) -> bool:
    return size in _shapes(f"{kernel.operation} {kernel.backward_of}")


def product_order(run: RunEvidence) -> Iterator[Insight]:
    """Two products, one of the other's result, that need far fewer multiplications the other way round."""
    kernels = [one for one in run.times if one.backward_of is None]
    every = [(one, product_dims(one)) for one in kernels if one.file and " + " not in (one.operation or "")]
    products = [(one, dims) for one, dims in every if dims is not None][:MOST_PRODUCTS]
    beside = [one for one in kernels if product_dims(one) is None and not is_copy(one)]
    others = {size for one in beside for size in _shapes(one.operation)}  # that something else works on
    for (first, (batch, m, k, n)), (second, (of, rows, inner, columns)) in permutations(products, 2):
        if (batch, first.file, first.line) != (of, second.file, second.line) or batch * m * n in others:
            continue
        made = f"{first.operation} makes a matrix of {m:,} x {n:,}, and {second.operation} takes it"
        if (rows, inner) == (m, n):
            p, words = columns, "the right: a @ (b @ c)"
        elif (inner, columns) == (m, n):  # the same, transposed
            m, n, p, words = n, m, rows, "the left: (a @ b) @ c"
        else:
            continue
        now, then = m * n * (k + p), k * p * (m + n)
        both = ((first.line, first.operation), (first.line, second.operation))
        own = [one for one, _ in products if (one.line, one.operation) in both]
        seconds, numbers = sum(one.total for one in own), m * k + k * n + n * p + 2 * k * p + m * p
        size = first.launches * batch * numbers * SIZES.get(operand_type(first.kernel.name), 2)
        bandwidth = run.document.gpus[0].bandwidth if run.document.gpus else None
        left = max(then / now * seconds, size / bandwidth if bandwidth else 0.0)
        share = run.kernel_share(own) * (1 - left / seconds)
        if TIMES_FEWER * then > now or share < MUCH:
            continue
        yield Insight(
            "product-order",
            f"Multiply from {words}",
            f"{made}: {format_quantity(seconds / first.launches, 's')} each time; the other way round it is "
            f"{now // then:,} times less to multiply, {format_quantity(left / first.launches, 's')} at least",
            "a @ b @ c multiplies from the left: set brackets, or let torch.linalg.multi_dot choose the order.",
            launch_place(first),
            Gain(share, run.time_name, "what the other order leaves, by its multiplications and bytes"),
        )
        return


def evaluated_each_step(run: RunEvidence) -> Iterator[Insight]:
    """A forward pass in each step over many more rows than the step trains with."""
    trace = run.trace
    if trace is None or not trace.repeats:
        return
    trained = dict(sorted(_rows(one.backward_of) for one in trace.kernels))  # of each operation the most
    own = [
        one
        for one in trace.kernels
        if one.backward_of is None
        and one.launches >= OFTEN * trace.repeats
        and 0 < MORE_ROWS * trained.get(_rows(one.operation)[0], 0) <= _rows(one.operation)[1]
    ]
    share = run.kernel_share(own)
    if share < MOSTLY or not any(product_dims(one) for one in own):
        return
    operation, rows = _rows(own[0].operation)
    yield Insight(
        "evaluated-each-step",
        f"{rows:,} rows are evaluated in each step, which trains with {trained[operation]:,}",
        f"forward passes without a backward one take {percent_text(100 * share)} of the time, most of it "
        f"{own[0].operation}: {own[0].launches:,} times in {trace.repeats:,} steps",
        "Evaluate every few hundred steps, or with a fixed sample of these rows; read the result there alone.",
        main_line(own),
        Gain(share, run.time_name, "as if nothing were evaluated"),
    )


def _rows(operation: str | None) -> tuple[str, int]:
    """An operation without the rows of what it works on, and these."""
    found = _ROWS.match(operation or "")
    return (found[1] + found[3], int(found[2])) if found is not None else ("", 0)


def repeated_factorisation(run: RunEvidence) -> Iterator[Insight]:
    """A matrix that is factorised in each step."""
    for largest, share, place in _by_operation(run, lambda one: bool(_FACTORING.match(one.operation or ""))):
        if run.trace is None or not run.trace.repeats:
            return
        word = _FACTORING.match(largest.operation or "")
        yield Insight(
            "repeated-factorisation",
            f"A matrix is factorised in each step ({word[1] if word is not None else ''})",
            f"{largest.operation} and the like take {percent_text(100 * share)} of the time",
            "Where the matrix stays the same, factorise it once before the loop (torch.linalg.lu_factor, or cholesky "
            "where it is symmetric and positive definite) and call lu_solve or cholesky_solve in it. Where it changes "
            "little, an iterative solver that begins with the last solution needs few products.",
            place,
            Gain(share, run.time_name, "as if it were factorised once"),
        )


def fft_lengths(run: RunEvidence) -> Iterator[Insight]:
    """FFTs of a length with a large prime factor, which cuFFT computes as convolutions of a greater length."""
    for _, share, place in _by_operation(run, lambda one: "bluestein" in one.kernel.name):
        inputs = [size for one in run.times if (size := _TRANSFORM.match(one.operation or ""))]
        # of c2r that, or one less
        lengths = [2 * int(one[2]) - 1 if one[1] == "c2r" else int(one[2]) for one in inputs]
        bad = next((length for length in lengths if next_fast_length(length) != length), None)
        padded = f"; the next one is {next_fast_length(bad):,}" if bad is not None else ""
        yield Insight(
            "fft-length",
            "Pad the length of the FFT: it has a large prime factor",
            f"kernels of Bluestein's algorithm take {percent_text(100 * share)} of the time: cuFFT uses it where the "
            "length has a prime factor above 127, and computes several longer transforms instead",
            f"Pad to a product of 2, 3, 5 and 7 (scipy.fft.next_fast_len){padded}, and cut the result.",
            place,
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
