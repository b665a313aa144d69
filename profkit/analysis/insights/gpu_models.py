"""Rules on what a model does more than it needs: a sequence computed again for each token, a gradient of rows that no
batch used, layouts that are changed around each convolution, attention with a mask where a flag would do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from profkit.analysis.insights.evidence import RunEvidence, launching_lines, outwards, percent_text
from profkit.analysis.insights.gpu_lines import LEAST, place_of_line
from profkit.core.formatting import plural
from profkit.core.types import Gain, GpuLine, Insight, KernelTime, Place

MUCH = 0.1  # of the GPU's time
MOST = 4  # tables that are named
SPARSE = 20  # times as many rows in a table as a batch looks up
HALF = 0.5  # of the scores of causal attention lie above the diagonal
_SHAPE = re.compile(r"\[([\d,]*)\]")
_EMBEDDING = re.compile(r"^aten::embedding \[(\d+,\d+)\], \[([\d,]+)\]")
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw")
_MASKED = re.compile(
    r"^aten::_(?:scaled_dot_product_(?:efficient|cudnn)_attention|(?:cudnn|efficient)_attention_forward) "
)


def recomputed_sequence(run: RunEvidence) -> Iterator[Insight]:
    """A model that computes a whole sequence again for each token that it adds: products of ever more rows."""
    trace = run.trace
    lines = [one for one in trace.lines if one.rows is not None] if trace is not None else []
    every = sum(one.kernel_seconds for one in trace.lines) if trace is not None else 0.0
    if not lines or every <= 0:
        return
    largest = max(lines, key=lambda one: one.kernel_seconds)
    first, last, count = largest.rows or (0, 0, 0)
    step = (last - first) / (count - 1)
    share = sum(one.kernel_seconds for one in lines) / every * (1 - 2 * step / (first + last))
    if share * run.gpu_share < MUCH:
        return
    yield Insight(
        "recomputed-sequence",
        "The whole sequence is computed again for each new token",
        f"the matrix products of {largest.function or 'this line'} have {first:,} rows, then {step:,.0f} more each "
        f"time, up to {last:,}; these lines take {percent_text(100 * share)} of the kernel time",
        "Keep the keys and values of the tokens before (a KV cache of fixed size; use_cache=True in Transformers), and "
        "give the model the new token alone.",
        _calling_line(run, largest),
        Gain(share * run.gpu_share, run.time_name, "as if only the new rows were computed"),
    )


def _calling_line(run: RunEvidence, line: GpuLine) -> Place:
    """From a line outwards: the last one in a loop, where the model is called."""
    found = place_of_line(line)
    for place, here in outwards(run, found):
        if any(one.line == place.line and one.code is not None and one.code.loop is not None for one in here):
            found = place
    return found


def dense_gradient(run: RunEvidence) -> Iterator[Insight]:
    """A table of which a batch uses few rows, while its gradient and the optimizer work on all of them."""
    kernels = run.trace.kernels if run.trace is not None else ()
    total = sum(one.total for one in kernels)
    tables: dict[str, int] = {}
    for one in kernels:
        for text in (one.operation, one.backward_of):
            if (found := _EMBEDDING.match(text or "")) is not None:
                tables[found[1]] = max(tables.get(found[1], 0), _elements(found[2]))
    large = [table for table, used in tables.items() if int(table.split(",")[0]) >= SPARSE * used]
    own = [
        one
        for one in kernels
        if not _looks_up(one) and any(f"[{table}]" in f"{one.operation} {one.backward_of}" for table in large)
    ]
    share = sum(one.total for one in own) / total * run.gpu_share if total > 0 else 0.0
    if share < MUCH:
        return
    rows = ", ".join(f"{int(table.split(',')[0]):,}" for table in large[:MOST])
    by_line = launching_lines(own)
    yield Insight(
        "dense-gradient",
        "The gradient of an embedding is dense: all its rows are worked on in each step",
        f"{plural(len(large), 'table')} of {rows} rows, a batch looks up {max(tables[one] for one in large):,}; "
        f"the gradients and the optimizer's passes over them take {percent_text(100 * share)} of the time",
        "nn.Embedding(..., sparse=True) with torch.optim.SparseAdam (or SGD, Adagrad) touches the rows of the batch "
        "alone; dense parameters keep an optimizer of their own.",
        max(by_line, key=lambda place: by_line[place], default=Place()),
        Gain(share * (1 - 1 / SPARSE), run.time_name, "as if only these rows were worked on"),
    )


def _looks_up(kernel: KernelTime) -> bool:
    return kernel.backward_of is None and _EMBEDDING.match(kernel.operation or "") is not None


def _elements(shape: str) -> int:
    return prod(int(size) for size in shape.split(","))


def layout_conversions(run: RunEvidence) -> Iterator[Insight]:
    """Kernels of cuDNN that bring images into the layout of its fast convolutions, and back."""
    kernels = run.trace.kernels if run.trace is not None else ()
    total, own = (
        sum(one.total for one in kernels),
        [one for one in kernels if _LAYOUT.search(one.kernel.name)],
    )
    share = sum(one.total for one in own) / total * run.gpu_share if total > 0 else 0.0
    if share >= LEAST:
        yield Insight(
            "layout-conversions",
            "Keep images and weights in channels_last: the layout is changed around each convolution",
            f"cuDNN's kernels that change it take {percent_text(100 * share)} of the time, in "
            f"{sum(one.launches for one in own):,} launches",
            "model = model.to(memory_format=torch.channels_last) once, and the same for each batch of images.",
            _most(own),
            Gain(share, run.time_name, "as if nothing were converted"),
        )


def masked_attention(run: RunEvidence) -> Iterator[Insight]:
    """scaled_dot_product_attention with a mask of its own: flash attention takes none."""
    kernels = run.trace.kernels if run.trace is not None else ()
    total = sum(one.total for one in kernels)
    own = [one for one in kernels if _masks(one.operation) or _masks(one.backward_of)]
    share = sum(one.total for one in own) / total * run.gpu_share if total > 0 else 0.0
    if share >= MUCH:
        yield Insight(
            "masked-attention",
            "Give attention a flag instead of a mask, where one says the same",
            f"attention with an attn_mask takes {percent_text(100 * share)} of the time: a tensor as a mask is read "
            "for each pair of tokens, and what it hides is computed all the same",
            "Causal: is_causal=True, which skips half of the scores. Padding: sort by length, or nested tensors. "
            "Others: torch.nn.attention.flex_attention, compiled, skips blocks that are masked away.",
            _most(own),
            Gain(HALF * share, run.time_name, "as if the half that a causal mask hides were skipped"),
        )


def _masks(operation: str | None) -> bool:
    """Whether it is attention with a mask: queries, keys, values, and then something else that has dimensions."""
    shapes = _SHAPE.findall(operation or "")
    return _MASKED.match(operation or "") is not None and len(shapes) > 3 and shapes[3].count(",") >= 1


def _most(kernels: Sequence[KernelTime]) -> Place:
    by_line = launching_lines(kernels)
    return max(by_line, key=lambda place: by_line[place], default=Place())
