"""Collapsed ("folded") stacks: a line per stack, `outer;inner WEIGHT`, as flame graph scripts take it."""

from __future__ import annotations

from pathlib import Path

from profkit.errors import UnreadableReport
from profkit.model import Frame, Report, Stacks
from profkit.stacks.labels import KERNEL, label
from profkit.stacks.merge import FrameTable, StackMerger

NANO = 1e9
MOST_LINE = 1 << 20  # a line of collapsed text is a stack; a longer one is another kind of file

# A semicolon ends a frame and a newline ends a stack, so neither may stand in a name.
_NAMES = str.maketrans({";": ":", "\n": " ", "\r": " ", "\0": " "})


def write_collapsed(stacks: Stacks, path: Path) -> None:
    """Write `stacks` to `path`, lines in alphabetical order.

    Weights are whole numbers, since most scripts read nothing else: seconds are written as nanoseconds, any
    other unit is rounded. Stacks that come to the same text are added up. OSError passes through.
    """
    factor = NANO if stacks.unit == "s" else 1
    lines: dict[str, float] = {}
    names: dict[int, str] = {}
    for stack, weight in stacks.weights.items():
        parts = []
        for frame in stack:
            name = names.get(id(frame))
            if name is None:
                name = names[id(frame)] = label(frame).translate(_NAMES).strip() or "[unknown]"
            parts.append(name)
        text = ";".join(parts)
        lines[text] = lines.get(text, 0) + weight * factor
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
        for text in sorted(lines):
            file.write(f"{text} {round(lines[text])}\n")


def read_collapsed(path: Path) -> Report:
    """Read collapsed text of any tool; the unit is unknown to the format and called `samples`.

    Raises UnreadableReport where a line is not `stack WEIGHT`.
    """
    table = FrameTable()
    merger = StackMerger(table)
    ids: dict[str, int] = {}
    try:
        with path.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
            number = 0
            while line := file.readline(MOST_LINE):
                number += 1
                text, _, weight = line.strip().rpartition(" ")
                if not text and not weight:
                    continue
                try:
                    value = float(weight)
                except ValueError:
                    value = float("nan")
                if not text or not 0 <= value < float("inf"):
                    raise UnreadableReport(
                        f"{path} is no collapsed stacks: line {number} is not `stack WEIGHT`"
                    )
                stack = []
                for name in reversed(text.split(";")):
                    if name not in ids:
                        if len(ids) > 1_000_000:
                            ids.clear()
                        ids[name] = table.add(_frame(name))
                    stack.append(ids[name])
                merger.add(tuple(stack), value)
    except OSError as error:
        raise UnreadableReport(f"{path} cannot be read: {error.strerror}") from error
    if not merger.samples:
        raise UnreadableReport(f"{path} holds no stacks")
    return Report(
        tool="collapsed",
        format="collapsed-stacks",
        profiles=merger.profiles("samples", "samples"),
        stacks=(merger.stacks("samples", "samples"),),
    )


def _frame(name: str) -> Frame:
    return Frame(name[: -len("_[k]")], KERNEL) if name.endswith("_[k]") else Frame(name)
