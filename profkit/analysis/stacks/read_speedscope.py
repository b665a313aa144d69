"""Reads speedscope files back as stacks: those that profkit wrote, and `sampled` profiles of anybody's."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

from profkit.analysis.stacks.labels import KERNEL, PYTHON
from profkit.core.errors import UnreadableReport
from profkit.core.types import Frame, Stacks

LARGEST = 64 * 1024 * 1024  # bytes; a profile of 20 000 distinct stacks is some 10 MB
_UNITS = {"seconds": "s", "nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "bytes": "B"}


def read_speedscope(path: Path) -> tuple[Stacks, ...]:
    """Every `sampled` profile of the file. Raises UnreadableReport where it is none, too large, or damaged."""
    try:
        if path.stat().st_size > LARGEST:
            raise UnreadableReport(f"{path.name} is too large to be drawn")
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableReport(f"{path.name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"{path.name} is no speedscope file: {error}") from error
    try:
        frames = [_frame(entry) for entry in data["shared"]["frames"]]
        return tuple(_stacks(one, frames) for one in data["profiles"] if one["type"] == "sampled")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UnreadableReport(f"{path.name} is damaged: {type(error).__name__}: {error}") from error


def _frame(entry: dict[str, Any]) -> Frame:
    """A frame's `file` is a source file where it is Python's, `kernel`, or the library that the function is in."""
    name, file = str(entry["name"]), entry.get("file")
    if file is None:
        return Frame(name)
    if str(file).endswith((".py", ">")):
        return Frame(name, PYTHON, str(file), entry.get("line"))
    return Frame(name, KERNEL if file == "kernel" else str(file))


def _stacks(profile: dict[str, Any], frames: list[Frame]) -> Stacks:
    weights: dict[tuple[Frame, ...], float] = {}
    for numbers, weight in zip(profile["samples"], profile["weights"], strict=True):
        if not isfinite(weight) or weight < 0 or any(number < 0 for number in numbers):
            raise ValueError("a sample that cannot be")
        stack = tuple(frames[number] for number in numbers)
        weights[stack] = weights.get(stack, 0.0) + weight
    unit = str(profile["unit"])
    return Stacks(str(profile["name"]), _UNITS.get(unit, "" if unit == "none" else unit), weights)
