"""Combines the reports of two simulations, whose last levels were L2 and L3, into counters of all levels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from profkit.core.types import RUN, Counter, Fact, Report, Scope

# the same work differs in instructions by per milles (hashes, addresses); theory is held to 2 %
SAME_WORK = 0.005
HOTTEST = 20  # functions that get counters of their own, and
MIN_SHARE = 0.005  # only with this share of all instructions: below it entering a region shows

_FIRST = ("Ir", "Dr", "Dw", "I1mr", "D1mr", "D1mw", "Bc", "Bcm", "Bi", "Bim")
# The last level's counters and the events that they are the sum of: of the run whose last level is L2, and of the one
# with L3. Both runs write the same events.
_SECOND_LEVEL = {
    "I2mr": ("ILmr",),
    "D2mr": ("DLmr",),
    "D2mw": ("DLmw",),
    "D2wb": ("ILdmr", "DLdmr", "DLdmw"),
}
_THIRD_LEVEL = {
    "I3mr": ("ILmr",),
    "D3mr": ("DLmr",),
    "D3mw": ("DLmw",),
    "D3wb": ("ILdmr", "DLdmr", "DLdmw"),
}
# Counters of the run whose last level is L2; all others come from the run with L3, where there is one.
FROM_L2_RUN = frozenset(_SECOND_LEVEL)
_NO_L3 = Fact("no-third-level")


@dataclass(frozen=True)
class CacheLevels:
    """Counters of the run, of its regions and of its hottest functions.

    `Ir Dr Dw` executed instructions, data reads and writes; `I1mr D1mr D1mw` misses of the first level
    (instruction reads, data reads, data writes), `I2mr ... D3mw` those of the second and third; `D2wb D3wb` dirty
    lines that left that level; `Bc Bcm Bi Bim` conditional and indirect branches, and those mispredicted;
    `line_bytes`. Bytes moved to and from memory are line_bytes · (I3mr + D3mr + D3mw + D3wb). `same_work` is
    whether both simulations executed the same instructions; where not, `warnings` says so.
    """

    counters: tuple[Counter, ...]
    same_work: bool
    warnings: tuple[Fact, ...] = ()


def combine_levels(l2: Report, l3: Report | None) -> CacheLevels:
    """Combine the report whose last level was L2 with the one whose last level was L3.

    First-level counts, instructions and branches are those of `l3`, or of `l2` where the machine has no L3.
    """
    main = l2 if l3 is None else l3
    warnings = list(dict.fromkeys([*l2.warnings, *main.warnings]))
    same_work = _same_work(l2, main, warnings)
    line = _line_bytes(main)
    counters: list[Counter] = []
    for scope in _scopes(main):
        values = _scope_values(main, scope)
        counters += _combine_scope(_scope_values(l2, scope), None if l3 is None else values, scope)
        counters.append(line if scope == RUN else _with_scope(line, scope))
    l2_functions = _by_function(l2)
    for (function, library), values in _hottest_functions(main):
        scope = Scope("function", function, library)
        counters += _combine_scope(
            l2_functions.get((function, library)), None if l3 is None else values, scope, values
        )
        counters.append(_with_scope(line, scope))
    return CacheLevels(tuple(counters), same_work, tuple(warnings))


def _combine_scope(
    l2: Mapping[str, float] | None,
    l3: Mapping[str, float] | None,
    scope: Scope,
    first: Mapping[str, float] | None = None,
) -> list[Counter]:
    """Return the counters of one scope. `l2` is None if that run did not see it, `l3` without an L3."""
    main = first if first is not None else (l3 if l3 is not None else l2)
    counters = [_counter(name, (name,), main, scope) for name in _FIRST]
    for name, events in _SECOND_LEVEL.items():
        counters.append(_counter(name, events, l2, scope))
    for name, events in _THIRD_LEVEL.items():
        if l3 is None:
            counters.append(Counter(name, None, "not-supported", scope=scope, reason=_NO_L3))
        else:
            counters.append(_counter(name, events, l3, scope))
    return counters


def _counter(name: str, events: tuple[str, ...], values: Mapping[str, float] | None, scope: Scope) -> Counter:
    if values is None:
        reason = Fact.of("never-simulated", name=scope.name or "")
        return Counter(name, None, "not-counted", scope=scope, reason=reason)
    missing = [event for event in events if event not in values]
    if missing:
        reason = Fact.of("recorded-without", counters=" ".join(missing))
        return Counter(name, None, "not-supported", scope=scope, reason=reason)
    return Counter(name, sum(values[event] for event in events), "measured", scope=scope)


def _scopes(report: Report) -> list[Scope]:
    return [RUN, *dict.fromkeys(c.scope for c in report.counters if c.scope.kind == "region")]


def _scope_values(report: Report, scope: Scope) -> dict[str, float] | None:
    values = {c.name: c.value for c in report.counters if c.scope == scope and c.value is not None}
    return values or None


def _by_function(report: Report) -> dict[tuple[str, str | None], dict[str, float]]:
    """Sum own counters per function and library; parts of a function in several files are one."""
    sums: dict[tuple[str, str | None], dict[str, float]] = {}
    for hotspot in report.profiles[0].hotspots if report.profiles else ():
        if hotspot.counters:
            values = sums.setdefault((hotspot.function, hotspot.library), {})
            for event, value in hotspot.counters.items():
                values[event] = values.get(event, 0.0) + value
    return sums


def _hottest_functions(report: Report) -> list[tuple[tuple[str, str | None], dict[str, float]]]:
    functions = _by_function(report)
    total = (_scope_values(report, RUN) or {}).get("Ir", 0.0)
    ranked = sorted(functions.items(), key=lambda item: -item[1].get("Ir", 0.0))
    return [item for item in ranked[:HOTTEST] if item[1].get("Ir", 0.0) > MIN_SHARE * total]


def _same_work(l2: Report, l3: Report, warnings: list[Fact]) -> bool:
    ours, theirs = ((_scope_values(r, RUN) or {}).get("Ir") for r in (l2, l3))
    if ours is None or theirs is None:
        warnings.append(Fact("no-instructions-simulated"))
        return False
    difference = abs(ours - theirs) / max(ours, theirs, 1.0)
    if difference > SAME_WORK:
        warnings.append(Fact.of("different-simulations", one=ours, other=theirs, share=difference))
        return False
    return True


def _line_bytes(report: Report) -> Counter:
    matched = re.search(r"(\d+) B, (\d+) B,", report.facts.get("D1 cache", ""))
    if matched is None:
        return Counter("line_bytes", None, "not-supported", "B", reason=Fact("no-cache-geometry"))
    return Counter("line_bytes", float(matched[2]), "measured", "B")


def _with_scope(counter: Counter, scope: Scope) -> Counter:
    return Counter(
        counter.name, counter.value, counter.state, counter.unit, scope=scope, reason=counter.reason
    )
