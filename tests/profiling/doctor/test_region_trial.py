from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.profilers import region_trial
from profkit.profilers.perf.probe import perf_region
from profkit.profilers.valgrind.probe import valgrind_region

Fake = Callable[[dict[str, str]], Path]


@pytest.mark.perf
def test_a_region_switches_perf_on_this_machine() -> None:
    [check] = perf_region("perf")
    assert (check.state, check.fix) == ("ok", None), check.detail


@pytest.mark.valgrind
def test_a_region_switches_callgrind_on_this_machine() -> None:
    [check] = valgrind_region("valgrind")
    assert (check.state, check.fix) == ("ok", None), check.detail


@pytest.mark.perf
def test_a_workload_without_its_region_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region_trial, "_WORKLOAD", "sum(range({outside})) or {inside}")
    [check] = perf_region("perf")
    assert check.state == "refused"
    assert "left no record of its region" in check.detail


@pytest.mark.valgrind
def test_a_callgrind_that_counts_everything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = "import profkit\nwith profkit.region('doctor'):\n    sum(range({outside} * 4)) or {inside}"
    monkeypatch.setattr(region_trial, "_WORKLOAD", workload)
    [check] = valgrind_region("valgrind")
    assert check.state == "refused"
    assert "not the region's" in check.detail


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("echo 'something odd' >&2; exit 7", "something odd"),
        ("exit 0", "counts are not there"),
        ("kill -9 $$", "SIGKILL"),
    ],
)
def test_a_tool_that_fails_is_told_with_its_own_words(fake_tools: Fake, script: str, word: str) -> None:
    folder = fake_tools({"tool": script})
    for check in (*perf_region(str(folder / "tool")), *valgrind_region(str(folder / "tool"))):
        assert check.state == "refused"
        assert word in check.detail
