"""Rules on what a kernel moves: data that is loaded again, local memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.judge.findings import find_insights, kernel_insights
from profkit.analysis.summaries.bottlenecks import classify_bottlenecks
from profkit.core.types import Gain, Insight, KernelInstruction
from tests import kernel_documents
from tests.analysis.judge.rules.test_gpu_rules import A4500, NAIVE_PRODUCT, insights, stalls
from tests.kernel_documents import Values

SUM_IN_SHARED_MEMORY: Values = {  # a dot product on the same GTX: L1 is busy with shared memory
    **NAIVE_PRODUCT,
    "bandwidth.dram.share": 34.9,
    "bandwidth.l1.share": 81.1,
    "bandwidth.l2.share": 20.0,
    "sm.throughput": 72.4,
    "memory.throughput": 72.4,
    "pipe.fp32.utilization": 6.0,
    "pipe.lsu.utilization": 73.5,
    "issue.active": 33.4,
    "dram.read": 8_406_048.0,
    **stalls(barrier=5.0, long_scoreboard=4.4, wait=4.4, short_scoreboard=3.7, lg_throttle=0.5, selected=1.0),
}

LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def test_how_often_each_byte_is_loaded_tells_reuse_from_shared_memory() -> None:
    """5,373 MB of loads for 146 MB from DRAM, and 8.4 MB for 8.4 MB: recorded on a GTX 1660."""
    product: Values = {**NAIVE_PRODUCT, "dram.read": 146_331_792.0}
    again = insights(product, counters={LOADS: 167_903_232.0})["no-reuse"]
    assert "each byte from DRAM is loaded 37 times" in again.evidence
    assert "no-reuse" in insights(SUM_IN_SHARED_MEMORY)  # as if nothing were counted
    assert "no-reuse" not in insights(SUM_IN_SHARED_MEMORY, counters={LOADS: 262_144.0})


def test_of_a_kernel_that_l2_limits_it_is_said_how_often_it_loads_a_byte() -> None:
    values: Values = {
        **NAIVE_PRODUCT,
        "bandwidth.l1.share": 40.0,
        "bandwidth.l2.share": 84.0,
        "sm.throughput": 30.0,
        "memory.throughput": 84.0,
        "pipe.lsu.utilization": 30.0,
        "cache.l1.miss_rate": 97.0,
        "dram.read": 100e6,
    }
    found = insights(values, counters={LOADS: 25e6})["no-reuse"]
    assert found.title == "Use each value that comes from the L2 cache more than once"
    assert "each byte from DRAM is loaded 8 times" in found.evidence
    assert "tile that it keeps in shared memory" in found.change


SECTORS = "l1tex__t_sectors_pipe_lsu_mem_{}_op_{}.sum"


def test_local_memory_is_as_much_of_a_kernel_as_of_its_sectors() -> None:
    """A third of the instructions: where sectors are counted, L1 limits the kernel by their share of those."""
    spilled: Values = {
        **NAIVE_PRODUCT,
        "instructions": 54e6,
        "memory.spill.loads": 12e6,
        "memory.spill.stores": 4.9e6,
    }
    sectors = {("local", "ld"): 36e6, ("local", "st"): 27e6, ("global", "ld"): 30e6, ("global", "st"): 7e6}
    counted = {SECTORS.format(*kind): count for kind, count in sectors.items()}
    found = insights(spilled, counters=counted)["register-spills"]
    assert found.gain is not None
    assert found.gain.at_most == pytest.approx(0.63)
    assert "sectors" not in insights(spilled)["register-spills"].evidence


# Distances of spectra on an H200, __launch_bounds__(256, 8): 608 bytes of spilled registers.
TILED: Values = {
    **NAIVE_PRODUCT,
    "instructions": 1.1e9,
    "memory.spill.loads": 5.1e8,
    "memory.spill.stores": 1e7,
    "launch.registers": 32.0,
}


@pytest.mark.parametrize(
    ("registers", "fixed", "title", "says", "says_not"),
    [
        (32.0, 1.0, "Give the threads of this kernel more registers", "__launch_bounds__", "unroll"),
        (40.0, 1.0, "Give the threads of this kernel more registers", "-maxrregcount", "unroll"),
        (32.0, 0.3, "An array of this kernel lives in local memory", "#pragma unroll", "maxrregcount"),
        (128.0, 0.1, "An array of this kernel lives in local memory", "shared memory", "maxrregcount"),
        (32.0, 0.95, "Keep values in registers instead of local memory", "-Xptxas -v", "unroll"),
        # Without the code: registers to spare tell an array, a limit on them nothing.
        (18.0, None, "An array of this kernel lives in local memory", "#pragma unroll", "maxrregcount"),
        (32.0, None, "Keep values in registers instead of local memory", "-Xptxas -v", "maxrregcount"),
        (24.0, None, "Keep values in registers instead of local memory", "-Xptxas -v", "unroll"),
        (255.0, None, "Keep values in registers instead of local memory", "-Xptxas -v", "unroll"),
    ],
)
def test_spilled_registers_are_told_from_arrays_by_the_addresses_in_the_code(
    registers: float, fixed: float | None, title: str, says: str, says_not: str
) -> None:
    one = kernel_documents.kernel("city_block(float *, int)")
    document = kernel_documents.document({one: (1e-3, {**TILED, "launch.registers": registers})})
    row = KernelInstruction(
        one.scope, 0x8ED0, "LDL.64", "/app/match.cu", 63, 0.3, 0.0, 0.0, fixed_local=fixed
    )
    document = replace(document, gpus=(A4500,), instructions=(row,))
    document = replace(document, kernels=classify_bottlenecks(document))
    found = next(each for each in find_insights(document) if each.rule == "register-spills")
    assert found.title.startswith(title)
    assert says in found.change
    assert says_not not in found.change
    spilled = title.startswith("Give")
    assert (f"does not fit {registers:.0f} registers" in found.evidence) is spilled
    assert (found.where.line == 63) is spilled


def test_a_kernel_with_hardly_any_local_memory_is_told_nothing_of_it() -> None:
    few: Values = {
        **NAIVE_PRODUCT,
        "instructions": 54e6,
        "memory.spill.loads": 3e5,
        "memory.spill.stores": 1e5,
    }
    assert "register-spills" not in insights(few)
    none: Values = {**NAIVE_PRODUCT, "instructions": 154_632_192.0, "memory.spill.loads": 0.0}
    assert "register-spills" not in insights(none)


# Triton's relu with rows and columns exchanged, 1024 x 1024 in float32 on an H100: 30 us, 5 us with coalesced accesses.
SCATTERED_STORES: Values = {
    **NAIVE_PRODUCT,
    "bandwidth.dram.share": 5.2,
    "bandwidth.l1.share": 26.8,
    "bandwidth.l2.share": 24.1,
    "sm.throughput": 5.3,
    "memory.throughput": 26.8,
    "pipe.fp32.utilization": 2.3,
    "pipe.lsu.utilization": 1.2,
    "issue.active": 5.3,
    "memory.coalescing": 12.5,
    "memory.sectors_per_request.load": 32.0,
    "memory.sectors_per_request.store": 32.0,
    **stalls(drain=130.0, long_scoreboard=58.1, short_scoreboard=49.6, mio_throttle=24.2, lg_throttle=12.8),
}


def test_warps_that_wait_for_scattered_stores_are_told_of_the_addresses_and_not_of_their_end() -> None:
    found = insights(SCATTERED_STORES)
    assert "waiting-warps" not in found
    assert "32.0 sectors for each request" in found["wasted-sectors"].evidence
    whole = {**SCATTERED_STORES, "memory.coalescing": 100.0, "memory.sectors_per_request.store": 4.0}
    assert "Write less" in insights(whole)["waiting-warps"].title


def test_of_a_kernel_by_itself_gains_are_shares_of_the_gpu_s_time_and_the_host_is_left_out() -> None:
    one = kernel_documents.kernel("my_kernel(float *, int)")
    document = kernel_documents.document({one: (1e-3, SCATTERED_STORES)})
    assert document.trace is not None
    trace = replace(document.trace, tool="nsys", span=4e-3, busy=1e-3)
    document = replace(document, trace=trace, gpus=(A4500,))
    document = replace(document, kernels=classify_bottlenecks(document))
    document = replace(document, insights=find_insights(document))
    scattered = next(each for each in document.insights if each.rule == "wasted-sectors")
    host = Insight("late-launches", "Launch sooner", "75 % idle", "CUDA graph", gain=Gain(0.7, "a step", ""))
    (kept,) = (
        each
        for each in kernel_insights(replace(document, insights=(host, *document.insights)))
        if each.rule in ("wasted-sectors", "late-launches")
    )
    assert scattered.gain is not None
    assert kept.gain is not None
    assert kept.gain.at_most == pytest.approx(4 * scattered.gain.at_most)
    assert kept.gain.of == "the GPU time"
