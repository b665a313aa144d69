"""Sentences about the value that a target judges."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import title_of
from profkit.reporting.sentences.table import JudgedValue, Parts, SentenceTable, of_judged_value

SENTENCES = SentenceTable()
SENTENCES.add_each(
    of_judged_value,
    {
        "value l1-miss-rate": "{} of the data accesses missed the L1 cache",
        "value l2-miss-rate": "{} of the accesses to the L2 cache missed it",
        "value l3-miss-rate": "{} of the accesses to the L3 cache missed it",
        "value branch-miss-rate": "{} of the branches were mispredicted",
        "value ipc": "{} instructions per cycle",
        "value simd-utilization": "{} of the floating-point arithmetic instructions were SIMD",
        "value memory-bandwidth": "{} of the highest memory bandwidth measured on this machine",
        "value roofline": "{} of the arithmetic that the roofline allows",
        "value time-precision": "the median time is known to ±{}",
        "value no-leak": "Python's heap certainly grows by {}",
        "value occupancy": "{} of the warps that the multiprocessors can hold",
        "value cuda-memory-bandwidth": "{} of the peak DRAM bandwidth",
        "value bank-conflicts": "{} bank conflicts in shared memory",
        "value warp-efficiency": "{} of the lanes were active",
        "value coalescing": "{} of the sectors moved by global accesses were needed",
        "value spills": "{} loads from local memory",
        "value latency": "its busiest unit is at {} of its peak",
        "value grid-size": "its blocks make {}",
        "value gpu-busy": "the GPU was busy for {} of the time",
        "value copies": "for {} of the time the GPU only copied",
        "value mps-gpu-busy": "the process kept the GPU busy for {} of the time",
        "value mps-memory-bandwidth": "{} of the memory bandwidth that the chip is specified with",
        "value mps-occupancy": "{} of the SIMD groups that the GPU can hold had compute work",
    },
)


@SENTENCES.add("value cases-right")
def value_cases_right(value: JudgedValue, parts: Parts) -> str:
    return f"{value} of the cases are wrong, failed, crashed or hung{parts.because}{value.how}"


@SENTENCES.add("value kernels-right")
def value_kernels_right(value: JudgedValue, parts: Parts) -> str:
    return f"{value} of the tests failed{parts.because}{value.how}"


@SENTENCES.add("value longest-shader")
def value_longest_shader(parts: Parts, value: JudgedValue) -> str:
    return f"{'; '.join(parts)} takes {value} of the GPU time{value.how}"


@SENTENCES.add("value named")
def value_named(metric: str, value: JudgedValue) -> str:
    return f"{title_of(metric)} is {value}{value.how}"
