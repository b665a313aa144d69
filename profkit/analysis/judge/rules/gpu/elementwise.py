"""Rules on PyTorch's kernels for each element: what a compiler fuses, functions that are written out, conversions."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from profkit.analysis.evidence import RunEvidence, launching_lines, main_line, part_text
from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.calls import is_copy
from profkit.analysis.judge.rules.gpu.lines import (
    attention_scores,
    is_elementwise,
    is_written_out,
    works_on_attention,
)
from profkit.analysis.judge.rules.gpu.models import whole_table_kernels
from profkit.analysis.judge.words import words
from profkit.core.formatting import percent_text, plural
from profkit.core.types import GpuTrace, Insight, KernelTime

MIN_SHARE = 0.03  # of the time: less is not worth a change
MIN_LAUNCHES = 20  # fewer are no loop
PASS, NEARLY = 0.02, 0.9  # of these kernels' time, and of the time of all kernels
_ONE_PASS, _WITHIN_OTHERS = (
    "until one pass over the data is left",
    "as if their work were done within other kernels",
)
_CONVERTING = re.compile(r"(bfloat16|float16|half|float8_\w+)_copy_kernel")  # of ATen, from another type
# Functions of torch, and the operations that show that one is written out, one of each set; `/row`: with
# one number for each row, `/outer`: of each row of one with each of the other.
# `fused` are the operations of the function itself, `words` those of which a line that writes it out has one.
_WRITTEN_OUT = (
    (
        "torch.nn.functional.cross_entropy",
        ({"exp", "_softmax", "_log_softmax"}, {"log", "_log_softmax"}, {"scatter_", "gather"}),
        re.compile(r"nll_loss\w*|cross_entropy\w*"),
        ("log(", "exp(", "softmax("),
    ),
    ("torch.nn.functional.softmax", ({"exp"}, {"div/row"}), re.compile(r"_?(log_)?softmax\w*"), ("exp(",)),
    (
        "torch.nn.functional.layer_norm",
        ({"sub/row", "sub"}, {"pow", "var"}, {"rsqrt", "mul/row", "div/row"}, {"rsqrt", "sqrt"}),
        re.compile(r"(native_)?layer_norm\w*"),
        ("sqrt(", "var(", "std(", "**", "pow("),
    ),
    (
        "torch.cdist",
        ({"sub/outer"}, {"pow", "mul"}, {"sum"}),
        re.compile(r"_?cdist\w*|_euclidean_dist"),
        ("**", "pow(", "square(", "norm(", "sum("),
    ),
    (
        "torch.nn.functional.rms_norm",
        ({"pow"}, {"rsqrt"}, {"mul/row", "mul"}),
        re.compile(r"_?(fused_)?rms_norm\w*"),
        ("sqrt(", "**", "pow("),
    ),
)
_WITH_ROWS = re.compile(r"\[(?:\d+,)*\d+\], \[(?:\d+,)*1\]")
_OUTER = re.compile(r"\[(?:\d+,)*(?!1,)\d+,1,(\d+)\], \[(?:\d+,)*1,(?!1,)\d+,\1\]")


def unfused_operations(run: RunEvidence) -> Iterator[Insight]:
    """Find many kernels of PyTorch that each apply one operation to every element: a compiler fuses them."""
    trace = run.trace
    if trace is None or not trace.kernels or any(kernel.owner == "inductor" for kernel in run.kernels):
        return
    attention = attention_scores(run)
    of_tables = whole_table_kernels(run)  # their own rule takes them away instead
    own = [
        kernel
        for kernel in trace.kernels
        if is_elementwise(kernel)
        and not is_copy(kernel)
        and kernel not in of_tables
        and not works_on_attention(kernel, attention)
        and not _CONVERTING.search(kernel.kernel.name)
        and "c10::complex" not in kernel.kernel.name  # which torch.compile leaves as they are
    ]
    launches = sum(kernel.launches for kernel in own)
    share, part_saved = run.share_of(own), fusible_part(trace, own)
    if share * part_saved < 0.1 or launches < MIN_LAUNCHES:
        return
    # Where there is little else, one pass over the data is left: as long as the shortest of those that count.
    total = sum(kernel.total for kernel in own)
    shortest = min(kernel.total / kernel.launches for kernel in own if kernel.total >= PASS * total)
    # Small inputs, which one kernel reads instead.
    small = any(_OUTER.search(kernel.operation or "") for kernel in own)
    alone = share >= NEARLY * run.gpu_share and not small
    left = min(1.0, shortest * (trace.repeats or 0) / total) if alone else 0.0
    by_line, place = launching_lines(own), main_line(own)
    known = _known_function(
        run, [kernel for kernel in trace.kernels if kernel.file and kernel.function == place.function]
    )
    here = [line for line in by_line if (line.file, line.function) == (place.file, place.function)]
    numbers = sorted(line.line for line in here if line.line is not None)
    part = f"; {part_text(by_line, place)} of that in this line" if by_line else ""
    lines = (
        f", most in lines {numbers[0]} to {numbers[-1]} of {place_name(place)}" if len(numbers) > 1 else ""
    )
    yield Insight(
        "unfused-operations",
        f"Use {known}: these lines write it out"
        if known
        else "Fuse the elementwise operations (torch.compile)",
        f"{plural(launches, 'launch', 'launches')} of PyTorch's elementwise kernels take {percent_text(100 * share)} "
        f"of the time: each reads and writes all of its data{part}{lines}",
        words(f"unfused-operations.{known}" if known else "unfused-operations", "torch"),
        place,
        run.gain(share * min(1 - left, part_saved), _ONE_PASS if left else _WITHIN_OTHERS),
    )


def fusible_part(trace: GpuTrace, kernels: Sequence[KernelTime]) -> float:
    """Return the most of the time (0..1) of element-wise kernels that is saved by fusing those launched in a row.

    What the longest kernel of a row no longer reads or writes is what the others do not, so it saves no more than these
    take; and half of it is left, to read or write its elements once. One alone, between two products of a library, has
    nothing to be fused with. 1 where no order was recorded.
    """
    chosen = set(map(id, kernels))
    seconds = [
        kernel.total / kernel.launches if id(kernel) in chosen and kernel.launches else 0.0
        for kernel in trace.kernels
    ]
    total = saved = 0.0
    for fusible, row in groupby((seconds[number] for number in trace.order), bool):
        times = list(row) if fusible else [0.0]
        longest, others = max(times), sum(times) - max(times)
        total += longest + others
        saved += others + min(others, longest / 2)
    return saved / total if total else 1.0


def _known_function(run: RunEvidence, kernels: Sequence[KernelTime]) -> str | None:
    """Return the function of torch that these kernels, of one function, write out; None: none of those known."""

    def has(here: Sequence[KernelTime], parts: Sequence[AbstractSet[str]]) -> bool:
        names = set().union(*map(_operation_names, here))
        return all(part & names for part in parts)

    forward = [kernel for kernel in kernels if kernel.backward_of is None]
    for known, parts, fused, words_of in _WRITTEN_OUT:
        complete = functools.partial(has, parts=parts)
        if complete(forward) and is_written_out(run, forward, fused, words_of, complete):
            return known
    return None


def _operation_names(kernel: KernelTime) -> set[str]:
    """Return the names of its operation, also with `/row` and `/outer` if its shapes are such."""
    name = (kernel.operation or "").split(" ")[0].removeprefix("aten::")
    names = {name, f"{name}/row"} if _WITH_ROWS.search(kernel.operation or "") else {name}
    return names | ({f"{name}/outer"} if _OUTER.search(kernel.operation or "") else set())


_CONVERSION = "aten::_to_copy "
_SHAPES = re.compile(r"\[[\d,]*\]")


def repeated_conversions(run: RunEvidence) -> Iterator[Insight]:
    """Find conversions of types (`.to`, autocast) that take a part of every repetition."""
    trace = run.trace
    if trace is None or not trace.span:
        return
    differentiated = {
        _first_shape(kernel.backward_of)
        for kernel in trace.kernels
        if kernel.backward_of is not None and kernel.backward_of.startswith(_CONVERSION)
    } - {None}
    # What is trained changes in each step, and with it what autocast makes of it.
    converting = [
        kernel
        for kernel in trace.kernels
        if _CONVERTING.search(kernel.kernel.name)
        and kernel.backward_of is None
        and _first_shape(kernel.operation) not in differentiated
    ]
    share, kernels = run.share_of(converting), sum(kernel.launches for kernel in converting)
    if share < MIN_SHARE or kernels < MIN_LAUNCHES:
        return
    yield insight_at(
        "repeated-conversions",
        "Convert types once instead of in every step",
        f"{plural(kernels, 'kernel')} that convert to 16 bits or less take {percent_text(100 * share)} of the time",
        main_line(converting),
        run.gain(share, "the time of all conversions"),
    )


def _first_shape(operation: str | None) -> str | None:
    """Return `[4096,1024]` of `aten::copy_ [4096,1024], [4096,1024]`; None where no shape is known."""
    shape = _SHAPES.search(operation or "")
    return shape[0] if shape is not None else None
