"""Rules on what PyTorch and its libraries do because of what they are given: new shapes, other types, the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.evidence import RunEvidence, idle_share, kernels_at, looping_call, main_line
from profkit.analysis.function_names import place_name
from profkit.analysis.judge.rule import insight_at
from profkit.analysis.judge.rules.gpu.calls import MUCH
from profkit.analysis.judge.rules.gpu.lines import MIN_SHARE, MIN_WAITS, place_of_line
from profkit.analysis.timeline.products import SIXTEEN_BITS, operand_type, tensor_peak
from profkit.core.formatting import percent_text, plural
from profkit.core.types import GpuLine, Insight, KernelTime

MANY_SHAPES = 3  # of the inputs of one line: with fewer, what was tried is used from then on
WAITS_A_CALL = 2  # of one algorithm that is timed there are more
MOSTLY = 0.5  # of the time of the products
_CONVOLVES = re.compile(r"^aten::(?:cudnn_)?convolution\w* (\[[\d,]+\])")
# PyTorch's memory-efficient attention, whose name has the type of its operands.
_FLOAT32_ATTENTION = re.compile(r"^fmha_cutlass[FB]_f32_")


def tuned_convolutions(run: RunEvidence) -> Iterator[Insight]:
    """Yield convolutions whose algorithms cuDNN times again for each new shape.

    A convolution waits for the device only while its algorithms are timed.
    """
    lines = tuning_lines(run)
    trace, idle = run.trace, idle_share(run)
    if trace is None or not lines or idle is None or not trace.line_span:
        return
    share = min(idle, sum(line.seconds for line in lines) / trace.line_span)
    if share < MIN_SHARE:
        return
    shapes = len({shape for line in lines for shape in _input_shapes(run, line)})
    waits = sum(line.waits for line in lines)
    yield insight_at(
        "tuned-convolutions",
        "Give convolutions a few fixed shapes, or switch cudnn.benchmark off: cuDNN tunes them for each new shape",
        f"inputs of {shapes} shapes were recorded, and the convolutions of "
        f"{plural(len(lines), 'line')} wait for the device {waits:,} times, which they do only while cuDNN times its "
        "algorithms",
        place_of_line(max(lines, key=lambda line: line.seconds)),
        run.gain(share, "the time in these lines, at most that in which the GPU is idle"),
    )


def tuning_lines(run: RunEvidence) -> list[GpuLine]:
    """Return the lines whose convolutions, of ever new shapes, wait for the device several times a call."""
    return [
        line
        for line in (run.trace.lines if run.trace is not None else ())
        if line.waits >= max(MIN_WAITS, WAITS_A_CALL * len(_input_shapes(run, line)))
        and len(_input_shapes(run, line)) >= MANY_SHAPES
    ]


def _input_shapes(run: RunEvidence, line: GpuLine) -> set[str]:
    """Return the shapes of the inputs of a line's convolutions."""
    found = (_CONVOLVES.match(kernel.operation or "") for kernel in kernels_at(run, place_of_line(line)))
    return {match[1] for match in found if match is not None}


def float32_attention(run: RunEvidence) -> Iterator[Insight]:
    """Yield attention whose operands are float32 in a model whose matrix products have operands of 16 bits."""
    own = [kernel for kernel in run.times if _FLOAT32_ATTENTION.match(kernel.kernel.name)]
    share = run.share_of(own)
    products = [kernel for kernel in run.times if kernel.flops and kernel not in own]
    sixteen = [kernel for kernel in products if operand_type(kernel.kernel.name) == SIXTEEN_BITS]
    if share < MUCH or _seconds(sixteen) < MOSTLY * _seconds(products) or not sixteen:
        return
    gpus = run.document.gpus
    peak = tensor_peak(gpus[0] if gpus else None)
    work = sum((kernel.flops or 0.0) * kernel.launches for kernel in own)
    left = min(1.0, work / peak / _seconds(own)) if peak else 0.0
    yield insight_at(
        "float32-attention",
        "Give this attention 16-bit queries, keys and values: they are float32",
        f"attention in float32 takes {percent_text(100 * share)} of the time, while the model's matrix products have "
        "operands of 16 bits: flash attention and cuDNN's take only those",
        main_line(own),
        run.gain(share * (1 - left), "as if it ran at the tensor cores' peak for 16 bits"),
    )


def _seconds(kernels: list[KernelTime]) -> float:
    return sum(kernel.total for kernel in kernels)


REPEATS_ALL = 0.9  # of all large results: the program repeats itself, as a benchmark does
AGAIN = 0.4  # of a line's large results; half of them in two passes over the data


def repeated_results(run: RunEvidence) -> Iterator[Insight]:
    """Yield lines that make the same tensors again, of the same tensors, though nobody wrote to these."""
    profile, trace = run.profile("repeated-results"), run.trace
    if profile is None or trace is None:
        return
    first = profile.hotspots[0].counters
    if first["all again"] >= REPEATS_ALL * first["all calls"]:
        return
    repeats = {
        (spot.file, spot.line): spot.own / spot.calls
        for spot in profile.hotspots
        if spot.calls and spot.own >= AGAIN * spot.calls
    }
    lines = [line for line in trace.lines if (line.file, line.line) in repeats and line.kernel_seconds]
    every = sum(line.kernel_seconds for line in trace.lines)
    seconds = sum(line.kernel_seconds * repeats[line.file, line.line] for line in lines)
    share = seconds / every * run.gpu_share if every else 0.0
    if share < MUCH:
        return
    most = max(lines, key=lambda line: line.kernel_seconds)
    functions = {(line.file, line.function) for line in lines}
    here = place_of_line(most)
    others = {line.line for line in lines} - {most.line}
    yield insight_at(
        "repeated-results",
        "Compute this once, and keep the result: it is made again of the same tensors",
        f"{percent_text(100 * repeats[most.file, most.line])} of the large results of {place_name(here)} were there "
        "before: nobody wrote to the tensors that they are made of, and those that were compared are equal"
        + (f"; also in {plural(len(others), 'other line')}" if others else ""),
        here if len(functions) == 1 else looping_call(run, here),
        run.gain(share, "as if each of them were made once"),
    )
