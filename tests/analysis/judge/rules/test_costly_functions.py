"""The table of functions that cost more than what they are used for: its rows as such.

Each row's own program is in tests/answers/costly.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from profkit.analysis.judge.rules.spot_functions import CostlyFunction, costly_functions
from tests.analysis.judge.rules.test_chain_rules import findings

PROGRAM = """
import time
{setup}
def work(n):
    {line}
until = time.perf_counter() + 0.6
n = 0
while time.perf_counter() < until:
    for _ in range(50):
        work(n)
        n += 1
"""


def told(folder: Path, setup: str, line: str) -> list[str]:
    found = findings(folder, PROGRAM.format(setup=setup, line=line))
    return [one.title for rule, one in found.items() if rule == "costly-helper"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("elements", "expected"),
    [(60_000, ["Each insertion into this sorted list moves what is behind it"]), (200, [])],
)
def test_an_insertion_into_a_sorted_list_is_told_where_the_list_is_long(
    elements: int, expected: list[str], tmp_path: Path
) -> None:
    setup = f"import bisect\nheld = list(range({elements}))"
    line = "bisect.insort(held, n % 7); held.pop()"
    assert told(tmp_path, setup, line) == expected


@pytest.mark.thorough
def test_a_draw_of_many_at_once_is_not_told_to_add_up_its_weights(tmp_path: Path) -> None:
    setup = "import random\nweights = [1, 2, 3, 4]"
    assert told(tmp_path, setup, "x = random.choices('ACGT', weights=weights, k=300)") == []


def test_each_row_says_where_its_time_lies_and_what_to_write_instead() -> None:
    for row in costly_functions():
        assert bool(row.file) != bool(row.calls), row
        assert len(row.title) <= 90
        assert row.change
        for pattern in (
            row.file,
            row.text,
            row.without,
            row.beside,
            row.unless,
            row.again,
            row.also,
            row.given,
        ):
            re.compile(pattern)
        assert row.least >= 0.3


STANDARD = Path(os.__file__).parent
SOURCES = {
    path.relative_to(STANDARD.parent).as_posix(): path
    for path in STANDARD.rglob("*.py")
    if not {"site-packages", "test", "lib2to3"} & set(path.parts)
}
WITH_NAMES = [row for row in costly_functions() if row.functions]


@pytest.mark.parametrize("row", WITH_NAMES, ids=lambda row: row.title)
def test_a_row_about_a_module_of_this_python_names_functions_that_are_in_it(row: CostlyFunction) -> None:
    """A name that no version has would prove nothing, silently."""
    texts = [path.read_text() for name, path in SOURCES.items() if re.search(f"(?:{row.file})$", f"/{name}")]
    names = {name.rpartition(".")[2] for name in row.functions}
    assert not texts or any(f"def {name}(" in text for text in texts for name in names)
