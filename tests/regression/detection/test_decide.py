"""One night decided: every outcome by a series that shows it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from profkit.core.codec import to_plain_data
from profkit.core.types import AcceptedChange, MetricOutcome, Series
from profkit.regression.detection.nights import judge_last_night, segments_of
from profkit.regression.detection.rules import rule_for
from profkit.reporting.views.night_words import reason_of
from tests.regression.detection.nights import date, every_night, noisy, series_of
from tests.regression.detection.years import gaussian

RULE = rule_for("time.median")
QUIET = [1.0] * 40


def codes(series: Series, *accepted: AcceptedChange) -> list[str]:
    return [o.code for o in every_night(series, RULE, accepted)]


def tonight(levels: Sequence[float], **options: object) -> MetricOutcome:
    return judge_last_night(series_of(noisy(levels), **options), RULE)  # type: ignore[arg-type]


def test_a_quiet_night_passes_with_the_smallest_change_that_it_could_have_seen() -> None:
    told = tonight(QUIET)
    assert (told.outcome, told.code) == ("pass", "held")
    assert told.detectable is not None
    assert 0.02 < told.detectable < 0.08
    low, high = told.band
    assert low < 1.0 < high
    assert told.trend is not None
    assert told.trend.noise == pytest.approx(0.008, rel=0.5)


def test_the_first_night_on_another_machine_is_not_valid_and_the_next_are_new() -> None:
    told = tonight([1.0] * 40 + [1.3], machines="a" * 40 + "b")
    assert (told.outcome, told.code) == ("invalid", "other-machine")
    assert "another machine (b instead of a)" in reason_of(told)
    following = tonight([1.0] * 40 + [1.3] * 2, machines="a" * 40 + "bb")
    assert (following.outcome, following.code) == ("new", "new")
    assert tonight([1.0] * 40 + [1.3] * 8, machines="a" * 40 + "b" * 8).outcome == "pass"


def test_one_night_outside_is_a_candidate_and_fails_nothing() -> None:
    told = tonight([*QUIET, 1.3])
    assert (told.outcome, told.code, told.nights) == ("ambiguous", "suspect", 1)
    assert "1 night in a row" in reason_of(told)
    assert (told.commit, told.good_commit) == (
        "0000028",
        "0000026",
    )  # the last on the good side of the median


def test_three_nights_in_a_row_regress_and_name_the_first() -> None:
    told = tonight([*QUIET, 1.1, 1.1, 1.1])
    assert (told.outcome, told.code) == ("regressed", "nights")
    assert (told.since, told.commit) == (date(40), "0000028")
    assert told.expected == pytest.approx(1.0, rel=0.01)
    assert reason_of(told) == "10 % above 1.000 s for 3 nights in a row since 2026-02-10 (0000028)"


def test_a_regression_is_said_once_and_stands_until_it_is_gone() -> None:
    found = codes(series_of(noisy([*QUIET, *[1.1] * 30, *QUIET])))
    assert found.count("nights") == 1
    assert set(found[43:70]) == {"standing"}
    assert found[70:73] == ["returning", "returning", "gone"]
    assert set(found[73:]) == {"held"}


def test_an_accepted_change_is_the_new_normal_from_its_night_on() -> None:
    series = series_of(noisy([*QUIET, *[1.1] * 10]))
    found = codes(series, AcceptedChange("gated_mlp", date(40), "checks were added"))
    assert found[40:47] == ["new"] * 7
    assert set(found[47:]) == {"held"}


def test_an_improvement_is_green_and_the_new_normal_that_may_not_be_lost_again() -> None:
    found = every_night(series_of(noisy([*QUIET, *[0.9] * 20, *QUIET[:3]])), RULE)
    assert [o.code for o in found[40:43]] == ["perhaps-better", "perhaps-better", "improved"]
    assert found[42].outcome == "improved"
    assert (found[-1].outcome, found[-1].code) == ("regressed", "nights")


@pytest.mark.parametrize("value", [0.03, 0.0, -1.0])
def test_a_collapse_is_invalid_every_night_until_it_is_accepted(value: float) -> None:
    series = series_of([*noisy(QUIET), *[value] * 12])
    found = every_night(series, RULE)
    assert {(o.outcome, o.code) for o in found[40:]} == {("invalid", "collapse")}
    assert codes(series, AcceptedChange("gated_mlp", date(40), "we cache it now"))[-1] == "held"


def test_more_throughput_is_good_and_less_is_not() -> None:
    def told(level: float) -> MetricOutcome:
        return judge_last_night(
            series_of(noisy([*QUIET, *[level] * 3]), better="higher", metric="flops"), rule_for("flops")
        )

    assert (told(1.3).outcome, told(0.7).outcome, told(9.0).outcome) == ("improved", "regressed", "invalid")


def test_a_night_that_is_not_valid_says_why_and_is_no_part_of_the_past() -> None:
    levels = [*QUIET, 1.5, 1.5, 1.5]
    told = tonight(levels, invalid={40: "throttled", 41: "throttled", 42: "throttled"})
    assert (told.outcome, reason_of(told)) == ("invalid", "throttled")
    assert tonight([*levels, 1.0], invalid={40: "t", 41: "t", 42: "t"}).code == "held"


def test_a_difference_below_the_floor_is_none_however_quiet_the_series() -> None:
    assert tonight([*QUIET, *[1.03] * 20], invalid={}).outcome == "regressed"
    exact = series_of([*[1.0] * 40, *[1.015] * 40])
    assert set(codes(exact)[7:]) == {"held"}
    tiny = series_of([*[1e-8] * 40, *[2.5e-8] * 5])  # 150 %, and 15 ns: below what a clock tells
    assert set(codes(tiny)[7:]) == {"held"}


def test_a_series_that_wanders_confirms_nothing_but_a_leap_beyond_all_that_it_ever_did() -> None:
    source, value, wander = random.Random(3), 0.0, []
    for _ in range(160):
        value = 0.95 * value + source.gauss(0, 0.0025)
        wander.append(1 + value)
    quiet = every_night(series_of(wander), RULE)
    assert not [o for o in quiet if o.outcome == "regressed"]
    leapt = every_night(series_of([v * (1.2 if i >= 120 else 1) for i, v in enumerate(wander)]), RULE)
    assert [(o.outcome, o.code) for o in leapt[120:124]] == [
        ("ambiguous", "suspect"),
        ("ambiguous", "suspect"),
        ("regressed", "nights"),
        ("regressed", "standing"),
    ]


CREEPING = [*QUIET, *[1.003 ** (i / 7) for i in range(180)]]  # 0.3 % a week


@pytest.mark.parametrize(
    "values",
    [
        noisy([*QUIET, *[1.03] * 14]),
        [v * (1 + s) for v, s in zip(CREEPING, gaussian(random.Random(2), 0.008), strict=False)],
    ],
    ids=["a small step", "a drift"],
)
def test_what_no_night_shows_is_found_by_the_change_detector(values: Sequence[float]) -> None:
    found = every_night(series_of(values), RULE)
    first = next(o for o in found if o.outcome == "regressed")
    assert first.code == "change-point"
    assert first.expected == pytest.approx(1.0, rel=0.02)
    assert first.commit is not None
    assert 38 <= int(first.commit, 16) < 130
    assert first.good_commit == f"{int(first.commit, 16) - 1:07x}"


def test_the_past_is_all_that_a_night_knows() -> None:
    series = series_of(noisy([*QUIET, *[1.1] * 30, *QUIET, *[0.9] * 9]))
    whole = every_night(series, RULE)
    for night in (5, 40, 41, 42, 43, 60, 70, 72, 100, 115):
        alone = judge_last_night(replace(series, points=series.points[: night + 1]), RULE)
        assert (alone.outcome, alone.code, alone.since) == (
            whole[night].outcome,
            whole[night].code,
            whole[night].since,
        )


# ---------------------------------------------------------------- segments


def shape(machines: str, *accepted: AcceptedChange) -> list[tuple[int, int, str]]:
    series = series_of([1.0] * len(machines), machines)
    return [(e.first, e.last, e.cause) for e in segments_of(series, accepted)]


def known(night: int, metric: str | None = None, workload: str = "gated_mlp") -> AcceptedChange:
    return AcceptedChange(workload, date(night), "checks were added", metric)


@pytest.mark.parametrize(
    ("machines", "segments"),
    [
        ("", []),
        ("aaaa", [(0, 3, "begin")]),
        ("aabb", [(0, 1, "begin"), (2, 3, "machine")]),
        ("aabbcc", [(0, 1, "begin"), (2, 3, "machine"), (4, 5, "machine")]),
        ("abab", [(0, 3, "begin")]),  # a pool: nobody is gone
        ("aaba", [(0, 3, "begin")]),
        ("ababcc", [(0, 3, "begin"), (4, 5, "machine")]),
    ],
)
def test_a_machine_begins_a_segment_where_none_of_those_before_comes_again(
    machines: str, segments: list[tuple[int, int, str]]
) -> None:
    assert shape(machines) == segments


# ---------------------------------------------------------------- values as no benchmark gives them


POOLS = {
    "zeros": [0.0],
    "zeros and ones": [0.0, 0.0, 0.0, 1.0],
    "signs": [-1.0, 1.0, 0.5, -0.25],
    "huge": [1e308, 1.7e308, -1.7e308, 1e300],
    "tiny": [5e-324, 1e-320, 1e-310, 0.0],
    "all at once": [0.0, 1e308, -1e308, 5e-324, 1.0, float("inf"), float("nan"), float("-inf")],
    "whole": [3.0, 4.0, 5.0, 10**15],
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("better", ["lower", "higher", "none"])
def test_every_value_has_an_outcome(pool: str, better: str) -> None:
    rng = random.Random(f"{pool}{better}")
    for metric in ("time.median", "ipc"):
        rule = replace(rule_for(metric), gates=True, relative=rng.choice([0.0, 0.02]))
        values = [rng.choice(POOLS[pool]) for _ in range(90)]
        series = series_of(values, "".join(rng.choice("aab") for _ in values), better)  # type: ignore[arg-type]
        told = every_night(series, rule, [AcceptedChange("gated_mlp", "2026-02-01", "word")])
        assert len(told) == len(values)
        last = judge_last_night(series, rule)
        assert reason_of(last)
        json.dumps([to_plain_data(one) for one in (*told, replace(last, trend=None))], allow_nan=False)
