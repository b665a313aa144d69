"""Why a version is slower: the calls that it makes, counted in real runs, before anything that takes longer."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import Silent
from profkit.core.types import Frame, Hotspot, Profile
from profkit.regression.paired import PairedOptions, VersionsRequest, compare_versions
from profkit.regression.paired import why as why_module
from profkit.regression.paired.checkout import Version
from profkit.regression.paired.why import (
    FURTHER_PASSES,
    FunctionCalls,
    Search,
    changed_calls,
    counts_of,
)
from profkit.regression.profile_process import ProfileRequest, ProfileResult
from tests import gpu_documents
from tests.documents import document
from tests.git_repository import git, repository
from tests.paired_documents import change_of, times
from tests.spoken import spoken, spoken_lines

PROGRAM = """
def parse(words):
    return words[0]


def main():
    words = [str(n) for n in range(300)]
    for _ in range(800):
        parse(words)


main()
"""


def committed(place: Path, program: str) -> None:
    (place / "program.py").write_text(program)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "Another program")


def why(place: Path, **more: object) -> VersionsRequest:
    pairs = PairedOptions(budget=40.0, seed=1, counts="never")
    usual = {"base": "HEAD~1", "cwd": place, "pairs": pairs, **more}
    return VersionsRequest((sys.executable, "program.py"), **usual)  # type: ignore[arg-type]


@pytest.mark.thorough
def test_a_function_that_is_called_more_is_the_reason_and_no_slower_instrument_runs(tmp_path: Path) -> None:
    place = repository(tmp_path / "repo")
    committed(place, PROGRAM)
    committed(place, PROGRAM.replace("    return words[0]", "    return sorted(words)[0]"))
    found = compare_versions(why(place), Silent()).comparison
    assert found.outcome == "regressed"
    (cause,) = [cause for cause in found.causes if cause.kind == "calls"]
    assert "sorted is called 80" in spoken(cause)
    assert spoken(cause).endswith("from parse (program.py:2).")
    assert (found.blamed[0].line, found.blamed[0].text) == (3, "return sorted(words)[0]")
    assert any("were skipped" in note for note in spoken_lines(found.notes))
    assert found.functions == ()
    assert all(change.unit != "s" or change.baseline.groups for change in found.changes)


def counted(
    *functions: tuple[str, int, float], edges: tuple[tuple[str, str, int], ...] = ()
) -> FunctionCalls:
    """Functions of `tool.py` with calls and seconds of 1 s, and who calls them."""
    spots = tuple(
        Hotspot(name, seconds, seconds, calls, "/r/tool.py", 3) for name, calls, seconds in functions
    )
    calls = tuple(
        Hotspot(caller, 0.1, 0.1, count, "/r/tool.py", 3, callee=Frame(callee, None, "/r/tool.py", 3))
        for caller, callee, count in edges
    )
    profiles = (
        Profile("own time by function", "s", 1.0, spots, "own-time"),
        Profile("own functions and what they call", "s", 1.0, calls, "program-calls"),
    )
    found = counts_of(replace(document(), profiles=profiles), Path("/r"))
    assert found is not None
    return found


def names(before: FunctionCalls, after: FunctionCalls, *, worse: bool = True) -> list[str]:
    return [change.function[1] for change in changed_calls(before, after, worse=worse)]


def test_on_a_device_one_count_of_calls_is_enough_and_the_trace_of_each_version_has_its_time_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[tuple[str, ...], float]] = []
    running: list[int] = []

    def profile(request: ProfileRequest, *_: object) -> ProfileResult:
        running.append(1)
        time.sleep(0.1)
        assert len(running) == 1 or request.passes == ("cprofile",)
        running.pop()
        assert request.passes is not None
        assert request.passes_budget is not None
        asked.append((request.passes, request.passes_budget))
        return ProfileResult("done", document=gpu_documents.of_trace())

    monkeypatch.setattr(why_module, "profile_once", profile)
    version = Version("a", ("./train",), tmp_path)
    change = change_of(times(0.1))
    search = Search(
        (version, version), change, lambda v: ProfileRequest("v", v.command), tmp_path, Silent(), 10.0
    )
    found = search.run()
    assert len(found.documents) == 2
    assert [passes for passes, _ in asked] == [("cprofile",)] * 2 + [FURTHER_PASSES] * 2
    assert all(90 < limit <= 96 for _, limit in asked[2:])


def test_of_a_chain_of_calls_the_first_is_named() -> None:
    before = counted(
        ("main", 1, 0.9),
        ("parse", 10, 0.5),
        ("scan", 100, 0.4),
        edges=(("main", "parse", 10), ("parse", "scan", 100)),
    )
    after = counted(
        ("main", 1, 0.9),
        ("parse", 30, 0.5),
        ("scan", 300, 0.4),
        edges=(("main", "parse", 30), ("parse", "scan", 300)),
    )
    assert names(before, after) == ["parse"]
