"""What is told to a history is what it tells."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from profkit.core.errors import UsageError
from profkit.core.types import RUN, AcceptedChange, Scope
from profkit.regression.history import History, HistoryFilter, open_history
from profkit.regression.history.rows import iso_time, microseconds, parse_since
from tests.regression.history.entries import entry, value


@pytest.fixture
def history(tmp_path: Path) -> History:
    with open_history(tmp_path / "history.sqlite") as opened:
        yield opened


def test_a_run_comes_back_as_it_was_told(history: History) -> None:
    told = entry(
        1,
        value(),
        replace(
            value(
                "occupancy.achieved", 81.5, scope=Scope("kernel", "void f<(int)4>(T1 *)", "2x1x1 of 64x1x1")
            )
        ),
        value("memory.rss_peak", 2.0**40, scope=RUN),
        dirty=True,
        night="2026-01-02",
        path="reports/x",
        facts={"depth": "gate"},
    )
    assert history.add(told)
    back = history.entry(told.id)
    assert back == told


def test_a_run_added_twice_changes_nothing(history: History) -> None:
    assert history.add(entry(1))
    assert not history.add(entry(1, value(number=9.0), workload="other"))
    assert [point.value for series in history.series() for point in series.points] == [1.001e-3]


def test_a_run_without_a_moment_is_refused_and_leaves_nothing(history: History) -> None:
    for started in ("yesterday", "2026-13-01", "", "0000-01-01", "9999-12-31T23:59:59-14:00"):
        with pytest.raises(UsageError, match="not a date or time"):
            history.add(replace(entry(1), started=started))
    assert history.entries() == ()


def test_series_are_found_by_workload_metric_and_time(history: History) -> None:
    for number in range(10):
        history.add(entry(number, value(number=number), value("time.p95", number)))
        history.add(entry(100 + number, workload="other", started=entry(number).started))
    assert len(history.series()) == 3
    assert len(history.series(HistoryFilter("mlp"))) == 2
    assert len(history.series(HistoryFilter("mlp", metric="time.p95"))) == 1
    begin, end = entry(2).started, entry(5).started
    (between,) = history.series(HistoryFilter(workload="mlp", metric="time.p95", since=begin, until=end))
    assert [point.value for point in between.points] == [2, 3, 4]


def test_a_run_is_named_by_the_beginning_of_its_id(history: History) -> None:
    history.add(entry(1, started="2026-01-05"))
    history.add(replace(entry(2), id="ab12" + "0" * 12))
    assert history.entry("ab").id == "ab12" + "0" * 12
    assert history.entry("last").id == entry(1).id
    history.add(replace(entry(3), id="ab34" + "0" * 12))
    with pytest.raises(UsageError, match="beginning of 2 runs"):
        history.entry("ab")
    for nothing in ("ff", "", "%", "a_", "'"):
        with pytest.raises(UsageError, match="holds no run"):
            history.entry(nothing)


def test_an_accepted_change_is_kept_once(history: History) -> None:
    accepted = AcceptedChange("mlp", "2026-11-19T00:00:00+01:00", "new compiler", "time.median", "anna")
    assert history.accept(accepted)
    assert not history.accept(replace(accepted, word="again"))
    assert history.accept(replace(accepted, metric=None))
    assert history.accepted("other") == ()
    assert [one.metric for one in history.accepted()] == ["time.median", None]
    assert history.accepted()[0] == replace(accepted, since="2026-11-18T23:00:00+00:00")


def test_pruned_runs_are_gone_with_all_that_was_theirs(history: History) -> None:
    for number in range(4):
        history.add(entry(number))
    history.add(entry(9, workload="other", machine="other"))
    assert history.prune([entry(9).id, entry(0).id, "nobody"]) == 2
    assert [int(one.id, 16) for one in history.entries()] == [1, 2, 3]
    assert {series.key.workload for series in history.series()} == {"mlp"}
    assert history.add(entry(9, workload="other"))  # and may come again


@pytest.mark.parametrize("number", [0.0, -1.5, 1e-320, 5e-324, 1e308, 1 / 3, 2.0**53 + 2])
def test_a_value_is_kept_to_its_last_bit(history: History, number: float) -> None:
    history.add(entry(1, value(number=number)))
    assert history.series()[0].points[0].value == number


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_and_leaves_nothing(history: History, number: float) -> None:
    with pytest.raises(UsageError, match="not a number"):
        history.add(entry(1, value(number=number)))
    assert history.entries() == ()


# ---------------------------------------------------------------- moments


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-11-20T05:47:00Z", "2026-11-20T05:47:00+00:00"),
        ("2026-11-20", "2026-11-20T00:00:00+00:00"),
        ("2026-11-20T05:47:00+05:30", "2026-11-20T00:17:00+00:00"),
        ("2026-11-20T05:47:00.25+01:00", "2026-11-20T04:47:00.250000+00:00"),
        ("2026-11-20T05:47:00.123456789Z", "2026-11-20T05:47:00.123456+00:00"),
    ],
)
def test_a_moment_is_told_in_utc(text: str, utc: str) -> None:
    assert iso_time(microseconds(text)) == utc


@pytest.mark.parametrize(
    "text", ["", "now", "20.11.2026", "2026-02-30", "2026-11-20T25:00", "1763617620", "2026-11-20T05:47:00+1"]
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="not a date or time"):
        microseconds(text)


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("30d", "2026-10-21T12:00:00+00:00"),
        ("2 weeks", "2026-11-06T12:00:00+00:00"),
        ("12h", "2026-11-20T00:00:00+00:00"),
        ("2026-11-01", "2026-11-01T00:00:00+00:00"),
    ],
)
def test_people_say_from_when_on(text: str, begin: str) -> None:
    assert iso_time(parse_since(text, datetime(2026, 11, 20, 12, tzinfo=timezone.utc))) == begin
