"""Costs by source line, from recorded callgrind files."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.core.types import Profile
from profkit.profilers.valgrind.read import read_callgrind

DATA = Path(__file__).resolve().parents[2] / "data" / "valgrind"


def lines_of(path: Path) -> Profile:
    return next(one for one in read_callgrind(path).profiles if one.kind == "counted-lines")


def test_the_line_of_the_misses_is_that_of_the_inlined_code_in_its_own_file() -> None:
    lines = lines_of(DATA / "list.lines.callgrind")
    worst = max(lines.hotspots, key=lambda one: one.counters["DLmr"])
    assert (worst.function, worst.file, worst.line) == ("walk", "step.h", 3)
    assert worst.counters["DLmr"] == 63489  # of 65,536 nodes
    assert lines.total == 589832  # all that was collected stands in this function


def test_lines_are_followed_over_addresses_and_calls() -> None:
    lines = lines_of(DATA / "kernels.l3.callgrind")
    line = {(one.function, one.line): one for one in lines.hotspots}
    assert {one.file for one in lines.hotspots} == {"kernels.c"}
    assert line["add", 5].counters["D1mr"] == 65538  # the loop is one line of kernels.c


def test_a_file_without_lines_has_none(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("positions: instr\nevents: Ir\nfl=a.c\nfn=f\n0x10 5\ntotals: 5\n")
    assert [one.kind for one in read_callgrind(path).profiles] == ["counted-functions"]


def test_a_line_that_is_no_number_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("positions: line\nevents: Ir\nfl=a.c\nfn=f\n+x 5\ntotals: 5\n")
    with pytest.raises(UnreadableReport, match="no sound callgrind file"):
        read_callgrind(path)
