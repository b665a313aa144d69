"""Stacks as a file for flame graph viewers (speedscope JSON), and as a tree that can be drawn."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any

from profkit.analysis.stacks.merge import KERNEL, PYTHON, frame_label, is_python
from profkit.analysis.stacks.python_code import is_cell
from profkit.analysis.stacks.wall_time import THREAD, WAIT, wait_frame
from profkit.core.codec import is_finite_number
from profkit.core.errors import UnreadableReport
from profkit.core.files.regular import read_bounded
from profkit.core.types import Frame, Stacks

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_UNITS = {"s": "seconds", "ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "B": "bytes"}


def write_speedscope(stacks: Stacks | Iterable[Stacks], path: Path, name: str) -> None:
    """Write one or several `Stacks` (one per event) to `path` as profiles of one file called `name`.

    A frame's `file` is its source file, or else its library: the viewer colours frames by it. Merged stacks
    have no order in time; they are written in the order of their frames: equal callers are neighbours.
    A unit that the format does not know (cycles) is written as `none`, with its name in the profile's title.
    OSError passes through.
    """
    groups = (stacks,) if isinstance(stacks, Stacks) else tuple(stacks)
    frames: dict[Frame, int] = {}
    profiles = [_profile(group, frames) for group in groups]
    document = {
        "$schema": SCHEMA,
        "name": name,
        "exporter": "profkit",
        "activeProfileIndex": 0,
        "shared": {"frames": list(map(_frame_entry, frames))},
        "profiles": profiles,
    }
    path.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="ascii")


def _profile(stacks: Stacks, frames: dict[Frame, int]) -> dict[str, Any]:
    """Return the profile of every stack with its weight; new frames are numbered into `frames`."""
    numbered: dict[int, int] = {}  # id(frame) -> number: hashing a Frame for each slot would dominate
    samples = []
    for stack, weight in stacks.weights.items():
        numbers = []
        for frame in stack:
            number = numbered.get(id(frame))
            if number is None:
                number = numbered[id(frame)] = frames.setdefault(frame, len(frames))
            numbers.append(number)
        samples.append((numbers, weight))
    samples.sort(key=lambda sample: sample[0])
    unit = _UNITS.get(stacks.unit, "none")
    names_unit = unit != "none" or stacks.unit == stacks.title
    return {
        "type": "sampled",
        "name": stacks.title if names_unit else f"{stacks.title} ({stacks.unit})",
        "unit": unit,
        "startValue": 0,
        "endValue": sum(weight for _, weight in samples),
        "samples": [numbers for numbers, _ in samples],
        "weights": [weight for _, weight in samples],
    }


def _frame_entry(frame: Frame) -> dict[str, str | int]:
    entry: dict[str, str | int] = {"name": frame.function or "[unknown]"}
    if file := frame.file or ("kernel" if frame.library == KERNEL else frame.library):
        entry["file"] = file
    if frame.line is not None:
        entry["line"] = frame.line
    return entry


LARGEST = 64 * 1024 * 1024  # bytes; a profile of 20 000 distinct stacks is some 10 MB
_SHORT_UNITS = {"seconds": "s", "nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "bytes": "B"}


def read_speedscope(path: Path) -> tuple[Stacks, ...]:
    """Return every `sampled` profile of the file. Raises UnreadableReport where it is none, too large, or damaged."""
    try:
        data = json.loads(read_bounded(path, LARGEST).decode())
    except OSError as error:
        raise UnreadableReport(f"{path.name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"{path.name} is not a speedscope file: {error}") from error
    try:
        frames = [_read_frame(entry) for entry in data["shared"]["frames"]]
        return tuple(
            _read_stacks(profile, frames) for profile in data["profiles"] if profile["type"] == "sampled"
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise UnreadableReport(f"{path.name} is damaged: {type(error).__name__}: {error}") from error


def _read_frame(entry: dict[str, Any]) -> Frame:
    """Return a frame of a stack.

    Its `file` is a source file for Python, `kernel`, or the library that the function is in.
    """
    name, file = str(entry["name"]), entry.get("file")
    if file is None:
        return Frame(name)
    if str(file).endswith((".py", ">")):
        return Frame(name, PYTHON, str(file), entry.get("line"))
    return Frame(name, KERNEL if file == "kernel" else str(file))


def _read_stacks(profile: dict[str, Any], frames: list[Frame]) -> Stacks:
    weights: dict[tuple[Frame, ...], float] = {}
    for numbers, weight in zip(profile["samples"], profile["weights"], strict=True):
        if not is_finite_number(weight) or weight < 0 or any(number < 0 for number in numbers):
            raise ValueError("a sample that cannot be")
        stack = tuple(frames[number] for number in numbers)
        weights[stack] = weights.get(stack, 0.0) + weight
    unit = str(profile["unit"])
    return Stacks(str(profile["name"]), _SHORT_UNITS.get(unit, "" if unit == "none" else unit), weights)


MIN_SHARE = 0.001  # share of the whole below which nothing is drawn: a pixel on a wide screen
DEEPEST_BOX = 120  # boxes on each other; deeper ones end there
MAX_BOXES = 3000  # boxes: what a browser draws at once without a pause
BOX_NAME = 160  # characters of a name: a thousand functions of C++ templates would else be a megabyte
PYTHON_CODE, KERNEL_CODE, NATIVE_CODE, THREAD_CODE = "python", "kernel", "native", "thread"
# What waits, by how it is called: boxes of one colour.
LOCK, IO, SLEEP, PROCESSOR, OTHER_WAIT = "lock", "io", "sleep", "processor", "waiting"
_WAITS = {
    wait_frame(name): kind
    for kind, names in {
        LOCK: ("lock",),
        IO: ("network", "input", "file", "pipe", "sync"),
        SLEEP: ("sleep",),
        PROCESSOR: ("queue",),
    }.items()
    for name in names
}


@dataclass(frozen=True)
class FlameBox:
    """One frame of the tree in the order of depth first: its parent is the last box before it that is less deep."""

    name: str
    kind: str  # python, kernel, native, thread, or a kind of wait
    depth: int
    value: float
    own: float


@dataclass(frozen=True)
class FlameTree:
    """A flame graph. `left_out` is the share (0..1) of the whole in boxes too narrow or too deep to be drawn."""

    title: str
    unit: str
    total: float
    boxes: tuple[FlameBox, ...]
    left_out: float


class _Node:
    __slots__ = ("children", "frame", "own", "value")

    def __init__(self, frame: Frame | None) -> None:
        self.frame = frame
        self.value = 0.0
        self.own = 0.0
        self.children: dict[Frame, _Node] = {}


def without_notebook(stacks: Stacks) -> Stacks:
    """Return the stacks without what called a notebook's cell: the kernel's thirty frames are of no interest."""
    weights: dict[tuple[Frame, ...], float] = {}
    for stack, weight in stacks.weights.items():
        cell = next((number for number, frame in enumerate(stack) if is_cell(frame.file)), 0)
        thread = stack[:1] if cell and stack[0].library == THREAD else ()
        kept = (*thread, *stack[cell:])
        weights[kept] = weights.get(kept, 0.0) + weight
    return replace(stacks, weights=weights)


def flame_of(stacks: Stacks, least: float = MIN_SHARE, most: int = MAX_BOXES) -> FlameTree | None:
    """Return the tree of `stacks`, widest child first; None where nothing has any weight, or more than a number holds.

    Boxes narrower than `least` of the whole are left out, and more of them where there would be more than `most`.
    """
    root = _tree(stacks.weights.items())
    if root.value <= 0 or not isfinite(root.value):
        return None
    while True:
        boxes: list[FlameBox] = []
        drawn = _walk(root, least * root.value, boxes)
        if len(boxes) <= most:
            return FlameTree(
                stacks.title, stacks.unit, root.value, tuple(boxes), max(0.0, 1 - drawn / root.value)
            )
        least *= 1.5


def _tree(weights: Iterable[tuple[tuple[Frame, ...], float]]) -> _Node:
    root = _Node(None)
    for stack, weight in weights:
        if weight <= 0:
            continue
        root.value += weight
        node = root
        for frame in stack[:DEEPEST_BOX]:
            child = node.children.get(frame)
            if child is None:
                child = node.children[frame] = _Node(frame)
            child.value += weight
            node = child
        node.own += weight
    return root


def _walk(root: _Node, least: float, boxes: list[FlameBox]) -> float:
    """Fill `boxes`, outermost first, and say how much weight is drawn down to its own function."""
    drawn = 0.0
    pending = [(child, 0) for child in _widest_last(root)]
    while pending:
        node, depth = pending.pop()
        if node.value < least:
            continue
        frame = node.frame
        assert frame is not None
        kind = _kind_of(frame)
        name = frame_label(frame)
        boxes.append(
            FlameBox(
                name if len(name) <= BOX_NAME else f"{name[:BOX_NAME]}…", kind, depth, node.value, node.own
            )
        )
        drawn += node.own
        pending += [(child, depth + 1) for child in _widest_last(node)]
    return drawn


def _kind_of(frame: Frame) -> str:
    """Return what is done in a frame."""
    if is_python(frame):
        return PYTHON_CODE
    if frame.library == WAIT:
        return _WAITS.get(frame, OTHER_WAIT)
    return {KERNEL: KERNEL_CODE, THREAD: THREAD_CODE}.get(frame.library or "", NATIVE_CODE)


def _widest_last(node: _Node) -> list[_Node]:
    return sorted(node.children.values(), key=lambda child: child.value)
