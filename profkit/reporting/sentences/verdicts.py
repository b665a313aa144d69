"""Sentences about what limits a kernel, and about verdicts."""

from __future__ import annotations

from profkit.analysis.metrics.catalogue import title_of
from profkit.core.formatting import format_percent, format_quantity
from profkit.reporting.sentences.formats import (
    and_more,
    busy_text,
    count_of,
    kernel_name,
    share_text,
    stall_text,
    unit_names,
    whole_percent,
)
from profkit.reporting.sentences.table import Parts, Quantity, SentenceTable, TargetLimit
from profkit.reporting.sentences.words import UNITS

SENTENCES = SentenceTable(
    {
        # what limits a kernel
        "collective": "it moves data between GPUs: the links and the slowest GPU determine its time",
        "pipes-not-collected": "its arithmetic pipes were not counted",
        "caches-not-collected": "L1 and L2 were not counted",
        # verdicts
        "nothing-asked": "the run does not say which precision was requested",
        "roof-unknown": "whether memory or compute limits it is not known",
        "set-up": "it fills tensors with random numbers, which is part of the set-up and not of the work",
        "no-kernel-counters": "the report contains no counters of kernels",
    }
)


# ---------------------------------------------------------------- what limits a kernel


@SENTENCES.add("unit")
def busiest_unit(unit: str, busy: float) -> str:
    return f"{UNITS.get(unit, unit)} at {busy_text(busy)} of its peak"


@SENTENCES.add("next-unit")
def next_unit(unit: str, busy: float) -> str:
    return f"the next, {UNITS.get(unit, unit)}, at {busy_text(busy)}"


@SENTENCES.add("feeding-unit")
def feeding_unit(unit: str, busy: float) -> str:
    return f"what feeds it, {UNITS.get(unit, unit)}, at {busy_text(busy)}"


@SENTENCES.add("no-busy-unit")
def no_busy_unit(limit: float, parts: Parts) -> str:
    return f"no unit is above {limit:.0f} % of its peak: {parts.first}"


@SENTENCES.add("no-counted-unit-busy")
def no_counted_unit_busy(parts: Parts) -> str:
    return f"none of the counted units is busy: {parts.first}"


@SENTENCES.add("few-blocks")
def few_blocks(blocks: float, multiprocessors: float) -> str:
    return f"{count_of(blocks, 'block')} for {multiprocessors:.0f} multiprocessors"


@SENTENCES.add("shorter-than-launch")
def shorter_than_launch(seconds: float) -> str:
    return f"{format_quantity(seconds, 's')} is less than it takes to launch it"


@SENTENCES.add("part-of-a-wave")
def part_of_a_wave(share: float) -> str:
    return f"its blocks fill only {whole_percent(share)} of the device"


# ---------------------------------------------------------------- verdicts


@SENTENCES.add("against")
def against_target(parts: Parts, target: TargetLimit) -> str:
    return f"{parts.first}; target {target}{parts.rest}"


@SENTENCES.add("but")
def but_for(parts: Parts) -> str:
    return f"{parts.first}, but {parts.second}"


@SENTENCES.add("uncertain")
def uncertain_value(parts: Parts) -> str:
    return f"{parts.first}, which is uncertain: {parts.second}"


@SENTENCES.add("limit-unknown")
def limit_unknown(parts: Parts) -> str:
    return f"{parts.first}, but its limit is not known: {parts.second}"


@SENTENCES.add("not-known")
def not_known(metric: str, parts: Parts) -> str:
    return f"{title_of(metric)} not known{parts.because}"


@SENTENCES.add("not-possible")
def not_possible(limit: Quantity, parts: Parts) -> str:
    return f"more than {limit} is not possible{parts.because}"


@SENTENCES.add("too-near")
def too_near(limit: Quantity) -> str:
    return f"too close to {limit} to decide, because the counter ran only part of the time"


@SENTENCES.add("time-too-uncertain")
def time_too_uncertain(interval: float, limit: Quantity) -> str:
    return (
        f"the time is known only to ±{format_percent(interval)} %, too imprecise to compare it with {limit}"
    )


@SENTENCES.add("of-library")
def of_library(owner: str) -> str:
    return f"a kernel of {owner}: you can change only how it is called"


@SENTENCES.add("library-code")
def library_code(owner: str) -> str:
    if owner == "Python":
        return "most of this is in the interpreter's own code, which a program cannot change"
    return f"most of this is in the code of {owner}: you can change only how it is called"


@SENTENCES.add("kernel-value")
def kernel_value(kernel: str, value: Quantity) -> str:
    return f"{kernel_name(kernel)} ({value})"


@SENTENCES.add("kernels")
def some_kernels(parts: Parts, more: float) -> str:
    return f"{', '.join(parts)}{and_more(more)}"


@SENTENCES.add("kernels-miss")
def kernels_miss(share: float, parts: Parts, target: TargetLimit) -> str:
    return f"{share_text(share)} of the GPU time is in kernels that miss it: {parts.first}; target {target}"


@SENTENCES.add("kernel-misses")
def kernel_misses(kernel: str, share: float, parts: Parts) -> str:
    return f"{kernel_name(kernel)} ({share_text(share)} of the GPU time): {parts.first}"


@SENTENCES.add("unknown-kernels")
def unknown_kernels(share: float, kernel: str, parts: Parts) -> str:
    return f"not known for {share_text(share)} of the GPU time: {kernel_name(kernel)}: {parts.first}"


@SENTENCES.add("kernels-meet")
def kernels_meet(share: float, parts: Parts, target: TargetLimit) -> str:
    return (
        f"{share_text(share)} of the GPU time is in kernels that meet it: {parts.first}; target "
        f"{target}{parts.rest}"
    )


@SENTENCES.add("too-small-to-decide")
def too_small_to_decide(parts: Parts) -> str:
    return f"too small to decide: {parts.first}"


@SENTENCES.add("not-for-kernel")
def not_for_kernel(kernel: str, parts: Parts) -> str:
    return f"does not apply to {kernel_name(kernel)}: {parts.first}"


@SENTENCES.add("few-kernels-miss")
def few_kernels_miss(share: float, limit: float, parts: Parts) -> str:
    return (
        f"its kernels take {share_text(share)} of the GPU time, less than {whole_percent(limit)}: "
        f"{parts.first}"
    )


@SENTENCES.add("few-kernels-meet")
def few_kernels_meet(share: float, parts: Parts) -> str:
    return f"its kernels take only {share_text(share)} of the GPU time, and they meet it: {parts.first}"


@SENTENCES.add("of-kernel")
def of_kernel(kernel: str, parts: Parts) -> str:
    return f"{kernel_name(kernel)}: {parts.first}"


@SENTENCES.add("in-function")
def in_function(name: str, parts: Parts) -> str:
    return f"in {kernel_name(name)}: {parts.first}"


@SENTENCES.add("program-waits")
def program_waits(share: float) -> str:
    return f"the program waits for {whole_percent(share)} of the time"


@SENTENCES.add("warps-wait")
def warps_wait(stall: str, share: float) -> str:
    return f"its warps wait for {stall_text(stall)} ({whole_percent(share)} of their waiting time)"


@SENTENCES.add("occupancy-limited")
def occupancy_limited(value: float, limiters: str, blocks: float) -> str:
    return (
        f"{format_percent(value)} % at most, limited by {unit_names(limiters)} "
        f"({count_of(blocks, 'block')} per multiprocessor)"
    )
