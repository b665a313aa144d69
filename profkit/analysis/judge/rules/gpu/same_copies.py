"""A line that copies one array to the device again and again, though nothing writes to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from profkit.analysis.evidence import RunEvidence
from profkit.core.types import GpuLine, GpuTrace, LineSamples

_BEHIND = " [same]"  # as `runtime/passes/host/values/same_arrays.py` names it: milliseconds
_BYTES = (1, 2, 4, 8, 16)  # of an element
MIN_STEPS = 3.0  # for which it was seen to be the same: a batch stays for one
# What brings an array to a device, with its name as a method's object or as the first argument.
_METHODS, _FUNCTIONS = r"(?:to|cuda)\(", r"(?:as_tensor|tensor|asarray|array|device_put|from_numpy)\(\s*"
ROUNDED = 0.01  # of a mean size


def same_array(run: RunEvidence, line: GpuLine) -> str | None:
    """Return how the source names the array that a line copies to the device, if it is the same in all steps.

    The name was seen to hold one array with the same numbers for some steps, and each copy has its size.
    """
    trace = run.trace
    copies = [transfer for transfer in line.transfers if transfer.kind == "host to device"]
    count, size = sum(copy.count for copy in copies), sum(copy.bytes for copy in copies)
    if trace is None or not trace.span or not trace.repeats or count < trace.repeats:
        return None
    for sampled in _sampled_at(run, line):
        for name, length in _kept(sampled, trace):
            fits = any(abs(length * width - size / count) <= ROUNDED * size / count for width in _BYTES)
            if fits and _is_copied(name, sampled):
                return name
    return None


def _sampled_at(run: RunEvidence, line: GpuLine) -> Iterator[LineSamples]:
    return (
        sampled
        for process in run.document.sampled
        if not process.native
        for sampled in process.lines
        if (sampled.file, sampled.line) == (line.file, line.line) and sampled.code is not None
    )


def _kept(sampled: LineSamples, trace: GpuTrace) -> Iterator[tuple[str, int]]:
    """Yield the names that held the same array for several steps, and how many elements it has."""
    step = 1000 * (trace.span or 0.0) / (trace.repeats or 1)
    for name, held in sampled.variables.items():
        array = sampled.variables.get(name.removesuffix(_BEHIND))
        if name.endswith(_BEHIND) and (held.length or 0) >= MIN_STEPS * step and array is not None:
            yield name.removesuffix(_BEHIND), array.length or 0


def _is_copied(name: str, sampled: LineSamples) -> bool:
    text = f"{sampled.code.text}\n{sampled.code.statement}" if sampled.code is not None else ""
    known = re.escape(name)
    return re.search(rf"(?<![\w.]){known}\.{_METHODS}|{_FUNCTIONS}{known}(?![\w.\[(])", text) is not None
