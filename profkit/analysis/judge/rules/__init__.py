"""The rules by theme, and the table of them.

A rule is a function that yields an insight for each place where it applies, and nothing where it knows too little.
"""

from __future__ import annotations

from functools import partial

from profkit.analysis.judge.rule import Rule
from profkit.analysis.judge.rules import (
    host_memory,
    host_native,
    host_operations,
    spot_arrays,
    spot_chains,
    spot_conversions,
    spot_functions,
    spot_loops,
    spot_values,
    spot_waits,
)
from profkit.analysis.judge.rules.gpu import calls as gpu_calls
from profkit.analysis.judge.rules.gpu import elementwise as gpu_elementwise
from profkit.analysis.judge.rules.gpu import host as gpu_host
from profkit.analysis.judge.rules.gpu import latency as gpu_latency
from profkit.analysis.judge.rules.gpu import libraries as gpu_libraries
from profkit.analysis.judge.rules.gpu import lines as gpu_lines
from profkit.analysis.judge.rules.gpu import memory as gpu_memory
from profkit.analysis.judge.rules.gpu import models as gpu_models
from profkit.analysis.judge.rules.gpu import noted as gpu_noted
from profkit.analysis.judge.rules.gpu import streams as gpu_streams
from profkit.analysis.judge.rules.gpu import timeline as gpu_timeline
from profkit.analysis.judge.rules.gpu import units as gpu_units
from profkit.analysis.judge.rules.native import functions as native_functions
from profkit.analysis.judge.rules.native import loops as native_loops
from profkit.analysis.judge.rules.native import programs as started_programs
from profkit.analysis.judge.rules.native import registers as native_registers
from profkit.analysis.judge.rules.native import sorts as native_sorts
from profkit.analysis.judge.rules.native import texts as native_texts
from profkit.analysis.judge.rules.native import watched as native_watched
from profkit.analysis.judge.rules.work import again, array_scans, excess, growth, queries, same, values

RULES: tuple[Rule, ...] = (
    Rule(
        "repeated-starts",
        started_programs.repeated_starts,
        of_host=True,
        about="program",
        includes=("hot-spot",),
    ),
    Rule("lock-contention", host_native.native_locks, of_host=True, about="program"),
    Rule(
        "unoptimised-build",
        host_memory.unoptimised_build,
        of_host=True,
        about="program",
        explains=("simd-utilization",),
    ),
    Rule(
        "memory-latency",
        host_memory.memory_latency,
        of_host=True,
        about="counters",
        explains=(
            "l1-miss-rate",
            "l2-miss-rate",
            "l3-miss-rate",
        ),
    ),
    Rule(
        "strided-access",
        host_memory.wasted_lines,
        of_host=True,
        about="counters",
        explains=(
            "l1-miss-rate",
            "l2-miss-rate",
            "l3-miss-rate",
        ),
    ),
    Rule("memory-bandwidth", host_memory.memory_bandwidth, of_host=True, about="counters"),
    Rule(
        "mispredicted-branches",
        host_memory.mispredicted_branches,
        of_host=True,
        about="counters",
        explains=("branch-miss-rate",),
    ),
    Rule(
        "scalar-arithmetic",
        host_memory.scalar_arithmetic,
        of_host=True,
        about="counters",
        explains=("simd-utilization",),
    ),
    Rule("out-of-memory", gpu_noted.memory_is_full, of_host=True, about="end"),
    Rule("padded-batches", gpu_noted.padded_batches, of_host=True, about="cause", includes_kernels=True),
    Rule("debug-checks", gpu_noted.debug_checks, of_host=True, about="cause", explains=("gpu-busy",)),
    Rule(
        "graphs-captured-again",
        gpu_calls.graphs_captured_again,
        of_host=True,
        about="cause",
        explains=("gpu-busy",),
    ),
    Rule(
        "modules-loaded",
        gpu_calls.modules_loaded_again,
        of_host=True,
        about="cause",
        explains=("gpu-busy",),
    ),
    Rule("repeated-pinning", gpu_calls.repeated_pinning, of_host=True, about="cause", explains=("gpu-busy",)),
    Rule("managed-memory", gpu_calls.managed_memory, of_host=True, about="cause", includes_kernels=True),
    Rule(
        "device-allocations",
        gpu_calls.device_allocations,
        of_host=True,
        about="cause",
        explains=("gpu-busy",),
    ),
    Rule("small-copies", gpu_calls.small_copies, of_host=True, about="cause", explains=("gpu-busy",)),
    Rule(
        "not-compiled", gpu_calls.operations_one_by_one, of_host=True, about="cause", explains=("gpu-busy",)
    ),
    Rule(
        "host-callbacks",
        gpu_host.host_callbacks,
        of_host=True,
        about="cause",
        includes=("exposed-copies",),
        explains=("gpu-busy",),
    ),
    Rule(
        "host-tensors",
        gpu_host.host_tensors,
        of_host=True,
        about="cause",
        includes=("exposed-copies",),
        also=("made-again",),
        explains=("gpu-busy",),
    ),
    Rule(
        "restarted-workers",
        gpu_host.restarted_workers,
        of_host=True,
        about="cause",
        explains=("gpu-busy",),
    ),
    Rule("device-sync", gpu_lines.device_sync, of_host=True, about="waiting", explains=("gpu-busy",)),
    Rule("graph-breaks", gpu_noted.graph_breaks, about="cause", explains=("gpu-busy",)),
    Rule("recompilations", gpu_noted.recompilations, traceless=True),
    Rule("autotuned-again", gpu_noted.autotuned_again, traceless=True),
    Rule("growing-memory", gpu_noted.growing_device_memory, of_host=True, traceless=True),
    Rule("written-out-attention", gpu_lines.written_out_attention, includes=("device-copies",)),
    Rule("recomputed-sequence", gpu_models.recomputed_sequence, about="cause"),
    Rule("repeated-results", gpu_libraries.repeated_results),
    Rule("dense-gradient", gpu_models.dense_gradient),
    Rule("masked-attention", gpu_models.masked_attention),
    Rule("float32-attention", gpu_libraries.float32_attention),
    Rule(
        "tuned-convolutions",
        gpu_libraries.tuned_convolutions,
        of_host=True,
        about="cause",
        includes=("device-sync", "late-launches", "device-allocations", "host-pauses"),
        anywhere=True,
        explains=("gpu-busy",),
    ),
    Rule("layout-conversions", gpu_models.layout_conversions),
    Rule("exposed-copies", gpu_timeline.exposed_copies, explains=("copies",)),
    Rule(
        "late-launches",
        gpu_timeline.late_launches,
        of_host=True,
        about="waiting",
        includes=("small-kernels",),
        explains=("gpu-busy",),
    ),
    Rule("host-pauses", gpu_timeline.host_pauses, of_host=True, about="waiting", explains=("gpu-busy",)),
    Rule(
        "ordered-streams",
        gpu_streams.ordered_streams,
        includes=("small-grid", "small-blocks", "small-kernels", "waiting-warps", "last-wave"),
        anywhere=True,
        explains=("grid-size", "occupancy", "latency"),
    ),
    Rule("exposed-communication", gpu_timeline.exposed_communication),
    Rule("gpu-behind", gpu_timeline.gpu_behind, about="cause"),
    Rule("one-hot-product", gpu_models.one_hot_products, includes=("unfused-operations",)),
    Rule("product-order", gpu_models.product_order, includes=("no-tensor-cores",)),
    Rule("evaluated-each-step", gpu_models.evaluated_each_step, about="cause"),
    Rule("atomic-contention", gpu_calls.atomic_contention, wasted=True),
    Rule("repeated-factorisation", gpu_calls.repeated_factorisation),
    Rule("sorting", gpu_calls.sorting),
    Rule("fft-length", gpu_calls.fft_lengths),
    Rule("device-copies", gpu_calls.device_copies),
    Rule("unfused-operations", gpu_elementwise.unfused_operations),
    Rule("repeated-conversions", gpu_elementwise.repeated_conversions),
    Rule("debug-build", gpu_units.debug_build),
    Rule("slow-fp64", gpu_units.slow_fp64),
    Rule("double-precision", gpu_units.double_precision),
    Rule("no-tensor-cores", gpu_units.no_tensor_cores),
    Rule(
        "widened-product",
        gpu_units.widened_product,
        includes=("bank-conflicts", "register-spills", "no-reuse", "small-blocks", "waiting-warps"),
        explains=("bank-conflicts", "latency"),
        wasted=True,
    ),
    Rule(
        "fma-product",
        gpu_units.fma_product,
        includes=(
            "bank-conflicts",
            "register-spills",
            "no-reuse",
            "small-blocks",
            "waiting-warps",
            "last-wave",
        ),
        explains=("bank-conflicts", "latency"),
        wasted=True,
    ),
    Rule("unaligned-matrix-product", gpu_units.unaligned_matrix_product),
    Rule("old-attention", gpu_units.old_attention),
    Rule("wasted-sectors", gpu_memory.wasted_sectors, explains=("coalescing",), wasted=True),
    Rule("no-reuse", gpu_memory.no_reuse, wasted=True),
    Rule("bank-conflicts", gpu_memory.bank_conflicts, explains=("bank-conflicts",), wasted=True),
    Rule("register-spills", gpu_memory.register_spills, explains=("spills",), wasted=True),
    Rule("small-blocks", gpu_latency.small_blocks, explains=("occupancy",), wasted=True),
    Rule("waiting-warps", gpu_latency.waiting_warps, explains=("latency",), wasted=True),
    Rule("indexed-constants", partial(gpu_latency.waiting_warps, rule="indexed-constants"), wasted=True),
    Rule("serial-atomics", gpu_latency.serial_atomics, explains=("latency",), wasted=True),
    Rule("uneven-l2-slices", gpu_latency.uneven_slices, wasted=True),
    Rule("uneven-multiprocessors", gpu_latency.uneven_multiprocessors, wasted=True),
    Rule("device-heap", gpu_latency.device_heap),
    Rule("lone-threads", gpu_latency.lone_threads, explains=("warp-efficiency",), wasted=True),
    Rule("divergent-warps", gpu_latency.divergent_warps, explains=("warp-efficiency",), wasted=True),
    Rule("small-grid", gpu_latency.small_grid, explains=("grid-size",), wasted=True),
    Rule("last-wave", gpu_latency.last_wave, wasted=True),
    Rule("small-kernels", gpu_latency.small_kernels, of_host=True, about="waiting", explains=("gpu-busy",)),
)
# Patterns of a hot spot, in the order in which they are tried.
PATTERNS = (
    *spot_waits.WAITS,
    *spot_conversions.PATTERNS,
    *spot_loops.PATTERNS,
    *spot_chains.PATTERNS,
    *again.PATTERNS,
    *same.PATTERNS,
    *array_scans.PATTERNS,
    *values.PATTERNS,
    *excess.PATTERNS,
    *growth.PATTERNS,
    *spot_arrays.PATTERNS,
    *spot_values.PATTERNS,
    *spot_functions.PATTERNS,
    *queries.PATTERNS,
    *host_operations.PATTERNS,
    *native_watched.PATTERNS,
    *native_functions.PATTERNS,
    *native_registers.PATTERNS,
    *native_loops.PATTERNS,
    *native_texts.PATTERNS,
    *host_native.PATTERNS,
)
# Patterns of a line whose time is spent in functions of the program that it calls.
OF_CALLS = (
    spot_chains.dropped_messages,
    spot_values.linear_search,
    spot_values.repeated_sort,
    *growth.OF_CALLS,
    *again.OF_CALLS,
    *same.OF_CALLS,
    *spot_functions.OF_CALLS,
    *native_sorts.OF_CALLS,
)
# Patterns of a function of machine code whose lines are not known.
OF_FUNCTIONS = (*native_watched.PATTERNS, *native_functions.PATTERNS, *host_native.OF_FUNCTIONS)
