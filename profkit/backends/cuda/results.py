"""What ncu left: counters and readings of every launch configuration, under the names that the trace gave them.

The two tools spell a kernel differently: ncu says `<unnamed>::f<2>`, nsys `(anonymous namespace)::f<(int)2>`. Under one
name a kernel's share of time and its counters meet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from profkit.analysis.kernel_names import same_name
from profkit.analysis.metrics import derive, formula_table
from profkit.backends import PassFindings, RunContext
from profkit.backends.passes import read_region_work
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import format_percent, plural
from profkit.core.types import Counter, Kernel, PassPlan, Reading, Report, Scope
from profkit.profilers.ncu.command import function_name
from profkit.profilers.registry import recognise_format

_WORD = re.compile(r"[^<(]*?(\w+)\s*(?:<|\(|$)")
_LONGEST = 20_000  # characters of a name that are looked at


def match_kernels(traced: Sequence[Kernel], counted: Sequence[Kernel]) -> dict[Scope, Scope]:
    """For every counted configuration that is one of the traced the scope of that one.

    By the mangled name where both tools tell it; else by the demangled one, spelled alike; else by its last word, where
    only one of each is left with that word, grid and block.
    """
    scopes: dict[Scope, Scope] = {}
    free, left = list(dict.fromkeys(traced)), list(dict.fromkeys(counted))
    for key in (_mangled_name, _normal_name, _last_word):
        pairs: list[tuple[Kernel, Kernel]] = []
        for kernel in left:
            alike = [k for k in free if _may_be(k, kernel) and key(k) is not None and key(k) == key(kernel)]
            if len({k.scope for k in alike}) == 1:
                pairs.append((kernel, alike[0]))
        if key is _last_word:  # it tells instances of a template apart no more
            pairs = [pair for pair in pairs if sum(other[1] == pair[1] for other in pairs) == 1]
        scopes |= {kernel.scope: match.scope for kernel, match in pairs}
        left = [kernel for kernel in left if kernel.scope not in scopes]
        taken = set(scopes.values())
        free = [kernel for kernel in free if kernel.scope not in taken]
    return scopes


def _may_be(traced: Kernel, counted: Kernel) -> bool:
    """Whether shape and mangled name, where both tell one, speak against it."""
    if (traced.grid, traced.block) != (counted.grid, counted.block):
        return False
    return traced.mangled is None or counted.mangled is None or traced.mangled == counted.mangled


def _mangled_name(kernel: Kernel) -> str | None:
    return kernel.mangled


def _normal_name(kernel: Kernel) -> str | None:
    return same_name(kernel.name)


def _last_word(kernel: Kernel) -> str | None:
    """`softmax_warp_forward` of everything around it."""
    name = kernel.name[:_LONGEST].replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    match = _WORD.match(name)
    return match[1] if match is not None else None


# Facts of one pass, which differ between the counters and what explains them.
_NAMED = 5
_OF_PASS = ("replay passes", "sections/metrics", "clocks", "cache control", "replay")


def read_counters(context: RunContext, plan: PassPlan) -> PassFindings:
    """Counters and readings of each launch configuration.

    The pass that explains reads what was counted before as well, since some formulas take counters of both.
    Raises UnreadableReport where no run left a report.
    """
    reports, notes = _read_reports(context, plan)
    before = [] if plan.name == "counters" else _earlier_reports(context, plan)
    fresh = _merge_counters([counter for _, report in reports for counter in report.counters])
    here = {counter.scope for counter in fresh}
    known = _merge_counters(
        [*fresh, *(c for _, report in before for c in report.counters if c.scope in here)]
    )
    readings = _derive_readings(known, [*reports, *before])
    first = reports[0][1]
    facts: dict[str, str] = {}
    for _, report in reversed(reports):
        facts |= report.facts
    if plan.name == "explain":
        facts = {f"{name} (explain)": value for name, value in facts.items() if name in _OF_PASS}
    _require_planned(plan, fresh)
    gone = _missing_note(plan, fresh)
    if gone:
        notes.append(gone)
    if plan.name == "counters" and not plan.kernels:
        notes.append(
            "without a trace a kernel's share of the GPU time is that of one launch each, not of the run"
        )
    return PassFindings(
        counters=fresh,
        readings=readings,
        gpus=first.gpus,
        trace=first.trace if plan.name == "counters" else None,
        instructions=tuple(one for _, report in reports for one in report.instructions),
        rules=tuple(rule for _, report in reports for rule in report.rules),
        facts=facts,
        notes=tuple(dict.fromkeys(notes)),
    )


def _read_reports(context: RunContext, plan: PassPlan) -> tuple[list[tuple[str, Report]], list[str]]:
    """What the runs of a pass left, and what is to be said of it. Raises UnreadableReport where none left anything."""
    reports: list[tuple[str, Report]] = []
    notes: list[str] = []
    fault: UnreadableReport | None = None
    for step in plan.steps:
        path = context.folder / step.artifacts[0]
        try:
            report = _with_traced_names(_read_report(path), plan)
        except UnreadableReport as error:
            fault = error
            continue
        reports.append((step.artifacts[0], report))
        notes += [*report.warnings, *read_region_work(context.folder, step.name).notes]
    if not reports:
        raise fault or UnreadableReport("ncu was not run")
    return reports, notes


def _read_report(path: Path) -> Report:
    if not path.is_file():
        raise UnreadableReport(f"ncu left no report: no launch of a planned kernel was seen ({path.name})")
    report = recognise_format(path).read(path)
    if not report.counters:
        raise UnreadableReport(f"{path.name} holds no counted kernel")
    return report


def _with_traced_names(report: Report, plan: PassPlan) -> Report:
    """The report under the names of the plan, which are the trace's."""
    kernels = [k.kernel for k in report.trace.kernels] if report.trace is not None else []
    same = match_kernels([planned.kernel for planned in plan.kernels], kernels)
    counters = tuple(replace(c, scope=same.get(c.scope, c.scope)) for c in report.counters)
    return replace(report, counters=counters)


def _earlier_reports(context: RunContext, plan: PassPlan) -> list[tuple[str, Report]]:
    """The reports of the counters pass of this run, as far as they can be read."""
    reports = []
    for path in sorted((context.folder / "artifacts").glob("counters*.ncu-rep")):
        try:
            reports.append((f"artifacts/{path.name}", _with_traced_names(_read_report(path), plan)))
        except UnreadableReport:
            continue
    return reports


def _merge_counters(counters: list[Counter]) -> tuple[Counter, ...]:
    """Each counter of a kernel once: with a value where any report has one, else as the first says."""
    merged: dict[tuple[object, str], Counter] = {}
    for counter in counters:
        place = (counter.scope, counter.name)
        before = merged.get(place)
        if before is None or (before.value is None and counter.value is not None):
            merged[place] = counter
    return tuple(merged.values())


def _derive_readings(counters: tuple[Counter, ...], reports: list[tuple[str, Report]]) -> tuple[Reading, ...]:
    """The readings, each with the report that its counters stand in."""
    table = formula_table("ncu")
    places = {(c.scope, c.name): artifact for artifact, r in reversed(reports) for c in r.counters}
    readings = derive(counters, table, "ncu", reports[0][0])
    return tuple(
        replace(
            r, source=replace(r.source, artifact=places.get((r.scope, r.source.counter or ""), reports[0][0]))
        )
        for r in readings
    )


def _require_planned(plan: PassPlan, counters: tuple[Counter, ...]) -> None:
    """Raise UnreadableReport where ncu counted other functions than the planned ones alone: that tells nothing here."""
    wanted = {function_name(planned.kernel.name) for planned in plan.kernels}
    there = {function_name(c.scope.name or "") for c in counters if c.scope.kind == "kernel"}
    if wanted and there and not wanted & there:
        names = ", ".join(sorted(there)[:_NAMED])
        raise UnreadableReport(
            f"ncu counted none of the planned kernels, but others: {names}",
            "where the workload chooses its kernels anew in each process, let it choose always the same",
        )


def _missing_note(plan: PassPlan, counters: tuple[Counter, ...]) -> str | None:
    """Which of the planned kernels no report has."""
    there = {counter.scope for counter in counters}
    gone = [planned for planned in plan.kernels if planned.kernel.scope not in there]
    if not gone:
        return None
    share = format_percent(100 * sum(planned.share for planned in gone))
    return (
        f"{plural(len(gone), 'planned kernel')} ({share} % of the GPU time) did not come up under ncu at the launch "
        "where the trace had shown it"
    )
