"""What limits a kernel: the class, its evidence in words, and unknown where the counters do not tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.summaries.bottlenecks import busiest_readings, classify_bottlenecks
from profkit.core.types import Bound, Gpu, GpuTrace, Kernel, KernelBottleneck, KernelTime
from tests import documents
from tests.kernel_documents import SAMPLES, Values, document, kernel
from tests.spoken import message, spoken


def classed(values: Values, one: Kernel = kernel("k"), seconds: float = 1e-3) -> KernelBottleneck:  # noqa: B008
    (found,) = classify_bottlenecks(document({one: (seconds, values)}))
    return found


@pytest.mark.parametrize(
    ("sample", "bound", "busiest", "evidence"),
    [
        ("transposeNoBankConflicts", "dram", "dram", "DRAM at 89 % of its peak"),
        ("transposeCoalesced", "shared", "shared", "L1 and shared memory at 90 % of its peak; the next, DRAM, at 62 %"),
        ("addConstDouble", "dram", "dram", "DRAM at 91 % of its peak"),
        ("sobelFloat", "issue", "issue", "instruction issue at 84 % of its peak; the next, ALU pipe (integer, logic"),
        ("sobelDouble", "fp64", "fp64", "FP64 pipe at 86 % of its peak; the next, instruction issue, at 4.1 %"),
        ("nvjet_sm90_hsh_256x128_64x4", "tensor", "tensor", "tensor pipe at 95 % of its peak; the next, L1, at 70 %"),
        ("nvjet, only the gate's counters", "unknown", "dram", "DRAM at 27 % of its peak; its arithmetic pipes"),
    ],
)  # fmt: skip
def test_known_kernels_have_their_known_class(
    sample: str, bound: Bound, busiest: Bound, evidence: str
) -> None:
    found = classed(SAMPLES[sample])
    assert (found.bound, found.busiest) == (bound, busiest), spoken(found.reason)
    assert spoken(found.reason).startswith(evidence)


QUIET: Values = {"memory.throughput": 20.0, "sm.throughput": 15.0, "bandwidth.dram.share": 20.0}


@pytest.mark.parametrize(
    ("values", "bound", "why"),
    [
        # NVIDIA's rule: 60 % and 80 %
        ({**QUIET, "memory.throughput": 59.9, "bandwidth.dram.share": 59.9}, "latency", "below 60 on both sides"),
        ({**QUIET, "memory.throughput": 60.0, "bandwidth.dram.share": 60.0}, "dram", "the nearest limit"),
        # the copy of an H200: L2's own figure is higher than that of the memory as a whole, and no limit
        ({"bandwidth.dram.share": 77.3, "bandwidth.l2.share": 88.0, "memory.throughput": 77.3, "sm.throughput": 42.0},
         "dram", "L2 has parts that are no limit"),
        ({"bandwidth.dram.share": 1.5, "bandwidth.l2.share": 58.8, "bandwidth.l1.share": 29.8,
          "memory.throughput": 87.0, "sm.throughput": 26.6}, "l2", "its busiest part was not told, but L2 is nearest"),
        ({"bandwidth.dram.share": 5.0, "memory.throughput": 85.0, "sm.throughput": 26.6}, "unknown",
         "a unit of the memory that nobody named"),
        # issue against pipes: within ten points the pipe is what the instructions are for
        ({**QUIET, "sm.throughput": 97, "issue.active": 97, "pipe.fp32.utilization": 91}, "fp32", "multiply-adds"),
        ({**QUIET, "sm.throughput": 97, "issue.active": 97, "pipe.fp32.utilization": 55}, "issue", "a mix"),
        ({**QUIET, "sm.throughput": 98, "pipe.fp32.utilization": 98.6, "flops.f16": 4e9, "flops.f32": 0.0}, "fp16",
         "half precision on the FP32 pipe of GH100"),
        ({**QUIET, "sm.throughput": 98, "pipe.fp32.utilization": 49.3, "issue.active": 62}, "compute",
         "a pipe that was not told"),
        ({"bandwidth.dram.share": 20.0, "ipc": 3.9}, "issue", "instructions per cycle stand in"),
        # what was not collected
        ({"bandwidth.dram.share": 91.0}, "dram", "nothing speaks against a saturated unit"),
        ({"bandwidth.dram.share": 74.0}, "unknown", "a pipe may be busier"),
        ({"bandwidth.dram.share": 74.0, "tensor.utilization": 0.0, "issue.active": 20.0}, "dram", "no pipe can be"),
        ({"bandwidth.dram.share": 1.0, "issue.active": 62.0}, "unknown", "a pipe of half the rate may be full"),
        ({"bandwidth.dram.share": 1.0, "issue.active": 5.0, "tensor.utilization": 0.0}, "unknown", "FP64 may be full"),
        ({"bandwidth.dram.share": 5.0, "issue.active": 5.0, "tensor.utilization": 0.0, "pipe.fp64.utilization": 0.0,
          "pipe.fp32.utilization": 1.0}, "latency", "all pipes are quiet, and so is DRAM"),
        ({"occupancy.achieved": 50.0}, "unknown", "nothing was counted"),
        # too small
        ({**QUIET, "launch.blocks": 12, "launch.multiprocessors": 132}, "launch", "12 blocks"),
        ({**QUIET, "launch.blocks": 132, "launch.multiprocessors": 132, "launch.waves": 0.2}, "launch", "a fifth"),
        ({**QUIET, "launch.blocks": 132, "launch.multiprocessors": 132, "launch.waves": 1.0}, "latency", "a wave"),
        # a GEMM of 128 blocks on 132 multiprocessors is as large as the device, near enough
        ({**QUIET, "tensor.utilization": 95.0, "sm.throughput": 90.0, "launch.blocks": 128,
          "launch.multiprocessors": 132}, "tensor", "128 of 132"),
        ({"bandwidth.dram.share": 2.8, "launch.blocks": 128, "launch.multiprocessors": 132, "launch.waves": 0.485},
         "unknown", "nobody counted its pipes"),
        ({**QUIET, "time.kernel": 2.1e-6}, "launch", "shorter than its launch"),
        # one block keeps the L1 of its multiprocessor busy, and the device idle
        ({"bandwidth.dram.share": 0.03, "memory.throughput": 0.45, "bandwidth.l1.share": 82.0, "sm.throughput": 0.003,
          "launch.blocks": 1, "launch.multiprocessors": 132}, "launch", "percentages over active cycles"),
    ],
)  # fmt: skip
def test_the_class_follows_from_what_is_known(values: Values, bound: Bound, why: str) -> None:
    found = classed(values)
    assert found.bound == bound, f"{why}: {found.reason}"


def test_a_trace_alone_tells_what_is_too_small() -> None:
    times = (
        KernelTime(kernel("big"), 10, 0.9, median=1e-3),
        KernelTime(kernel("few", grid=(12, 1, 1)), 10, 0.05, median=1e-4),
        KernelTime(kernel("short"), 10, 0.04, median=2e-6),
        KernelTime(kernel("short, in a graph"), 10, 0.01, median=2e-6, graph=True),
    )
    whole = replace(
        documents.empty(),
        backend="cuda",
        gpus=(Gpu("H200", multiprocessors=132),),
        trace=GpuTrace("nsys", times),
    )
    found = {one.scope.name: one for one in classify_bottlenecks(whole)}
    assert {name: one.bound for name, one in found.items()} == {
        "big": "unknown",
        "few": "launch",
    }  # 95 % of the time; the rest is not named
    assert spoken(found["few"].reason) == "12 blocks for 132 multiprocessors"
    every = replace(whole, trace=GpuTrace("nsys", tuple(replace(t, total=0.25) for t in times)))
    bounds = {one.scope.name: one.bound for one in classify_bottlenecks(every)}
    assert (bounds["short"], bounds["short, in a graph"]) == ("launch", "unknown")


def test_a_collective_is_not_too_small_but_waits_for_others() -> None:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    few = KernelTime(kernel(name, grid=(24, 1, 1)), 10, 0.9, median=4e-3)
    whole = replace(document({}), gpus=(Gpu("H200", multiprocessors=132),), trace=GpuTrace("nsys", (few,)))
    (found,) = classify_bottlenecks(whole)
    assert (found.bound, "slowest GPU" in spoken(found.reason)) == ("unknown", True)


def test_a_grid_that_the_tracer_did_not_tell_is_not_an_empty_one() -> None:
    untold = KernelTime(kernel("k", grid=(0, 0, 0)), 10, 0.9, median=1e-3)
    whole = replace(
        document({}), gpus=(Gpu("MI250", multiprocessors=104),), trace=GpuTrace("torch", (untold,))
    )
    assert classify_bottlenecks(whole)[0].bound == "unknown"


def test_issue_slots_that_are_busier_than_their_pipe_are_not_called_the_next() -> None:
    # torch's random numbers on a GH200
    found = classed({"pipe.alu.utilization": 62.0, "issue.active": 69.0, "bandwidth.dram.share": 41.0,
                     "tensor.utilization": 1.0, "sm.throughput": 69.0, "memory.throughput": 41.0})  # fmt: skip
    assert found.bound == "integer"
    assert spoken(found.reason).endswith("at 62 % of its peak; what feeds it, instruction issue, at 69 %")


def test_doubted_readings_make_no_class() -> None:
    told = document({kernel("k"): (1e-3, SAMPLES["addConstDouble"])})
    doubted = replace(told, readings=tuple(replace(r, doubt=message("nonsense")) for r in told.readings))
    assert classify_bottlenecks(doubted)[0].bound == "unknown"


def test_shares_are_of_all_kernels_and_the_largest_comes_first() -> None:
    two = document({kernel("small"): (1.0, QUIET), kernel("large"): (3.0, QUIET)})
    assert [(one.scope.name, one.share) for one in classify_bottlenecks(two)] == [
        ("large", 0.75),
        ("small", 0.25),
    ]


def test_the_busiest_unit_is_a_reading_where_there_is_a_class() -> None:
    two = document({kernel("known"): (1.0, QUIET), kernel("unknown"): (1.0, {"bandwidth.dram.share": 20.0})})
    told = busiest_readings(classify_bottlenecks(two))
    assert [(r.scope.name, r.value) for r in told] == [("known", 20.0)]
