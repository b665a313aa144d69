"""Stacks of a run or a report as speedscope reads them: whole ones, GPU time by range, and tables by function."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profkit.core.errors import UsageError
from profkit.core.progress import Silent
from profkit.core.run_folder import write_run
from profkit.profiling.summarize import read_judged
from profkit.reporting.exports.sources import find_sources
from profkit.reporting.exports.speedscope import pieces
from tests import documents
from tests.conftest import ROOT

DATA = ROOT / "tests" / "data"
UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def exported(path: Path) -> Any:
    text = "".join(pieces(find_sources(path), lambda: read_judged(path), Silent()))
    return check_shape(json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no number")))


def check_shape(document: Any) -> Any:
    """The document, which is as speedscope's published schema (file-format-schema.json of 1.25) says."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(set(frame) <= {"name", "file", "line", "col"} and frame["name"] for frame in frames)
    assert document["profiles"]
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert profile["type"] == "sampled"
        assert profile["unit"] in UNITS
        assert len(profile["samples"]) == len(profile["weights"]) > 0
        assert sum(profile["weights"]) == pytest.approx(profile["endValue"])
        assert all(0 <= number < len(frames) for stack in profile["samples"] for number in stack)
    return document


def test_perfs_stacks_come_whole_and_first() -> None:
    document = exported(DATA / "perf" / "script.two-events.txt")
    assert max(len(stack) for stack in document["profiles"][0]["samples"]) > 2
    assert "no callers" not in document["profiles"][0]["name"]


def test_gpu_time_stands_under_its_range() -> None:
    document = exported(DATA / "cuda" / "nsys" / "hostbound.sqlite")
    profile = document["profiles"][0]
    assert profile["name"] == "GPU time by range and kernel"
    assert profile["unit"] == "seconds"


def test_a_table_of_functions_says_that_it_knows_no_callers() -> None:
    document = exported(DATA / "valgrind" / "kernels.l2.callgrind")
    assert all("(no callers)" in profile["name"] for profile in document["profiles"])


def test_a_run_has_the_stacks_of_its_artifacts_and_its_tables(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, documents.document())
    (run / "artifacts").mkdir()
    text = (DATA / "perf" / "script.two-events.txt").read_text()
    (run / "artifacts" / "trace.script.txt").write_text(text)
    names = [profile["name"] for profile in exported(run)["profiles"]]
    assert "no callers" not in names[0]
    assert any("cProfile" in name for name in names)


def test_what_has_no_stacks_is_told_so_with_the_line_that_makes_some(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(run, documents.empty())
    with pytest.raises(UsageError, match="no stacks and no profile") as caught:
        exported(run)
    assert caught.value.fix is not None
    assert "--passes stacks,trace" in caught.value.fix
