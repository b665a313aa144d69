"""Stacks as a speedscope file: https://www.speedscope.app/file-format-schema.json, profile type `sampled`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from profkit.analysis.stacks.labels import KERNEL
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
    with path.open("w", encoding="ascii") as file:
        for piece in _document(profiles, frames, name):
            file.write(piece)


def _profile(stacks: Stacks, frames: dict[Frame, int]) -> tuple[str, str, list[tuple[list[int], float]]]:
    """Title, unit and (frame numbers, weight) of every stack; new frames are numbered into `frames`."""
    seen: dict[int, int] = {}  # id(frame) -> number: hashing a Frame for each slot would dominate
    samples = []
    for stack, weight in stacks.weights.items():
        numbers = []
        for frame in stack:
            number = seen.get(id(frame))
            if number is None:
                number = seen[id(frame)] = frames.setdefault(frame, len(frames))
            numbers.append(number)
        samples.append((numbers, weight))
    samples.sort(key=lambda sample: sample[0])
    unit = _UNITS.get(stacks.unit, "none")
    title = (
        stacks.title if unit != "none" or stacks.unit == stacks.title else f"{stacks.title} ({stacks.unit})"
    )
    return title, unit, samples


def _document(
    profiles: list[tuple[str, str, list[tuple[list[int], float]]]], frames: dict[Frame, int], name: str
) -> Iterator[str]:
    """The JSON text in pieces, so that a large profile is never held twice."""
    yield f'{{"$schema": {json.dumps(SCHEMA)}, "name": {json.dumps(name)}, "exporter": "profkit",\n'
    yield '"activeProfileIndex": 0,\n"shared": {"frames": ['
    for number, frame in enumerate(frames):
        yield (",\n" if number else "\n") + json.dumps(_entry(frame))
    yield "]},\n"
    yield '"profiles": ['
    for index, (title, unit, samples) in enumerate(profiles):
        yield ",\n" if index else "\n"
        end = sum(weight for _, weight in samples)
        yield f'{{"type": "sampled", "name": {json.dumps(title)}, "unit": "{unit}", "startValue": 0, '
        yield f'"endValue": {json.dumps(end)},\n"samples": ['
        for number, (stack, _) in enumerate(samples):
            yield (",\n" if number else "\n") + json.dumps(stack, separators=(",", ":"))
        yield '],\n"weights": ' + json.dumps([weight for _, weight in samples]) + "}"
    yield "]}\n"


def _entry(frame: Frame) -> dict[str, str | int]:
    entry: dict[str, str | int] = {"name": frame.function or "[unknown]"}
    if file := frame.file or ("kernel" if frame.library == KERNEL else frame.library):
        entry["file"] = file
    if frame.line is not None:
        entry["line"] = frame.line
    return entry
