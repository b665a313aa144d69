"""Rows of costly_native.yaml: found at a program as it was written, and silent where its advice was followed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profkit.analysis.judge.rules.native.functions import native_functions
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


def test_each_row_has_a_program() -> None:
    programs = {one.stem for one in native.PROGRAMS.iterdir()}
    assert programs == set(native.TITLES)
    assert {row.id for row in native_functions()} <= programs


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
