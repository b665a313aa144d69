"""`profkit history replay` as a user calls it: the past decided again, by these rules or by others."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.types import AcceptedChange
from profkit.regression.history import open_history
from tests.cli_runner import Said, profkit
from tests.regression.history.entries import entry, value

NOISE = (0.003, -0.004, 0.001, 0.005, -0.002, 0.0, -0.005, 0.004, -0.001, 0.002, -0.003)


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """50 nights: 10 % more from the fortieth on, and a wild one before."""
    path = tmp_path / "nights.sqlite"
    with open_history(path) as history:
        for night in range(50):
            level = 1.5 if night == 20 else 1.1 if night >= 40 else 1.0
            history.add(entry(night, value(number=1e-3 * level * (1 + NOISE[night * 7 % 11]))))
    return path


def replay(nights: Path, *arguments: str) -> Said:
    return profkit("history", "replay", "--history", nights, *arguments, cwd=nights.parent)


def test_the_past_is_told_night_by_night(nights: Path) -> None:
    said = replay(nights)
    assert said.code == 0, said.err
    sums = "1 regression, 7 nights with an open regression, 3 nights with a candidate regression, 32 quiet nights"
    assert f"50 nights: {sums}, 7 new" in " ".join(said.out.split())
    assert "for 3 nights in a row" in said.out


def test_another_rule_says_what_it_would_have_done(nights: Path) -> None:
    def alarm(*settings: str) -> list[int]:
        said = replay(nights, "--format", "json", *settings)
        assert said.code == 0, said.err
        (series,) = said.json()["series"]
        return [i for i, night in enumerate(series["nights"]) if night["code"] == "nights"]

    assert alarm() == [42]
    assert alarm("--set", "nights=2") == [41]
    assert alarm("--set", "nights=1") == [20, 40]
    assert alarm("--set", "relative=12%") == []


def test_what_was_accepted_and_what_a_re_run_said_is_known(nights: Path) -> None:
    with open_history(nights) as history:
        first = history.entries()[40]
        history.accept(AcceptedChange(first.workload, first.started, "checks were added"))
    (series,) = replay(nights, "--format", "json").json()["series"]
    assert series["alarms"] == 0
    assert series["nights"][-1]["code"] == "held"


@pytest.mark.parametrize(
    ("setting", "says"),
    [("nigts=2", "no 'nigts'"), ("nights", "no value"), ("nights=two", "nights is 'two'")],
)
def test_a_rule_that_is_none_is_refused_by_name(nights: Path, setting: str, says: str) -> None:
    said = replay(nights, "--set", setting)
    assert said.code == 2
    assert says in said.err
    assert "fix:" in said.err
