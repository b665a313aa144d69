"""Occupancy fell, and what took the room: registers, shared memory, larger blocks."""

from __future__ import annotations

from collections.abc import Iterator

from profkit.core.formatting import percent
from profkit.core.types import Cause, Change, Kernel
from profkit.regression.compare.causes.words import became, kernel
from profkit.regression.compare.match import KernelPair
from profkit.regression.compare.view import View


def find(view: View) -> Iterator[Cause]:
    """For each kernel whose theoretical or achieved occupancy fell."""
    for pair in view.main_kernels():
        scope = pair.baseline.scope
        fall = view.fell("occupancy.theoretical", scope) or view.fell("occupancy.achieved", scope)
        if fall is not None:
            yield _cause(view, pair, fall)


def _cause(view: View, pair: KernelPair, fall: Change) -> Cause:
    rooms = _taken(view, pair, fall)
    word = "because" if len(rooms) == 1 or _limits(view, pair) else "where"
    why = f", {word} {_list([name for name, *_ in rooms])} rose" if rooms else ""
    word = "Theoretical occupancy" if fall.metric == "occupancy.theoretical" else "Achieved occupancy"
    evidence = [became(word.lower(), fall.baseline.value, fall.candidate.value, "%")]
    evidence += [became(name, before, after, unit) for name, before, after, unit in rooms]
    achieved = view.both("occupancy.achieved", pair.baseline.scope)
    if achieved is not None and fall.metric != "occupancy.achieved":
        evidence.append(became("achieved occupancy", *achieved, "%"))
    return Cause(
        "occupancy",
        f"{word} of {kernel(pair.candidate.name)} fell from {percent(fall.baseline.value)} to "
        f"{percent(fall.candidate.value)} %{why}.",
        pair.candidate.scope,
        tuple(evidence),
    )


def _taken(view: View, pair: KernelPair, fall: Change) -> list[tuple[str, float, float, str]]:
    """What takes more of a multiprocessor than before: name, before, after, unit.

    Where the report tells how many blocks each resource lets in, only what lets in the fewest. None where the kernel
    could keep as many warps as before, and merely did not.
    """
    if fall.metric != "occupancy.theoretical" and view.both("occupancy.theoretical", pair.baseline.scope):
        return []
    limits = _limits(view, pair)
    found = []
    for title, metric, unit, told in (
        ("registers per thread", "launch.registers", "", lambda k: k.registers),
        ("shared memory per block", "launch.shared", "B", lambda k: k.shared),
        ("threads per block", "", "", _threads),
    ):
        values = view.both(metric, pair.baseline.scope) if metric else None
        if values is None:
            first, second = told(pair.baseline), told(pair.candidate)
            values = (first, second) if first is not None and second is not None else None
        limit = limits.get(title)
        held_by_others = bool(limits) and (limit is None or limit > min(limits.values()))
        if values is not None and values[1] > values[0] and not held_by_others:
            found.append((title, float(values[0]), float(values[1]), unit))
    return found


def _limits(view: View, pair: KernelPair) -> dict[str, float]:
    """How many blocks the candidate's multiprocessor holds by each resource, where the report tells it."""
    found = {}
    for title, name in (
        ("registers per thread", "registers"),
        ("shared memory per block", "shared"),
        ("threads per block", "warps"),
        ("blocks", "blocks"),
        ("barriers", "barriers"),
    ):
        value = view.after.get((f"occupancy.limit.{name}", pair.baseline.scope))
        if value is not None:
            found[title] = value
    return found


def _threads(kernel: Kernel) -> int:
    product = 1
    for size in kernel.block:
        product *= size
    return product


def _list(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
