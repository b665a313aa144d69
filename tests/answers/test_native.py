"""Rows of costly_native.yaml: found at a program as it was written, and silent where its advice was followed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profkit.analysis.judge.rules.native.functions import costly_row, native_functions, unlined_functions
from profkit.core.types import CodeLine, CodeSpot, Place
from tests.answers import native

# All of them are run by `python -m tests.answers.native`: compiling each twice takes half a minute.
TRIED_HERE = (
    "container-cloned",
    "container-copied",
    "getc",
    "pow",
    "regex-made",
    "shared-ptr-copied",
    "sip-hash",
    "thrown",
)
# Of those that hold without debug information, where a place is a function.
TRIED_PLAIN = ("container-copied", "dynamic-cast", "getc", "pow", "regex-made", "thrown")


def test_each_row_has_a_program() -> None:
    programs = {one.stem for one in native.PROGRAMS.iterdir()}
    assert programs == set(native.TITLES)
    assert {row.id for row in native_functions()} <= programs


@pytest.mark.thorough
@pytest.mark.perf
@pytest.mark.parametrize("name", TRIED_HERE)
def test_a_row_is_found_where_it_costs_and_not_where_its_advice_was_followed(
    name: str, tmp_path: Path
) -> None:
    source = next(one for one in native.PROGRAMS.iterdir() if one.stem == name)
    compiler = native.COMPILERS[source.suffix]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    written, mended = (
        native.tried(native.compiled(source, tmp_path, fixed=fixed), 0.5) for fixed in (False, True)
    )
    assert written.printed == mended.printed
    assert written.says(native.TITLES[name])
    assert not mended.says(native.TITLES[name])


@pytest.mark.thorough
@pytest.mark.perf
@pytest.mark.parametrize("name", TRIED_PLAIN)
def test_a_row_is_found_without_debug_information(name: str, tmp_path: Path) -> None:
    source = next(one for one in native.PROGRAMS.iterdir() if one.stem == name)
    if shutil.which(native.COMPILERS[source.suffix]) is None:
        pytest.skip("its compiler is not installed")
    written, mended = (
        native.tried(native.compiled(source, tmp_path, fixed=fixed, debug=False), 0.5)
        for fixed in (False, True)
    )
    assert written.says(native.UNLINED[name])
    assert not mended.says(native.UNLINED[name])


def test_without_lines_a_row_claims_no_more_than_its_functions_prove() -> None:
    unlined = {row.id: row for row in unlined_functions()}
    # The text alone says what is searched, cut or decoded from the start, and whether a loop waits for a deadline.
    assert not unlined.keys() & {
        "clock",
        "time-zone",
        "searched",
        "rest-copied",
        "nth-character",
        "pair-copied",
    }
    assert "small" not in unlined["pow"].title
    assert not any(row.text or row.without for row in unlined.values())


@pytest.mark.parametrize(("between", "found"), [((), True), ((("solve", 0.9),), False)])
def test_pow_counts_where_the_function_itself_calls_it(
    between: tuple[tuple[str, float], ...], found: bool
) -> None:
    below = tuple(CodeLine(name, None, None, part) for name, part in (*between, ("pow", 0.8)))
    spot = CodeSpot(0.8, 2.0, "native", Place(function="undistort"), below=below)
    assert (costly_row(spot) is not None) == found
