"""What another benchmark tool measured, and helpers of the readers.

A reader takes what json.loads gives; what is absent is not measured, and what has another type than the tool writes may
raise LookupError, TypeError, AttributeError or ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeAlias

from profkit.core.statistics import median
from profkit.core.types import Direction

Json: TypeAlias = Any
MetricKind: TypeAlias = "tuple[str, str, Direction]"  # metric, unit, and which way is good


@dataclass(frozen=True)
class MeasuredValue:
    """One number of one benchmark. `groups`: raw samples in the unit, one tuple per process, if it has them."""

    name: str  # of the benchmark
    metric: str
    unit: str
    better: Direction
    value: float
    groups: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """A whole file of another tool. `started` None: it does not say when. `machine`: fields of comparability.

    `values`: what was measured, and of a benchmark without a value a sentence that says why.
    """

    source: str
    workload: str
    backend: str
    started: str | None
    machine: Mapping[str, object]
    values: tuple[MeasuredValue | str, ...]
    commit: str | None = None
    dirty: bool | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


class Tool(NamedTuple):
    """A tool: its name, whether it wrote such a file, and the reader of it."""

    name: str
    wrote: Callable[[Json], bool]
    read: Callable[[Json, Path], ToolResult]


def number(value: object) -> float | None:
    """A finite number, also one that is written as text; None for anything else."""
    try:
        result = float(value)  # type: ignore[arg-type]  # what it does not take raises
    except (TypeError, ValueError, OverflowError):
        return None
    return result if math.isfinite(result) else None


def numbers(values: Iterable[object] | None) -> tuple[float, ...]:
    """The finite numbers of a list."""
    return tuple(finite for value in values or () if (finite := number(value)) is not None)


def times(
    name: str, groups: Iterable[Iterable[object] | None], summary: Mapping[str, object]
) -> Iterator[MeasuredValue | str]:
    """The times of one benchmark in seconds, as the tool says them; a median that it does not say, of its samples."""
    samples = tuple(group for group in map(numbers, groups) if group)
    values = {metric: seconds for metric, value in summary.items() if (seconds := number(value)) is not None}
    if "time.median" not in values and samples:
        values["time.median"] = median([sample for group in samples for sample in group])
    values = {metric: value for metric, value in values.items() if value >= 0}
    if not values:
        yield f"{name}: no time was measured"
    for metric, value in values.items():
        own = samples if metric == "time.median" else ()
        yield MeasuredValue(name, metric, "s", "lower", value, own)


def file_name(command: str | None) -> str | None:
    """The last part of a program's path, of any system."""
    return PurePosixPath(command.replace("\\", "/")).name if command else None
