"""Reads operations of torch on a CPU by the line that calls them, from a window of torch's profiler."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.analysis.necessary_work.calls import OperationCall, Tensor, plain_name, recorded_call
from profkit.analysis.necessary_work.formulas import necessary_work
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.types import BACKWARD_NODES, CALLS_PER_UNIT, OPERATIONS_MADE, Hotspot, Profile

MAX_BYTES = 128 << 20
_LINE = "profkit-at "
_UNIT = "profkit-unit "  # begins the marks between entries of a region or iterations of a benchmark
_LONGEST = 60  # characters of the shapes
_OPERATOR, _ANNOTATION = "cpu_op", "user_annotation"


@dataclass
class _Operation:
    """All calls of one operation with equal shapes at one line: seconds, and the work they need."""

    seconds: float = 0.0
    calls: int = 0
    starts: list[float] = field(default_factory=list)  # s: when each call began
    flop: float = 0.0
    bytes: float = 0.0
    known: float = 0.0  # seconds of the calls whose work is known
    fp32: bool = True  # all arithmetic is in FP32


@dataclass
class _Open:
    """An event that is under way: `operation` is the outermost operation below a line."""

    end: float
    line: tuple[str, int, str] | None = None
    operation: _Operation | None = None
    works: bool = False  # its work is known, or that of an operation around it


@dataclass
class _Lines:
    operations: dict[tuple[str, int, str, str, str], _Operation] = field(default_factory=dict)
    totals: dict[tuple[str, int, str], float] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)  # operations by name, wherever they ran
    gone: dict[tuple[str, int, str], Counter[str]] = field(
        default_factory=dict
    )  # nodes of the backward pass, by line
    marks: dict[str, list[float]] = field(default_factory=dict)  # s: by kind, `entry` or `iteration`


def read_torch_lines(path: Path) -> Profile | None:
    """Return the operations by line, the largest first; None without any, or for half a file.

    `own` of a row without a shape and with the function's name is the whole time of the line's calls of torch.
    """
    try:
        data = json.loads(read_bounded(path, MAX_BYTES))
    except (OSError, ValueError, ProfkitError, RecursionError):
        return None
    events = data.get("traceEvents") if isinstance(data, dict) else None
    lines = _Lines()
    for thread in _by_thread(events if isinstance(events, list) else ()).values():
        _add_thread(lines, thread)
    if not lines.operations:
        return None
    spots = [*_operations(lines), *_whole_lines(lines)]
    spots.sort(key=lambda spot: -spot.own)
    return Profile("operations by line", "s", sum(lines.totals.values()), tuple(spots), "line-operators")


def _by_thread(events: Iterable[object]) -> dict[str, list[tuple[float, float, Mapping[str, Any]]]]:
    """Return operators and annotations of lines by thread, with start and length in seconds."""
    threads: dict[str, list[tuple[float, float, Mapping[str, Any]]]] = {}
    for event in events:
        if (
            not isinstance(event, dict)
            or event.get("ph") != "X"
            or event.get("cat") not in (_OPERATOR, _ANNOTATION)
        ):
            continue
        start, length = event.get("ts"), event.get("dur")
        if isinstance(start, int | float) and isinstance(length, int | float) and length >= 0:
            row = (start / 1e6, length / 1e6, event)
            threads.setdefault(f"{event.get('pid')} {event.get('tid')}", []).append(row)
    for rows in threads.values():
        rows.sort(key=lambda row: (row[0], -row[1]))
    return threads


def _add_thread(lines: _Lines, rows: Iterable[tuple[float, float, Mapping[str, Any]]]) -> None:
    """Add what one thread did: its calls lie within each other by their times."""
    stack: list[_Open] = []
    for start, length, event in rows:
        while stack and stack[-1].end <= start:
            stack.pop()
        around = stack[-1] if stack else _Open(0.0)
        _count_node(lines, around.line, str(event.get("name")))
        opened = _Open(start + length, around.line, around.operation, around.works)
        name = str(event.get("name"))
        if event["cat"] == _ANNOTATION and name.startswith(_UNIT):
            lines.marks.setdefault(name[len(_UNIT) :], []).append(start)
        elif event["cat"] == _ANNOTATION:
            # A call of torch's Python functions inside of another one is that one's.
            line = _line(name) if around.line is None else None
            if line is not None:
                opened.line = line
                lines.totals[line] = lines.totals.get(line, 0.0) + length
        elif around.line is not None and not _WRAPS.match(name):
            _add_operation(lines, opened, name, event.get("args"), length, outermost=around.operation is None)
        stack.append(opened)


# What autograd puts around the operations of a backward pass: these have names that users know, and shapes.
_WRAPS = re.compile(r"autograd::engine::evaluate_function: |\w+Backward\d*$|torch::autograd::")
_NODE = re.compile(r"autograd::engine::evaluate_function: (\w+?)Backward\d*$")


def _count_node(lines: _Lines, line: tuple[str, int, str] | None, name: str) -> None:
    """Count an operation, or a node of the backward pass, under the same name: `addmm` of AddmmBackward0."""
    node = _NODE.match(name)
    if node is None:
        lines.made[plain_name(name).replace("_", "")] += name.startswith("aten::")
    elif line is not None:
        lines.gone.setdefault(line, Counter())[node[1].lower()] += 1


def _add_operation(
    lines: _Lines, opened: _Open, name: str, args: object, length: float, *, outermost: bool
) -> None:
    assert opened.line is not None
    call = recorded_call(name, args) if isinstance(args, dict) else None
    if outermost:
        key = (*opened.line, plain_name(name), _shapes(call))
        opened.operation = lines.operations.setdefault(key, _Operation())
        opened.operation.seconds += length
        opened.operation.calls += 1
        opened.operation.starts.append(opened.end - length)
    work = necessary_work(call) if call is not None and not opened.works else None
    if work is None or opened.operation is None:
        return
    opened.works = True
    opened.operation.flop += work.flop
    opened.operation.bytes += work.bytes or 0.0
    opened.operation.known += length
    if call is not None and work.flop:
        opened.operation.fp32 &= _type(call) == "fp32"


def _calls_per_unit(lines: _Lines, operation: _Operation) -> float | None:
    """Return how often the operation runs in one entry or iteration; None without two marks around such a one.

    The window opens and closes in the middle of one, so only what lies between the first mark and the last counts.
    """
    marks = lines.marks.get("iteration") or lines.marks.get("entry") or []
    if len(marks) < 2:
        return None
    return sum(marks[0] <= start < marks[-1] for start in operation.starts) / (len(marks) - 1)


def _operations(lines: _Lines) -> Iterator[Hotspot]:
    for (file, line, _, name, shapes), operation in lines.operations.items():
        counters: dict[str, float] = {}
        if operation.known >= 0.9 * operation.seconds > 0:
            counters = {"needed_bytes": operation.bytes} | (
                {"flop_fp32": operation.flop} if operation.fp32 and operation.flop else {}
            )
        if each := _calls_per_unit(lines, operation):
            counters[CALLS_PER_UNIT] = each
        yield Hotspot(
            name,
            operation.seconds,
            None,
            operation.calls,
            file,
            line,
            counters=counters,
            shapes=shapes or None,
        )


def _whole_lines(lines: _Lines) -> Iterator[Hotspot]:
    for (file, line, function), seconds in lines.totals.items():
        nodes = lines.gone.get((file, line, function), Counter())
        more = {name: times for name, times in nodes.items() if times > lines.made[name] > 0}
        counters = {
            BACKWARD_NODES: float(sum(more.values())),
            OPERATIONS_MADE: float(sum(lines.made[name] for name in more)),
        }
        yield Hotspot(
            function, seconds, seconds, None, file, line, counters=counters if len(more) > 1 else {}
        )


def _line(text: str) -> tuple[str, int, str] | None:
    """Parse `profkit-at FILE:LINE:NAME` into file, line and name; None for any other text."""
    if not text.startswith(_LINE):
        return None
    parts = text.partition("\t")[0][len(_LINE) :].rsplit(":", 2)
    return (parts[0], int(parts[1]), parts[2]) if len(parts) == 3 and parts[1].isdigit() else None


def _shapes(call: OperationCall | None) -> str:
    """Format the input tensors, at most three, with the type of the first: `[1024,768] x [768,3072] fp32`."""
    tensors = (
        [tensor for tensor in call.arguments if isinstance(tensor, Tensor)][:3] if call is not None else []
    )
    if not tensors or call is None:
        return ""
    text = " x ".join(f"[{','.join(map(str, tensor.shape))}]" for tensor in tensors)
    type_ = _type(call)
    return f"{text[:_LONGEST]}{f' {type_}' if type_ else ''}"


def _type(call: OperationCall) -> str | None:
    return next((argument.type for argument in call.arguments if isinstance(argument, Tensor)), None)
