"""docs/guides.md names a test for each thing that a guide's reader types: it is there, and it types that."""

from __future__ import annotations

import ast
import functools
import re
from typing import NamedTuple

import pytest

from tests.conftest import ROOT

NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PLAIN = {"profkit", "python", "tests", "file", "name", "command"}  # words of a row that any test has


class Row(NamedTuple):
    """One row of the page: what the guide has, what it is here, and the tests."""

    guide: str
    here: str
    tests: tuple[tuple[str, str], ...]


def rows() -> list[Row]:
    found = []
    for line in (ROOT / "docs" / "guides.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == 3 and cells[0] not in ("guide", "---"):
            found.append(Row(cells[0], cells[1], tuple(NAMED.findall(cells[2]))))
    return found


@functools.cache
def functions(path: str) -> dict[str, str]:
    """The tests of a file, by name with their source and that of the module around them."""
    text = (ROOT / path).read_text()
    return {node.name: text for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}


def words_of(row: Row) -> set[str]:
    """What is typed in a row: the longer words of its code, or of its text where it has none."""
    code = " ".join(re.findall(r"`([^`]+)`", f"{row.guide} {row.here}"))
    return {word.lower() for word in re.findall(r"[A-Za-z]\w{2,}", code or f"{row.guide} {row.here}")} - PLAIN


ROWS = rows()


def test_the_page_has_rows_of_every_guide() -> None:
    assert len(ROWS) > 100


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", "-", row.guide)[:50])
def test_each_row_has_a_test_that_types_what_the_guide_has(row: Row) -> None:
    assert row.tests, "no test is named"
    for path, name in row.tests:
        assert name in functions(path), f"{path} has no {name}"
    texts = " ".join(functions(path)[name].lower() for path, name in row.tests)
    assert any(word in texts for word in words_of(row)), f"{row.tests} have none of {sorted(words_of(row))}"
