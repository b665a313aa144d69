"""Sentences about counters of kernels."""

from __future__ import annotations

from profkit.core.formatting import format_quantity
from profkit.reporting.sentences.formats import and_more, count_of, kernel_name, share_text
from profkit.reporting.sentences.table import Parts, SentenceTable

SENTENCES = SentenceTable(
    {
        "no-results": "the report contains no results: no kernel was profiled",
        "other-registers": "with different registers or shared memory",
        "several-devices": "on several devices",
        "value-is-nan": "NaN",
        "value-is-infinite": "infinite",
        "value-of-instances": "no value of its own, only instances",
        "value-not-available": "n/a",
        "scaled-units": (
            "values were rounded by printing them in scaled units; --print-units base keeps them exact"
        ),
        "counter-set-gate": (
            "the four targets (occupancy, DRAM, bank conflicts, warp efficiency), and whether the tensor "
            "cores or L2 work"
        ),
        "counter-set-standard": (
            "what limits the kernel (every pipe, L1, L2, issue slots), coalescing, cache hits, spills, "
            "FLOPs by precision"
        ),
        "counter-set-explain": (
            "bank conflicts and sectors at every instruction, what warps wait for (sampled), tensor core "
            "FLOPs, spills"
        ),
        "shares-of-one-launch": (
            "without a trace it is not known which kernels take the time: each was counted at one launch"
        ),
        "shares-not-known": (
            "some kernels miss the target, but without a trace it is not known how much of the time they take"
        ),
        "counted-alone": (
            "counters show how one launch of each kernel runs, but not which kernels take the time, so "
            "no findings are drawn from them"
        ),
        "kernels-by-trace": (
            "the trace decides which kernels: those that make up 95 % of the GPU time, once each"
        ),
        "no-trace-to-choose-by": (
            "without a trace it is not known which kernels matter: every launch configuration is "
            "counted, at its first launch"
        ),
        "every-counted-kernel": "every kernel that was counted",
        "own-kernels-that-missed": "only the program's own kernels that missed a target",
    }
)


@SENTENCES.add("launches-not-counted")
def launches_not_counted(names: str, more: float) -> str:
    return f"{names}{and_more(more)} could not be counted: ncu started but could not finish"


@SENTENCES.add("untimed-configurations")
def untimed_configurations(count: float) -> str:
    return (
        f"{count_of(count, 'launch configuration has', 'launch configurations have')} no duration "
        "(gpu__time_duration.sum was not collected)"
    )


@SENTENCES.add("launched-in-ways")
def launched_in_ways(name: str, id: str, parts: Parts, more: float = 0) -> str:
    return (
        f"{kernel_name(name)} ({id}){and_more(more)}: launched {', '.join(parts)}, so each value is the "
        "median over all launches"
    )


@SENTENCES.add("in-launches")
def in_launches(parts: Parts, count: float, of: float) -> str:
    return f"{parts.first} in {count:g} of {of:g} launches"


@SENTENCES.add("newer-layout")
def newer_layout(version: float, newest: float) -> str:
    return (
        f"the file's layout is version {version:.0f}, newer than version {newest:.0f} that profkit "
        "knows: check the values"
    )


@SENTENCES.add("results-together")
def results_together(count: float) -> str:
    results = count_of(count, "result")
    return f"left out: {results} of ranges or graphs, which count several kernels as one"


@SENTENCES.add("rows-twice")
def rows_twice(count: float) -> str:
    return f"left out: {count_of(count, 'duplicate row')}"


@SENTENCES.add("damaged-rows")
def damaged_rows(count: float) -> str:
    return f"left out: {count_of(count, 'row')} cut off or damaged"


@SENTENCES.add("counter-set")
def counter_set(name: str, parts: Parts) -> str:
    return f"set {name!r}: {parts.first}"


@SENTENCES.add("unknown-replays")
def unknown_replays(parts: Parts, chip: str) -> str:
    return f"{parts.first}; the report will show how many replay passes that takes on {chip}"


@SENTENCES.add("one-replay")
def one_replay(parts: Parts, chip: str) -> str:
    return f"{parts.first}; 1 replay pass on {chip}"


@SENTENCES.add("replays")
def replays(parts: Parts, count: float, chip: str) -> str:
    return f"{parts.first}; about {count_of(count, 'replay pass', 'replay passes')} on {chip}"


@SENTENCES.add("collectives-not-counted")
def collectives_not_counted(share: float, count: float) -> str:
    return (
        f"not counted, {share_text(share)} of the GPU time in {count_of(count, 'configuration')}: "
        "collectives, which would hang if replayed alone"
    )


@SENTENCES.add("initialisers-not-counted")
def initialisers_not_counted(share: float, count: float) -> str:
    return (
        f"not counted, {share_text(share)} of the GPU time in {count_of(count, 'configuration')}: "
        "kernels that fill tensors before the work begins"
    )


@SENTENCES.add("tuning-left-out")
def tuning_left_out(count: float, names: str, seconds: float) -> str:
    return (
        f"left out: {count_of(count, 'launch', 'launches')} of kernels that only select or time other "
        f"kernels ({names}), {format_quantity(seconds, 's')} of GPU time"
    )


@SENTENCES.add("tuning-not-counted")
def tuning_not_counted(count: float) -> str:
    return f"not counted, {count_of(count, 'configuration')}: kernels that only select or time other kernels"


@SENTENCES.add("largest-counted")
def largest_counted(all: float, covered: float, count: float, share: float) -> str:
    return (
        f"{all:g} launch configurations make up {share_text(covered)} of the GPU time; the {count:g} "
        f"largest are counted, {share_text(share)} of the GPU time in "
        f"{count_of(count, 'configuration')}"
    )


@SENTENCES.add("launched-at-other-times")
def launched_at_other_times(share: float) -> str:
    return (
        f"{share_text(share)} of the GPU time is in kernels that are launched at other times of the "
        "run: mark them with profkit.region to count them"
    )


@SENTENCES.add("launched-too-often")
def launched_too_often(share: float) -> str:
    return (
        f"{share_text(share)} of the GPU time is in kernels that are launched so often that ncu, which stops at each "
        "launch, would take longer than the program: mark a part of it with profkit.region to count them"
    )


@SENTENCES.add("kernels-not-seen")
def kernels_not_seen(count: float, share: float) -> str:
    return (
        f"{count_of(count, 'planned kernel')} ({share_text(share)} of the GPU time) did not appear "
        "under ncu at the launch number from the trace"
    )
