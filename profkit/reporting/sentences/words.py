"""Words of single things: what a metric, a unit or a kind is called in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

# Metrics within a sentence; any other has its title of the catalogue.
METRICS: Mapping[str, str] = {
    "launch.registers": "registers per thread",
    "launch.shared": "shared memory per block",
    "launch.threads": "threads per block",
    "launch.count": "launches per iteration",
    "buffer.count": "command buffers per iteration",
    "transfer.bytes": "bytes copied",
    "dram.bytes": "memory traffic",
    "cache.l1.miss_rate": "accesses that miss L1",
    "cache.l2.miss_rate": "accesses to L2 that miss it",
    "cache.l3.miss_rate": "accesses to L3 that miss it",
    "branch.miss_rate": "branches mispredicted",
    "memory.rss_peak": "resident memory",
    "memory.python_peak": "Python's heap",
    "memory.python_growth": "growth",
    "time.import": "imports",
    "gpu.utilization": "GPU busy",
    "clock-sampled": "clock of the SMs between the samples",
    "clock-counted": "clock of the cores, by their cycle counters",
}

# Units of a kernel, and what allows the fewest blocks per multiprocessor.
UNITS: Mapping[str, str] = {
    "dram": "DRAM",
    "l2": "L2",
    "l1": "L1",
    "l1-and-shared": "L1 and shared memory",
    "shared": "shared memory",
    "lsu": "LSU pipe (loads and stores)",
    "tensor": "tensor pipe",
    "fp64": "FP64 pipe",
    "fp32": "FP32 pipe",
    "fp16": "FP16 pipe",
    "fp16-on-fp32": "FP32 pipe, with FP16 arithmetic,",
    "integer": "ALU pipe (integer, logic, comparisons)",
    "xu": "XU pipe (special functions, conversions)",
    "issue": "instruction issue",
    "compute": "the multiprocessors' busiest unit (the report does not say which)",
    "memory": "the memory's busiest unit (the report does not say which)",
    "memory-l2": "the memory's busiest unit (most likely of L2)",
    "memory-l1": "the memory's busiest unit (most likely of L1)",
    "memory-shared": "the memory's busiest unit (most likely of shared memory)",
    "registers": "registers",
    "warps": "the warps of its blocks",
    "blocks": "the number of blocks",
    "barriers": "barriers",
}

# Of each kind what a name is called. `profile` is the title of a profile's table, and `row` what a row of it is.
WordKind = Literal["fault", "stop", "idle", "profile", "row"]
WORDS: Mapping[WordKind, Mapping[str, str]] = {
    "fault": {
        "values": "wrong values",
        "not-finite": "NaN or infinity",
        "shape": "another shape",
        "dtype": "another dtype",
        "device": "another device",
        "stride": "another stride",
        "type": "another type",
        "count": "another number of outputs",
        "aliasing": "shares memory against its schema",
        "mutation": "changes its inputs against its schema",
        "raised": "raised",
    },
    "stop": {
        "bound": "at the hardware's bound",
        "correct": "correct",
        "attempts": "no attempts left",
        "repeated": "the same code again",
        "budget": "budget used up",
        "failed": "model cannot be reached",
        "interrupted": "interrupted",
        "": "not finished",
    },
    "idle": {
        "unsubmitted": "the host had submitted no work",
        "blocked": "other processes used the GPU while work was queued",
        "queued": "work was submitted but had not started",
        "others": "other processes used the GPU",
    },
    "profile": {
        "sampled-functions": "Python functions by processor time",
        "sampled-imports": "Imports, each with what it imports in turn",
        "sampled-threads": "Python threads",
        "own-time": "Python functions by own time",
        "operators": "Operators by own time",
        "imports": "Imports, each with what it imports in turn",
        "python-functions": "Python functions by samples",
        "functions": "Functions by samples",
        "libraries": "Libraries by samples",
    },
    "row": {
        "sampled-functions": "function, hottest line",
        "sampled-imports": "module",
        "sampled-threads": "thread",
        "own-time": "function",
        "operators": "operator",
        "imports": "module",
        "python-functions": "function",
        "functions": "function",
        "libraries": "library",
    },
}
