"""The verdicts on a run of an Apple GPU: every word of every target, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.core.types import (
    Fact,
    MetalAbsent,
    MetalTrace,
    MetalWork,
    RunDocument,
    Verdict,
    VerdictWord,
)
from profkit.profiling.summarize import judge_document, targets_for
from tests import metal_documents as metal
from tests.spoken import message, spoken

TARGETS = targets_for("mps")
BUSY = metal.metal(process_busy=1.6, device_busy=1.7, unsubmitted=0.3, blocked=0.0, others=0.0)


def verdicts(document: RunDocument) -> dict[str, Verdict]:
    found = {v.target: v for v in judge_document(document, TARGETS).verdicts}
    assert all(v.scope.kind == "run" or v.target == "time-precision" for v in found.values())
    return found


def on(target: str, trace: MetalTrace, **changes: object) -> Verdict:
    return verdicts(metal.run(trace, **changes))[target]


def counted(**numbers: float) -> MetalTrace:
    return replace(BUSY, counters=metal.counters(**numbers))  # type: ignore[arg-type]


def test_the_targets_are_those_that_were_asked_for() -> None:
    found = {t.name: (t.metric, t.operator, t.threshold) for t in TARGETS}
    assert found == {
        "gpu-busy": ("gpu.utilization", ">", 70),
        "memory-bandwidth": ("bandwidth.gpu.share", ">", 60),
        "occupancy": ("gpu.occupancy", ">", 75),
        "longest-shader": ("gpu.longest", "<=", 50),
        "time-precision": ("time.interval", "<=", None),
        "no-leak": ("memory.python_growth", "<", 8),
    }


def test_every_target_says_its_value_and_what_to_try() -> None:
    for target in TARGETS:
        assert target.says
        assert target.advice


# ---------------------------------------------------------------- gpu-busy


SHORT = {
    "marked": False,
    "entries": 0,
    "window": 0.4,
    "process_busy": 0.1,
    "unsubmitted": 0.25,
    "blocked": 0.0,
    "buffers": 12,
}


@pytest.mark.parametrize(
    ("trace", "word", "why"),
    [
        (BUSY, "pass", "the process kept the GPU busy for 80.0 % of the time; target > 70 %"),
        (metal.idle(), "fail", "20.0 % of the time; target > 70 %"),
        # 1.4 s alone, and 0.05 s in which its work waited for somebody else: 72.5 %.
        (metal.metal(), "unknown", "other processes used the GPU: without them it could have been 72.5 %"),
        (metal.metal(blocked=None, others=0.3), "unknown", "without them it could have been 85.0 %"),
        (metal.metal(**SHORT), "unknown", "no region is marked, and 12 command buffers may be only start-up"),
        (metal.metal(**(SHORT | {"buffers": 100})), "fail", "> 70 %"),
        (metal.metal(span=8e-3, window=8e-3, process_busy=8e-3, device_busy=8e-3), "unknown", "8.00 ms are too short"),
        (metal.idle(span=4e-3, process_busy=1e-3, blocked=0.0), "unknown", "4.00 ms are too short to judge"),
        (metal.idle(others=None, blocked=None), "unknown", "other processes used the GPU: without them"),
        (MetalTrace(), "unknown", "GPU utilization not known: the process's own intervals are not in the trace"),
        (metal.idle(process_busy=0.0, unsubmitted=2.0, blocked=0.0), "fail", "0.0 % of the time"),
    ],
)  # fmt: skip
def test_the_process_keeps_the_gpu_busy_or_somebody_says_why_not(
    trace: MetalTrace, word: VerdictWord, why: str
) -> None:
    found = on("gpu-busy", trace)
    assert (found.verdict, why in spoken(found.reason)) == (word, True), spoken(found.reason)


def test_advice_is_of_metal_and_by_what_the_gpu_waited_for() -> None:
    host = on("gpu-busy", metal.idle())
    assert host.advice[0].startswith("The host submits too slowly")
    queued = on("gpu-busy", metal.idle(unsubmitted=0.1))
    assert queued.advice[0].startswith("Work was submitted and had not begun")
    for target in TARGETS:
        for line in (one.text for one in target.advice):
            assert not any(word in line for word in ("CUDA", "nvidia", "warp", "kernel launch", "stream")), (
                line
            )


def test_an_unknown_says_what_to_do_about_its_own_cause() -> None:
    assert on("gpu-busy", metal.metal()).advice[0].startswith("Close what else uses the GPU")
    assert on("gpu-busy", metal.metal(**SHORT)).advice[0].startswith("Mark the part that counts")


# ---------------------------------------------------------------- bandwidth and arithmetic


@pytest.mark.parametrize(
    ("trace", "word", "why"),
    [
        (counted(read=160e9), "pass", "73.3 % of the memory bandwidth that the chip is specified with"),
        (counted(read=120e9), "fail", "54.9 % of the memory bandwidth"),
        (counted(read=40e9), "not-applicable", "it hardly moves data (18.3 % of the chip's bandwidth)"),
        (counted(read=120e9, alu=70.0), "not-applicable", "arithmetic limits it"),
        (counted(read=260e9), "unknown", "it includes what the system level cache served"),
        (BUSY, "unknown", "Counter Set: (null)"),
        (metal.idle(), "not-applicable", "the GPU waits for most of the time (busy for 20.0 %)"),
    ],
)
def test_bandwidth_is_held_against_the_chip_where_memory_may_limit(
    trace: MetalTrace, word: VerdictWord, why: str
) -> None:
    found = on("memory-bandwidth", trace)
    assert (found.verdict, why in spoken(found.reason)) == (word, True), spoken(found.reason)


@pytest.mark.parametrize(
    ("bytes", "bandwidth"),
    [
        (0.95e9, "pass"),  # 178 GB/s of 273
        (0.1e9, "not-applicable"),
        (0.6e9, "unknown"),  # 41 % of the memory, and the arithmetic that may limit it is not known
        (None, "unknown"),
    ],
)
def test_declared_bytes_stand_in_for_counters(bytes: float | None, bandwidth: VerdictWord) -> None:
    found = verdicts(metal.run(BUSY, timings=(metal.timing(None, bytes),)))
    assert found["memory-bandwidth"].verdict == bandwidth, spoken(found["memory-bandwidth"].reason)
    if bytes and bandwidth != "not-applicable":
        assert found["memory-bandwidth"].quality == "estimated"
        assert "(estimated)" in spoken(found["memory-bandwidth"].reason)


def test_where_the_gpu_waits_memory_is_not_what_it_waits_for() -> None:
    found = verdicts(metal.run(metal.idle(), timings=(metal.timing(bytes=0.3e9),)))["memory-bandwidth"]
    assert found.verdict == "not-applicable"
    assert "the GPU waits for most of the time (busy for 20.0 %)" in spoken(found.reason)


# ---------------------------------------------------------------- occupancy


@pytest.mark.parametrize(
    ("trace", "word", "why"),
    [
        (counted(occupancy=80.0), "pass", "80.0 % of the SIMD groups"),
        (counted(occupancy=40.0), "fail", "target > 75 %"),
        (counted(occupancy=40.0, limiter=91.0), "not-applicable", "its top limiter is at 91.0 %"),
        (counted(occupancy=40.0, read=180e9), "not-applicable", "memory is kept busy"),
        (
            metal.idle(counters=metal.counters(occupancy=40.0)),
            "not-applicable",
            "busy for 20.0 %), but not for threads",
        ),
        (BUSY, "unknown", "Compute occupancy not known"),
    ],
)
def test_low_occupancy_is_a_fault_only_where_nothing_is_busy(
    trace: MetalTrace, word: VerdictWord, why: str
) -> None:
    found = on("occupancy", trace)
    assert (found.verdict, why in spoken(found.reason)) == (word, True), spoken(found.reason)


def test_the_gpus_own_manager_and_other_work_excuse_low_occupancy() -> None:
    counters = metal.counters(occupancy=33.0)
    held = replace(BUSY, counters=(*counters, metal.counter("Occupancy Manager Target", 35.0)))
    assert "occupancy manager limits it (0.943 of what it allows)" in spoken(on("occupancy", held).reason)
    free = replace(BUSY, counters=(*counters, metal.counter("Occupancy Manager Target", 100.0)))
    assert on("occupancy", free).verdict == "fail"
    others = (
        *tuple(c for c in counters if c.name != "Total Occupancy"),
        metal.counter("Total Occupancy", 90.0),
    )
    assert "full with other work as well (90.0 % in all)" in spoken(
        on("occupancy", replace(BUSY, counters=others)).reason
    )


def test_without_a_limiter_low_occupancy_is_not_called_a_fault() -> None:
    alone = replace(BUSY, counters=(metal.counter("Compute Occupancy", 30.0),))
    found = on("occupancy", alone)
    assert found.verdict == "unknown"
    assert "low occupancy alone is not a problem" in spoken(found.reason)
    assert found.advice


# ---------------------------------------------------------------- the longest shader


EVEN = tuple(MetalWork(f"layer {n}", 10, 0.4) for n in range(4))


@pytest.mark.parametrize(
    ("trace", "word", "why"),
    [
        (replace(BUSY, encoders=EVEN), "pass", "encoder layer 0 takes 25.0 % of the GPU time"),
        (counted(), "fail", "encoder MPSMatrixMultiplication takes 64.3 % of the GPU time; target <= 50 %"),
        (BUSY, "unknown", "it was not counted how near that is to the GPU's limit"),
        (counted(limiter=85.0), "not-applicable", "its top limiter is at 85.0 %"),
        (counted(read=160e9), "not-applicable", "it keeps memory busy"),
        (metal.idle(), "not-applicable", "no single shader matters"),
        (replace(BUSY, encoders=()), "unknown", "not known: the process ran nothing on the GPU"),
    ],
)
def test_the_longest_shader_is_named_and_judged_by_what_it_keeps_busy(
    trace: MetalTrace, word: VerdictWord, why: str
) -> None:
    found = on("longest-shader", trace)
    assert (found.verdict, why in spoken(found.reason)) == (word, True), spoken(found.reason)


# ---------------------------------------------------------------- laws


def test_what_is_not_in_a_trace_never_fails_and_never_passes() -> None:
    for document in (metal.report(MetalTrace()), metal.run(MetalTrace())):
        for verdict in verdicts(document).values():
            assert verdict.verdict == "unknown" or verdict.target == "time-precision", spoken(verdict.reason)


def test_a_run_without_a_trace_says_why() -> None:
    whole = metal.run(None)
    without = replace(whole, metal=None, trace=None, profiles=())
    passes = tuple(
        replace(p, state="failed", reason=message("xctrace is a stub"), fix="xcode-select") if p.tool else p
        for p in whole.passes
    )
    found = verdicts(replace(without, passes=passes))
    assert found["gpu-busy"].verdict == "unknown"
    assert "the trace pass failed: xctrace is a stub" in spoken(found["gpu-busy"].reason)
    assert "the counters pass failed" in spoken(found["occupancy"].reason)
    assert found["gpu-busy"].advice == ("xcode-select",)


def test_a_program_that_put_nothing_on_the_gpu_is_asked_whether_it_uses_it() -> None:
    why = Fact.of("no-rows", table="metal-gpu-intervals")
    empty = MetalAbsent("metal-gpu-intervals", why, "launch the program with xctrace")
    found = on("gpu-busy", MetalTrace(span=2.0, absent=(empty,)))
    assert spoken(found.reason) == "GPU utilization not known: the program ran nothing on the GPU"
    assert found.advice[0].startswith("Does it use the GPU?")
    brought = verdicts(metal.report(MetalTrace(span=2.0, absent=(empty,))))["gpu-busy"]
    assert spoken(brought.reason) == "GPU utilization not known: metal-gpu-intervals has no rows"
    assert brought.advice == ("launch the program with xctrace",)


@pytest.mark.parametrize("trace", [BUSY, metal.idle(), counted(read=120e9)])
def test_of_a_process_that_is_a_guess_nothing_is_said(trace: MetalTrace) -> None:
    why = "the recording names no process: Firefox (900), the busiest on the GPU, is taken"
    found = verdicts(metal.report(replace(trace, guessed=Fact.message(why))))
    for name in ("gpu-busy", "longest-shader"):
        assert found[name].verdict == "unknown"
        assert f"uncertain: {why}; the table of contents (toc.xml) tells" in spoken(found[name].reason)


@pytest.mark.parametrize("trace", [BUSY, metal.idle()])
def test_of_a_region_that_was_not_found_nothing_is_said(trace: MetalTrace) -> None:
    why = "the whole trace is analysed, not only the region: the clock of the trace is not known"
    found = on("gpu-busy", replace(trace, lost=Fact.message(why), marked=False))
    assert (found.verdict, why in spoken(found.reason)) == ("unknown", True), spoken(found.reason)


def test_judging_again_changes_nothing() -> None:
    for document in (metal.run(), metal.report(), metal.run(counted()), metal.run(metal.idle())):
        once = judge_document(document, TARGETS)
        assert judge_document(once, TARGETS) == once


def test_encoders_are_no_kernels_with_classes() -> None:
    judged = judge_document(metal.run(), TARGETS)
    assert judged.kernels == ()
    assert not any(r.scope.kind == "kernel" for r in judged.readings)
