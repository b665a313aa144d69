"""Stacks as a flame graph: nothing lost but what is told to be, small enough for a page."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from profkit.analysis.stacks.files import (
    DEEPEST_BOX,
    flame_of,
    read_speedscope,
    without_notebook,
    write_speedscope,
)
from profkit.core.errors import UnreadableReport
from profkit.core.types import Frame, Stacks
from profkit.reporting.html.elements import flame_data, island

MAIN, WORK, IDLE = Frame("main", "python", "a.py"), Frame("work", "libwork.so"), Frame("idle", "[kernel]")


def stacks(*weights: tuple[tuple[Frame, ...], float]) -> Stacks:
    return Stacks("cpu-clock", "s", dict(weights))


def many(count: int = 5000, functions: int = 800) -> Stacks:
    dice = random.Random(7)
    frames = [Frame(f"at::native::function_{i}<float, {i}>", "libtorch_cpu.so") for i in range(functions)]
    made: dict[tuple[Frame, ...], float] = {}
    while len(made) < count:
        made[tuple(dice.choices(frames[:40], k=4) + dice.choices(frames, k=dice.randint(2, 30)))] = (
            dice.random() ** 3
        )
    return Stacks("cpu-clock", "s", made)


def test_what_stacks_have_in_common_is_one_box_and_the_widest_child_is_first() -> None:
    found = flame_of(stacks(((MAIN, IDLE), 1.0), ((MAIN, WORK), 3.0), ((MAIN,), 1.0)))
    assert found is not None
    told = [(box.name, box.depth, box.value, box.own) for box in found.boxes]
    assert told == [("main (a.py)", 0, 5.0, 1.0), ("work", 1, 3.0, 3.0), ("idle_[k]", 1, 1.0, 1.0)]
    assert [box.kind for box in found.boxes] == ["python", "native", "kernel"]
    assert found.left_out == 0


def test_children_are_never_wider_than_their_parent() -> None:
    found = flame_of(many())
    assert found is not None
    open_: list[list[float]] = []
    for box in found.boxes:
        del open_[box.depth :]
        if open_:
            open_[-1][1] -= box.value
            assert open_[-1][1] > -1e-9 * found.total
        open_.append([box.value, box.value])


def test_a_recursion_without_end_is_cut() -> None:
    found = flame_of(stacks(((MAIN,) * 5000, 1.0)))
    assert found is not None
    assert len(found.boxes) == DEEPEST_BOX


def test_hostile_names_are_data() -> None:
    bad = Frame('</script><script>alert("1")</script>\u202e' + "x" * 4000, "\ud800.so")
    found = flame_of(stacks(((bad,), 1.0)))
    assert found is not None
    made = island(flame_data(found))
    assert "</script" not in made
    assert len(made) < 1000
    assert json.loads(made)["boxes"] == [0, 0, 1_000_000]


@pytest.mark.parametrize(
    "weights", [(), (((MAIN,), 0.0),), (((MAIN,), -1.0),), (((MAIN,), 1e308), ((WORK,), 1e308))]
)
def test_nothing_is_no_graph(weights: tuple[tuple[tuple[Frame, ...], float], ...]) -> None:
    assert flame_of(stacks(*weights)) is None


def test_what_profkit_writes_for_viewers_it_reads_back(tmp_path: Path) -> None:
    one = stacks(((MAIN, WORK), 3.0), ((MAIN, IDLE), 1.0))
    cycles = Stacks("cycles", "cycles", {(WORK,): 7.0})
    path = tmp_path / "trace.speedscope.json"
    write_speedscope((one, cycles), path, "run")
    first, second = read_speedscope(path)
    assert first == one
    assert dict(second.weights) == {(WORK,): 7.0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"shared": {"frames": []}, "profiles": [{"type": "sampled"}]}',
        '{"shared": {"frames": [{"name": 1}]}, "profiles": [{"type": "sampled", "name": "a", "unit": "none",'
        ' "samples": [[5]], "weights": [1]}]}',
        '{"shared": {"frames": [{"name": "f"}]}, "profiles": [{"type": "sampled", "name": "a", "unit": "none",'
        ' "samples": [[0]], "weights": [NaN]}]}',
        '{"shared": {"frames": [{"name": "f"}]}, "profiles": [{"type": "sampled", "name": "a", "unit": "none",'
        ' "samples": [[0], [0]], "weights": [1]}]}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_refused_in_words(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.speedscope.json"
    path.write_text(text)
    with pytest.raises(UnreadableReport, match=r"trace\.speedscope\.json"):
        read_speedscope(path)


def test_the_flame_of_a_cell_begins_with_the_cell():
    launcher, cell = Frame("_run_code", file="<frozen runpy>"), Frame("<module>", file="cell [3]")
    found = flame_of(
        without_notebook(stacks(((launcher, cell, WORK), 1.0), ((launcher, WORK), 0.5), ((cell, WORK), 2.0)))
    )
    assert (found.boxes[0].depth, found.boxes[0].value) == (0, 3.0)
    assert [box.value for box in found.boxes] == [3.0, 3.0, 0.5, 0.5]
