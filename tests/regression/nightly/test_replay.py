"""A year of recorded runs, decided night by night by their own dates: true changes are found, false ones are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from nights import document, quiet, write

from profkit.core.progress import Silent
from profkit.core.types import Night, PassResult, RunDocument
from profkit.regression.nightly.config import read_config
from profkit.regression.nightly.replay import replay_nights, worst_code
from profkit.regression.nightly.workflow import NightOptions
from profkit.reporting.views.history import nights_view
from tests.reporting.shown import night_page, night_text, text_of

DAYS = 66  # the changes lie at 45 (slower), 35 (moved), 30 and 60 (spiky)


def told(folder: Path, runs: Sequence[RunDocument], names: Sequence[str], more: str = "") -> list[Night]:
    write(folder / "runs", list(runs))
    path = folder / "night.yaml"
    workloads = "".join(f"  - {{name: {name}}}\n" for name in names)
    path.write_text(f"version: 1\nworkloads:\n{workloads}{more}")
    nights, _ = replay_nights(
        read_config(path, profiling=False), NightOptions(runs=(folder / "runs",)), Silent()
    )
    return nights


def outcomes(nights: Sequence[Night], name: str) -> list[str]:
    return [w.outcome for night in nights for w in night.workloads if w.name == name]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> list[Night]:
    runs = []
    for day, (a, b, c, d) in enumerate(zip(*(quiet(n, DAYS) for n in "abcd"), strict=True)):
        runs.append(document("quiet", day, a))
        runs.append(document("slower", day, b * (1.08 if day >= 45 else 1)))
        runs.append(document("spiky", day, c * (1.3 if day in (30, 60) else 1), hot=day == 60))
        if day != 44:
            runs.append(
                document("moved", day, d * (0.6 if day >= 35 else 1), cpu="Other 9000" if day >= 35 else None)
            )
    return told(tmp_path_factory.mktemp("year"), runs, ("quiet", "slower", "spiky", "moved"))


def test_a_night_is_a_day_of_the_runs_and_nothing_is_judged_in_the_first_week(year: list[Night]) -> None:
    assert len(year) == DAYS
    assert (year[0].id, year[-1].id) == ("2026-01-01", "2026-03-07")
    assert outcomes(year[:7], "quiet") == ["new"] * 7


def test_nothing_is_alarmed_where_nothing_changed(year: list[Night]) -> None:
    assert set(outcomes(year[7:], "quiet")) == {"pass"}
    assert all(
        m.detectable is not None and m.detectable < 0.1 for m in year[-1].workloads[-1].metrics if m.gates
    )


def test_a_step_is_a_candidate_at_once_confirmed_by_the_third_night_and_told_until_it_is_gone(
    year: list[Night],
) -> None:
    found = outcomes(year, "slower")
    assert found[43:48] == ["pass", "pass", "ambiguous", "ambiguous", "regressed"]
    assert set(found[47:]) == {"regressed"}
    assert [year[n].exit_code for n in (45, 47)] == [0, 1]
    slower = next(w for w in year[-1].workloads if w.name == "slower")
    gate = next(m for m in slower.metrics if m.gates)
    assert gate.commit == f"{46:040x}"
    assert gate.good_commit in (f"{44:040x}", f"{45:040x}")
    assert [p.index for p in gate.change_points] == [45]


def test_one_night_that_stands_out_fails_nothing_and_a_hot_one_is_not_valid(year: list[Night]) -> None:
    found = outcomes(year, "spiky")
    assert found[30:32] == ["ambiguous", "pass"]
    assert found[60:62] == ["invalid", "pass"]
    assert "regressed" not in found
    assert year[60].exit_code == 1  # the step of the other workload stands by then


def test_another_machine_is_a_new_segment_and_not_an_improvement(year: list[Night]) -> None:
    found = outcomes(year, "moved")
    assert "improved" not in found
    assert found[35] == "invalid"
    assert set(found[36:42]) <= {"new", "missing"}
    assert found[-1] == "pass"


def test_a_workload_without_a_run_that_night_is_missing_and_never_green(year: list[Night]) -> None:
    assert outcomes(year, "moved")[44] == "missing"
    assert year[44].exit_code == 5


def test_a_night_is_a_day_of_utc_whatever_zone_a_run_was_told_in(tmp_path: Path) -> None:
    runs = [document("a", day, 1e-3) for day in range(6)]
    runs[2] = replace(runs[2], started="2026-01-02T19:00:00-07:00")  # the same moment as 2026-01-03T02:00 UTC
    found = told(tmp_path, runs, ("a",))
    assert [night.id for night in found] == [f"2026-01-0{day}" for day in range(1, 7)]
    assert found[2].started == "2026-01-03T02:00:00+00:00"


def test_a_recorded_run_took_what_its_passes_took(tmp_path: Path) -> None:
    run = replace(document("a", 0, 1e-3), passes=(PassResult("timing", None, "finished", seconds=2.5),))
    assert told(tmp_path, [run], ("a",))[0].workloads[0].seconds == 2.5


def test_a_run_that_cannot_be_taken_is_named(tmp_path: Path) -> None:
    found = told(
        tmp_path, [document("a", 0, 1e-3), replace(document("a", 1, 1e-3), started="nowadays")], ("a",)
    )
    (note,) = found[-1].notes
    assert note.startswith("cannot take ")
    assert "run.json: 'nowadays' is not a date or time" in note


def test_days_without_a_run_are_told_on_the_night_after(tmp_path: Path) -> None:
    found = told(tmp_path, [document("a", day, 1e-3) for day in (0, 1, 2, 3, 6, 7, 9)], ("a",))
    assert {night.id: night.notes for night in found if night.notes} == {
        "2026-01-07": ("there is no run from 2026-01-05 to 2026-01-06: that night is missing",),
        "2026-01-10": ("there is no run of 2026-01-09: that night is missing",),
    }
    assert "no run from 2026-01-05" in " ".join(text_of(nights_view(found)).split())


def test_a_walk_tells_what_became_another_outcome_and_counts_the_rest(year: list[Night]) -> None:
    text = text_of(nights_view(year))
    assert text.count("REGRESSED") == 1
    assert "nights without anything new" in text
    assert len(text.splitlines()) < DAYS
    assert max(len(line) for line in text.splitlines()) <= 80


def test_every_night_has_a_page_that_asks_nobody_for_anything(year: list[Night]) -> None:
    page = night_page(year[-1])
    assert page.startswith("<!doctype html>")
    assert "http://" not in page.replace("http://www.w3.org/", "")
    assert page.count("<svg") >= 4
    assert len(page) < 300_000


def test_small_steps_add_up_against_an_anchor(tmp_path: Path) -> None:
    runs = [
        document("creep", day, value * (1 + 0.0015 * max(0, day - 30)))
        for day, value in enumerate(quiet("creep", 90, sigma=0.003))
    ]
    nights = told(tmp_path, runs, ["creep"], "anchor: {date: 2026-01-01}\n")
    assert "regressed" in outcomes(nights, "creep")
    assert worst_code(nights) == 1


def test_an_accepted_change_begins_a_segment(tmp_path: Path) -> None:
    runs = [document("a", day, v * (1.2 if day >= 20 else 1)) for day, v in enumerate(quiet("a", 40))]
    nights = told(
        tmp_path, runs, ["a"], "accepted: [{workload: a, since: 2026-01-21, word: checks its input}]\n"
    )
    assert "regressed" not in outcomes(nights, "a")
    assert "checks its input" in night_text(nights[-1])


def test_other_work_is_another_segment_and_told(tmp_path: Path) -> None:
    from dataclasses import replace

    runs = []
    for day, value in enumerate(quiet("a", 40)):
        run = document("a", day, value * (2 if day >= 20 else 1))
        words = ("python", "work.py", "--size", "2" if day >= 20 else "1")
        runs.append(replace(run, workload=replace(run.workload, command=words)))
    nights = told(tmp_path, runs, ["a"])
    assert set(outcomes(nights, "a")) == {"new", "pass"}
    shown = " ".join(night_text(nights[-1]).split())
    assert "other work: workload.arguments --size 1 → --size 2" in shown


def test_the_same_runs_told_twice_change_nothing(tmp_path: Path) -> None:
    runs = [document("a", day, v) for day, v in enumerate(quiet("a", 12))]
    first = told(tmp_path, runs, ["a"])
    config = read_config(tmp_path / "night.yaml", profiling=False)
    second, _ = replay_nights(config, NightOptions(runs=(tmp_path / "runs",)), Silent())
    assert [[(w.outcome, w.reason) for w in n.workloads] for n in first] == [
        [(w.outcome, w.reason) for w in n.workloads] for n in second
    ]
