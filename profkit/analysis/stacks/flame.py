"""Stacks as a tree that can be drawn: what they have in common is one box, as wide as its share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite

from profkit.analysis.stacks.labels import KERNEL, is_python, label
from profkit.core.types import Frame, Stacks

LEAST = 0.001  # share of the whole below which nothing is drawn: a pixel on a wide screen
DEEPEST = 120  # boxes on each other; deeper ones end there
MOST = 3000  # boxes: what a browser draws at once without a pause
NAME = 160  # characters of a name: a thousand functions of C++ templates would else be a megabyte
PYTHON_CODE, KERNEL_CODE, NATIVE_CODE = "python", "kernel", "native"


@dataclass(frozen=True)
class Box:
    """One frame of the tree in the order of depth first: its parent is the last box before it that is less deep."""

    name: str
    kind: str  # python, kernel, native
    depth: int
    value: float
    own: float


@dataclass(frozen=True)
class Flame:
    """A flame graph. `left_out` is the share (0..1) of the whole in boxes too narrow or too deep to be drawn."""

    title: str
    unit: str
    total: float
    boxes: tuple[Box, ...]
    left_out: float


class _Node:
    __slots__ = ("children", "frame", "own", "value")

    def __init__(self, frame: Frame | None) -> None:
        self.frame = frame
        self.value = 0.0
        self.own = 0.0
        self.children: dict[Frame, _Node] = {}


def flame_of(stacks: Stacks, least: float = LEAST, most: int = MOST) -> Flame | None:
    """The tree of `stacks`, widest child first; None where nothing has any weight, or more than a number holds.

    Boxes narrower than `least` of the whole are left out, and more of them where there would be more than `most`.
    """
    root = _tree(stacks.weights.items())
    if root.value <= 0 or not isfinite(root.value):
        return None
    while True:
        boxes: list[Box] = []
        drawn = _walk(root, least * root.value, boxes)
        if len(boxes) <= most:
            return Flame(
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
        for frame in stack[:DEEPEST]:
            child = node.children.get(frame)
            if child is None:
                child = node.children[frame] = _Node(frame)
            child.value += weight
            node = child
        node.own += weight
    return root


def _walk(root: _Node, least: float, boxes: list[Box]) -> float:
    """Fill `boxes`, outermost first, and say how much weight is drawn down to its own function."""
    drawn = 0.0
    pending = [(child, 0) for child in _widest_last(root)]
    while pending:
        node, depth = pending.pop()
        if node.value < least:
            continue
        frame = node.frame
        assert frame is not None
        kind = PYTHON_CODE if is_python(frame) else KERNEL_CODE if frame.library == KERNEL else NATIVE_CODE
        name = label(frame)
        boxes.append(Box(name if len(name) <= NAME else f"{name[:NAME]}…", kind, depth, node.value, node.own))
        drawn += node.own
        pending += [(child, depth + 1) for child in _widest_last(node)]
    return drawn


def _widest_last(node: _Node) -> list[_Node]:
    return sorted(node.children.values(), key=lambda child: child.value)
