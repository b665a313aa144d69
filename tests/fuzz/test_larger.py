"""Ten times the file is read in about ten times the work, by every reader: nothing is compared with everything."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.registry import all_formats, recognise_format
from tests.fuzz import folders
from tests.fuzz.larger import BOUNDED, CASES
from tests.fuzz.targets import JUDGE, TARGETS, Target

MOST = 12  # times the work for ten times as much
FLOOR = 5000  # lines


def work(act: Callable[[], object]) -> int:
    """Lines of Python that are run, each turn of a loop again: the same number on a busy machine."""
    count = 0

    def line(*_: object) -> Callable[..., object]:
        nonlocal count
        count += 1
        return line

    def call(_frame: FrameType, _event: str, _argument: object) -> Callable[..., object]:
        return line

    before = sys.gettrace()
    sys.settrace(call)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def work_of_reading(target: Target, data: bytes, folder: Path) -> int:
    folder.mkdir(exist_ok=True)
    read: list[bool] = []
    lines = work(lambda: read.append(target.try_input(data, folder, JUDGE)))
    assert read == [True]
    return lines


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases])
def test_ten_times_the_file_is_read_and_judged_in_ten_times_the_work(
    tmp_path: Path, name: str, case: str
) -> None:
    size, make = CASES[name][case]
    target = TARGETS[name]
    small, large = make(size), make(10 * size)
    assert len(large) > 2 * len(small)
    target.try_input(
        large, tmp_path, JUDGE
    )  # what is imported, compiled and kept of names counts for neither
    few, many = (work_of_reading(target, data, tmp_path) for data in (small, large))
    assert many <= MOST * few + FLOOR, f"{many / few:.1f} times the work"


def test_every_reader_is_tried_with_a_larger_file(tmp_path: Path) -> None:
    assert CASES.keys() | BOUNDED == TARGETS.keys()
    read = set()
    for name in CASES:
        path = tmp_path / name / TARGETS[name].file
        path.parent.mkdir()
        size, make = next(iter(CASES[name].values()))
        data = make(size)
        folders.write(data, path) if TARGETS[name].is_folder else path.write_bytes(data)
        with suppress(UnreadableReport):
            read.add(recognise_format(path).name)
    unread = {
        form.name for form in all_formats() if form.conversion is not None
    }  # its tool makes another one of it
    assert {form.name for form in all_formats()} - read == unread | {
        "ncu-repz"
    }  # a packed one, which is refused


def test_the_count_sees_what_is_compared_with_everything() -> None:
    def twice(n: int) -> int:
        return work(lambda: [one for one in range(n) if not any(one < other < one for other in range(n))])

    assert twice(300) > 50 * twice(30)
