"""Finding readings, and deriving new ones with the quality that the inputs allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from profkit.analysis.metrics.catalogue import metric
from profkit.analysis.metrics.formulas import formula_table, has_formulas
from profkit.core.types import (
    QUALITY_ORDER,
    RUN,
    Fact,
    PassName,
    Quality,
    Reading,
    RunDocument,
    Scope,
    Source,
)

TOOL = "profkit"  # source of what is computed here from the readings of tools


def best_reading(readings: Iterable[Reading], name: str, scopes: Sequence[Scope]) -> Reading | None:
    """Return the reading of `name` in the first of `scopes` that has a value for it; in one scope the surest,
    undoubted first.

    Without any value the first unavailable one, which at least says why; None when there is none at all.
    """
    order = {scope: place for place, scope in reversed(list(enumerate(scopes)))}
    candidates = [r for r in readings if r.metric == name and r.scope in order]
    if not candidates:
        return None
    return min(
        candidates,
        key=lambda r: (r.value is None, order[r.scope], r.doubt is not None, QUALITY_ORDER[r.quality]),
    )


def add_readings(document: RunDocument, new: Sequence[Reading]) -> RunDocument:
    """Return the document with what of `new` is not there yet; a value takes the place of an unavailable reading."""
    places = {(r.metric, r.scope): r for r in document.readings}
    better = {
        (r.metric, r.scope): r
        for r in new
        if (known := places.get((r.metric, r.scope))) is None or (known.value is None and r.value is not None)
    }
    unchanged = (r for r in document.readings if (r.metric, r.scope) not in better)
    return replace(document, readings=(*unchanged, *better.values())) if better else document


def main_scopes(document: RunDocument) -> tuple[Scope, ...]:
    """Return where a run's answers stand, best first: the region that was timed, other regions, the whole run."""
    named = [Scope("region", timing.name) for timing in document.timings if timing.kind != "process"]
    counted = [r.scope for r in document.readings if r.scope.kind == "region" and r.scope.id is None]
    return tuple(dict.fromkeys([*named, *counted, RUN]))


def surest_readings(document: RunDocument) -> dict[str, Reading]:
    """Return the surest reading of each metric for the whole run or its region, without contradicted ones."""
    scopes = set(main_scopes(document))
    known = [r for r in document.readings if r.value is not None and r.doubt is None and r.scope in scopes]
    ranked = sorted(known, key=lambda r: QUALITY_ORDER[r.quality])
    return {reading.metric: reading for reading in reversed(ranked)}


def mixed_quality(qualities: Iterable[Quality]) -> Quality:
    """Return the quality of something computed: that of its inputs; an estimate where simulation meets other.

    A simulated count over a measured time is neither, so it is estimated; multiplexed infects measured.
    """
    kinds = set(qualities)
    if "unavailable" in kinds:
        return "unavailable"
    if "estimated" in kinds or ("simulated" in kinds and len(kinds) > 1):
        return "estimated"
    return max(kinds, key=lambda kind: QUALITY_ORDER[kind], default="measured")


def derive_reading(
    name: str,
    inputs: Sequence[Reading],
    compute: Callable[..., float],
    formula: str,
    scope: Scope,
    *,
    quality: Quality | None = None,
    reason: Fact | None = None,
) -> Reading:
    """Return `compute(values of the inputs)` as a reading of metric `name`; unavailable where an input is.

    `quality` is said where it is worse than that of the inputs.
    """
    source = Source(TOOL, counter=", ".join(r.metric for r in inputs) or None, formula=formula)
    values: list[float] = []
    for reading in inputs:
        if reading.value is None:
            needs = reading.reason
            if needs is None or needs.code != "needs":
                needs = Fact.of("needs", *([needs] if needs else []), metric=reading.metric)
            return unavailable_reading(name, scope, needs, reading.fix, source)
        values.append(reading.value)
    try:
        value = compute(*values)
    except ZeroDivisionError:
        return unavailable_reading(name, scope, Fact("nothing-to-divide-by"), source=source)
    shares = [reading.share for reading in inputs if reading.share is not None]
    level = mixed_quality([*(reading.quality for reading in inputs), *([quality] if quality else [])])
    return Reading(
        name, value, metric(name).unit, level, scope, source, reason, share=min(shares, default=None)
    )


def unavailable_reading(
    name: str,
    scope: Scope,
    reason: Fact,
    fix: str | None = None,
    source: Source | None = None,
) -> Reading:
    """Return a reading that is not there, and why."""
    return Reading(
        name,
        None,
        metric(name).unit,
        "unavailable",
        scope,
        source or Source(TOOL),
        reason,
        fix=fix,
    )


def find_reading(document: RunDocument, name: str, source_pass: PassName = "counters") -> Reading:
    """Return the best reading of `name`, or an unavailable one with the reason that the pass behind it gives."""
    scopes = main_scopes(document)
    reading = best_reading(document.readings, name, scopes)
    return reading if reading is not None else absent_reading(document, name, source_pass, scopes[0])


OF_PYTHON = ("stacks", "cprofile", "tracemalloc")  # passes over a program in Python


def absent_reading(document: RunDocument, name: str, source_pass: PassName, scope: Scope) -> Reading:
    """Return why there is no reading of `name`: how the pass that could have made it ended."""
    for result in document.passes:
        if result.name == source_pass:
            why = (result.reason,) if result.reason is not None else ()
            if result.state == "finished":
                return unavailable_reading(name, scope, Fact.of("pass-finished", name=source_pass))
            if result.state == "skipped" and source_pass in OF_PYTHON and document.workload.python is None:
                return unavailable_reading(name, scope, Fact("not-python", parts=why))
            never = formula_table(result.tool).absent if has_formulas(result.tool or "") else {}
            if name in never:  # no matter how long it may run
                return unavailable_reading(name, scope, Fact(never[name]))
            reason = Fact.of(f"pass-{result.state}", *why, name=source_pass)
            return unavailable_reading(name, scope, reason, result.fix)
    if document.plan is None:
        return unavailable_reading(name, scope, Fact("not-in-report"))
    if source_pass in {planned.name for planned in document.plan.passes}:
        return unavailable_reading(name, scope, Fact.of("ended-before", name=source_pass))
    wanted = dict.fromkeys((*(planned.name for planned in document.plan.passes), source_pass))
    names = ",".join(wanted)
    return unavailable_reading(name, scope, Fact.of("not-asked", name=source_pass), f"--passes {names}")


_FOLLOWED = 0.9  # of the GPU time: kernels that fill it must be launched equally often in every iteration


def traced_iterations(document: RunDocument) -> int:
    """Return how many iterations the analysed part of the trace has; 1 if that is not known.

    A benchmark runs as many as planned; of a marked region its entries count; a loop without marks was
    counted by what repeats in it. That a plan was followed is checked by the launches: kernels of nearly all the time
    must have run a whole number of times in each iteration.
    """
    trace = document.trace
    if trace is None:
        return 1
    if not trace.marked:
        return trace.repeats or 1
    iterations = _planned_iterations(document)
    if (
        document.metal is not None
    ):  # how many calls one encoder holds is torch's to say: launches check nothing
        is_benchmark = iterations is not None and any(
            timing.kind == "benchmark" for timing in document.timings
        )
        return (iterations if is_benchmark else document.metal.entries) or 1
    if iterations is not None and _ran_as_planned(document, iterations):
        return iterations
    entries = [entry.entries for entry in trace.ranges if entry.domain == "profkit"]
    return max(entries, default=0) or 1


def _ran_as_planned(document: RunDocument, iterations: int) -> bool:
    """Return whether what was traced ran `iterations` times. Of what is no benchmark the workload says how often."""
    if document.timings and not any(timing.kind == "benchmark" for timing in document.timings):
        return False
    kernels = document.trace.kernels if document.trace is not None else ()
    total = sum(timed.total for timed in kernels)
    even = sum(timed.total for timed in kernels if timed.launches % iterations == 0)
    return total > 0 and even >= _FOLLOWED * total


def _planned_iterations(document: RunDocument) -> int | None:
    """Return the iterations that the last step of the trace was to run; None where it was given none or left
    out.
    """
    iterations = [
        step.directive.iterations
        for planned in (document.plan.passes if document.plan is not None else ())
        if planned.name == "trace" and planned.skipped is None
        for step in planned.steps
        if step.directive is not None and step.directive.iterations
    ]
    return iterations[-1] if iterations else None
