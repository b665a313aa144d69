"""Rules on what a program asks of the driver or a library again and again, beyond the recorded programs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profkit.analysis.insights import find_insights
from profkit.analysis.insights.gpu_calls import next_fast_length
from profkit.core.types import Hotspot, Insight, Profile, ProfileKind, TimeSplit
from tests.kernel_documents import document


@pytest.mark.parametrize(
    ("length", "fast"), [(1, 1), (1004117, 1008000), (1 << 20, 1 << 20), (127, 128), (11, 12)]
)
def test_the_next_fast_length_has_no_prime_factor_above_7(length: int, fast: int) -> None:
    assert next_fast_length(length) == fast


def said(kind: ProfileKind, *spots: Hotspot, wall: float = 10.0) -> list[Insight]:
    profile = Profile("what was said", "count", sum(one.own for one in spots), spots, kind)
    split = TimeSplit(wall, startup=wall - 1, steady=1.0)
    return list(find_insights(replace(document({}), profiles=(profile,), time_split=split)))


def test_what_held_a_full_memory_is_told_by_line() -> None:
    known = {"asked": 1e9, "reserved": 80e9}
    spots = (
        Hotspot("forward", 60e9, None, 200, "/w/net.py", 12, counters=known),
        Hotspot("", 4e9, None, 10, None, None, counters=known),
    )
    (found,) = said("held-lines", *spots)
    assert (found.rule, found.where.file, found.where.line) == ("out-of-memory", "/w/net.py", 12)
    assert "in 200 blocks by net.py:12" in found.evidence
    assert "in 10 blocks by the backward pass" in found.evidence
    assert "expandable_segments" in found.evidence  # 16 GB of 80 are reserved and not used


@pytest.mark.parametrize(("keys", "told"), [(7, True), (3, False)])
def test_tuning_for_many_keys_is_told_and_for_a_few_is_not(keys: int, told: bool) -> None:
    spot = Hotspot("kernel", keys, None, keys, "/w/k.py", 9, counters={"configurations": 6.0})
    assert [one.rule for one in said("tuned-kernels", spot)] == ["autotuned-again"] * told
