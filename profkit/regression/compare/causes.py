"""Explain a change: rules by theme, each of which looks at both runs and reports what their counters show.

A rule explains only what was found different, and every cause carries the values that it rests on. Rules are
tried in the order of RULES: first what is outside of the program, then what it does differently, then how
well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import prod

from profkit.backends import kernel_word
from profkit.core.types import Cause, Change, CodeChange, Fact
from profkit.regression.compare.kernels import KernelPair, added_value
from profkit.regression.compare.machine import find_machine_causes
from profkit.regression.compare.outcome import Evidence, change_fact, moved

REPLACED_SHARE = 0.05  # of the GPU time: below it other kernels explain nothing
MAX_CAUSES = 10  # of one rule, the largest first: of a hundred kernels with one cause so many are enough
_NAMED = 3  # kernels or functions that evidence names


def causes_of(evidence: Evidence) -> tuple[Cause, ...]:
    """Return the causes that every rule finds, in the order of the rules."""
    return tuple(cause for rule in RULES for cause in islice(rule(evidence), MAX_CAUSES))


# ---------------------------------------------------------------- software, other kernels


def _find_other_kernels(evidence: Evidence) -> Iterator[Cause]:
    """Yield a cause where kernels with 5 % of the GPU time vanished and others appeared.

    Most often a library chose another algorithm.
    """
    vanished = [k for k in evidence.kernels if k.word == "vanished" and k.share >= REPLACED_SHARE]
    new = [k for k in evidence.kernels if k.word == "appeared" and k.share >= REPLACED_SHARE]
    if not vanished or not new:
        return
    before, after = (sum(k.share for k in kernels) for kernels in (vanished, new))
    lines = [Fact.of("gone", kernel=k.name, seconds=k.baseline or 0.0) for k in vanished[:_NAMED]]
    lines += [Fact.of("new", kernel=k.name, seconds=k.candidate or 0.0) for k in new[:_NAMED]]
    things = f"{kernel_word(evidence.candidate.backend)}s"
    sentence = Fact.of("other-kernels", before=before, after=after, things=things)
    yield Cause("algorithm", sentence, evidence=tuple(lines))


# ---------------------------------------------------------------- occupancy


def _find_shapes_and_occupancy(evidence: Evidence) -> Iterator[Cause]:
    """Yield causes for each kernel with 1 % of the GPU time: another grid or block, and an occupancy that fell."""
    for pair in evidence.main:
        scope, change = pair.baseline.scope, evidence.kernel_change(pair.baseline.scope)
        if pair.reshaped and change is not None and change.word != "same":
            shapes = Fact.of("renamed", before=pair.baseline.id, after=pair.candidate.id)
            sentence = Fact.of("shape", kernel=pair.candidate.name)
            yield Cause("shape", sentence, pair.candidate.scope, (shapes,))
        fall = evidence.fell("occupancy.theoretical", scope) or evidence.fell("occupancy.achieved", scope)
        if fall is not None:
            yield _occupancy_cause(evidence, pair, fall)


def _occupancy_cause(evidence: Evidence, pair: KernelPair, fall: Change) -> Cause:
    """Build the cause for a fall of occupancy, with what each block uses more of than before."""
    scope, before, after = pair.baseline.scope, pair.baseline, pair.candidate
    risen = []
    for metric, unit, launched in (
        ("launch.registers", "", (before.registers, after.registers)),
        ("launch.shared", "B", (before.shared, after.shared)),
        ("launch.threads", "", (prod(before.block), prod(after.block))),
    ):
        first, second = evidence.both(metric, scope) or launched
        if first is not None and second is not None and second > first:
            risen.append(moved(metric, first, second, unit))
    sentence = Fact.of(
        "occupancy-because" if len(risen) == 1 else "occupancy-where" if risen else "occupancy",
        kernel=pair.candidate.name,
        metric=fall.metric,
        before=fall.baseline.value,
        after=fall.candidate.value,
        **{f"risen{number}": line.names["title"] for number, line in enumerate(risen)},
    )
    return Cause("occupancy", sentence, pair.candidate.scope, (change_fact(fall), *risen))


def _added(name: str, size: float, unit: str = "") -> Fact:
    return Fact.of("added", name=name, size=size, unit=unit)


def _more(code: str, change: Change, **names: str) -> Fact:
    return Fact.of(code, before=change.baseline.value, after=change.candidate.value, **names)


# ---------------------------------------------------------------- work, bytes, efficiency, memory


def _find_work(evidence: Evidence) -> Iterator[Cause]:
    """Yield causes of more or less work: instructions and bytes of the run and of kernels whose time changed.

    Those of the run's instructions name the functions that grew.
    """
    for change in evidence.different("instructions"):
        if change.scope.kind != "kernel":
            largest = _grown_functions(evidence, change)
            size = change.candidate.value - change.baseline.value
            most = bool(largest) and abs(added_value(largest[0])) > abs(size) / 2
            sentence = (
                _more("more-work-in", change, function=largest[0].name)
                if most
                else _more("more-work", change)
            )
            lines = [_added(f.name, added_value(f)) for f in largest]
            yield Cause("work", sentence, change.scope, (change_fact(change), *lines))
        elif evidence.time_changed(change.scope):
            sentence = _more("more-work-of", change, kernel=change.scope.name or "")
            yield Cause("work", sentence, change.scope, (change_fact(change),))
    for change in evidence.different("dram.bytes"):
        if change.scope.kind != "kernel":
            yield Cause("bytes", _more("more-bytes", change), change.scope, (change_fact(change),))
        elif evidence.time_changed(change.scope):
            sentence = _more("more-bytes-of", change, kernel=change.scope.name or "")
            yield Cause("bytes", sentence, change.scope, (change_fact(change),))


def _grown_functions(evidence: Evidence, change: Change) -> list[CodeChange]:
    """Return the three functions with the largest part of a change."""
    size = change.candidate.value - change.baseline.value
    functions = [f for f in evidence.functions if f.unit == "instructions"]
    grown = [f for f in functions if (added_value(f) > 0) == (size > 0)]
    return sorted(grown, key=lambda f: -abs(added_value(f)))[:_NAMED]


RULES: tuple[Callable[[Evidence], Iterator[Cause]], ...] = (
    find_machine_causes,
    _find_other_kernels,
    _find_shapes_and_occupancy,
    _find_work,
)
