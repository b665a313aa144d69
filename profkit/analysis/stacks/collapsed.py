"""Collapsed ("folded") stacks: a line per stack, `outer;inner WEIGHT`, as flame graph scripts take it."""

from __future__ import annotations

from pathlib import Path

from profkit.analysis.stacks.labels import label
from profkit.core.types import Stacks

NANO = 1e9

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
