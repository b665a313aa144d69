"""What a run knows of its GPU after two recordings: times of the first, and of the second what only that one has."""

from __future__ import annotations

from dataclasses import replace

from profkit.analysis.summaries.metal import merge_metal_traces
from profkit.core.types import MetalAbsent, MetalCounter, MetalTrace
from tests.spoken import message

ALU = MetalCounter("ALU Utilization", "%", 30.0, 0.0, 60.0, 100)
RED = replace(ALU, name="GPU Read Bandwidth")
TRACE = MetalTrace(span=2.0, process_busy=1.5, device="Apple M1")
COUNTED = MetalTrace(span=9.0, process_busy=0.1, device="Apple M9", counters=(ALU,))


def test_times_are_those_of_the_first_and_counters_come_from_the_second() -> None:
    both = merge_metal_traces(TRACE, COUNTED)
    assert both == replace(TRACE, counters=(ALU,))
    assert merge_metal_traces(replace(TRACE, counters=(RED,)), COUNTED).counters == (RED,)


def test_one_alone_is_what_it_is() -> None:
    assert merge_metal_traces(None, COUNTED) is COUNTED
    assert merge_metal_traces(TRACE, None) is TRACE
    assert merge_metal_traces(None, None) is None


def test_what_is_absent_is_what_neither_has_and_of_counters_their_own_pass_says_why() -> None:
    none = MetalAbsent("metal-gpu-counter-intervals", message("Counter Set: (null)"))
    refused = MetalAbsent("metal-gpu-counter-intervals", message("not supported on this chip"))
    states = MetalAbsent("metal-gpu-state-intervals", message("not exported"))
    first = MetalTrace(absent=(none, states))
    assert merge_metal_traces(first, MetalTrace(absent=(refused,))).absent == (states, refused)
    assert merge_metal_traces(first, MetalTrace()).absent == (states, none)
    assert merge_metal_traces(first, COUNTED).absent == (states,)
