"""Rows that the processes of a workload wrote besides their own work, as JSON lines; they are not trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from profkit.analysis.summaries.memory import memory_series
from profkit.analysis.timeline.xla_order import ProgramSchedule, ScheduledKernel, unrolled
from profkit.core.files.regular import read_bounded
from profkit.core.types import GpuLine, MemorySeries, MemorySeriesKind, WorkUnit

MAX_NAME = 200  # characters of an operation


def said_by_processes(path: Path) -> list[dict[str, Any]]:
    """Return what the processes of the workload wrote when they ended, one object per line."""
    said = []
    with suppress(OSError, ValueError):
        for line in read_bounded(path).decode().splitlines()[:1000]:
            with suppress(ValueError, RecursionError):  # a line that a killed process did not finish
                value = json.loads(line)
                said += [value] if isinstance(value, dict) else []
    return said


def of_rows(said: Sequence[Mapping[str, Any]], key: str, make: Callable[..., Any]) -> Iterator[Any]:
    """Yield what `make` builds of rows that hold text and counts alone: any program may have written the file."""
    for line in said:
        rows = line.get(key)
        for row in rows if isinstance(rows, list) else ():
            with suppress(ValueError, TypeError):
                if all(isinstance(value, str) or 0 <= value < 1 << 62 for value in row):
                    yield make(*row)


MAX_SECONDS = 1e7  # of a program: more is no time


def seconds_after(said: Sequence[Mapping[str, Any]], window: Path) -> float | None:
    """Return the seconds that a program went on after a window of jax.profiler; None: it lasted to its end."""
    known = {
        name: seconds
        for name, seconds in of_rows(said, "windows", lambda name, seconds: (str(name), float(seconds)))
        if 0 < seconds < MAX_SECONDS
    }
    return known.get(window.name.removesuffix(".json.gz"))


def memory_of(said: Sequence[Mapping[str, Any]]) -> Iterator[MemorySeries]:
    """Yield the device memory that torch allocated and reserved over time, in the process with most of it."""

    def look(seconds: float, allocated: float, reserved: float) -> tuple[float, float, float]:
        return float(seconds), float(allocated), float(reserved)

    courses = [list(of_rows([line], "held", look)) for line in said]
    most = max(courses, key=lambda looks: max((sample[2] for sample in looks), default=0.0), default=[])
    kinds: tuple[tuple[MemorySeriesKind, int], ...] = (("allocated", 1), ("reserved", 2))
    for kind, column in kinds:
        series = memory_series(kind, [(sample[0], sample[column]) for sample in most])
        if series is not None:
            yield series


def _kernel_line(file: Any, line: Any, function: Any, kernel: Any, module: Any) -> tuple[str, str, GpuLine]:
    """Return the kernel and line of a compiled module of JAX, or of a definition in Triton."""
    return str(kernel), str(module), GpuLine(str(file), int(line), str(function) or None)


def lines_of(said: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, str, GpuLine], ...]:
    """Return kernel, module and line of what a compiler says of the kernels that it made."""
    return tuple(dict.fromkeys(of_rows(said, "kernels", _kernel_line)))


_UNITS: tuple[WorkUnit, ...] = ("tensor", "fma", "memory")
_Row: TypeAlias = "tuple[str, int, int, int, ScheduledKernel, int, int]"


def _scheduled(
    module: Any, number: Any, at: Any, of: Any, file: Any, line: Any, function: Any, kernel: Any, runs: Any,
    group: Any, operation: Any, backward: Any, type_: Any, unit: Any, flop: Any, bytes_: Any, loop: Any, times: Any,
    name: Any = "",
) -> _Row:  # fmt: skip
    """Return an instruction of an XLA program with its place and loop; an empty text means not known."""
    where = (str(file), int(line), str(function) or None) if file else (None, None, None)
    flop, size = (float(text) if text != "" else None for text in (flop, bytes_))
    unit = unit if unit in _UNITS else None
    work = str(operation)[:MAX_NAME], bool(backward), str(type_) or None, unit, flop, size
    scheduled = ScheduledKernel(str(kernel), str(runs), int(group), *work, *where)
    instruction = replace(scheduled, instruction=str(name)[:MAX_NAME])
    return str(module), int(number), int(at), int(of), instruction, int(loop), int(times)


def schedules_of(said: Sequence[Mapping[str, Any]]) -> tuple[ProgramSchedule, ...]:
    """Return the schedules of the programs that a process of JAX compiled; of which a part is lost, none."""
    schedules: list[ProgramSchedule] = []
    for line in said:
        programs: dict[tuple[str, int], list[_Row]] = {}
        for row in of_rows([line], "schedule", _scheduled):
            programs.setdefault(row[:2], []).append(row)
        for (module, _), rows in programs.items():
            if [row[2] for row in rows] == list(range(rows[0][3])):
                schedules += filter(None, [unrolled(module, (row[4:] for row in rows))])
    return tuple(dict.fromkeys(schedules))


def said_reason(path: Path) -> str | None:
    """Return why a process says that it has no trace, in its own words; None where it says nothing."""
    said = (line.get("said") for line in said_by_processes(path) if isinstance(line.get("reason"), str))
    return next((text[:1000] for text in said if isinstance(text, str)), None)
