"""What ncu left: counters and readings of every launch configuration, under the names that the trace gave them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profkit.analysis.metrics import derive, formula_table
from profkit.backends import Findings, Site
from profkit.backends.cuda.names import same_kernels
from profkit.backends.per_iteration import done_in_region
from profkit.core.errors import UnreadableReport
from profkit.core.formatting import percent, plural
from profkit.core.types import Counter, PassPlan, Reading, Report
from profkit.profilers.ncu.command import function_name
from profkit.profilers.registry import recognise_format

# Facts of one pass, which differ between the counters and what explains them.
_NAMED = 5
_OF_PASS = ("replay passes", "sections/metrics", "clocks", "cache control", "replay")


def find_counters(site: Site, plan: PassPlan) -> Findings:
    """Counters and readings of each launch configuration.

    The pass that explains reads what was counted before as well, since some formulas take counters of both.
    Raises UnreadableReport where no run left a report.
    """
    reports, notes = _reports(site, plan)
    before = [] if plan.name == "counters" else _earlier(site, plan)
    fresh = _union([counter for _, report in reports for counter in report.counters])
    here = {counter.scope for counter in fresh}
    known = _union([*fresh, *(c for _, report in before for c in report.counters if c.scope in here)])
    readings = _readings(known, [*reports, *before])
    first = reports[0][1]
    facts: dict[str, str] = {}
    for _, report in reversed(reports):
        facts |= report.facts
    if plan.name == "explain":
        facts = {f"{name} (explain)": value for name, value in facts.items() if name in _OF_PASS}
    _require_planned(plan, fresh)
    gone = _missing(plan, fresh)
    if gone:
        notes.append(gone)
    if plan.name == "counters" and not plan.kernels:
        notes.append(
            "without a trace a kernel's share of the GPU time is that of one launch each, not of the run"
        )
    return Findings(
        counters=fresh,
        readings=readings,
        gpus=first.gpus,
        trace=first.trace if plan.name == "counters" else None,
        facts=facts,
        notes=tuple(dict.fromkeys(notes)),
    )


def _reports(site: Site, plan: PassPlan) -> tuple[list[tuple[str, Report]], list[str]]:
    """What the runs of a pass left, and what is to be said of it. Raises UnreadableReport where none left anything."""
    found: list[tuple[str, Report]] = []
    notes: list[str] = []
    fault: UnreadableReport | None = None
    for step in plan.steps:
        path = site.folder / step.artifacts[0]
        try:
            report = _named(_read(path), plan)
        except UnreadableReport as error:
            fault = error
            continue
        found.append((step.artifacts[0], report))
        notes += [*report.warnings, *done_in_region(site.folder, step.name).notes]
    if not found:
        raise fault or UnreadableReport("ncu was not run")
    return found, notes


def _read(path: Path) -> Report:
    if not path.is_file():
        raise UnreadableReport(f"ncu left no report: no launch of a planned kernel was seen ({path.name})")
    report = recognise_format(path).read(path)
    if not report.counters:
        raise UnreadableReport(f"{path.name} holds no counted kernel")
    return report


def _named(report: Report, plan: PassPlan) -> Report:
    """The report under the names of the plan, which are the trace's."""
    told = [k.kernel for k in report.trace.kernels] if report.trace is not None else []
    same = same_kernels([planned.kernel for planned in plan.kernels], told)
    counters = tuple(replace(c, scope=same.get(c.scope, c.scope)) for c in report.counters)
    return replace(report, counters=counters)


def _earlier(site: Site, plan: PassPlan) -> list[tuple[str, Report]]:
    """The reports of the counters pass of this run, as far as they can be read."""
    found = []
    for path in sorted((site.folder / "artifacts").glob("counters*.ncu-rep")):
        try:
            found.append((f"artifacts/{path.name}", _named(_read(path), plan)))
        except UnreadableReport:
            continue
    return found


def _union(counters: list[Counter]) -> tuple[Counter, ...]:
    """Each counter of a kernel once: with a value where any report has one, else as the first says."""
    kept: dict[tuple[object, str], Counter] = {}
    for counter in counters:
        place = (counter.scope, counter.name)
        before = kept.get(place)
        if before is None or (before.value is None and counter.value is not None):
            kept[place] = counter
    return tuple(kept.values())


def _readings(counters: tuple[Counter, ...], reports: list[tuple[str, Report]]) -> tuple[Reading, ...]:
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


def _missing(plan: PassPlan, counters: tuple[Counter, ...]) -> str | None:
    """Which of the planned kernels no report has."""
    there = {counter.scope for counter in counters}
    gone = [planned for planned in plan.kernels if planned.kernel.scope not in there]
    if not gone:
        return None
    share = percent(100 * sum(planned.share for planned in gone))
    return (
        f"{plural(len(gone), 'planned kernel')} ({share} % of the GPU time) did not come up under ncu at the launch "
        "where the trace had shown it"
    )
