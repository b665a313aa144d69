"""What a line of a loop needs of the iteration before, by its source."""

from __future__ import annotations

import pytest

from profkit.analysis.stacks.source import line_code

HEAP = """while heap:
    far, node = heappop(heap)
    for near in adjacent[node]:
        if far + cost[near] < best[near]:
            best[near] = far + cost[near]
            heappush(heap, (best[near], near))"""
HALVES = """while low < high:
    at = (low + high) // 2
    if held[at] < x:
        low = at + 1
    else:
        high = at"""
FILTER = "for n in r:\n    d = x[n] - y[n - 1]\n    y[n] = y[n - 1] + d / (1 + d * d)"
GAPS = "for n in r:\n    if a[n] - last > gap:\n        last = a[n]\n        out.append(n)"
PAGES = "async def f():\n  while token:\n    page = await fetch(token)\n    rows += page.rows\n    token = page.next"


@pytest.mark.parametrize(
    ("text", "line", "carried"),
    [
        (FILTER, 2, "y"),
        (FILTER, 3, "d"),
        ("for n in r:\n    u[n] = (u[n - 1] + u[n + 1]) / 2", 2, "u"),
        (GAPS, 2, "last"),
        (GAPS, 3, "last"),
        ("for n in r:\n    state = state * 0.9 + f(a[n])\n    out[n] = state", 3, "state"),
        ("for x in r:\n    n = abs(w - x).argmin()\n    w[n] += 0.1 * (x - w[n])", 2, "w"),
        (HEAP, 4, "near"),
        (HALVES, 3, "at"),
        # An operation on the whole does the same.
        ("for n in r:\n    y[n] = y[n] * 2 + a[n]", 2, ""),
        ("for n in r:\n    y[n] = x[n - 1] + x[n + 1]", 2, ""),
        ("for n in r:\n    total += a[n]", 2, ""),
        ("for n in r:\n    total = total + a[n]", 2, ""),
        ("for n in r:\n    c[n] = c[n - 1] + a[n]", 2, ""),
        ("for n in r:\n    best = max(best, a[n])", 2, ""),
        ("for n in r:\n    if a[n] > best:\n        best = a[n]", 2, ""),
        ("for n in r:\n    w[key[n]] += v[n]", 2, ""),
        ("for n in r:\n    if a[n] > 3:\n        count += 1", 2, ""),
        ("for n in r:\n    out.append(a[n] * 2)", 2, ""),
        ("for n in r:\n    b[n] = a[n] - before\n    before = a[n]", 2, ""),
        ("while n < end:\n    total += a[n]\n    n += 1", 2, ""),
        ("for t in s:\n    for n in r:\n        x[n] = x[n] + v[n] * t", 3, ""),
        ("for t in s:\n    for n in r:\n        new[n] = x[n - 1] + x[n + 1]\n    x = new", 3, ""),
    ],
)
def test_a_line_needs_the_iteration_before_where_no_operation_on_the_whole_does_the_same(
    text: str, line: int, carried: str
) -> None:
    found = [one.name for one in line_code(text, line).find("carried")]
    assert found == ([carried] if carried else [])


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        (PAGES, "token"),
        ("async def f():\n  for u in urls:\n    state = await client.send(u, state)", "state"),
        (
            "async def f():\n  for u in urls:\n    page = await fetch(u)\n    if page.last:\n      break",
            "page",
        ),
        ("async def f():\n  for u in urls:\n    page = await fetch(u)\n    pages.append(page)", ""),
        ("async def f():\n  while n < 9:\n    page = await fetch(n)\n    n += 1", ""),
        ("async def f():\n  for u in urls:\n    out[u] = await client.get(u)", ""),
        ("async def f():\n  for u in urls:\n    await client.send(u)", ""),
    ],
)
def test_an_await_needs_the_answer_before_it_where_an_argument_or_the_loop_does(
    text: str, carried: str
) -> None:
    found = [one.name for one in line_code(text, 3).find("carried") if one.how == "await"]
    assert found == ([carried] if carried else [])
