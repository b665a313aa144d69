"""The judge: pass, fail, not applicable or unknown, and the reason in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.run import evaluate_run
from profkit.analysis.judge.target_checks import Condition, TargetCheck, TargetContext, is_met
from profkit.analysis.judge.verdicts import context_of, evaluate_targets
from profkit.core.formatting import format_threshold
from profkit.core.types import (
    RUN,
    Counter,
    Hotspot,
    Profile,
    Reading,
    RunDocument,
    Scope,
    Summary,
    Threshold,
    Verdict,
    VerdictWord,
)
from profkit.profiling.summarize import targets_for
from profkit.reporting.facts import brief_reason
from tests import documents
from tests.documents import REGION, reading
from tests.spoken import spoken

TARGETS = {target.name: target for target in targets_for("cpu")}


def one(name: str, *readings: Reading, context: TargetContext | None = None) -> Verdict:
    (verdict,) = evaluate_targets([TARGETS[name]], readings, context or TargetContext())
    return verdict


def measured(metric: str, value: float | None, unit: str = "%", **more: object) -> Reading:
    return reading(metric, value, unit, **{"quality": "measured", "scope": RUN, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "operator", "threshold", "holds"),
    [(5, "<", 5, False), (4.9999, "<", 5, True), (5, "<=", 5, True), (2, ">", 2, False), (2, ">=", 2, True)],
)
def test_a_threshold_is_met_exactly(value: float, operator: str, threshold: float, holds: bool) -> None:
    assert is_met(value, operator, threshold) is holds  # type: ignore[arg-type]


def test_the_unrounded_value_is_compared() -> None:
    """4.996 % reads as 5.0 % on the screen and passes; 5.004 % does as well and fails."""
    assert one("l1-miss-rate", measured("cache.l1.miss_rate", 4.996)).verdict == "pass"
    assert one("l1-miss-rate", measured("cache.l1.miss_rate", 5.004)).verdict == "fail"


def test_a_failure_says_value_quality_threshold_and_what_to_try() -> None:
    verdict = one("l1-miss-rate", reading("cache.l1.miss_rate", 9.0, scope=RUN))
    assert verdict.verdict == "fail"
    assert (
        spoken(verdict.reason) == "9.0 % of the data accesses missed the L1 cache (simulated); target < 5 %"
    )
    assert verdict.threshold == Threshold("<", 5, "%")
    assert verdict.advice[0].startswith("Walk arrays")
    assert any("without a prefetcher" in line for line in verdict.advice)
    hardware = one("l1-miss-rate", measured("cache.l1.miss_rate", 9.0))
    assert not any("without a prefetcher" in line for line in hardware.advice)


def test_a_pass_has_no_advice() -> None:
    assert one("branch-miss-rate", measured("branch.miss_rate", 1.0)).advice == ()


def test_unavailable_is_unknown_with_reason_and_fix() -> None:
    verdict = one("ipc", measured("ipc", None, "", reason="no PMU", fix="use a metal instance"))
    assert verdict.verdict == "unknown"
    assert spoken(verdict.reason) == "Instructions per cycle not known: no PMU"
    assert verdict.advice == ("use a metal instance",)


def test_a_report_is_not_asked_for_what_it_does_not_speak_of() -> None:
    told = (measured("branch.miss_rate", 1.0),)
    silent = Summary("bandwidth", (measured("bandwidth.dram.share", None),))
    report = replace(documents.empty(), readings=told, summaries=(silent,))
    assert [v.target for v in evaluate_run(report, list(TARGETS.values()))] == ["branch-miss-rate"]
    run = replace(report, plan=documents.plan())
    assert [v.target for v in evaluate_run(run, list(TARGETS.values()))] == [
        "branch-miss-rate",
        "memory-bandwidth",
    ]


def test_a_metric_nobody_spoke_of_has_no_verdict() -> None:
    assert evaluate_targets(list(TARGETS.values()), []) == ()


@pytest.mark.parametrize(
    ("value", "share", "word"),
    [
        (1.5, 1.0, "fail"),
        (1.5, 0.99, "fail"),
        (1.5, 0.9, "fail"),  # a quarter below: a tenth unseen cannot turn it
        (1.9, 0.9, "unknown"),
        (2.1, 0.9, "unknown"),
        (2.1, 1.0, "pass"),
        (1.5, 0.33, "unknown"),
        (9.0, 0.33, "pass"),
    ],
)
def test_a_multiplexed_value_near_the_threshold_decides_nothing(
    value: float, share: float, word: VerdictWord
) -> None:
    verdict = one("ipc", measured("ipc", value, "", quality="multiplexed", share=share))
    assert verdict.verdict == word, spoken(verdict.reason)


@pytest.mark.parametrize(
    ("l1", "word"), [(0.4, "not-applicable"), (0.5, "fail"), (20.0, "fail"), (None, "fail")]
)
def test_an_l2_rate_means_something_only_when_accesses_reach_l2(l1: float | None, word: VerdictWord) -> None:
    verdict = one("l2-miss-rate", measured("cache.l1.miss_rate", l1), measured("cache.l2.miss_rate", 50.0))
    assert verdict.verdict == word
    if word == "not-applicable":
        assert "L1 misses 0.40 %" in spoken(verdict.reason)


@pytest.mark.parametrize(("l1", "l2", "word"), [(5.0, 1.0, "not-applicable"), (5.0, 2.0, "fail")])
def test_an_l3_rate_means_something_only_when_accesses_reach_l3(
    l1: float, l2: float, word: VerdictWord
) -> None:
    told = [measured(f"cache.l{n}.miss_rate", value) for n, value in ((1, l1), (2, l2), (3, 90.0))]
    assert one("l3-miss-rate", *told).verdict == word


@pytest.mark.parametrize(
    ("moved", "rate", "word"),
    [
        (1.0e9, 90.0, "not-applicable"),
        (1.24e9, 90.0, "not-applicable"),
        (1.3e9, 90.0, "fail"),
        (1.0e9, 5.0, "pass"),
    ],
)
def test_compulsory_misses_of_streaming_data_are_no_fault(
    moved: float, rate: float, word: VerdictWord
) -> None:
    told = [
        measured("cache.l1.miss_rate", 6.0),
        measured("cache.l2.miss_rate", 95.0),
        measured("cache.l3.miss_rate", rate),
        measured("bandwidth.dram", moved, "B/s", scope=REGION),
        measured("bandwidth.declared", 1e9, "B/s", scope=REGION),
    ]
    verdict = one("l3-miss-rate", *told)
    assert verdict.verdict == word
    if word == "not-applicable":
        assert "compulsory misses" in spoken(verdict.reason)


@pytest.mark.parametrize(("share", "word"), [(80.0, "not-applicable"), (50.0, "fail"), (None, "fail")])
def test_ipc_does_not_judge_what_memory_limits(share: float | None, word: VerdictWord) -> None:
    told = [measured("ipc", 0.5, ""), measured("bandwidth.dram.share", share)]
    assert one("ipc", *told).verdict == word


@pytest.mark.parametrize(("flops", "word"), [(1e5, "not-applicable"), (5e5, "fail"), (None, "fail")])
def test_simd_share_does_not_judge_what_hardly_calculates(flops: float | None, word: VerdictWord) -> None:
    told = [
        measured("simd.utilization", 3.0),
        measured("instructions", 1e7, "count"),
        measured("flops", flops, "FLOP"),
    ]
    assert one("simd-utilization", *told).verdict == word


@pytest.mark.parametrize(
    ("roof", "bandwidth", "roofline"),
    [
        ("memory", "fail", "not-applicable"),
        ("compute", "not-applicable", "fail"),
        (None, "unknown", "unknown"),
    ],
)
def test_each_roof_is_judged_by_its_own_target(
    roof: str | None, bandwidth: VerdictWord, roofline: VerdictWord
) -> None:
    told = [measured("bandwidth.dram.share", 10.0), measured("roofline.share", 10.0)]
    context = TargetContext(roof=roof)  # type: ignore[arg-type]
    assert one("memory-bandwidth", *told, context=context).verdict == bandwidth
    assert one("roofline", *told, context=context).verdict == roofline


def test_a_time_less_precise_than_asked_is_a_doubt_and_no_fault() -> None:
    told = measured("time.interval", 2.2)
    assert one("time-precision", told, context=TargetContext(precision=1.0)).verdict == "unknown"
    assert one("time-precision", told, context=TargetContext(precision=5.0)).verdict == "pass"
    assert one("time-precision", told).verdict == "unknown"


@pytest.mark.parametrize(
    ("share", "half", "word"),
    [
        (40.0, 5.0, "fail"),
        (40.0, 19.0, "fail"),  # 40 / 0.81 is below 50
        (40.0, 21.0, "unknown"),
        (55.0, 9.0, "pass"),
        (55.0, 11.0, "unknown"),
        (55.0, 200.0, "unknown"),
        (1.0, 200.0, "unknown"),
        (55.0, None, "pass"),
    ],
)
def test_what_hangs_on_the_time_is_no_better_known_than_the_time(
    share: float, half: float | None, word: VerdictWord
) -> None:
    told = [measured("roofline.share", share, scope=REGION), measured("time.interval", half, scope=REGION)]
    assert one("roofline", *told, context=TargetContext(roof="compute")).verdict == word


@pytest.mark.parametrize(("branches", "word"), [(1e5, "not-applicable"), (2e5, "fail"), (None, "fail")])
def test_mispredictions_of_few_branches_cost_nothing(branches: float | None, word: VerdictWord) -> None:
    told = [
        measured("branch.miss_rate", 9.0),
        measured("branch.count", branches, "count"),
        measured("instructions", 1e7, "count"),
    ]
    assert one("branch-miss-rate", *told).verdict == word


def test_an_unknown_without_a_fix_of_its_own_has_that_of_the_target() -> None:
    assert "profkit doctor" in one("ipc", measured("ipc", None, "", reason="no PMU")).advice[0]


@pytest.mark.parametrize(("growth", "word"), [(0.0, "pass"), (7.9, "pass"), (8.0, "fail"), (1e6, "fail")])
def test_a_leak_is_a_pointer_or_more_in_each_iteration(growth: float, word: VerdictWord) -> None:
    assert one("no-leak", measured("memory.python_growth", growth, "B/iteration")).verdict == word


def test_the_region_and_the_run_are_judged_where_each_has_a_value() -> None:
    told = [measured("ipc", 3.0, ""), measured("ipc", 1.0, "", scope=REGION)]
    verdicts = evaluate_targets([TARGETS["ipc"]], told)
    assert [(v.scope.kind, v.verdict) for v in verdicts] == [("run", "pass"), ("region", "fail")]
    same = [measured("ipc", 1.0, ""), measured("ipc", 1.0, "", scope=REGION)]
    assert [v.scope.kind for v in evaluate_targets([TARGETS["ipc"]], same)] == ["region"]
    blind = [measured("ipc", None, ""), measured("ipc", 1.0, "", scope=REGION)]
    assert [v.scope.kind for v in evaluate_targets([TARGETS["ipc"]], blind)] == ["region"]


def test_one_pmu_of_a_hybrid_part_is_not_judged_apart() -> None:
    told = [measured("ipc", 3.0, ""), measured("ipc", 1.0, "", scope=Scope("run", None, "cpu_atom"))]
    assert [v.verdict for v in evaluate_targets([TARGETS["ipc"]], told)] == ["pass"]


def test_the_measured_value_wins_over_the_simulated_one() -> None:
    told = [reading("cache.l1.miss_rate", 9.0, scope=RUN), measured("cache.l1.miss_rate", 2.0)]
    assert one("l1-miss-rate", *told).verdict == "pass"


def test_the_hottest_functions_are_judged_by_their_own_values() -> None:
    hot, cold = Scope("function", "hot", "lib.so"), Scope("function", "cold", "lib.so")
    told = [
        reading("cache.l1.miss_rate", 9.0, scope=hot),
        reading("cache.l1.miss_rate", 50.0, scope=cold),
        reading("ipc", 1.0, "", scope=hot),  # no target of functions
    ]
    verdicts = evaluate_targets(list(TARGETS.values()), told, TargetContext(hottest=(hot,)))
    assert [(v.target, v.scope.name, v.verdict) for v in verdicts] == [("l1-miss-rate", "hot", "fail")]


RELAX = Scope("function", "relax(grid&, int)", "stencil")
L1 = "cache.l1.miss_rate"


def test_the_run_is_judged_by_the_place_that_takes_most_and_not_by_an_average() -> None:
    told = [reading(L1, 3.0, scope=RUN), reading(L1, 42.0, scope=RELAX)]
    context = TargetContext(hottest=(RELAX,), hottest_share=0.6)
    run, function = evaluate_targets([TARGETS["l1-miss-rate"]], told, context)
    assert (run.scope, run.verdict, run.value, run.weight) == (RUN, "fail", 42.0, 0.6)
    assert spoken(run.reason).startswith("in relax: 42.0 % of the data accesses missed")
    assert (function.scope, function.verdict) == (RELAX, "fail")


def test_a_function_that_takes_little_does_not_speak_for_the_run() -> None:
    told = [reading(L1, 3.0, scope=RUN), reading(L1, 42.0, scope=RELAX)]
    context = TargetContext(hottest=(RELAX,), hottest_share=0.1)
    run, _ = evaluate_targets([TARGETS["l1-miss-rate"]], told, context)
    assert (run.verdict, run.value) == ("pass", 3.0)


def test_what_the_chip_counted_of_the_run_stands_before_what_was_simulated_of_a_place() -> None:
    told = [measured(L1, 3.0), reading(L1, 42.0, scope=RELAX)]
    context = TargetContext(hottest=(RELAX,), hottest_share=0.6)
    run, _ = evaluate_targets([TARGETS["l1-miss-rate"]], told, context)
    assert (run.value, run.quality) == (3.0, "measured")


@pytest.mark.parametrize(("refill", "word"), [(0.58, "not-applicable"), (1.01, "fail"), (None, "fail")])
@pytest.mark.parametrize("target", ["l1-miss-rate", "l2-miss-rate", "l3-miss-rate"])
def test_misses_of_a_place_that_computes_longer_than_its_caches_refill_cost_nothing(
    target: str, refill: float | None, word: VerdictWord
) -> None:
    metric = TARGETS[target].metric
    told = [reading(name, 50.0, scope=RELAX) for name in {metric, L1, "cache.l2.miss_rate"}]
    told += [reading(metric, 50.0, scope=RUN), reading("cache.refill.ratio", refill, "x", scope=RELAX)]
    context = TargetContext(hottest=(RELAX,), hottest_share=0.6)
    run = evaluate_targets([TARGETS[target]], told, context)[0]
    assert run.verdict == word
    if word == "not-applicable":
        assert brief_reason(run.reason) == "arithmetic-bound"


def counted_places(*places: tuple[str, float, float]) -> RunDocument:
    """A run whose functions have such instructions and lines from memory each, as a simulation leaves it."""
    spots = tuple(
        Hotspot(name, ir, ir, 1, None, None, library="a.out", counters={"Ir": ir, "DLmr": lines, "Bcm": 0.0})
        for name, ir, lines in places
    )
    profile = Profile(
        "callgrind", "instructions", sum(ir for _, ir, _ in places), spots, kind="counted-functions"
    )
    told = tuple(reading(L1, 9.0, scope=Scope("function", name, "a.out")) for name, _, _ in places)
    return replace(documents.empty(), profiles=(profile,), readings=told)


def test_the_place_is_the_one_that_takes_most_time_not_most_instructions() -> None:
    document = counted_places(("computes", 6e6, 0.0), ("waits", 4e6, 4e5))
    context = context_of(document)
    assert context.hottest[0].name == "waits"
    assert context.hottest_share > 0.8


def test_the_place_is_the_one_with_most_samples_where_it_was_counted() -> None:
    document = counted_places(("computes", 6e6, 0.0), ("waits", 4e6, 4e5))
    spots = (Hotspot("computes", 0.7, 0.7, 1, None, None), Hotspot("waits", 0.3, 0.3, 1, None, None))
    sampled = Profile("samples", "s", 1.0, spots, kind="functions")
    context = context_of(replace(document, profiles=(*document.profiles, sampled)))
    assert (context.hottest[0].name, context.hottest_share) == ("computes", 0.7)


def test_advice_stands_only_where_its_condition_holds() -> None:
    told = [measured("ipc", 0.5, ""), measured("cache.l1.miss_rate", 20.0), measured("branch.miss_rate", 1.0)]
    advice = one("ipc", *told).advice
    assert any("Cache misses first" in line for line in advice)
    assert not any("mispredictions first" in line for line in advice)


@pytest.mark.parametrize(
    ("operator", "threshold", "unit", "text"),
    [
        ("<", 5.0, "%", "< 5 %"),
        (">", 2.0, "", "> 2"),
        ("<=", 0.5, "s", "<= 0.5 s"),
        ("<", 100.0, "count", "< 100"),
    ],
)
def test_a_threshold_reads_as_people_write_it(operator: str, threshold: float, unit: str, text: str) -> None:
    assert format_threshold(operator, threshold, unit) == text  # type: ignore[arg-type]


def test_counters_are_no_readings() -> None:
    """What has no value is a Counter's state, never a reading of 0 (the type itself refuses it)."""
    assert Counter("cycles", None, "hard-zero").value is None
    with pytest.raises(ValueError, match="never both"):
        Reading("ipc", 0.0, "", "unavailable", RUN, reading("ipc", 1.0).source)


@pytest.mark.parametrize(("share", "word"), [(99.0, "pass"), (104.0, "pass"), (125.0, "unknown")])
def test_more_than_the_peak_is_not_passed_blindly(share: float, word: VerdictWord) -> None:
    memory = TargetContext(roof="memory")
    verdict = one("memory-bandwidth", measured("bandwidth.dram.share", share, reason="why"), context=memory)
    assert verdict.verdict == word
    assert ("why" in spoken(verdict.reason)) is (word == "unknown")


@pytest.mark.parametrize("target", ["l1-miss-rate", "l2-miss-rate", "l3-miss-rate"])
@pytest.mark.parametrize(("share", "word"), [(92.0, "not-applicable"), (30.0, "fail"), (None, "fail")])
def test_a_stream_that_fills_the_memory_bandwidth_is_not_blamed_for_its_misses(
    target: str, share: float | None, word: VerdictWord
) -> None:
    rates = [measured(f"cache.{level}.miss_rate", 99.0) for level in ("l1", "l2", "l3")]
    bandwidth = measured("bandwidth.dram.share", share, reason=None if share is not None else "not measured")
    verdict = one(target, *rates, bandwidth)
    assert verdict.verdict == word
    assert ("92.0 % of its peak" in spoken(verdict.reason)) == (word == "not-applicable")


def test_a_function_of_a_stream_is_excused_by_the_run_it_belongs_to() -> None:
    add = Scope("function", "add", "libm.so")
    readings = [
        measured("cache.l1.miss_rate", 50.0),
        measured("cache.l1.miss_rate", 50.0, scope=add),
        measured("bandwidth.dram.share", 92.0),
    ]
    verdicts = evaluate_targets([TARGETS["l1-miss-rate"]], readings, TargetContext(hottest=(add,)))
    assert [(v.scope.kind, v.verdict) for v in verdicts] == [
        ("run", "not-applicable"),
        ("function", "not-applicable"),
    ]


def test_the_first_check_that_fires_gives_the_verdict_in_the_order_of_the_file() -> None:
    told = [
        measured("cache.l1.miss_rate", 50.0),
        measured("flops.share", 70.0),
        measured("cache.refill.ratio", 0.5, "x"),
        measured("bandwidth.dram.share", 90.0),
    ]
    target = TARGETS["l1-miss-rate"]
    shared = [step.because for step in target.checks if isinstance(step, TargetCheck)]
    assert len(shared) == 3
    for first in (0, 1, 2):
        steps = ("known", "threshold", *target.checks[2 + first :])
        (verdict,) = evaluate_targets([replace(target, checks=steps)], told)
        assert verdict.reason.parts[1].code == shared[first]
    (verdict,) = evaluate_targets([replace(target, checks=("known", "threshold"))], told)
    assert verdict.verdict == "fail"


def test_a_check_of_what_must_be_known_fires_where_it_is_not_known_and_another_does_not() -> None:
    target = TARGETS["l1-miss-rate"]
    never = Condition(metric="ipc", test=(">", 1.0))
    told = [measured("cache.l1.miss_rate", 50.0)]
    for negated, word in ((True, "unknown"), (False, "fail")):
        check = TargetCheck(never, "unknown", "roof-unknown", negated=negated)
        (verdict,) = evaluate_targets([replace(target, checks=("known", "threshold", check))], told)
        assert verdict.verdict == word
