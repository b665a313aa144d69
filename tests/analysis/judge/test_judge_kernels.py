"""The judge on kernels: each known report gets the verdicts that a kernel engineer would give it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from profkit.cli.options import verdict_exit
from profkit.core.codec import from_plain_data, to_plain_data
from profkit.core.types import (
    RUN,
    GpuTrace,
    KernelTime,
    PassResult,
    RunDocument,
    Scope,
    StreamOrder,
    Verdict,
    VerdictWord,
)
from profkit.profiling.summarize import judge_document, targets_for
from tests import documents
from tests.kernel_documents import SAMPLES, Values, document, kernel, readings_of, words_of
from tests.spoken import message, spoken

TARGETS = targets_for("cuda")
FOUR = ("occupancy", "memory-bandwidth", "bank-conflicts", "warp-efficiency", "coalescing")
P: VerdictWord = "pass"
F: VerdictWord = "fail"
N: VerdictWord = "not-applicable"
U: VerdictWord = "unknown"


def judged(values: Values, seconds: float = 1e-3) -> tuple[RunDocument, Scope]:
    one = kernel("k")
    return judge_document(document({one: (seconds, values)}), TARGETS), one.scope


def on(values: Values, target: str) -> Verdict:
    done, scope = judged(values)
    (found,) = [v for v in done.verdicts if v.target == target and v.scope == scope]
    return found


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        # occupancy, DRAM, conflicts, warp efficiency, coalescing
        ("transposeNoBankConflicts", (P, P, P, P, P)),
        ("transposeCoalesced", (P, F, F, P, P)),
        ("addConstDouble", (N, P, P, P, P)),
        ("addConstDouble3", (P, P, P, P, F)),
        ("sobelFloat", (P, N, P, P, N)),
        ("sobelDouble", (P, N, P, P, N)),
        ("silu_kernel_non_strided", (N, P, P, P, P)),
        ("nvjet_sm90_hsh_256x128_64x4", (N, N, P, P, N)),
        ("nvjet, only the gate's counters", (U, U, U, P, U)),
        ("nvjet, raw conflicts", (N, N, P, P, N)),
    ],
)
def test_known_reports_get_their_known_verdicts(sample: str, expected: tuple[VerdictWord, ...]) -> None:
    done, scope = judged(SAMPLES[sample])
    words = words_of(done.verdicts, scope)
    assert tuple(words[name] for name in FOUR) == expected
    failed = {name for name, word in words.items() if word == "fail"}
    assert failed <= set(FOUR)  # nothing else speaks against them
    run = words_of(done.verdicts, RUN)
    assert tuple(run[name] for name in FOUR) == expected  # one kernel is the run


def test_explained_occupancy_says_what_explains_it() -> None:
    verdict = on(SAMPLES["addConstDouble"], "occupancy")
    assert spoken(verdict.reason).startswith(
        "73.5 % of the warps that the multiprocessors can hold, but more warps would not help"
    )
    assert "DRAM at 91 % of its peak" in spoken(verdict.reason)


def test_a_failure_says_what_limits_it_and_what_to_try() -> None:
    values = {
        "occupancy.achieved": 30.0,
        "occupancy.theoretical": 37.5,
        "occupancy.limit.registers": 3,
        "occupancy.limit.shared": 3,
        "occupancy.limit.warps": 8,
        "bandwidth.dram.share": 45.0,
        "memory.throughput": 45.0,
        "sm.throughput": 20.0,
        "stall.long_scoreboard": 9.0,
        "stall.wait": 1.0,
        "stall.selected": 1.0,
    }
    occupancy = on(values, "occupancy")
    assert occupancy.verdict == "fail"
    assert "37.5 % at most, limited by registers and shared memory (3 blocks per multiprocessor)" in spoken(
        occupancy.reason
    )
    assert any("__launch_bounds__" in line for line in occupancy.advice)
    assert any("num_stages" in line for line in occupancy.advice)
    assert not any("size of the blocks" in line for line in occupancy.advice)
    memory = on(values, "memory-bandwidth")
    assert memory.verdict == "fail"
    assert "data from global or local memory (L1, L2 or DRAM) (90 % of their waiting time)" in spoken(
        memory.reason
    )
    assert any("raise occupancy" in line for line in memory.advice)


@pytest.mark.parametrize(
    ("count", "exact", "share", "word"),
    [
        (0, None, None, P),
        (148_300, None, 2.7, P),  # a padded transposition on an H200: arbitration
        (4_229_008, None, 48.36, F),  # every access two-way, the exact count is 4 228 000
        (262_797, None, 5.5, U),  # one access in 500 is 32-way, the exact count is 261 888
        (262_797, 261_888, 5.5, F),
        (148_300, None, 30.0, F),
        (148_300, None, None, U),
        (148_300, 148_300, 2.7, F),  # counted exactly
        (40, 40, 0.01, N),  # so few cost nothing
        (None, None, None, U),
    ],
)
def test_raw_conflicts_have_a_noise_floor_and_exact_ones_none(
    count: float | None, exact: float | None, share: float | None, word: VerdictWord
) -> None:
    values: dict[str, float | None] = {
        "shared.bank_conflicts": count,
        "shared.bank_conflicts.excess": exact,
        "shared.bank_conflicts.share": share,
        "bandwidth.dram.share": 40.0,
        "memory.throughput": 70.0,
        "bandwidth.l1.share": 70.0,
        "sm.throughput": 20.0,
    }
    verdict = on(values, "bank-conflicts")
    assert verdict.verdict == word, spoken(verdict.reason)


@pytest.mark.parametrize("name", ["occupancy.achieved", "bandwidth.dram.share", "warp.execution_efficiency"])
def test_nan_is_unknown_and_never_a_pass(name: str) -> None:
    done, scope = judged({**SAMPLES["transposeNoBankConflicts"], name: None})
    verdict = next(v for v in done.verdicts if v.metric == name and v.scope == scope)
    assert verdict.verdict == "unknown"
    assert next(v for v in done.verdicts if v.metric == name and v.scope == RUN).verdict == "unknown"
    assert verdict_exit(done, judged=True, strict=True) == 5


@pytest.mark.parametrize(("share", "code"), [(0.04, 0), (0.06, 1)])
def test_a_kernel_with_a_tiny_share_fails_no_run(share: float, code: int) -> None:
    bad, good = kernel("bad"), kernel("good")
    two = document(
        {good: (1 - share, SAMPLES["transposeNoBankConflicts"]), bad: (share, SAMPLES["transposeCoalesced"])}
    )
    done = judge_document(two, [t for t in TARGETS if t.name == "bank-conflicts"])
    assert words_of(done.verdicts, bad.scope) == {"bank-conflicts": "fail"}
    assert verdict_exit(done, judged=True, strict=False) == code


def test_many_small_kernels_that_miss_fail_the_run_together() -> None:
    kernels = {kernel(f"bad{i}"): (0.01, SAMPLES["transposeCoalesced"]) for i in range(10)}
    whole = {kernel("good"): (0.9, SAMPLES["transposeNoBankConflicts"]), **kernels}
    done = judge_document(document(whole), TARGETS)
    run = next(v for v in done.verdicts if v.scope == RUN and v.target == "bank-conflicts")
    assert run.verdict == "fail"
    assert spoken(run.reason).startswith("10.0 % of the GPU time is in kernels that miss it: bad0")
    assert spoken(run.reason).endswith("and 7 more; target <= 0")


def test_what_was_not_counted_leaves_the_run_unknown_not_passed() -> None:
    counted, other = kernel("counted"), kernel("other")
    two = document({counted: (0.6, SAMPLES["transposeNoBankConflicts"]), other: (0.4, {})})
    done = judge_document(two, TARGETS)
    run = words_of(done.verdicts, RUN)
    assert {run[name] for name in FOUR} == {"unknown"}
    assert not [v for v in done.verdicts if v.scope == other.scope]  # nothing is known of it to be said


def test_a_trace_alone_leaves_what_needs_counters_unknown_with_the_reason_of_their_pass() -> None:
    one = kernel("k")
    trace = GpuTrace("nsys", (KernelTime(one, 10, 1e-2, median=1e-3),), span=2e-2, busy=1e-2)
    run = replace(
        documents.empty(),
        backend="cuda",
        plan=documents.plan(),
        trace=trace,
        readings=readings_of(RUN, {"gpu.utilization": 50.0, "gpu.starved": 90.0}),
        passes=(
            PassResult(
                "counters",
                "ncu",
                "skipped",
                message("the driver restricts counters"),
                "options nvidia NVreg_...=0",
            ),
        ),
    )
    done = judge_document(run, TARGETS)
    words = words_of(done.verdicts, RUN)
    assert {words[name] for name in FOUR} == {"unknown"}
    occupancy = next(v for v in done.verdicts if v.target == "occupancy")
    assert spoken(occupancy.reason).endswith("the counters pass was skipped: the driver restricts counters")
    assert occupancy.advice == ("options nvidia NVreg_...=0",)
    idle = next(v for v in done.verdicts if v.target == "gpu-busy")
    assert idle.verdict == "fail"
    assert "CUDA graph" in idle.advice[0]
    assert not any("synchronisations" in line for line in idle.advice)


def test_a_doubtful_reading_decides_nothing() -> None:
    values = {
        **SAMPLES["transposeNoBankConflicts"],
        "occupancy.achieved": 95.0,
        "occupancy.theoretical": 50.0,
    }
    done, scope = judged(values)
    verdict = next(v for v in done.verdicts if v.target == "occupancy" and v.scope == scope)
    assert verdict.verdict == "unknown"
    assert "uncertain: achieved and theoretical occupancy do not agree" in spoken(verdict.reason)
    assert any(reading.doubt is not None for reading in done.readings)


@pytest.mark.parametrize(
    ("values", "failing"),
    [
        # measured on an H200: a chain of atomics on 16 addresses, nothing busy
        ({"bandwidth.dram.share": 1.1, "bandwidth.l2.share": 3.1, "memory.throughput": 1.8, "sm.throughput": 1.0,
          "occupancy.achieved": 89.9}, {"latency"}),
        # the same in the standard set, where DRAM is a hair above L2
        ({"bandwidth.dram.share": 1.12, "bandwidth.l2.share": 1.1, "bandwidth.l1.share": 1.0, "tensor.utilization": 0.0,
          "pipe.fp32.utilization": 0.2, "pipe.fp64.utilization": 0.0, "issue.active": 1.0, "occupancy.achieved": 89.9},
         {"latency"}),
        # a stream with too few loads under way
        ({"bandwidth.dram.share": 41.0, "bandwidth.l2.share": 25.0, "memory.throughput": 41.0, "sm.throughput": 15.0,
          "occupancy.achieved": 89.9}, {"memory-bandwidth"}),
        # one block that chases pointers
        ({"bandwidth.dram.share": 0.002, "memory.throughput": 0.06, "sm.throughput": 0.02, "bandwidth.l1.share": 2.5,
          "occupancy.achieved": 1.6, "launch.blocks": 1, "launch.multiprocessors": 132, "launch.waves": 2e-4},
         {"grid-size"}),
        # every fourth lane works
        ({"bandwidth.dram.share": 2.6, "memory.throughput": 2.6, "sm.throughput": 97.2, "issue.active": 97.3,
          "pipe.fp32.utilization": 54.6, "occupancy.achieved": 97.8, "warp.execution_efficiency": 26.0},
         {"warp-efficiency"}),
        # multiply-adds in registers, at 60 % occupancy
        ({"bandwidth.dram.share": 0.0, "memory.throughput": 0.04, "sm.throughput": 96.8, "issue.active": 97.2,
          "pipe.fp32.utilization": 91.4, "occupancy.achieved": 60.4, "warp.execution_efficiency": 100}, set()),
        # a loop over what L2 holds
        ({"bandwidth.dram.share": 1.5, "memory.throughput": 87.0, "bandwidth.l2.share": 87.1, "sm.throughput": 26.6,
          "bandwidth.l1.share": 29.8, "occupancy.achieved": 98.1, "warp.execution_efficiency": 100}, set()),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_kernel_and_nothing_else_fails(values: Values, failing: set[str]) -> None:
    done, scope = judged(values)
    assert {v.target for v in done.verdicts if v.scope == scope and v.verdict == "fail"} == failing


@pytest.mark.parametrize(
    ("loads", "stores", "excess", "word"),
    [
        (
            1.0,
            4.0,
            None,
            U,
        ),  # one address for a whole warp, measured on an H200: 12.8 % of the bytes, and no waste
        (8.0, 4.0, None, F),  # every second float
        (4.0, 8.0, None, F),
        (1.0, 4.0, 1e6, F),  # counted against what each access needs
    ],
)
def test_lanes_that_share_addresses_are_no_waste(
    loads: float, stores: float, excess: float | None, word: VerdictWord
) -> None:
    values: dict[str, float | None] = {
        "memory.coalescing": 12.8,
        "memory.sectors_per_request.load": loads,
        "memory.sectors_per_request.store": stores,
        "memory.sectors.excess": excess,
        "bandwidth.dram.share": 88.0,
    }
    verdict = on(values, "coalescing")
    assert verdict.verdict == word, spoken(verdict.reason)


def test_no_wasted_sector_is_nothing_to_judge() -> None:
    values: dict[str, float | None] = {"memory.coalescing": None, "memory.sectors.excess": 0.0}
    assert on({**values, "bandwidth.dram.share": 90.0}, "coalescing").verdict == "not-applicable"


def test_judging_twice_changes_nothing_and_the_document_is_json() -> None:
    kernels = {kernel(name): (1.0, values) for name, values in SAMPLES.items()}
    once = judge_document(document(kernels), TARGETS)
    assert judge_document(once, TARGETS) == once
    text = json.dumps(to_plain_data(once), allow_nan=False)
    assert from_plain_data(RunDocument, json.loads(text)) == once


def test_more_than_the_peak_is_a_fault_of_the_measurement() -> None:
    values = {"bandwidth.dram.share": 130.0, "memory.throughput": 130.0, "sm.throughput": 10.0}
    assert on(values, "memory-bandwidth").verdict == "unknown"


def test_a_report_of_counters_is_not_asked_how_busy_the_gpu_was() -> None:
    done, _ = judged(SAMPLES["transposeNoBankConflicts"])
    assert not [v for v in done.verdicts if v.target == "gpu-busy"]
    assert verdict_exit(done, judged=True, strict=True) == 0


def test_a_pass_says_of_which_large_kernel_the_target_was_not_asked() -> None:
    gemm, copy = kernel("nvjet_sm90"), kernel("copy")
    two = document(
        {
            gemm: (9.0, SAMPLES["nvjet_sm90_hsh_256x128_64x4"]),
            copy: (1.0, SAMPLES["transposeNoBankConflicts"]),
        }
    )
    run = next(v for v in judge_document(two, TARGETS).verdicts if v.scope == RUN and v.target == "occupancy")
    assert run.verdict == "pass"
    assert "does not apply to nvjet_sm90: 14.6 % of the warps" in spoken(run.reason)
    assert "tensor pipe at 95 % of its peak" in spoken(run.reason)


@pytest.mark.parametrize(("uncounted", "word"), [(0.049, P), (0.06, U)])
def test_the_last_five_per_cent_that_no_plan_counts_decide_nothing(
    uncounted: float, word: VerdictWord
) -> None:
    bad, rest = kernel("bad"), kernel("rest")
    three = document(
        {
            kernel("good"): (0.97 - uncounted, SAMPLES["transposeNoBankConflicts"]),
            bad: (0.03, SAMPLES["transposeCoalesced"]),
            rest: (uncounted, {}),
        }
    )
    assert words_of(judge_document(three, TARGETS).verdicts, RUN)["bank-conflicts"] == word


def test_resources_that_let_nearly_every_warp_in_are_not_advised_against() -> None:
    # a stencil of 417 waves on an RTX A6000: every warp fits, what "limits" is only the multiprocessor itself
    values = {
        "occupancy.achieved": 70.4,
        "occupancy.theoretical": 100.0,
        "occupancy.limit.warps": 6,
        "occupancy.limit.registers": 10,
        "launch.waves": 417.0,
        "bandwidth.dram.share": 40.0,
        "memory.throughput": 46.3,
        "sm.throughput": 40.0,
    }
    verdict = on(values, "occupancy")
    assert verdict.verdict == "fail"
    assert [line for line in verdict.advice if "size of the blocks limits" in line] == []


# Two kernels on an H200, of 1.3 and 3.9 waves, whose registers keep warps away.
ISSUES: Values = {
    "occupancy.achieved": 57.5, "occupancy.theoretical": 75.0, "occupancy.limit.registers": 6,
    "occupancy.limit.warps": 8, "launch.waves": 1.33, "issue.active": 73.1, "pipe.alu.utilization": 47.1,
    "pipe.fp32.utilization": 41.6, "pipe.fp64.utilization": 0.0, "tensor.utilization": 0.1,
    "bandwidth.l1.share": 57.9, "bandwidth.shared.share": 52.4,
    "bandwidth.l2.share": 5.5, "bandwidth.dram.share": 0.4,
}  # fmt: skip
ADDS: Values = {
    "occupancy.achieved": 23.8, "occupancy.theoretical": 25.0, "occupancy.limit.registers": 2,
    "occupancy.limit.warps": 8, "launch.waves": 3.88, "issue.active": 81.2, "pipe.alu.utilization": 1.6,
    "pipe.fp32.utilization": 77.0, "pipe.fp64.utilization": 0.0, "tensor.utilization": 0.0, "bandwidth.l1.share": 40.1,
    "bandwidth.shared.share": 30.6, "bandwidth.l2.share": 7.2, "bandwidth.dram.share": 1.5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("values", "word"),
    [
        (ISSUES, N),
        (ADDS, N),
        ({**ISSUES, "issue.active": 40.0}, F),  # its warps wait: the target `latency` is missed, too
        ({**ISSUES, "bandwidth.dram.share": 75.0}, F),  # more loads under way would fill DRAM
        ({**ISSUES, "bandwidth.dram.share": 85.0}, N),
    ],
)
def test_warps_are_not_missed_where_a_unit_is_as_busy_as_the_target_latency_asks(
    values: Values, word: VerdictWord
) -> None:
    verdict = on(values, "occupancy")
    assert verdict.verdict == word
    assert ("more warps would not help" in spoken(verdict.reason)) == (word == N)
    assert bool(verdict.advice) == (word == F)


def small_kernel(active: float, *, overlap: float) -> RunDocument:
    """16 blocks for 132 multiprocessors, in each of eight streams, whose kernels overlap for a share of their time."""
    values: Values = {
        "launch.blocks": 16, "launch.multiprocessors": 132, "launch.waves": 0.0152, "occupancy.achieved": 12.4,
        "bandwidth.dram.share": 0.41, "bandwidth.l2.share": 0.3, "bandwidth.l1.share": 0.15, "issue.active": 4.2,
        "pipe.fp32.utilization": 1.5, "pipe.fp64.utilization": 0.0, "tensor.utilization": 0.0,
        "warp.execution_efficiency": active,
    }  # fmt: skip
    made = document({kernel("k", (16, 1, 1)): (1e-3, values)})
    assert made.trace is not None
    order = StreamOrder(8, 12.3, 1.54, 12.3 * overlap, 45_630, 0, 0, 16.0, "k", "", 0)
    return judge_document(replace(made, trace=replace(made.trace, streams=order)), TARGETS)


@pytest.mark.parametrize(("overlap", "word"), [(0.87, N), (0.0, F)])
def test_a_grid_is_not_too_small_beside_those_of_other_streams(overlap: float, word: VerdictWord) -> None:
    (verdict,) = [
        v for v in small_kernel(100.0, overlap=overlap).verdicts if v.target == "grid-size" and v.scope == RUN
    ]
    assert verdict.verdict == word
    assert ("several streams" in spoken(verdict.reason)) == (word == N)


@pytest.mark.parametrize(("active", "word"), [(86.3, N), (40.0, F), (95.0, P)])
def test_a_few_idle_lanes_are_not_what_a_nearly_empty_device_is_about(
    active: float, word: VerdictWord
) -> None:
    verdicts = small_kernel(active, overlap=0.0).verdicts
    assert words_of(verdicts, RUN)["warp-efficiency"] == word


def test_a_trace_tells_how_to_have_its_kernels_counted() -> None:
    one = kernel("k")
    report = replace(document({one: (1e-3, {})}, span=1e-3, busy=1e-3), plan=None)
    unknown = [
        v for v in judge_document(report, TARGETS).verdicts if v.verdict == "unknown" and v.target in FOUR
    ]
    assert {v.advice[0].split(":")[0] for v in unknown} == {"Count its kernels"}


def test_a_kernel_with_a_tiny_share_passes_no_run_either() -> None:
    # the large one is limited by arithmetic: bandwidth does not apply to it
    large = {
        "sm.throughput": 90.0,
        "pipe.fp32.utilization": 90.0,
        "bandwidth.dram.share": 5.0,
        "memory.throughput": 9.0,
    }
    small = {"bandwidth.dram.share": 90.0, "memory.throughput": 90.0, "sm.throughput": 9.0}
    both = judge_document(document({kernel("a"): (0.999, large), kernel("b"): (0.001, small)}), TARGETS)
    (verdict,) = [v for v in both.verdicts if v.target == "memory-bandwidth" and v.scope == RUN]
    assert verdict.verdict == "not-applicable"
    assert "only 0.10 % of the GPU time" in spoken(verdict.reason)


def test_a_librarys_kernel_is_not_held_to_targets_on_how_a_kernel_is_written() -> None:
    """Of cuBLAS only the call can be changed: nobody sets its launch bounds."""
    values = {**SAMPLES["addConstDouble3"], "occupancy.achieved": 12.5, "bandwidth.dram.share": 20.0}
    values |= {"memory.throughput": 30.0}
    for name, word in (("my_gemm", F), ("ampere_sgemm_128x64_tn", N)):
        one = kernel(name)
        done = judge_document(document({one: (1e-3, values)}), TARGETS)
        assert words_of(done.verdicts, one.scope)["coalescing"] == word
        assert words_of(done.verdicts, one.scope)["occupancy"] == word
