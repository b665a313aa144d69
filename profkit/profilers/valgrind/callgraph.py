"""Inclusive costs from own costs and calls, also where functions call each other in circles."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def inclusive_costs(
    own: Mapping[Node, int], calls: Mapping[tuple[Node, Node], int], total: int
) -> dict[Node, int]:
    """What each function cost together with what it called; never below its own cost, never above `total`.

    Outside of circles this is own + the sum of its calls. Inside one (a strongly connected component of the
    call graph) that sum counts a re-entered function again with each level, so it is held against what the
    whole circle can have cost: the own costs of its members + the calls that leave it. Both bounds are true;
    the smaller is given.
    """
    nodes = set(own) | {node for pair in calls for node in pair}
    successors: dict[Node, list[Node]] = {node: [] for node in nodes}
    for caller, called in calls:
        successors[caller].append(called)
    circle_of: dict[Node, int] = {}
    circle_cost: list[int] = []
    for number, members in enumerate(_circles(successors)):
        circle_cost.append(sum(own.get(member, 0) for member in members))
        for member in members:
            circle_of[member] = number
    out: dict[Node, int] = dict.fromkeys(nodes, 0)
    for (caller, called), cost in calls.items():
        if caller != called:
            out[caller] += cost
        if circle_of[caller] != circle_of[called]:
            circle_cost[circle_of[caller]] += cost
    return {
        node: max(own.get(node, 0), min(own.get(node, 0) + out[node], circle_cost[circle_of[node]], total))
        for node in nodes
    }


def _circles(successors: Mapping[Node, Sequence[Node]]) -> list[list[Node]]:
    """Strongly connected components (Tarjan 1972), without recursion: a call graph may be deep."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    stack: list[Node] = []
    on_stack: set[Node] = set()
    found: list[list[Node]] = []
    for root in successors:
        if root in index:
            continue
        work: list[tuple[Node, int]] = [(root, 0)]
        while work:
            node, position = work.pop()
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            for next_position in range(position, len(successors[node])):
                successor = successors[node][next_position]
                if successor not in index:
                    work.append((node, next_position))
                    work.append((successor, 0))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], low[successor])
            else:
                if low[node] == index[node]:
                    members = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        members.append(member)
                        if member == node:
                            break
                    found.append(members)
    return found
