"""The rules by theme, and the table of them.

A rule is a function that yields an insight for each place where it applies. It is quiet where it knows too little.
"""

from __future__ import annotations

from functools import partial

from profkit.analysis.judge.rule import Rule
from profkit.analysis.judge.rules import (
    gpu_calls,
    gpu_host,
    gpu_latency,
    gpu_lines,
    gpu_memory,
    gpu_models,
    gpu_timeline,
    gpu_units,
    host_memory,
    host_native,
    spot_chains,
    spot_loops,
    spot_waits,
    spots,
)

RULES: tuple[Rule, ...] = (
    Rule("lock-contention", host_native.native_locks, of_host=True, about="program"),
    Rule("unoptimised-build", host_memory.unoptimised_build, of_host=True, about="program"),
    Rule("memory-latency", host_memory.memory_latency, of_host=True, about="counters"),
    Rule("strided-access", host_memory.wasted_lines, of_host=True, about="counters"),
    Rule("memory-bandwidth", host_memory.memory_bandwidth, of_host=True, about="counters"),
    Rule("mispredicted-branches", host_memory.mispredicted_branches, of_host=True, about="counters"),
    Rule("scalar-arithmetic", host_memory.scalar_arithmetic, of_host=True, about="counters"),
    Rule("out-of-memory", gpu_lines.memory_is_full, of_host=True, about="end"),
    Rule("debug-checks", gpu_lines.debug_checks, of_host=True, about="cause"),
    Rule("graphs-captured-again", gpu_calls.graphs_captured_again, of_host=True, about="cause"),
    Rule("repeated-pinning", gpu_calls.repeated_pinning, of_host=True, about="cause"),
    Rule("managed-memory", gpu_calls.managed_memory, of_host=True, about="cause", includes_kernels=True),
    Rule("device-allocations", gpu_calls.device_allocations, of_host=True, about="cause"),
    Rule("small-copies", gpu_calls.small_copies, of_host=True, about="cause"),
    Rule("not-compiled", gpu_calls.operations_one_by_one, of_host=True, about="cause"),
    Rule(
        "host-callbacks", gpu_host.host_callbacks, of_host=True, about="cause", includes=("exposed-copies",)
    ),
    Rule(
        "host-tensors",
        gpu_host.host_tensors,
        of_host=True,
        about="cause",
        includes=("exposed-copies",),
        also=("made-again",),
    ),
    Rule("device-sync", gpu_lines.device_sync, of_host=True, about="waiting"),
    Rule("graph-breaks", gpu_lines.graph_breaks, about="cause"),
    Rule("recompilations", gpu_lines.recompilations, traceless=True),
    Rule("autotuned-again", gpu_lines.autotuned_again, traceless=True),
    Rule("growing-memory", gpu_lines.growing_device_memory, of_host=True, traceless=True),
    Rule("written-out-attention", gpu_lines.written_out_attention, includes=("device-copies",)),
    Rule("recomputed-sequence", gpu_models.recomputed_sequence, about="cause"),
    Rule("dense-gradient", gpu_models.dense_gradient),
    Rule("masked-attention", gpu_models.masked_attention),
    Rule("layout-conversions", gpu_models.layout_conversions),
    Rule("exposed-copies", gpu_timeline.exposed_copies),
    Rule(
        "late-launches",
        gpu_timeline.late_launches,
        of_host=True,
        about="waiting",
        includes=("small-kernels",),
    ),
    Rule("host-pauses", gpu_timeline.host_pauses, of_host=True, about="waiting"),
    Rule("exposed-communication", gpu_timeline.exposed_communication),
    Rule("gpu-behind", gpu_timeline.gpu_behind, about="cause"),
    Rule("one-hot-product", gpu_models.one_hot_products, includes=("unfused-operations",)),
    Rule("product-order", gpu_models.product_order, includes=("no-tensor-cores",)),
    Rule("evaluated-each-step", gpu_models.evaluated_each_step, about="cause"),
    Rule("atomic-contention", gpu_calls.atomic_contention),
    Rule("repeated-factorisation", gpu_calls.repeated_factorisation),
    Rule("sorting", gpu_calls.sorting),
    Rule("fft-length", gpu_calls.fft_lengths),
    Rule("device-copies", gpu_calls.device_copies),
    Rule("unfused-operations", gpu_timeline.unfused_operations),
    Rule("repeated-conversions", gpu_timeline.repeated_conversions),
    Rule("debug-build", gpu_units.debug_build),
    Rule("slow-fp64", gpu_units.slow_fp64),
    Rule("double-precision", gpu_units.double_precision),
    Rule("no-tensor-cores", gpu_units.no_tensor_cores),
    Rule("unaligned-matrix-product", gpu_units.unaligned_matrix_product),
    Rule("old-attention", gpu_units.old_attention),
    Rule("wasted-sectors", gpu_memory.wasted_sectors),
    Rule("no-reuse", gpu_memory.no_reuse),
    Rule("bank-conflicts", gpu_memory.bank_conflicts),
    Rule("register-spills", gpu_memory.register_spills),
    Rule("small-blocks", gpu_latency.small_blocks),
    Rule("waiting-warps", gpu_latency.waiting_warps),
    Rule("indexed-constants", partial(gpu_latency.waiting_warps, rule="indexed-constants")),
    Rule("serial-atomics", gpu_latency.serial_atomics),
    Rule("uneven-l2-slices", gpu_latency.uneven_slices),
    Rule("uneven-multiprocessors", gpu_latency.uneven_multiprocessors),
    Rule("device-heap", gpu_latency.device_heap),
    Rule("lone-threads", gpu_latency.lone_threads),
    Rule("divergent-warps", gpu_latency.divergent_warps),
    Rule("small-grid", gpu_latency.small_grid),
    Rule("last-wave", gpu_latency.last_wave),
    Rule("small-kernels", gpu_latency.small_kernels, of_host=True, about="waiting"),
)
# Patterns of a hot spot, in the order in which they are asked.
PATTERNS = (
    *spot_waits.WAITS,
    *spot_loops.PATTERNS,
    *spot_chains.PATTERNS,
    *spots.PATTERNS,
    *spot_waits.TRANSFERS,
    *host_native.PATTERNS,
)
# What may be wrong with a line whose time is spent in functions of the program that it calls.
OF_CALLS = (spot_chains.dropped_messages, spots.linear_search, spots.repeated_sort)
