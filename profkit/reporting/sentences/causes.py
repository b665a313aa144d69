"""Sentences about what causes a difference between two runs."""

from __future__ import annotations

from profkit.core.formatting import format_percent, format_quantity
from profkit.reporting.sentences.formats import (
    count_of,
    count_text,
    kernel_name,
    percent,
    relative_amount,
    relative_count,
    times_text,
    title,
    title_within,
)
from profkit.reporting.sentences.table import Quantity, Risen, SentenceTable

SENTENCES = SentenceTable()


@SENTENCES.add("throttled")
def throttled(side: str) -> str:
    return f"The {side} was throttled."


@SENTENCES.add("other-kernels")
def other_kernels(things: str, before: float, after: float) -> str:
    return (
        f"Other {things} do the work: those with {percent(before)} of the GPU time are gone, and new "
        f"ones take {percent(after)}."
    )


@SENTENCES.add("gone")
def gone_kernel(kernel: str, seconds: float) -> str:
    return f"gone: {kernel_name(kernel)}, {format_quantity(seconds, 's')}"


@SENTENCES.add("new")
def new_kernel(kernel: str, seconds: float) -> str:
    return f"new: {kernel_name(kernel)}, {format_quantity(seconds, 's')}"


@SENTENCES.add("renamed")
def renamed(before: str, after: str) -> str:
    return f"{before} -> {after}"


@SENTENCES.add("shape")
def shape(kernel: str) -> str:
    return f"{kernel_name(kernel)} is launched with another grid or block size."


@SENTENCES.add("occupancy")
def occupancy(metric: str, kernel: str, before: float, after: float) -> str:
    return (
        f"{title(metric)} of {kernel_name(kernel)} fell from {format_percent(before)} to "
        f"{format_percent(after)} %."
    )


@SENTENCES.add("occupancy-because")
def occupancy_because(metric: str, kernel: str, before: float, after: float, risen: Risen) -> str:
    return (
        f"{title(metric)} of {kernel_name(kernel)} fell from {format_percent(before)} to "
        f"{format_percent(after)} %, because {risen} rose."
    )


@SENTENCES.add("occupancy-where")
def occupancy_where(metric: str, kernel: str, before: float, after: float, risen: Risen) -> str:
    return (
        f"{title(metric)} of {kernel_name(kernel)} fell from {format_percent(before)} to "
        f"{format_percent(after)} %, where {risen} rose."
    )


@SENTENCES.add("added")
def size_added(name: str, size: Quantity) -> str:
    return f"{kernel_name(name)} {size.signed}"


@SENTENCES.add("more-work")
def more_work(before: float, after: float) -> str:
    return f"It executes {relative_count(before, after)} instructions."


@SENTENCES.add("more-work-in")
def more_work_in(before: float, after: float, function: str) -> str:
    return f"It executes {relative_count(before, after)} instructions, most of that in {function}."


@SENTENCES.add("more-work-of")
def more_work_of(kernel: str, before: float, after: float) -> str:
    return f"{kernel_name(kernel)} executes {relative_count(before, after)} instructions."


@SENTENCES.add("more-bytes")
def more_bytes(before: float, after: float) -> str:
    return f"It moves {relative_amount(before, after)} between the last cache and memory."


@SENTENCES.add("more-bytes-of")
def more_bytes_of(kernel: str, before: float, after: float) -> str:
    return (
        f"{kernel_name(kernel)} moves {relative_amount(before, after)} between the device's caches "
        "and its memory."
    )


@SENTENCES.add("moved")
def metric_moved(title: str, before: Quantity, after: Quantity) -> str:
    return f"{title_within(title)} {before} -> {after}"


@SENTENCES.add("calls")
def more_calls(function: str, after: float, per: str, before: float) -> str:
    return f"{function} is called {times_text(after)} per {per} instead of {count_text(before)}"


@SENTENCES.add("calls-from")
def calls_from(function: str, after: float, per: str, before: float, caller: str, place: str) -> str:
    return (
        f"{function} is called {times_text(after)} per {per} instead of {count_text(before)}, "
        f"from {caller} ({place})."
    )


@SENTENCES.add("calls-at")
def calls_at(function: str, after: float, per: str, before: float, place: str) -> str:
    return f"{function} is called {times_text(after)} per {per} instead of {count_text(before)} ({place})."


@SENTENCES.add("calls-counted")
def calls_counted(runs: float) -> str:
    return f"counted by cProfile, the same in {count_of(runs, 'run')} of each version"


@SENTENCES.add("own-seconds")
def own_seconds_under_cprofile(before: float, after: float) -> str:
    return f"time of its own under cProfile: {format_quantity(before, 's')} to {format_quantity(after, 's')}"


@SENTENCES.add("seconds")
def seconds_under_cprofile(before: float, after: float) -> str:
    return (
        f"time under cProfile, with what it calls: {format_quantity(before, 's')} to "
        f"{format_quantity(after, 's')}"
    )
