"""Finding readings and deriving new ones from them, with the quality that the inputs allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from profkit.analysis.metrics import metric
from profkit.core.types import QUALITY_ORDER, RUN, PassName, Quality, Reading, RunDocument, Scope, Source

TOOL = "profkit"  # source of what is computed here from the readings of tools


def best(readings: Iterable[Reading], name: str, scopes: Sequence[Scope]) -> Reading | None:
    """The reading of `name` in the first of `scopes` that has a value for it, by quality within one scope.

    Without any value the first unavailable one, which at least says why; None when nobody spoke of it.
    """
    order = {scope: place for place, scope in reversed(list(enumerate(scopes)))}
    found = [r for r in readings if r.metric == name and r.scope in order]
    if not found:
        return None
    return min(found, key=lambda r: (r.value is None, order[r.scope], QUALITY_ORDER[r.quality]))


def surer(one: Reading, other: Reading) -> bool:
    """Whether both have a value and `one` is of better quality."""
    told = one.value is not None and other.value is not None
    return told and QUALITY_ORDER[one.quality] < QUALITY_ORDER[other.quality]


def merged(old: Sequence[Reading], new: Sequence[Reading]) -> tuple[Reading, ...]:
    """`old` with what of `new` is not there yet; a value takes the place of an unavailable reading."""
    places = {(r.metric, r.scope): r for r in old}
    better = {
        (r.metric, r.scope): r
        for r in new
        if (known := places.get((r.metric, r.scope))) is None or (known.value is None and r.value is not None)
    }
    kept = tuple(r for r in old if (r.metric, r.scope) not in better)
    return (*kept, *better.values())


def main_scopes(document: RunDocument) -> tuple[Scope, ...]:
    """Where a run's answers stand, best first: the region that was timed, other regions, the whole run."""
    named = [Scope("region", timing.name) for timing in document.timings if timing.kind != "process"]
    counted = [r.scope for r in document.readings if r.scope.kind == "region" and r.scope.id is None]
    return tuple(dict.fromkeys([*named, *counted, RUN]))


def mixed(qualities: Iterable[Quality]) -> Quality:
    """The quality of something computed: that of its inputs; an estimate where simulation meets other.

    A simulated count over a measured time is neither, so it is estimated; multiplexed infects measured.
    """
    kinds = set(qualities)
    if "unavailable" in kinds:
        return "unavailable"
    if "estimated" in kinds or ("simulated" in kinds and len(kinds) > 1):
        return "estimated"
    return max(kinds, key=lambda kind: QUALITY_ORDER[kind], default="measured")


def derived(
    name: str,
    inputs: Sequence[Reading],
    compute: Callable[..., float],
    formula: str,
    scope: Scope,
    *,
    quality: Quality | None = None,
    reason: str | None = None,
) -> Reading:
    """`compute(values of the inputs)` as a reading of metric `name`; unavailable where an input is.

    `quality` is said where it is worse than that of the inputs.
    """
    source = Source(TOOL, counter=", ".join(r.metric for r in inputs) or None, formula=formula)
    values: list[float] = []
    for one in inputs:
        if one.value is None:
            why = one.reason or ""
            said = why if why.startswith("it needs ") else f"it needs {one.metric}: {why}"
            return unavailable(name, scope, said, one.fix, source)
        values.append(one.value)
    try:
        value = compute(*values)
    except ZeroDivisionError:
        return unavailable(name, scope, "nothing to divide by", source=source)
    shares = [one.share for one in inputs if one.share is not None]
    level = mixed([*(one.quality for one in inputs), *([quality] if quality else [])])
    return Reading(
        name, value, metric(name).unit, level, scope, source, reason, share=min(shares, default=None)
    )


def unavailable(
    name: str, scope: Scope, reason: str, fix: str | None = None, source: Source | None = None
) -> Reading:
    """A reading that is not there, and why."""
    return Reading(
        name, None, metric(name).unit, "unavailable", scope, source or Source(TOOL), reason, fix=fix
    )


def need(document: RunDocument, name: str, source_pass: PassName = "counters") -> Reading:
    """The best reading of `name`, or an unavailable one with the reason that the pass behind it gives."""
    scopes = main_scopes(document)
    found = best(document.readings, name, scopes)
    return found if found is not None else absent(document, name, source_pass, scopes[0])


def absent(document: RunDocument, name: str, source_pass: PassName, scope: Scope) -> Reading:
    """Why nobody spoke of `name`: how the pass that could have told ended."""
    for result in document.passes:
        if result.name == source_pass:
            if result.state == "finished":
                return unavailable(name, scope, f"the {source_pass} pass did not tell it")
            ended = {"skipped": "was skipped", "failed": "failed"}.get(result.state, "was interrupted")
            reason = f"the {source_pass} pass {ended}" + (f": {result.reason}" if result.reason else "")
            return unavailable(name, scope, reason, result.fix)
    if document.plan is None:
        return unavailable(name, scope, "the report does not tell it")
    if source_pass in {planned.name for planned in document.plan.passes}:
        return unavailable(name, scope, f"the run ended before its {source_pass} pass")
    asked = dict.fromkeys((*(planned.name for planned in document.plan.passes), source_pass))
    names = ",".join(asked)
    return unavailable(name, scope, f"the {source_pass} pass was not asked for", f"--passes {names}")
