"""Sentences about the value that a target judges."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import title_of
from profkit.reporting.sentences.table import JudgedValue, Parts, SentenceTable

SENTENCES = SentenceTable()


@SENTENCES.add("value l1-miss-rate")
def value_l1_miss_rate(value: JudgedValue) -> str:
    return f"{value} of the data accesses missed the L1 cache{value.how}"


@SENTENCES.add("value l2-miss-rate")
def value_l2_miss_rate(value: JudgedValue) -> str:
    return f"{value} of the accesses to the L2 cache missed it{value.how}"


@SENTENCES.add("value l3-miss-rate")
def value_l3_miss_rate(value: JudgedValue) -> str:
    return f"{value} of the accesses to the L3 cache missed it{value.how}"


@SENTENCES.add("value branch-miss-rate")
def value_branch_miss_rate(value: JudgedValue) -> str:
    return f"{value} of the branches were mispredicted{value.how}"


@SENTENCES.add("value ipc")
def value_ipc(value: JudgedValue) -> str:
    return f"{value} instructions per cycle{value.how}"


@SENTENCES.add("value simd-utilization")
def value_simd_utilization(value: JudgedValue) -> str:
    return f"{value} of the floating-point arithmetic instructions were SIMD{value.how}"


@SENTENCES.add("value memory-bandwidth")
def value_memory_bandwidth(value: JudgedValue) -> str:
    return f"{value} of the highest memory bandwidth measured on this machine{value.how}"


@SENTENCES.add("value roofline")
def value_roofline(value: JudgedValue) -> str:
    return f"{value} of the arithmetic that the roofline allows{value.how}"


@SENTENCES.add("value cases-right")
def value_cases_right(value: JudgedValue, parts: Parts) -> str:
    return f"{value} of the cases are wrong, failed, crashed or hung{parts.because}{value.how}"


@SENTENCES.add("value kernels-right")
def value_kernels_right(value: JudgedValue, parts: Parts) -> str:
    return f"{value} of the tests failed{parts.because}{value.how}"


@SENTENCES.add("value time-precision")
def value_time_precision(value: JudgedValue) -> str:
    return f"the median time is known to ±{value}{value.how}"


@SENTENCES.add("value no-leak")
def value_no_leak(value: JudgedValue) -> str:
    return f"Python's heap certainly grows by {value}{value.how}"


@SENTENCES.add("value occupancy")
def value_occupancy(value: JudgedValue) -> str:
    return f"{value} of the warps that the multiprocessors can hold{value.how}"


@SENTENCES.add("value cuda-memory-bandwidth")
def value_cuda_memory_bandwidth(value: JudgedValue) -> str:
    return f"{value} of the peak DRAM bandwidth{value.how}"


@SENTENCES.add("value bank-conflicts")
def value_bank_conflicts(value: JudgedValue) -> str:
    return f"{value} bank conflicts in shared memory{value.how}"


@SENTENCES.add("value warp-efficiency")
def value_warp_efficiency(value: JudgedValue) -> str:
    return f"{value} of the lanes were active{value.how}"


@SENTENCES.add("value coalescing")
def value_coalescing(value: JudgedValue) -> str:
    return f"{value} of the sectors moved by global accesses were needed{value.how}"


@SENTENCES.add("value spills")
def value_spills(value: JudgedValue) -> str:
    return f"{value} loads from local memory{value.how}"


@SENTENCES.add("value latency")
def value_latency(value: JudgedValue) -> str:
    return f"its busiest unit is at {value} of its peak{value.how}"


@SENTENCES.add("value grid-size")
def value_grid_size(value: JudgedValue) -> str:
    return f"its blocks make {value}{value.how}"


@SENTENCES.add("value gpu-busy")
def value_gpu_busy(value: JudgedValue) -> str:
    return f"the GPU was busy for {value} of the time{value.how}"


@SENTENCES.add("value copies")
def value_copies(value: JudgedValue) -> str:
    return f"for {value} of the time the GPU only copied{value.how}"


@SENTENCES.add("value mps-gpu-busy")
def value_mps_gpu_busy(value: JudgedValue) -> str:
    return f"the process kept the GPU busy for {value} of the time{value.how}"


@SENTENCES.add("value mps-memory-bandwidth")
def value_mps_memory_bandwidth(value: JudgedValue) -> str:
    return f"{value} of the memory bandwidth that the chip is specified with{value.how}"


@SENTENCES.add("value mps-occupancy")
def value_mps_occupancy(value: JudgedValue) -> str:
    return f"{value} of the SIMD groups that the GPU can hold had compute work{value.how}"


@SENTENCES.add("value longest-shader")
def value_longest_shader(parts: Parts, value: JudgedValue) -> str:
    return f"{'; '.join(parts)} takes {value} of the GPU time{value.how}"


@SENTENCES.add("value named")
def value_named(metric: str, value: JudgedValue) -> str:
    return f"{title_of(metric)} is {value}{value.how}"
