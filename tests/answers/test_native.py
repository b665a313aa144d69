"""Rows of costly_native.yaml: found at a program as it was written, and silent where its advice was followed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profkit.analysis.judge.rules.native.functions import (
    NativeFunctions,
    costly_row,
    native_functions,
    unlined_functions,
)
from profkit.core.types import CodeLine, CodeSpot, LineCode, Place
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


def of_line(source: str, *below: tuple[str, float]) -> str | None:
    """Return the row of a line with such a source and such functions below it."""
    frames = tuple(CodeLine(name, None, None, part) for name, part in below)
    place = Place(function="rest", file="book.cpp", line=47)
    found = costly_row(CodeSpot(0.9, 2.0, "native", place, code=LineCode(source), below=frames))
    return found[0].id if found is not None else None


# As perf saw them: what a search by iterators of a tree, a list and a vector spends its time in.
SEARCH = "return std::lower_bound(levels.begin(), levels.end(), price,"
IN_TREE = (("std::lower_bound", 1.0), ("std::_Rb_tree_iterator::operator++", 0.99), ("std::advance", 0.5))
IN_LIST = (("std::lower_bound", 1.0), ("std::_List_iterator::operator++", 0.01), ("std::advance", 0.99))
IN_VECTOR = (
    ("std::lower_bound", 0.96),
    ("__gnu_cxx::__normal_iterator::operator++", 0.11),
    ("std::advance", 0.02),
)
BY_MEMBER = (("std::map::lower_bound", 1.0), ("std::_Rb_tree::_M_lower_bound", 0.99))
SET_OF_STRINGS = (("std::find", 1.0), ("std::char_traits::compare", 0.53), ("std::_Rb_tree_increment", 0.42))


@pytest.mark.parametrize(
    ("source", "below", "row"),
    [
        (SEARCH, IN_TREE, "tree-search-walked"),
        (SEARCH, (("lower_bound", 1.0), ("std::_Rb_tree_increment", 0.98)), "tree-search-walked"),
        ("auto at = std::find(names.begin(), names.end(), key);", SET_OF_STRINGS, "tree-search-walked"),
        (SEARCH, IN_LIST, "list-search-walked"),
        (SEARCH, IN_VECTOR, None),
        ("return levels.lower_bound(price);", BY_MEMBER, None),
        ("for (auto& level : levels)", (("std::_Rb_tree_increment", 0.98),), None),
        (
            "auto at = std::find(ids.begin(), ids.end(), id);",
            (("std::find", 1.0), ("std::__find_if", 1.0)),
            "searched",
        ),
    ],
)
def test_a_search_by_iterators_is_told_by_what_it_walks(
    source: str, below: tuple[tuple[str, float], ...], row: str | None
) -> None:
    assert of_line(source, *below) == row


# std::async makes the state that it shares with the future, in which the thread is started.
STARTED = (
    ("std::async", 1.0),
    ("std::shared_ptr::shared_ptr", 1.0),
    ("std::__shared_count::__shared_count", 1.0),
    ("std::thread::_M_start_thread", 0.95),
    ("pthread_create", 0.95),
)
COPIED = (
    ("std::shared_ptr::shared_ptr", 0.6),
    ("std::_Sp_counted_base::_M_add_ref_copy", 0.55),
    ("__gnu_cxx::__atomic_add", 0.55),
)
LET_GO = (
    ("std::_Sp_counted_base::_M_release", 0.9),
    ("std::_Sp_counted_ptr_inplace::_M_dispose", 0.8),
    ("std::vector::~vector", 0.8),
)


@pytest.mark.parametrize(
    ("below", "row"),
    [
        (COPIED, "shared-ptr-copied"),
        (STARTED, "thread-made"),
        ((*STARTED, *COPIED), "thread-made"),
        (LET_GO, None),
        ((("std::__shared_count::__shared_count", 1.0), ("std::make_shared", 1.0)), None),
    ],
)
def test_a_shared_ptr_is_copied_where_its_locked_instructions_are(
    below: tuple[tuple[str, float], ...], row: str | None
) -> None:
    assert of_line("rows.push_back(make(y));", *below) == row


@pytest.mark.parametrize("row", native_functions(), ids=lambda row: row.id)
def test_c_is_told_nothing_of_the_library_of_cpp(row: NativeFunctions) -> None:
    in_c, in_cpp = (row.change_for(Place(function="main", file=name)) for name in ("a.c", "a.cpp"))
    assert in_cpp == row.change
    if row.id in ("printed-numbers", "strtod"):
        assert "std::" not in in_c
    else:
        assert in_c == row.change
