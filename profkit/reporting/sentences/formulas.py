"""Sentences about how a value was derived: the notes of formulas."""

from __future__ import annotations

from profkit.reporting.sentences.table import SentenceTable

SENTENCES = SentenceTable(
    {
        "no-clusters": "the kernel was launched without clusters",
        "tag-stage-alone-way-out": (
            "of the tag stage only; the path to the multiprocessors can be half as busy again"
        ),
        "cache-internal-activity-far-above": (
            "including the cache's internal activity, which can be far more than the kernel requests"
        ),
        "over-cycles-multiprocessors-worked": "over the cycles in which the multiprocessors worked",
        "data-stage-alone": "of the data stage alone",
        "no-l1-lookups": "nothing was looked up in the first-level cache",
        "no-l1-accesses": "no load or store went through the first-level cache",
        "hit-rate-of-zero": "a hit rate of 0, which ncu also writes where nothing was looked up",
        "hardware-counts-other-waits-data": (
            "as counted by the hardware, including other waits of the data stage; not only the excess of "
            "the instructions"
        ),
        "no-shared-memory": "the kernel does not access shared memory",
        "no-branches": "the kernel has no branches",
        "branches-of-zero": "0, which ncu also writes where there are no branches",
        "per-active-cycle": "per multiprocessor and cycle in which it worked",
        "no-global-accesses": "the kernel has no loads and stores of global memory",
        "at-least-broadcasts-mixed-other": (
            "a lower bound; broadcasts mixed with other accesses are counted too low"
        ),
        "bytes-used-sectors-one-address": (
            "bytes of the sectors that were used; one address for many lanes counts once"
        ),
        "no-global-loads": "the kernel has no loads of global memory",
        "no-global-stores": "the kernel has no stores to global memory",
        "by-instructions": "by instructions",
        "half-precision-fp32-pipe": "half precision in the FP32 pipe",
        "compilers-load-constants-half-precision": (
            "compilers also load constants by half-precision instructions"
        ),
        "packed-instructions-chip-two-lanes": (
            "with the packed instructions of this chip counted as two lanes each; it is not documented "
            "whether other counters already include them"
        ),
        "half-precision-bfloat16": "of half precision and bfloat16",
        "tensor-cores-half-precision-bfloat16": "the tensor cores' of half precision and bfloat16",
        "cuda-cores-without-tensor-cores": "of the CUDA cores, without the tensor cores",
        "cuda-cores-without-half-precision": (
            "of the CUDA cores, without half precision and without the tensor cores"
        ),
        "no-dram-bytes": "no byte went to or from the device memory",
        "sampled": "sampled",
        "no-issuing-sample": "no sample met an issuing warp",
        "no-nvlink": "the device has no NVLink to another",
        "loads-stores-prefetches": "loads and stores with prefetches",
        "loads-stores-without-prefetches": "loads and stores without prefetches",
        "fetches-op-cache-did-not": "fetches that the op cache did not serve",
        "requests-core-without-second-level": (
            "requests of the core without the second level's own prefetches"
        ),
        "second-level-own-prefetches": "with the second level's own prefetches",
        "all-requests-to-l2": "all requests to the second level",
        "data-loads-stores-waited-counted": (
            "data that loads and stores waited for; counted in the core, so for this program only"
        ),
        "all-programs-of-l3": "all programs that share this third level",
        "micro-operations-moves-too": "micro-operations, moves too",
        "all-programs-of-socket": "all programs on the socket",
        "predictable-branches-executed-wrong-paths": (
            "predictable branches as executed, including wrong paths"
        ),
        "loads-stores": "loads and stores",
        "conditional-branches": "of conditional branches",
        "reads-last-level-system-cache": "reads; the last level is the system's cache",
        "executed-vector-instructions-over-scalar": "executed vector instructions over these and scalar FP",
        "executed-advanced-simd-over-scalar": "executed Advanced SIMD over this and scalar FP",
        "without-scalable-vectors": "without scalable vectors",
        "estimate-lines-brought-into-third": (
            "estimate: lines brought into the third level, without write-backs"
        ),
        "estimate-reads-missed-last-level": "estimate: reads that missed the last level, without write-backs",
        "loads-only": "loads only",
        "loads-only-what-kernel-maps": "loads only; what the kernel maps to the last level",
        "level-kernel-calls-cache": "the level that the kernel calls the cache",
        "all-cpus": "of all CPUs in a system-wide recording",
        "retired-loads-load-finds-line": (
            "retired loads; a load that finds its line already on the way is in neither count"
        ),
        "retired-loads": "retired loads",
        "requests-prefetches-too": "all requests, prefetches too",
        "all-requests-to-last-level": "all requests to the last level",
        "fused-multiply-add-counts-twice": "a fused multiply-add counts twice",
        "fused-multiply-add-counts-twice-512-bit": (
            "a fused multiply-add counts twice; 512-bit instructions were not counted"
        ),
        "512-bit-instructions-not-counted": "512-bit instructions were not counted",
        "all-programs-of-machine": "all programs on the machine",
        "two-simulated-levels-last-stands": "two simulated levels: the last directly follows the first",
        "lines-read-written-back": "lines read and written back",
        "lines-read-writes-back-come": "lines read, without write-backs",
        "lines-64-bytes-read-writes": "lines of 64 bytes read, without write-backs",
        "without-write-backs": "the bytes do not include write-backs",
        "no-pipeline": "valgrind simulates caches and branches but no pipeline, so it counts no cycles",
        "retired-loads-stores": "retired loads and stores",
        "micro-operations-loads-stores-wrong": "micro-operations of loads and stores, including wrong paths",
        "loads-stores-wrong-paths": "loads and stores, including wrong paths",
        "retired-vector-instructions-over-scalar": (
            "retired vector instructions over these and scalar FP, including integer vectors"
        ),
        "also-wrong-paths": "including wrong paths",
        "what-pipeline-have-done-instruments": (
            "of what the pipeline could have done, as in Instruments' guided mode"
        ),
        "apple-cores-count-instruction-cache": (
            "Apple's cores count instruction cache misses, but no fetches that they could be a share of"
        ),
        "second-level-belongs-cluster-cores": (
            "the second level belongs to a cluster of cores, and the cores' counters do not see it"
        ),
        "system-level-cache-belongs-whole": (
            "the system level cache belongs to the whole chip, and macOS shows no counter of it"
        ),
        "apple-cores-count-vector-instructions": (
            "Apple's cores count vector instructions, but not their floating-point operations"
        ),
        "no-memory-counters": "macOS shows no counter of the memory controllers",
        "retired-branches": "retired branches",
    }
)
