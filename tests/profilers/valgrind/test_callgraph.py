"""Inclusive costs, also in circles."""

from __future__ import annotations

import pytest

from profkit.profilers.valgrind.read import inclusive_costs

Calls = dict[tuple[str, str], int]
CIRCLE = {("a", "b"): 9, ("b", "a"): 8}


@pytest.mark.parametrize(
    ("what", "own", "calls", "expected"),
    [
        ("a leaf costs its own", {"a": 5}, {}, {"a": 5}),
        ("a caller costs its calls", {"a": 5, "b": 7}, {("a", "b"): 7}, {"a": 12, "b": 7}),
        ("recursion is counted once", {"a": 10}, {("a", "a"): 30}, {"a": 10}),
        ("a circle is no more than its members", {"a": 6, "b": 4}, CIRCLE, {"a": 10, "b": 10}),
        (
            "and what leaves it",
            {"a": 6, "b": 4, "c": 5},
            {**CIRCLE, ("b", "c"): 5},
            {"a": 15, "b": 15, "c": 5},
        ),
        (
            "recursion inside a circle is counted once",
            {"a": 6, "b": 50},
            {("a", "a"): 30, ("a", "b"): 10, ("b", "a"): 5},
            {"a": 16, "b": 55},
        ),
        ("a caller that did nothing itself", {"b": 7}, {("a", "b"): 7}, {"a": 7, "b": 7}),
        ("never above the total", {"a": 5, "b": 7}, {("a", "b"): 10**12}, {"a": 12, "b": 7}),
    ],
)
def test_inclusive(what: str, own: dict[str, int], calls: Calls, expected: dict[str, int]) -> None:
    assert inclusive_costs(own, calls, sum(own.values())) == expected


def test_a_chain_deeper_than_pythons_own_stack() -> None:
    depth = 20_000
    own = dict.fromkeys(range(depth), 1)
    calls = {(i, i + 1): depth - 1 - i for i in range(depth - 1)}
    assert inclusive_costs(own, calls, depth)[0] == depth
