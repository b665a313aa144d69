"""Rules on what a model does more than it needs: a sequence computed again for each token, a gradient of rows that no
batch used, layouts that are changed around each convolution, attention with a mask where a flag would do."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from itertools import groupby, pairwise, permutations
from math import prod

from profkit.analysis.evidence import RunEvidence, idle_share, looping_call, main_line
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.calls import MUCH, by_operation, is_copy, shapes
from profkit.analysis.judge.rules.gpu.host import preparing_line
from profkit.analysis.judge.rules.gpu.lines import MIN_PER_REPETITION, MIN_SHARE, place_of_line, product_dims
from profkit.analysis.timeline.products import operand_type
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import Insight, KernelTime

MAX_TABLES = 4  # tables that are named
CLASSES = 64  # fewer columns of a one-hot matrix are no table
TYPES = {"TF32": 4, "FP8": 1}  # bytes of a number, where it has not 16 bits
FEWER, MAX_PRODUCTS = 3, 64  # times the multiplications of the other order; products that are looked at
MORE_ROWS, MOSTLY = 10, 0.3  # times those of a step; of the time
CACHED, LEAST_BYTES = (
    3,
    2,
)  # times DRAM's bandwidth: no cache is faster; bytes of the smallest type that is trained
SPARSE = 20  # times as many rows in a table as a batch looks up
HALF = 0.5  # of the scores of causal attention lie above the diagonal
_SHAPE = re.compile(r"\[([\d,]*)\]")
_EMBEDDING = re.compile(r"^aten::embedding \[(\d+,\d+)\], \[([\d,]+)\]")
_SPARSE = re.compile(r"^aten::_coalesce \[(\d+,\d+)\]")  # a sparse gradient's rows, joined by its optimizer
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw")
# Convolutions of sequences, which cuDNN takes as images of one row, and of volumes.
_ALONG_ONE = re.compile(r"^aten::\w*convolution\w* \[\d+,\d+,(?:1,)?\d+\], \[\d+,\d+,(?:1,)?\d+\]")
_VOLUMES = re.compile(r"^aten::\w*convolution\w* \[\d+(?:,\d+){4}\]")
_ONE_HOT = re.compile(r"^aten::scatter_ \[((?:\d+,)*)(\d+)\], \[(?:\1)1\]")
_ROWS = re.compile(r"(aten::\w+ (?:\[\d+\] \+ )?\[)(\d+)(,.*)")
_MASKED = re.compile(
    r"^aten::_(?:scaled_dot_product_(?:efficient|cudnn)_attention|(?:cudnn|efficient)_attention_forward) "
)


def recomputed_sequence(run: RunEvidence) -> Iterator[Insight]:
    """Yield a model that computes a whole sequence again for each token that it adds: products of ever more rows."""
    trace = run.trace
    lines = [line for line in trace.lines if line.rows is not None] if trace is not None else []
    every = sum(line.kernel_seconds for line in trace.lines) if trace is not None else 0.0
    if not lines or every <= 0:
        return
    largest = max(lines, key=lambda line: line.kernel_seconds)
    first, last, count = largest.rows or (0, 0, 0)
    step = (last - first) / (count - 1)
    share = sum(line.kernel_seconds for line in lines) / every * (1 - 2 * step / (first + last))
    won, text, preparing = share * run.gpu_share, "", preparing_line(run)
    if preparing in lines and preparing is not None and trace is not None and trace.line_span:
        host = min(idle_share(run) or 0.0, preparing.seconds / trace.line_span)
        won = min(1.0, won + host)
        text = f"; in line {preparing.line} the host prepares kernels for each new length, {percent_text(100 * host)} "
        text += "of the time"
    if won < MUCH:
        return
    yield insight_at(
        "recomputed-sequence",
        "Compute only the new token: the whole sequence is computed again for each one",
        f"the matrix products of {largest.function or 'this line'} have {first:,} rows, then {step:,.0f} more each "
        f"time, up to {last:,}; these lines take {percent_text(100 * share)} of the kernel time{text}",
        looping_call(run, place_of_line(largest)),
        run.gain(won, "as if only the new rows were computed"),
    )


def dense_gradient(run: RunEvidence) -> Iterator[Insight]:
    """Yield a table of which a batch uses few rows, while its gradient and the optimizer work on all of them."""
    tables, own = _large_tables(run), whole_table_kernels(run)
    share = run.share_of(own)
    if share < MUCH:
        return
    rows = ", ".join(f"{int(table.split(',')[0]):,}" for table in list(tables)[:MAX_TABLES])
    fewest = min(used / int(table.split(",")[0]) for table, used in tables.items())
    yield insight_at(
        "dense-gradient",
        "Use sparse gradients for the embedding: all its rows are processed in each step",
        f"{plural(len(tables), 'table')} of {rows} rows, a batch looks up {max(tables.values()):,}; "
        f"the gradients and the optimizer's passes over them take {percent_text(100 * share)} of the time",
        main_line(own),
        run.gain(share * (1 - fewest), "as if only these rows were worked on"),
    )


def whole_table_kernels(run: RunEvidence) -> list[KernelTime]:
    """Return the kernels that work on all rows of a table of which a batch looks up few: they take long enough to."""
    gpus = run.document.gpus
    fastest = CACHED * (gpus[0].bandwidth or 0.0) if gpus else 0.0
    tables = {table: LEAST_BYTES * _elements(table) for table in _large_tables(run)}
    return [
        kernel
        for kernel in run.times
        if not _looks_up(kernel)
        and any(
            f"[{table}]" in f"{kernel.operation} {kernel.backward_of}"
            and (not fastest or kernel.total * fastest >= size * kernel.launches)
            for table, size in tables.items()
        )
    ]


def _large_tables(run: RunEvidence) -> dict[str, int]:
    """Return the shapes of tables with a dense gradient, and how many rows a batch looks up, where these are few."""
    tables: dict[str, int] = {}
    for kernel in run.times:
        for text in (kernel.operation, kernel.backward_of):
            if (found := _EMBEDDING.match(text or "")) is not None:
                tables[found[1]] = max(tables.get(found[1], 0), _elements(found[2]))
    sparse = {
        found[1] for kernel in run.times if (found := _SPARSE.match(kernel.operation or "")) is not None
    }
    return {
        table: used
        for table, used in tables.items()
        if int(table.split(",")[0]) >= SPARSE * used and table not in sparse
    }


def _looks_up(kernel: KernelTime) -> bool:
    return kernel.backward_of is None and _EMBEDDING.match(kernel.operation or "") is not None


def _elements(shape: str) -> int:
    return prod(int(size) for size in shape.split(","))


def layout_conversions(run: RunEvidence) -> Iterator[Insight]:
    """Find kernels of cuDNN that bring images into the layout of its fast convolutions, and back.

    A sequence, of three dimensions, has no such layout in torch.
    """
    own = [
        kernel
        for kernel in run.times
        if _LAYOUT.search(kernel.kernel.name)
        and not _ALONG_ONE.match(kernel.backward_of or kernel.operation or "")
    ]
    share = run.share_of(own)
    volumes = [kernel for kernel in own if _VOLUMES.match(kernel.backward_of or kernel.operation or "")]
    layout = "channels_last_3d" if run.share_of(volumes) > share / 2 else "channels_last"
    if share >= MIN_SHARE:
        yield Insight(
            "layout-conversions",
            f"Keep images and weights in {layout}: the layout is converted around each convolution",
            f"cuDNN's kernels that change it take {percent_text(100 * share)} of the time, in "
            f"{sum(kernel.launches for kernel in own):,} launches",
            f"model = model.to(memory_format=torch.{layout}) once, and the same for each batch of images.",
            main_line(own),
            run.gain(share, "as if nothing were converted"),
        )


def masked_attention(run: RunEvidence) -> Iterator[Insight]:
    """Find scaled_dot_product_attention with a mask of its own: flash attention takes none."""
    own = [kernel for kernel in run.times if _masks(kernel.operation) or _masks(kernel.backward_of)]
    share = run.share_of(own)
    if share >= MUCH:
        yield insight_at(
            "masked-attention",
            "Skip what the mask of this attention hides: it is computed, and read as a tensor",
            f"attention with an attn_mask takes {percent_text(100 * share)} of the time: a tensor as a mask is read "
            "for each pair of tokens, and what it hides is computed all the same",
            main_line(own),
            run.gain(HALF * share, "as if half of the scores were hidden, as in a causal mask, and skipped"),
        )


def _masks(operation: str | None) -> bool:
    """Return whether it is attention with a mask: queries, keys, values, then something else with dimensions."""
    shapes = _SHAPE.findall(operation or "")
    return _MASKED.match(operation or "") is not None and len(shapes) > 3 and shapes[3].count(",") >= 1


def one_hot_products(run: RunEvidence) -> Iterator[Insight]:
    """Find rows of a matrix that are picked by its product with a one-hot matrix."""
    every = [(kernel, product_dims(kernel)) for kernel in run.times if kernel.backward_of is None]
    taken = {(prod(dims[:3]), dims[2]): kernel for kernel, dims in every if dims is not None}
    for made in filter(None, (_ONE_HOT.match(kernel.operation or "") for kernel in run.times)):
        size, classes = prod(map(int, (made[1] + made[2]).split(","))), int(made[2])
        for _, share, place in by_operation(run, functools.partial(_works_on, size)):
            beside = {
                (kernel.operation or "").split(" ")[0] for kernel in run.times if _works_on(size, kernel)
            }
            through = {"aten::_softmax", "aten::sub"} <= beside  # straight: the gradient goes to all classes
            if (size, classes) not in taken or classes < CLASSES or through:
                break
            yield insight_at(
                "one-hot-product",
                "Pick rows by their index: torch.nn.functional.embedding(index, weight)",
                f"{taken[size, classes].operation} multiplies a one-hot matrix of {size // classes:,} x {classes:,} "
                f"({format_quantity(4 * size, 'B')} in FP32), in which each row has only one number "
                "that is not 0: making "
                f"and multiplying it takes {percent_text(100 * share)} of the time",
                place,
                run.gain(share, "all that is done to the one-hot matrix"),
            )
            return


def _works_on(size: int, kernel: KernelTime) -> bool:
    return size in shapes(f"{kernel.operation} {kernel.backward_of}")


def product_order(run: RunEvidence) -> Iterator[Insight]:
    """Find two products, one of the other's result, that need far fewer multiplications the other way round."""
    kernels = [kernel for kernel in run.times if kernel.backward_of is None and kernel.total]
    every = [
        (kernel, product_dims(kernel))
        for kernel in kernels
        if kernel.file and " + " not in (kernel.operation or "")
    ]
    products = [(kernel, dims) for kernel, dims in every if dims is not None][:MAX_PRODUCTS]
    beside = [kernel for kernel in kernels if product_dims(kernel) is None and not is_copy(kernel)]
    others = {size for kernel in beside for size in shapes(kernel.operation)}  # that something else works on
    launched = run.trace.order if run.trace is not None else ()
    in_turn = set(
        pairwise(operation for operation, _ in groupby(run.times[number].operation for number in launched))
    )
    for (first, (batch, m, k, n)), (second, (of, rows, inner, columns)) in permutations(products, 2):
        at_once = (batch, first.file, first.line) == (of, second.file, second.line)
        if not at_once or batch * m * n in others or (first.operation, second.operation) not in in_turn:
            continue
        made = f"{first.operation} makes a matrix of {m:,} x {n:,}, and {second.operation} takes it"
        if (rows, inner) == (m, n):
            p, order = columns, "the right: a @ (b @ c)"
        elif (inner, columns) == (m, n):  # the same, transposed
            m, n, p, order = n, m, rows, "the left: (a @ b) @ c"
        else:
            continue
        now, then = m * n * (k + p), k * p * (m + n)
        both = ((first.line, first.operation), (first.line, second.operation))
        own = [kernel for kernel, _ in products if (kernel.line, kernel.operation) in both]
        seconds, numbers = sum(kernel.total for kernel in own), m * k + k * n + n * p + 2 * k * p + m * p
        size = first.launches * batch * numbers * TYPES.get(operand_type(first.kernel.name), 2)
        bandwidth = run.document.gpus[0].bandwidth if run.document.gpus else None
        left = max(then / now * seconds, size / bandwidth if bandwidth else 0.0)
        share = run.share_of(own) * (1 - left / seconds)
        if FEWER * then > now or share < MUCH:
            continue
        yield Insight(
            "product-order",
            f"Multiply from {order}",
            f"{made}: {format_quantity(seconds / first.launches, 's')} each time; the other way round it is "
            f"{now // then:,} times less to multiply, {format_quantity(left / first.launches, 's')} at least",
            "a @ b @ c multiplies from the left: set brackets, or let torch.linalg.multi_dot choose the order.",
            main_line([first]),
            run.gain(share, "what the other order leaves, by its multiplications and bytes"),
        )
        return


def evaluated_each_step(run: RunEvidence) -> Iterator[Insight]:
    """Yield a forward pass in each step over many more rows than the step trains with."""
    trace = run.trace
    if trace is None or not trace.repeats:
        return
    # The last, and so largest, number of rows of each operation is kept.
    trained = dict(sorted(_rows(kernel.backward_of) for kernel in trace.kernels))
    own = [
        kernel
        for kernel in trace.kernels
        if kernel.backward_of is None
        and kernel.launches >= MIN_PER_REPETITION * trace.repeats
        and 0 < MORE_ROWS * trained.get(_rows(kernel.operation)[0], 0) <= _rows(kernel.operation)[1]
    ]
    share = run.share_of(own)
    if share < MOSTLY or not any(product_dims(kernel) for kernel in own):
        return
    operation, rows = _rows(own[0].operation)
    yield insight_at(
        "evaluated-each-step",
        f"Evaluate less often: {rows:,} rows are evaluated in each step, which trains with {trained[operation]:,}",
        f"forward passes without a backward one take {percent_text(100 * share)} of the time, most of it "
        f"{own[0].operation}: {own[0].launches:,} times in {trace.repeats:,} steps",
        main_line(own),
        run.gain(share, "as if nothing were evaluated"),
    )


def _rows(operation: str | None) -> tuple[str, int]:
    """Return an operation without the rows of what it works on, and these."""
    found = _ROWS.match(operation or "")
    return (found[1] + found[3], int(found[2])) if found is not None else ("", 0)
