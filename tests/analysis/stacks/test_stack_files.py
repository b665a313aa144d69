"""The file for viewers: speedscope JSON by its schema's rules."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.analysis.stacks.files import SCHEMA, write_speedscope
from profkit.analysis.stacks.merge import KERNEL, PYTHON
from profkit.core.types import Frame, Stacks

PYTHON_FRAME = Frame("inner", PYTHON, "app/main.py")
STACKS = Stacks(
    "cpu-clock",
    "s",
    {
        (Frame("_start", "python3.13"), PYTHON_FRAME): 0.5,
        (Frame("_start", "python3.13"), PYTHON_FRAME, Frame("do_syscall_64", KERNEL)): 0.25,
        (Frame("_start", "python3.13"), Frame("operator;()\nx", "a.so"), Frame("[unknown]", "a.so")): 0.125,
    },
)

# What https://www.speedscope.app/file-format-schema.json asks of a file with sampled profiles.
RULES = jsonschema.Draft202012Validator(
    {
        "type": "object",
        "required": ["$schema", "shared", "profiles"],
        "properties": {
            "$schema": {"const": "https://www.speedscope.app/file-format-schema.json"},
            "name": {"type": "string"},
            "exporter": {"type": "string"},
            "activeProfileIndex": {"type": "number"},
            "shared": {
                "type": "object",
                "required": ["frames"],
                "properties": {
                    "frames": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "file": {"type": "string"},
                                "line": {"type": "number"},
                                "col": {"type": "number"},
                            },
                        },
                    }
                },
            },
            "profiles": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["type", "name", "unit", "startValue", "endValue", "samples", "weights"],
                    "properties": {
                        "type": {"const": "sampled"},
                        "name": {"type": "string"},
                        "unit": {
                            "enum": [
                                "bytes",
                                "microseconds",
                                "milliseconds",
                                "nanoseconds",
                                "none",
                                "seconds",
                            ]
                        },
                        "startValue": {"type": "number"},
                        "endValue": {"type": "number"},
                        "samples": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
                        "weights": {"type": "array", "items": {"type": "number"}},
                    },
                },
            },
        },
    }
)


def speedscope(stacks: object, path: Path) -> dict[str, object]:
    write_speedscope(stacks, path, "a name")  # type: ignore[arg-type]
    document = json.loads(path.read_text())
    RULES.validate(document)
    count = len(document["shared"]["frames"])
    for profile in document["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert all(0 <= index < count for stack in profile["samples"] for index in stack)
    return document


def test_speedscope_has_one_frame_per_function_and_weights_in_seconds(tmp_path: Path):
    document = speedscope(STACKS, tmp_path / "out.json")
    assert document["$schema"] == SCHEMA
    assert document["name"] == "a name"
    frames = document["shared"]["frames"]  # type: ignore[index]
    assert {"name": "inner", "file": "app/main.py"} in frames
    assert {"name": "do_syscall_64", "file": "kernel"} in frames
    (profile,) = document["profiles"]  # type: ignore[misc]
    assert (profile["unit"], profile["endValue"], profile["name"]) == ("seconds", 0.875, "cpu-clock")
    named = {
        tuple(frames[index]["name"] for index in stack): weight
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True)
    }
    assert named[("_start", "inner")] == 0.5


def test_speedscope_has_equal_callers_side_by_side(tmp_path: Path):
    a, b, c = (Frame(name) for name in "abc")
    mixed = Stacks("t", "s", {(a, b): 1.0, (c,): 2.0, (a,): 3.0, (a, b, c): 4.0, (a, c): 5.0})
    (profile,) = speedscope(mixed, tmp_path / "out.json")["profiles"]  # type: ignore[misc]
    assert profile["samples"] == [[0], [0, 1], [0, 1, 2], [0, 2], [2]]
    assert profile["weights"] == [3.0, 1.0, 4.0, 5.0, 2.0]


def test_speedscope_takes_several_events_and_names_a_unit_it_does_not_know(tmp_path: Path):
    cycles = Stacks("cycles:u", "cycles", {(Frame("f"),): 7})
    document = speedscope((STACKS, cycles), tmp_path / "out.json")
    assert [(p["name"], p["unit"]) for p in document["profiles"]] == [  # type: ignore[attr-defined]
        ("cpu-clock", "seconds"),
        ("cycles:u (cycles)", "none"),
    ]


names = st.text(max_size=8)
frame = st.builds(Frame, names, st.none() | names, st.none() | names, st.none() | st.integers(0, 9))
any_stacks = st.dictionaries(
    st.lists(frame, min_size=1, max_size=5).map(tuple), st.integers(0, 1000), max_size=8
)


@given(any_stacks)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_names_hold_the_file_keeps_the_whole_weight(
    tmp_path: Path, weights: dict[tuple[Frame, ...], int]
):
    stacks = Stacks("t", "samples", weights)
    document = speedscope(stacks, tmp_path / "out.json")
    assert sum(document["profiles"][0]["weights"]) == sum(weights.values())  # type: ignore[index]
