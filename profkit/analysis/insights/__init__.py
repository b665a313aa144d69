"""Insights: what is wrong, where, what to change, and the most that can be won. Pure: a judged document in.

A rule is a function that yields an insight for each place where it applies. It is quiet where it knows too little.
Rules stand by theme in this folder, and in RULES. Each bound is physical: no advice claims more than can be won.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.insights import (
    gpu_devices,
    gpu_latency,
    gpu_launch,
    gpu_memory,
    gpu_timeline,
    gpu_units,
    host,
    host_calls,
    host_io,
    host_memory,
    host_python,
    host_samples,
    host_threads,
)
from profkit.analysis.insights.evidence import Rule, evidence_of
from profkit.analysis.insights.nsight import nsight_insights
from profkit.core.types import Insight, RunDocument

RULES: tuple[Rule, ...] = (
    Rule("waiting-program", host.waiting_program),
    Rule("heavy-imports", host_samples.heavy_imports),
    Rule("slow-constructs", host_calls.slow_constructs),
    Rule("object-dtype", host_calls.object_columns),
    Rule("interpreter-constructs", host_python.interpreter_constructs),
    Rule("heavy-library-call", host_calls.heavy_library_call),
    Rule("hot-python-function", host_samples.hottest_function),
    Rule("blocked-event-loop", host.blocked_loop),
    Rule("spinning-threads", host_threads.spinning_threads),
    Rule("oversubscribed-threads", host_threads.oversubscribed_threads),
    Rule("lock-contention", host_threads.native_locks),
    Rule("interpreter-lock", host_threads.interpreter_lock),
    Rule("small-tasks", host_threads.small_tasks),
    Rule("small-transfers", host_io.small_transfers),
    Rule("repeated-sync", host_io.repeated_sync),
    Rule("growing-memory", host_io.growing_memory),
    Rule("unoptimised-build", host_memory.unoptimised_build),
    Rule("memory-latency", host_memory.memory_latency),
    Rule("wasted-cache-lines", host_memory.wasted_lines),
    Rule("string-comparisons", host_memory.string_comparisons),
    Rule("memory-bandwidth", host_memory.memory_bandwidth),
    Rule("mispredicted-branches", host_memory.mispredicted_branches),
    Rule("scalar-arithmetic", host_memory.scalar_arithmetic),
    Rule("exposed-copies", gpu_timeline.exposed_copies),
    Rule("late-launches", gpu_timeline.late_launches),
    Rule("host-pauses", gpu_timeline.host_pauses),
    Rule("exposed-communication", gpu_devices.exposed_communication),
    Rule("serial-streams", gpu_devices.serial_streams),
    Rule("unfused-operations", gpu_timeline.unfused_operations),
    Rule("repeated-conversions", gpu_timeline.repeated_conversions),
    Rule("debug-build", gpu_units.debug_build),
    Rule("slow-fp64", gpu_units.slow_fp64),
    Rule("no-tensor-cores", gpu_units.no_tensor_cores),
    Rule("unaligned-matrix-product", gpu_units.unaligned_matrix_product),
    Rule("old-architecture-product", gpu_units.old_architecture_product),
    Rule("old-attention", gpu_units.old_attention),
    Rule("separate-multiply-add", gpu_units.separate_multiply_add),
    Rule("wasted-sectors", gpu_memory.wasted_sectors),
    Rule("no-reuse", gpu_memory.no_reuse),
    Rule("bank-conflicts", gpu_memory.bank_conflicts),
    Rule("register-spills", gpu_memory.register_spills),
    Rule("waiting-warps", gpu_latency.waiting_warps),
    Rule("serial-atomics", gpu_latency.serial_atomics),
    Rule("uneven-l2-slices", gpu_latency.uneven_slices),
    Rule("uneven-multiprocessors", gpu_latency.uneven_multiprocessors),
    Rule("divergent-warps", gpu_latency.divergent_warps),
    Rule("random-setup", gpu_latency.random_setup),
    Rule("small-grid", gpu_launch.small_grid),
    Rule("last-wave", gpu_launch.last_wave),
    Rule("small-kernels", gpu_launch.small_kernels),
)
# What these say is of the time that a host needs to give a device work, or of the host alone.
HOST_RULES = frozenset(
    rule.name
    for rule in RULES
    if rule.find.__module__.rpartition(".")[2].startswith("host")
    or rule.find in (gpu_timeline.late_launches, gpu_timeline.host_pauses, gpu_launch.small_kernels)
)
LEAST_GAIN = 0.01  # of the time: less is not worth a change


def kernel_insights(document: RunDocument) -> tuple[Insight, ...]:
    """Those on the work of a GPU alone, with what each can win as a share of the GPU's time: the host is left out."""
    share = evidence_of(document).gpu_share
    return tuple(
        replace(
            insight,
            gain=replace(insight.gain, at_most=min(1.0, insight.gain.at_most / share), of="the GPU time"),
        )
        if insight.gain is not None and insight.source == "profkit" and share > 0
        else insight
        for insight in document.insights
        if insight.rule not in HOST_RULES
    )


def find_insights(document: RunDocument, rules: Sequence[Rule] = RULES) -> tuple[Insight, ...]:
    """What every rule finds, the largest bound first, those without a bound last; then what NVIDIA's rules say.

    An estimate of NVIDIA's is no bound: where a unit is nearer to its peak than that allows, its gain says so.
    """
    evidence = evidence_of(document)
    found = [
        host_samples.with_hottest_line(evidence, insight) for rule in rules for insight in rule.find(evidence)
    ]
    worth = [one for one in found if one.gain is None or one.gain.at_most >= LEAST_GAIN]
    ranked = sorted(worth, key=lambda one: -(one.gain.at_most if one.gain is not None else 0.0))
    return (*ranked, *nsight_insights(evidence))
