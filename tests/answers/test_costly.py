"""Each row of the table of costly functions has a program that proves it, and is silent once its advice is taken.

A row is judged by what was recorded of its programs, which takes a tenth of the time, and run where nothing is. To run
those with a recording, too, is thorough, but for the ones of ALWAYS: sampler, counter and readers together.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.analysis.judge.rules.spot_functions import costly_functions
from tests.answers.costly import WORTH_IT, RowResult, missing_libraries, row_programs, try_row
from tests.answers.costly_recordings import RECORDINGS, judge_recording, load_recording

# One of pure Python, and one of a library that every set-up has.
ALWAYS = ("strptime", "numpy-vectorize")

# What is told of a version in which the row's advice is taken, or of a healthy use, and is true of it: the measuring
# loop asks again and again, an import is no longer needed, or there is another cause beside the row's.
TRUE_BESIDE = {
    "codecs-open": {("after", "repeated-work")},
    "connections": {("after", "calls-in-loop")},
    "dateutil": {("after", "heavy-imports")},
    "executors": {("healthy0", "small-tasks")},
    "few-numbers": {("after", "heavy-imports")},
    "file-again": {("healthy0", "costly-helper"), ("healthy1", "costly-helper")},
    "growing-value": {("healthy1", "running-sum")},
    "pickle-in-python": {("after", "costly-helper")},
    "singular-vectors": {("after", "diagonal-product")},
    "sqlalchemy-compiled": {("after", "calls-in-loop")},
}


def check_that_it_holds(result: RowResult) -> None:
    assert result.fires, result.instead
    assert result.silent
    assert all(result.healthy)
    assert result.equal
    assert result.gain >= WORTH_IT


def test_each_row_has_a_program_and_each_program_a_row() -> None:
    names = [row.name for row in costly_functions()]
    assert len(set(names)) == len(names)
    assert {program.row for program in row_programs().values() if not program.rule} == set(names)


def test_each_recording_is_one_of_a_program() -> None:
    assert {path.name.partition(".")[0] for path in RECORDINGS.glob("*.xz")} <= set(row_programs())


@pytest.mark.thorough
@pytest.mark.parametrize("name", row_programs())
def test_a_row_is_told_of_its_recorded_program_and_neither_of_the_mended_one_nor_of_a_healthy_use(
    name: str, tmp_path: Path
) -> None:
    """A row without a recording of its text as it is now is run."""
    program = row_programs()[name]
    if (recording := load_recording(name)) is not None:
        result = judge_recording(program, recording, tmp_path)
        check_that_it_holds(result)
        assert result.beside == TRUE_BESIDE.get(name, set())
    elif missing := missing_libraries(program):
        pytest.skip(f"needs {', '.join(missing)}")
    else:
        check_that_it_holds(try_row(program, tmp_path))


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [name if name in ALWAYS else pytest.param(name, marks=pytest.mark.thorough) for name in row_programs()],
)
def test_a_row_is_told_of_its_program_and_neither_of_the_mended_one_nor_of_a_healthy_use(
    name: str, tmp_path: Path
) -> None:
    program = row_programs()[name]
    if load_recording(name) is None:
        pytest.skip("has no recording, and is run by the other test")
    if missing := missing_libraries(program):
        pytest.skip(f"needs {', '.join(missing)}")
    check_that_it_holds(try_row(program, tmp_path))
