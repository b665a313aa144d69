"""Insights: what is wrong, where, what to change, and the most that can be won. Pure: a judged document in.

A rule is a function that yields an insight for each place where it applies. It is quiet where it knows too little.
Rules stand by theme in this folder, and in RULES. Each bound is physical: no advice claims more than can be won.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from profkit.analysis.insights import (
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
from profkit.analysis.insights.evidence import KernelEvidence, Rule, RunEvidence, evidence_of
from profkit.analysis.summaries.kernels import counted_alone
from profkit.core.types import HotSpot, Insight, Place, RunDocument, ToolRule

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
GPU_RULES = frozenset(rule.name for rule in RULES if not rule.of_host)
_NAMED = {name: rule for rule in RULES for name in (rule.name, *rule.also)}
LEAST_GAIN = 0.01  # of the time: less is not worth a change
LITTLE, MUCH_MORE = 0.1, 3.0  # of the time; and times as much as that: a place without a pattern comes first
MOSTLY = 0.5  # of what a device waits for: a place of the host with so much of it explains it
_PATTERNS = (
    *spot_waits.WAITS,
    *spot_loops.PATTERNS,
    *spot_chains.PATTERNS,
    *spots.PATTERNS,
    *spot_waits.TRANSFERS,
    *host_native.PATTERNS,
)
# What may be wrong with a line whose time is spent in functions of the program that it calls.
_OF_CALLS = (spot_chains.dropped_messages, spots.linear_search, spots.repeated_sort)


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
        if insight.rule in GPU_RULES or insight.source != "profkit"
    )


def find_insights(document: RunDocument, rules: Sequence[Rule] = RULES) -> tuple[Insight, ...]:
    """Return what to do, most to be won first; then what NVIDIA's rules say.

    Without a device it stands by hot spots, with one by what can be won of the time of its steps.
    """
    evidence = evidence_of(document)
    found = [insight for rule in rules for insight in rule.find(evidence)]
    worth = [one for one in found if one.gain is None or one.gain.at_most >= LEAST_GAIN]
    ranked = _by_gain(worth)
    if any(_about(one) == "end" for one in ranked):  # the program ended there: nothing else is to be said
        return tuple(one for one in ranked if _about(one) == "end")
    on_spots = _on_spots(document)
    if counted_alone(document):
        # what the program itself proves stands; which kernels take the time is not known
        proved = [one for one in on_spots if one.rule != "hot-spot"]
        return (*proved, *(one for one in ranked if one.rule in _NAMED and _NAMED[one.rule].traceless))
    if document.trace is None and not evidence.kernels:
        return (*_by_spots(document, on_spots, ranked), *_of_nsight(evidence))
    return (*_beside_device(evidence, ranked), *_of_nsight(evidence))


def _by_gain(insights: Iterable[Insight]) -> list[Insight]:
    return sorted(insights, key=lambda one: -(one.gain.at_most if one.gain is not None else 0.0))


def _about(one: Insight) -> str:
    rule = _NAMED.get(one.rule)
    return rule.about if rule is not None else "work"


def _on_spots(document: RunDocument) -> tuple[Insight, ...]:
    """Return what is said of hot spots: a rank that the others wait for says more of its line than a pattern."""
    behind = tuple(spot_waits.rank_behind(document))
    told = {(one.where.file, one.where.line) for one in behind}
    patterns = spots.spot_insights(document, _PATTERNS, _OF_CALLS)
    return (*behind, *(one for one in patterns if (one.where.file, one.where.line) not in told))


def _beside_device(run: RunEvidence, ranked: Sequence[Insight]) -> tuple[Insight, ...]:
    """Order what is said of a program with a device.

    What the host does while a device waits says more than that it waits; memory that soon is full comes first.
    """
    explained = gpu_host.explain_idle_device(run, _PATTERNS)
    causes = [
        _as_sampled(one, explained)  # the cause says what the line does, the samples how long it takes
        if explained is not None and _is_there(one, explained.where)
        else one
        for one in ranked
        if _about(one) == "cause"
    ]
    if explained is not None and any(_is_there(one, explained.where) for one in causes):
        explained = None
    ranked = [*causes, *(one for one in ranked if _about(one) != "cause")]
    ranked = [one for one in ranked if not any(_is_part(one, of) for of in ranked)]
    for cause in (*causes, *([explained] if explained is not None else ())):
        if cause.gain is not None:
            rest = [one for one in ranked if one is not cause and not _is_explained(one, cause)]
            ranked = _by_gain((cause, *rest))
    alone = gpu_lines.largest_kernel(run)
    if alone is not None and _says_more(alone, ranked):
        ranked = [alone, *ranked]
    first = "growing-memory" if gpu_lines.fills_memory_soon(run) else ""
    return _whole_program_first(run, sorted(ranked, key=lambda one: one.rule != first))


def _as_sampled(one: Insight, explained: Insight) -> Insight:
    """With the time that samples saw at its place, where that is more than its own calls took."""
    own, seen = one.gain, explained.gain
    if seen is None or (own is not None and own.at_most >= seen.at_most):
        return one
    return replace(one, gain=seen, evidence=f"{one.evidence}; {explained.evidence}")


def _whole_program_first(run: RunEvidence, ranked: Sequence[Insight]) -> tuple[Insight, ...]:
    """What wins more seconds of the program than all its steps could: then without what wins next to nothing there."""
    split = run.document.time_split
    whole = next((one for one in ranked if one.gain is not None and one.gain.of == gpu_lines.PROGRAM), None)
    if split is None or split.steady is None or whole is None or whole.gain is None:
        return tuple(ranked)
    seconds, others = whole.gain.at_most * split.wall, [one for one in ranked if one is not whole]
    wins = [one.gain.at_most * split.steady if one.gain is not None else seconds for one in others]
    if seconds <= max(wins, default=0.0):
        return tuple(ranked)
    return (whole, *(one for one, win in zip(others, wins, strict=True) if win >= LITTLE * seconds))


def _is_there(one: Insight, where: Place) -> bool:
    return (one.where.file, one.where.line) == (where.file, where.line)


def _is_part(one: Insight, of: Insight) -> bool:
    """Return whether what one insight speaks of goes away with another one: at its place, or where one has no line."""
    rule = _NAMED.get(of.rule)
    if rule is None or one is of:
        return False
    if rule.includes_kernels and one.rule in GPU_RULES:
        return True
    if one.rule not in rule.includes:
        return False
    same = (one.where.file, one.where.function) == (of.where.file, of.where.function)
    return same or one.where.file is None or of.where.file is None


def _is_explained(one: Insight, cause: Insight) -> bool:
    """Return whether an insight says that the device waits, elsewhere than the cause, and the cause is most of that."""
    if _about(one) != "waiting" or one.gain is None or cause.gain is None:
        return False
    most = cause.gain.at_most >= MOSTLY * one.gain.at_most
    return most and not (one.rule == "device-sync" and _is_there(one, cause.where))


def _says_more(alone: Insight, ranked: Sequence[Insight]) -> bool:
    """Whether the place that takes most of the time is the first thing to say: what can be won elsewhere is little."""
    first = ranked[0].gain if ranked else None
    if not ranked or first is None or alone.gain is None:
        return not ranked
    return first.at_most < LITTLE and alone.gain.at_most > MUCH_MORE * first.at_most


def _by_spots(
    document: RunDocument, on_spots: Sequence[Insight], ranked: Sequence[Insight]
) -> tuple[Insight, ...]:
    """A conclusion from counters counts where the first place is; then it stands for that place."""
    first = next((spot for spot in document.hot_spots if spot.kind == "native"), None)
    program = [one for one in ranked if _about(one) == "program"]
    counted = [one for one in ranked if _about(one) == "counters"]
    others = [one for one in ranked if one not in program and one not in counted]
    if document.hot_spots:
        counted = [
            replace(one, where=first.where) for one in counted if first is not None and _is_at(first, one)
        ]
    alone = on_spots[:1] if on_spots and on_spots[0].rule == "hot-spot" else ()
    if counted or program:  # they say what the first place is
        return (*program, *counted, *on_spots[len(alone) :], *others)
    return (*on_spots, *others)


def _is_at(spot: HotSpot, insight: Insight) -> bool:
    """Whether a conclusion is about the same function or line; of a function that was inlined, its file and line."""
    where = insight.where
    same_file = (where.file or "").rpartition("/")[2] == (spot.where.file or "").rpartition("/")[2]
    return where.function == spot.where.function or (
        bool(where.file) and same_file and where.line == spot.where.line
    )


# ------------------------------------------------------------ what NVIDIA's own rules concluded

LEAST_ESTIMATE = 0.1  # of the kernel's time
MOST_RULES = 3  # of a kernel, the largest estimate first
SURE = 60.0  # %: below it a unit is not what limits a kernel


def _of_nsight(run: RunEvidence) -> Iterator[Insight]:
    """The rules with the largest estimates, of the kernels that are worth a conclusion."""
    for kernel in run.kernels:
        rules = [
            rule
            for rule in run.document.rules
            if rule.kernel == kernel.row.scope and rule.whole and rule.speedup >= LEAST_ESTIMATE
        ]
        for rule in sorted(rules, key=lambda rule: -rule.speedup)[:MOST_RULES]:
            yield _of_rule(run, kernel, rule)


def _of_rule(run: RunEvidence, kernel: KernelEvidence, rule: ToolRule) -> Insight:
    busiest = kernel.busiest or 0.0
    left = 1 - busiest / 100 if busiest >= SURE else 1.0
    bound = (
        "NVIDIA's estimate" if rule.speedup <= left else "what the busiest unit leaves of NVIDIA's estimate"
    )
    return Insight(
        rule.name,
        rule.title,
        rule.text.split(". ")[0].rstrip("."),
        rule.text,
        kernel.place,
        run.gain(kernel.share * run.gpu_share * min(rule.speedup, left), bound),
        "nsight",
    )
