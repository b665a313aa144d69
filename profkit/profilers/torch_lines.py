"""Operations of torch on a CPU by the line of the program that calls them, as a window of torch's profiler saw them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profkit.analysis.necessary_work.calls import OperationCall, Tensor, plain_name, recorded_call
from profkit.analysis.necessary_work.formulas import necessary_work
from profkit.core.errors import ProfkitError
from profkit.core.files.regular import read_bounded
from profkit.core.types import Hotspot, Profile

MOST_BYTES = 128 << 20
_LINE = "profkit-at "
_LONGEST = 60  # characters of the shapes
_OPERATOR, _ANNOTATION = "cpu_op", "user_annotation"


@dataclass
class _Operation:
    """All calls of one operation with equal shapes at one line: seconds, and the work they need."""

    seconds: float = 0.0
    calls: int = 0
    flop: float = 0.0
    bytes: float = 0.0
    known: float = 0.0  # seconds of the calls whose work is known
    fp32: bool = True  # all arithmetic is in FP32


@dataclass
class _Open:
    """An event that is under way: `call` of the outermost operation below a line."""

    end: float
    line: tuple[str, int, str] | None = None
    operation: _Operation | None = None
    works: bool = False  # its work is known, or that of an operation around it


@dataclass
class _Lines:
    operations: dict[tuple[str, int, str, str, str], _Operation] = field(default_factory=dict)
    totals: dict[tuple[str, int, str], float] = field(default_factory=dict)


def read_torch_lines(path: Path) -> Profile | None:
    """Return the operations by line, the largest first; None where the window saw none, or left half a file.

    `own` of a row without a shape and with the function's name is the whole time of the line's calls of torch.
    """
    try:
        data = json.loads(read_bounded(path, MOST_BYTES))
    except (OSError, ValueError, ProfkitError, RecursionError):
        return None
    events = data.get("traceEvents") if isinstance(data, dict) else None
    found = _Lines()
    for thread in _by_thread(events if isinstance(events, list) else ()).values():
        _add_thread(found, thread)
    if not found.operations:
        return None
    spots = [*_operations(found), *_whole_lines(found)]
    spots.sort(key=lambda spot: -spot.own)
    return Profile("operations by line", "s", sum(found.totals.values()), tuple(spots), "line-operators")


def _by_thread(events: Iterable[object]) -> dict[str, list[tuple[float, float, Mapping[str, Any]]]]:
    """Operators and annotations of lines, with start and length in s."""
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


def _add_thread(found: _Lines, rows: Iterable[tuple[float, float, Mapping[str, Any]]]) -> None:
    """Add what one thread did: its calls lie within each other by their times."""
    stack: list[_Open] = []
    for start, length, event in rows:
        while stack and stack[-1].end <= start:
            stack.pop()
        around = stack[-1] if stack else _Open(0.0)
        one = _Open(start + length, around.line, around.operation, around.works)
        name = str(event.get("name"))
        if event["cat"] == _ANNOTATION:
            # A call of torch's Python functions inside of another one is that one's.
            line = _line(name) if around.line is None else None
            if line is not None:
                one.line = line
                found.totals[line] = found.totals.get(line, 0.0) + length
        elif around.line is not None:
            _add_operation(found, one, name, event.get("args"), length, outermost=around.operation is None)
        stack.append(one)


def _add_operation(
    found: _Lines, one: _Open, name: str, args: object, length: float, *, outermost: bool
) -> None:
    assert one.line is not None
    call = recorded_call(name, args) if isinstance(args, dict) else None
    if outermost:
        key = (*one.line, plain_name(name), _shapes(call))
        one.operation = found.operations.setdefault(key, _Operation())
        one.operation.seconds += length
        one.operation.calls += 1
    work = necessary_work(call) if call is not None and not one.works else None
    if work is None or one.operation is None:
        return
    one.works = True
    one.operation.flop += work.flop
    one.operation.bytes += work.bytes or 0.0
    one.operation.known += length
    if call is not None and work.flop:
        one.operation.fp32 &= _type(call) == "fp32"


def _operations(found: _Lines) -> Iterator[Hotspot]:
    for (file, line, _, name, shapes), one in found.operations.items():
        counters = {}
        if one.known >= 0.9 * one.seconds > 0:
            counters = {"needed_bytes": one.bytes} | (
                {"flop_fp32": one.flop} if one.fp32 and one.flop else {}
            )
        yield Hotspot(
            name, one.seconds, None, one.calls, file, line, counters=counters, shapes=shapes or None
        )


def _whole_lines(found: _Lines) -> Iterator[Hotspot]:
    for (file, line, function), seconds in found.totals.items():
        yield Hotspot(function, seconds, seconds, None, file, line)


def _line(text: str) -> tuple[str, int, str] | None:
    """`profkit-at FILE:LINE:NAME`."""
    if not text.startswith(_LINE):
        return None
    parts = text.partition("\t")[0][len(_LINE) :].rsplit(":", 2)
    return (parts[0], int(parts[1]), parts[2]) if len(parts) == 3 and parts[1].isdigit() else None


def _shapes(call: OperationCall | None) -> str:
    """`[1024,768] x [768,3072] fp32`: the tensors that go in, at most three, with the type of the first."""
    tensors = [one for one in call.arguments if isinstance(one, Tensor)][:3] if call is not None else []
    if not tensors or call is None:
        return ""
    text = " x ".join(f"[{','.join(map(str, one.shape))}]" for one in tensors)
    type_ = _type(call)
    return f"{text[:_LONGEST]}{f' {type_}' if type_ else ''}"


def _type(call: OperationCall) -> str | None:
    return next((one.type for one in call.arguments if isinstance(one, Tensor)), None)
