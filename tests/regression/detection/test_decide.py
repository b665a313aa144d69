"""One night decided: every outcome by a series that shows it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from profkit.core.types import AcceptedChange, MetricOutcome, Series
from profkit.regression.detection import decide, is_candidate, rule_for
from profkit.reporting.views.night_words import reason_of
from tests.regression.detection.nights import date, every_night, noisy, series_of

RULE = rule_for("time.median")
QUIET = [1.0] * 40


def codes(series: Series, *accepted: AcceptedChange, **words: str) -> list[str]:
    return [o.code for o in every_night(series, RULE, accepted, words)]  # type: ignore[arg-type]


def tonight(levels: Sequence[float], **options: object) -> MetricOutcome:
    return decide(series_of(noisy(levels), **options), RULE)  # type: ignore[arg-type]


def test_a_quiet_night_passes_with_the_smallest_change_that_it_could_have_seen() -> None:
    told = tonight(QUIET)
    assert (told.outcome, told.code, told.step) == ("pass", "held", "band")
    assert told.detectable is not None
    assert 0.02 < told.detectable < 0.08
    low, high = told.band
    assert low < 1.0 < high
    assert told.trend is not None
    assert told.trend.noise == pytest.approx(0.008, rel=0.5)


def test_what_detectable_promises_is_a_candidate_in_nine_of_ten_nights() -> None:
    told = tonight(QUIET)
    assert told.detectable is not None
    values = noisy(QUIET)
    shifted = [1 + told.detectable + 0.008 * z for z in (-1.28, -0.8, -0.5, -0.25, 0, 0.25, 0.5, 0.8, 1.28)]
    found = [decide(series_of([*values, value]), RULE).code == "suspect" for value in shifted]
    assert sum(found) >= 8


def test_a_series_with_two_modes_does_not_pretend_to_see_what_lies_between_them() -> None:
    modes = [1.08 if i % 5 == 3 else 1.0 for i in range(60)]
    told = tonight([*modes, 1.0])
    assert told.outcome == "pass"
    assert told.detectable is not None
    assert told.detectable > 0.07


def test_a_short_past_is_new_and_says_how_many_nights_are_missing() -> None:
    told = tonight([1.0] * 3)
    assert (told.outcome, told.code) == ("new", "new")
    assert told.short == 5
    assert tonight([1.0] * 8).outcome == "pass"


def test_the_first_night_on_another_machine_is_not_valid_and_the_next_are_new() -> None:
    told = tonight([1.0] * 40 + [1.3], machines="a" * 40 + "b")
    assert (told.outcome, told.code) == ("invalid", "other-machine")
    assert "another machine (b, before a)" in reason_of(told)
    following = tonight([1.0] * 40 + [1.3] * 2, machines="a" * 40 + "bb")
    assert (following.outcome, following.code) == ("new", "new")
    assert tonight([1.0] * 40 + [1.3] * 8, machines="a" * 40 + "b" * 8).outcome == "pass"


def test_a_machine_that_is_another_each_night_is_never_green() -> None:
    machines = "a" * 10 + "bcdefgh"
    told = [
        tonight([1.0] * nights, machines=machines[:nights]).outcome for nights in range(11, len(machines) + 1)
    ]
    assert set(told) == {"invalid"}


def test_machines_that_alternate_are_each_held_against_their_own_past() -> None:
    levels = [1.0, 1.3] * 20
    assert tonight(levels, machines="ab" * 20).outcome == "pass"
    assert tonight([*levels, 1.3], machines="ab" * 20 + "a").code == "suspect"


def test_one_night_outside_is_a_candidate_and_fails_nothing() -> None:
    told = tonight([*QUIET, 1.3])
    assert (told.outcome, told.code, told.nights) == ("ambiguous", "suspect", 1)
    assert "night 1 of 3" in reason_of(told)
    assert is_candidate(told)
    assert (told.commit, told.good_commit) == (
        "0000028",
        "0000026",
    )  # the last on the good side of the median


def test_a_wild_night_is_forgotten() -> None:
    assert set(codes(series_of(noisy([*QUIET, 1.6, *QUIET])))[40:]) == {"suspect", "held"}


def test_three_nights_in_a_row_regress_and_name_the_first() -> None:
    told = tonight([*QUIET, 1.1, 1.1, 1.1])
    assert (told.outcome, told.code, told.step) == ("regressed", "nights", "nights")
    assert (told.since, told.commit) == (date(40), "0000028")
    assert told.expected == pytest.approx(1.0, rel=0.01)
    assert reason_of(told) == "10 % above 1.000 s for 3 nights in a row since 2026-02-10 (0000028)"


def test_a_regression_is_said_once_and_stands_until_it_is_gone() -> None:
    found = codes(series_of(noisy([*QUIET, *[1.1] * 30, *QUIET])))
    assert found.count("nights") == 1
    assert set(found[43:70]) == {"standing"}
    assert found[70:73] == ["returning", "returning", "gone"]
    assert set(found[73:]) == {"held"}


def test_a_second_regression_on_top_of_one_that_stands_is_news() -> None:
    found = codes(series_of(noisy([*QUIET, *[1.1] * 30, *[1.25] * 10])))
    assert [i for i, code in enumerate(found) if code == "nights"] == [42, 72]


def test_an_accepted_change_is_the_new_normal_from_its_night_on() -> None:
    series = series_of(noisy([*QUIET, *[1.1] * 10]))
    found = codes(series, AcceptedChange("gated_mlp", date(40), "checks were added"))
    assert found[40:47] == ["new"] * 7
    assert set(found[47:]) == {"held"}


def test_a_regression_after_an_accepted_change_is_found() -> None:
    series = series_of(noisy([*QUIET, *[1.1] * 20, *[1.21] * 3]))
    assert codes(series, AcceptedChange("gated_mlp", date(40), "word"))[-1] == "nights"


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
        return decide(
            series_of(noisy([*QUIET, *[level] * 3]), better="higher", metric="flops"), rule_for("flops")
        )

    assert (told(1.3).outcome, told(0.7).outcome, told(9.0).outcome) == ("improved", "regressed", "invalid")


def test_where_no_direction_is_good_it_has_moved_and_gates_nothing() -> None:
    rule = rule_for("cycles", {"cycles": {"gates": True}})
    told = decide(series_of(noisy([*QUIET, *[1.3] * 3]), better="none", metric="cycles"), rule)
    assert (told.outcome, told.code, told.gates) == ("pass", "moved", False)


def test_a_night_that_is_not_valid_says_why_and_is_no_part_of_the_past() -> None:
    levels = [*QUIET, 1.5, 1.5, 1.5]
    told = tonight(levels, invalid={40: "throttled", 41: "throttled", 42: "throttled"})
    assert (told.outcome, reason_of(told)) == ("invalid", "throttled")
    assert tonight([*levels, 1.0], invalid={40: "t", 41: "t", 42: "t"}).code == "held"


def test_no_number_is_not_valid_and_an_empty_series_is_missing() -> None:
    told = decide(series_of([*noisy(QUIET), float("nan")]), RULE)
    assert (told.outcome, told.value) == ("invalid", None)
    assert decide(series_of([]), RULE).outcome == "missing"


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


def test_many_nights_on_one_side_are_a_regression_though_none_is_far_out() -> None:
    found = every_night(series_of(noisy([*QUIET, *[1.03] * 14])), RULE)
    first = next(o for o in found if o.outcome == "regressed")
    assert first.code == "change-point"
    assert first.since == date(40)


def test_a_step_in_the_first_week_is_news_in_the_night_in_which_it_can_first_be_told() -> None:
    values = noisy([*[1.0] * 5, *[1.05] * 25], 0.004)
    told = [decide(series_of(values[:night]), RULE) for night in range(1, 31)]  # as it is asked each night
    red = [o for o in told if o.outcome == "regressed"]
    assert {o.code for o in red} == {"change-point"}
    assert red[0].since == date(5)


def test_drift_is_caught_against_the_first_nights_though_every_week_is_quiet() -> None:
    levels = [*QUIET, *[1.003 ** (i / 7) for i in range(180)]]  # 0.3 % a week
    found = every_night(series_of(noisy(levels)), RULE)
    first = next(o for o in found if o.outcome == "regressed")
    assert (first.code, first.step) == ("drift", "drift")
    assert first.expected == pytest.approx(1.0, rel=0.01)
    assert not [o for o in found if o.code == "nights"]
    assert first.commit is not None
    assert first.good_commit is not None
    begun = int(first.commit, 16)
    assert int(first.good_commit, 16) == begun - 1  # and not a night of the fortnight that convicted it
    assert 40 < begun < 40 + 90  # it began long before it was found


def test_a_re_run_of_the_same_night_decides_at_once() -> None:
    series = series_of(noisy([*QUIET, 1.1]))
    slower = decide(series, RULE, confirmed={"run-40": "different"})
    assert (slower.outcome, slower.step) == ("regressed", "same-night")
    same = decide(series, RULE, confirmed={"run-40": "same"})
    assert (same.outcome, same.code) == ("pass", "same")
    open_still = decide(series, RULE, confirmed={"run-40": "ambiguous"})
    assert open_still.outcome == "ambiguous"


def test_where_the_code_is_the_same_three_nights_long_the_machine_has_a_new_normal() -> None:
    words = {"run-40": "same", "run-41": "same", "run-42": "same"}
    found = codes(series_of(noisy([*QUIET, *[1.1] * 10])), **words)
    assert found[40:43] == ["same"] * 3
    assert set(found[43:]) == {"held"}


def test_a_confirmation_of_the_same_night_is_remembered_by_its_word() -> None:
    found = codes(series_of(noisy([*QUIET, *[1.1] * 10])), **{"run-40": "different"})
    assert found[40] == "same-night"
    assert set(found[41:]) == {"standing"}


def test_a_wide_step_seen_now_and_then_asks_for_a_re_run_and_fails_nothing() -> None:
    spiky = [1.5 if i % 12 == 5 else 1.0 for i in range(90)]
    told = tonight([*spiky, 1.45])
    assert (told.outcome, told.code) == ("pass", "seen-before")
    assert is_candidate(told)
    assert (
        decide(series_of(noisy([*spiky, 1.45])), RULE, confirmed={"run-90": "different"}).outcome
        == "regressed"
    )


def test_a_machine_that_regresses_after_another_one_did_is_no_news() -> None:
    levels = [1.0] * 80 + [1.1] * 20
    found = codes(series_of(noisy(levels), machines="ab" * 50))
    assert sum(code == "nights" for code in found) == 1


def test_the_past_is_all_that_a_night_knows() -> None:
    series = series_of(noisy([*QUIET, *[1.1] * 30, *QUIET, *[0.9] * 9]))
    whole = every_night(series, RULE)
    for night in (5, 40, 41, 42, 43, 60, 70, 72, 100, 115):
        alone = decide(replace(series, points=series.points[: night + 1]), RULE)
        assert (alone.outcome, alone.code, alone.since) == (
            whole[night].outcome,
            whole[night].code,
            whole[night].since,
        )
