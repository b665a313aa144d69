"""Each row of the table of costly functions has a program that proves it, and is silent once its advice is taken."""

from __future__ import annotations

import pytest

from profkit.analysis.judge.rules.spot_functions import costly_functions
from tests.answers.costly import WORTH_IT, missing_libraries, row_programs, try_row


def test_each_row_has_a_program_and_each_program_a_row() -> None:
    names = [row.name for row in costly_functions()]
    assert len(set(names)) == len(names)
    assert {program.row for program in row_programs().values() if not program.rule} == set(names)


@pytest.mark.parametrize("name", row_programs())
def test_a_row_is_told_of_its_program_and_neither_of_the_mended_one_nor_of_a_healthy_use(name: str) -> None:
    program = row_programs()[name]
    if missing := missing_libraries(program):
        pytest.skip(f"needs {', '.join(missing)}")
    result = try_row(program)
    assert result.fires, result.instead
    assert result.silent
    assert all(result.healthy)
    assert result.equal
    assert result.gain >= WORTH_IT
