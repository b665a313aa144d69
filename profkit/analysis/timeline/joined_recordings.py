"""Joins what two recordings of one program know: kernels of one with the operations and lines that another saw."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from profkit.analysis.kernel_names.owner import kernel_owner
from profkit.analysis.timeline.placed import placed_timeline
from profkit.analysis.timeline.range_names import SourceLine, plain_operation
from profkit.core.types import GpuLine, GpuTrace, KernelTime

KNOWN = 0.5  # of the kernels' time: with less in configurations that were launched there, names decide
_COPIED = ("operation", "operations", "backward_of", "file", "line", "function", "flops")
MODULE = re.compile(r"hlo_module=([^,#]+)")
# How XLA calls what a library does, whose kernels have names of their own, by whose they are.
_OF_LIBRARIES = {"cublas": "__cublas", "cutlass": "__cublas", "nccl": "__nccl"}


def with_operations(trace: GpuTrace | None, launched: GpuTrace | None) -> GpuTrace | None:
    """Return the trace with operations and lines that `launched` knows of the same launch configurations.

    `launched` is from another run of the same program, so only the shares of its launches are used. Where it
    covers less than KNOWN of the kernels' time, other configurations of the same kernel names help out. `trace`
    is returned unchanged if either is None.
    """
    if trace is None or launched is None:
        return trace
    known = {
        time.kernel.scope: time
        for time in reversed(launched.kernels)
        if time.operation is not None or time.lines
    }
    covered = sum(time.total for time in trace.kernels if time.kernel.scope in known)
    named = _by_name(known.values()) if covered < KNOWN * sum(time.total for time in trace.kernels) else {}
    placed = tuple(
        with_operation(time, known.get(time.kernel.scope) or named.get(time.kernel.name))
        for time in trace.kernels
    )
    return replace(
        trace,
        kernels=placed,
        timeline=placed_timeline(trace.timeline, placed),
        lines=launched.lines or trace.lines,
        work=launched.work or trace.work,
        line_span=launched.line_span or trace.line_span,
        lines_of=launched.span if launched.lines else trace.lines_of,
    )


def _by_name(launched: Iterable[KernelTime]) -> dict[str, KernelTime]:
    """Return one entry for each kernel name that joins all of its configurations.

    It serves configurations that were not launched in that run: a sequence that grows has other grids later.
    Their shapes are not known, so operations have only their names.
    """
    own: dict[str, list[KernelTime]] = {}
    for time in launched:
        own.setdefault(time.kernel.name, []).append(time)
    return {name: _together(times) for name, times in own.items()}


def _together(times: Sequence[KernelTime]) -> KernelTime:
    operations, lines = Counter[tuple[str, "str | None"]](), Counter[SourceLine]()
    for time in times:
        if time.operation is not None:
            backward = plain_operation(time.backward_of) if time.backward_of is not None else None
            operations[plain_operation(time.operation), backward] += time.operation_launches
        for gpu_line in time.lines:
            lines[gpu_line.file, gpu_line.line, gpu_line.function] += gpu_line.launches
    (operation, backward), most = next(iter(operations.most_common(1)), ((None, None), 0))
    file, line, function = next((place for place, _ in lines.most_common(1)), (None, None, None))
    return replace(
        times[0],
        launches=sum(time.launches for time in times),
        operation=operation,
        operation_launches=most,
        operations=len(operations),
        backward_of=backward,
        file=file,
        line=line,
        function=function,
        flops=None,
        lines=tuple(GpuLine(*place, launches=count) for place, count in lines.items()),
    )


def with_operation(time: KernelTime, launched: KernelTime | None) -> KernelTime:
    """Return the kernel with the operation and lines of `launched`, the same configuration in another run.

    Counts are scaled by the ratio of the launches. The kernel is returned unchanged if it has an operation, or
    `launched` is None.
    """
    if launched is None or time.operation is not None:
        return time
    share = time.launches / launched.launches if launched.launches else 0.0
    lines = tuple(replace(line, launches=round(share * line.launches)) for line in launched.lines)
    most = round(share * launched.operation_launches)
    copied = {name: getattr(launched, name) for name in _COPIED}
    return replace(time, **copied, operation_launches=most, lines=lines)


def with_compiled_lines(trace: GpuTrace | None, lines: Sequence[tuple[str, str, GpuLine]]) -> GpuTrace | None:
    """Return the trace with the program's lines that a compiler gives for its kernels.

    `lines` holds kernel name, module and line. Where several modules have a kernel of the same name, the module
    around the launch decides; where that leaves several lines, the kernel gets none.
    """
    if trace is None or not lines:
        return trace
    known: dict[tuple[str, str | None], set[SourceLine]] = {}
    for kernel, module, source in lines:
        for key in ((kernel, module), (kernel, None)):
            known.setdefault(key, set()).add((source.file, source.line, source.function))

    def lined(time: KernelTime) -> KernelTime:
        module = next((found[1] for name in time.ranges if (found := MODULE.search(name))), None)
        name = time.kernel.name.partition("(")[0]
        library = _OF_LIBRARIES.get(kernel_owner(time.kernel.name), "")
        keys = ((name, module), (name, None), (library, module))
        places = next((known[key] for key in keys if key in known), set[SourceLine]())
        if time.file is not None or len(places) != 1:
            return time
        file, line, function = next(iter(places))
        return replace(time, file=file, line=line, function=function)

    kernels = tuple(map(lined, trace.kernels))
    return replace(trace, kernels=kernels, timeline=placed_timeline(trace.timeline, kernels))
