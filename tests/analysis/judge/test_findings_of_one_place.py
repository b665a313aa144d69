"""Findings on one line: the largest bound stands first, and two proofs of one fault are one finding."""

from __future__ import annotations

from profkit.analysis.judge.findings import _of_one_place
from profkit.core.types import Gain, Insight, Place


def finding(rule: str, gain: float | None, line: int | None = 69) -> Insight:
    bound = Gain(gain, "the run time", "") if gain is not None else None
    return Insight(rule, "", "", "", Place(file="rollup.rs", line=line), bound)


def order(*found: Insight) -> list[str]:
    return [insight.rule for insight in _of_one_place(found)]


def test_two_proofs_that_threads_take_one_lock_are_one_finding_with_the_larger_bound() -> None:
    assert order(finding("lock-contention", 0.33), finding("contended-memory", 0.70)) == ["contended-memory"]
    assert order(finding("lock-contention", 0.8), finding("contended-memory", 0.70)) == ["lock-contention"]
    elsewhere = finding("contended-memory", 0.7, line=12)
    assert order(finding("lock-contention", 0.33), elsewhere) == ["lock-contention", "contended-memory"]


def test_of_findings_on_one_line_the_largest_bound_is_first_and_others_keep_their_places() -> None:
    found = (finding("a", 0.2), finding("b", 0.9, line=7), finding("c", 0.6), finding("d", None, line=None))
    assert order(*found) == ["c", "b", "a", "d"]


def test_a_place_alone_stands_where_it_stood() -> None:
    assert order(finding("copies", 0.3), finding("hot-spot", 0.9)) == ["copies", "hot-spot"]
