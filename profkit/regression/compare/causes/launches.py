"""Other software, other kernels, other launches: what the device was given to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from profkit.analysis.comparability import all_fields, fingerprint_differences, fingerprint_of
from profkit.backends import kernel_word
from profkit.core.formatting import format_figures, format_percent, format_quantity, shorten
from profkit.core.types import Cause, Change, Kernel, RunDocument, Scope
from profkit.regression.compare.causes.evidence import (
    Evidence,
    added_value,
    kernel_label,
    relative_change,
    transition,
    work_units,
)
from profkit.regression.compare.kernels import KernelPair, added_seconds, counts_chosen_launches

REPLACED_SHARE = 0.05  # of the GPU time: below it other kernels explain nothing
SAME_TOTAL = 0.02  # the total is the same within this
MOVED_SHARE = 0.02  # of the total: what moved at least
ENCODER_SHARE = 0.1  # of what was added: less explains nothing
CALLS_SHARE = 0.01  # of the GPU time
CALLS_APART = 0.02  # calls per iteration, relative: the ends of a trace cut through an iteration
_NAMED = 3  # kernels that evidence names


def find_software(evidence: Evidence) -> Iterator[Cause]:
    """Another torch, Triton, driver or Python, where anything is different: it may bring other kernels by itself."""
    if not any(change.word == "different" for change in evidence.changes):
        return
    sides = fingerprint_of(evidence.baseline), fingerprint_of(evidence.candidate)
    for difference in fingerprint_differences(*sides):
        field = all_fields()[difference.name]
        if field.of == "software" and difference.baseline is not None and difference.candidate is not None:
            versions = f"{field.title} {difference.baseline} -> {difference.candidate}"
            yield Cause("software", f"Another {field.title}: {difference.meaning}.", evidence=(versions,))


def find_other_kernels(evidence: Evidence) -> Iterator[Cause]:
    """Where kernels with 5 % of the GPU time vanished and others appeared: most often a library's other algorithm."""
    gone = [k for k in evidence.kernels if k.word == "vanished" and k.share >= REPLACED_SHARE]
    new = [k for k in evidence.kernels if k.word == "appeared" and k.share >= REPLACED_SHARE]
    if not gone or not new:
        return
    before, after = (sum(k.share for k in kernels) for kernels in (gone, new))
    lines = [
        f"gone: {kernel_label(k.name)}, {format_quantity(k.baseline_seconds, 's')}" for k in gone[:_NAMED]
    ]
    lines += [
        f"new: {kernel_label(k.name)}, {format_quantity(k.candidate_seconds, 's')}" for k in new[:_NAMED]
    ]
    yield Cause(
        "algorithm",
        f"Other {work_units(evidence)} do the work: {format_percent(100 * before)} % of the GPU time was in some that "
        f"are gone, {format_percent(100 * after)} % is in new ones.",
        evidence=tuple(lines),
    )


def find_autotuning(evidence: Evidence) -> Iterator[Cause]:
    """For each kernel and key that Triton tuned in both runs, where it chose another configuration."""
    different = any(c.word == "different" for c in evidence.changes)
    if not different and all(k.word == "same" for k in evidence.kernels):
        return
    before, after = _tuned_choices(evidence.baseline), _tuned_choices(evidence.candidate)
    for (kernel, key), best in before.items():
        chosen = after.get((kernel, key))
        if chosen is not None and chosen != best:
            yield Cause(
                "triton",
                f"Triton chose another configuration of {kernel} for {key}.",
                Scope("kernel", kernel),
                (f"{best} -> {chosen}",),
            )


def _tuned_choices(document: RunDocument) -> dict[tuple[str, str], str]:
    """The last choice of each kernel and key in the timing pass, else in any."""
    works = sorted(document.triton, key=lambda work: work.pass_name == "timing")
    return {(t.kernel, t.key): t.best for work in works for t in work.tunings}


def find_launch_shapes(evidence: Evidence) -> Iterator[Cause]:
    """For each kernel with 1 % of the GPU time that has another grid or block, where its time is not the same."""
    for pair in evidence.main_kernels():
        change = evidence.kernel_change(pair.baseline.scope)
        if pair.reshaped and change is not None and change.word != "same":
            yield Cause(
                "shape",
                f"{kernel_label(pair.candidate.name)} is launched in another shape.",
                pair.candidate.scope,
                (f"{pair.baseline.id} -> {pair.candidate.id}",),
            )


# ---------------------------------------------------------------- occupancy


def find_occupancy(evidence: Evidence) -> Iterator[Cause]:
    """For each kernel whose theoretical or achieved occupancy fell, with the resources that it uses more of."""
    for pair in evidence.main_kernels():
        scope = pair.baseline.scope
        fall = evidence.fell("occupancy.theoretical", scope) or evidence.fell("occupancy.achieved", scope)
        if fall is not None:
            yield _occupancy_cause(evidence, pair, fall)


def _occupancy_cause(evidence: Evidence, pair: KernelPair, fall: Change) -> Cause:
    risen = _risen_resources(evidence, pair, fall)
    names = [name for name, *_ in risen]
    link = "because" if len(risen) == 1 or _block_limits(evidence, pair) else "where"
    why = f", {link} {', '.join(names[:-1])}{' and ' if names[1:] else ''}{names[-1]} rose" if risen else ""
    theoretical = fall.metric == "occupancy.theoretical"
    title = "Theoretical occupancy" if theoretical else "Achieved occupancy"
    before, after = fall.baseline.value, fall.candidate.value
    lines = [transition(title.lower(), before, after, "%"), *(transition(*resource) for resource in risen)]
    achieved = evidence.both("occupancy.achieved", pair.baseline.scope)
    if achieved is not None and theoretical:
        lines.append(transition("achieved occupancy", *achieved, "%"))
    sentence = (
        f"{title} of {kernel_label(pair.candidate.name)} fell from {format_percent(before)} to "
        f"{format_percent(after)} %{why}."
    )
    return Cause("occupancy", sentence, pair.candidate.scope, tuple(lines))


def _risen_resources(
    evidence: Evidence, pair: KernelPair, fall: Change
) -> list[tuple[str, float, float, str]]:
    """What each block uses more of than before: name, before, after, unit.

    Where the report says how many blocks each resource allows, only the resource that allows the fewest. Nothing where
    the kernel could keep as many warps as before, and merely did not.
    """
    scope = pair.baseline.scope
    if fall.metric != "occupancy.theoretical" and evidence.both("occupancy.theoretical", scope):
        return []
    limits = _block_limits(evidence, pair)
    risen = []
    for title, metric, unit, launched in (
        ("registers per thread", "launch.registers", "", lambda k: k.registers),
        ("shared memory per block", "launch.shared", "B", lambda k: k.shared),
        ("threads per block", "", "", _threads_per_block),
    ):
        values = evidence.both(metric, scope) if metric else None
        if values is None:
            first, second = launched(pair.baseline), launched(pair.candidate)
            values = (first, second) if first is not None and second is not None else None
        allows_more = bool(limits) and limits.get(title, float("inf")) > min(limits.values())
        if values is not None and values[1] > values[0] and not allows_more:
            risen.append((title, float(values[0]), float(values[1]), unit))
    return risen


def _block_limits(evidence: Evidence, pair: KernelPair) -> dict[str, float]:
    """How many blocks of the candidate fit on a multiprocessor by each resource, where the report says it."""
    resources = {
        "registers per thread": "registers",
        "shared memory per block": "shared",
        "threads per block": "warps",
        "blocks": "blocks",
        "barriers": "barriers",
    }
    scope = pair.baseline.scope
    limits = {title: evidence.after.get((f"occupancy.limit.{n}", scope)) for title, n in resources.items()}
    return {title: limit for title, limit in limits.items() if limit is not None}


def _threads_per_block(kernel: Kernel) -> int:
    return prod(kernel.block)


# ---------------------------------------------------------------- which kernels, how often


def find_moved_work(evidence: Evidence) -> Iterator[Cause]:
    """One kernel or function takes more, another as much less, and the whole is what it was."""
    kernels = [
        (kernel_label(k.name), added_seconds(k))
        for k in evidence.kernels
        if k.word not in ("same", "ambiguous")
    ]
    before = sum(k.baseline_seconds or 0.0 for k in evidence.kernels)
    after = sum(k.candidate_seconds or 0.0 for k in evidence.kernels)
    yield from _moved_cause(kernels, before, after, "s", "GPU time")
    functions = [(f.name, added_value(f)) for f in evidence.functions if f.unit == "instructions"]
    before, after = (
        next((p.total for p in run.profiles if p.unit == "instructions"), 0.0)
        for run in (evidence.baseline, evidence.candidate)
    )
    yield from _moved_cause(functions, before, after, "", "instructions")


def _moved_cause(
    parts: Sequence[tuple[str, float]], before: float, after: float, unit: str, title: str
) -> Iterator[Cause]:
    if before <= 0 or abs(after / before - 1) > SAME_TOTAL:
        return
    up = sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])
    down = sorted((part for part in parts if part[1] < 0), key=lambda part: part[1])
    size = min(sum(size for _, size in up), -sum(size for _, size in down))
    if size < MOVED_SHARE * before:
        return
    lines = [f"{name} +{format_quantity(size, unit)}" for name, size in up[:2]]
    lines += [f"{name} -{format_quantity(-size, unit)}" for name, size in down[:2]]
    yield Cause(
        "moved",
        f"{title[0].upper()}{title[1:]} moved and did not grow: {format_figures(100 * size / before, 2)} % of it went "
        f"from {_first_and_count(down)} to {_first_and_count(up)}.",
        evidence=tuple(lines),
    )


def _first_and_count(parts: Sequence[tuple[str, float]]) -> str:
    """The first name, and how many there are beside it."""
    return shorten(parts[0][0], 40) + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")


def find_slower_encoders(evidence: Evidence) -> Iterator[Cause]:
    """The Metal encoders with most of the time that was added: their trace has no counters that would say why."""
    added = sum(map(added_seconds, evidence.kernels))
    if kernel_word(evidence.candidate.backend) != "encoder" or added <= 0:
        return
    slower = [k for k in evidence.kernels if k.word == "slower" and added_seconds(k) >= ENCODER_SHARE * added]
    for encoder in sorted(slower, key=added_seconds, reverse=True)[:_NAMED]:
        before, after = encoder.baseline_seconds or 0.0, encoder.candidate_seconds or 0.0
        part = min(1.0, added_seconds(encoder) / added)
        yield Cause(
            "encoder",
            f"{kernel_label(encoder.name)} takes {relative_change(before, after)}: "
            f"{format_percent(100 * part)} % of the GPU time that was added.",
            Scope("kernel", encoder.name, encoder.launch or None),
            (transition("seconds per iteration", before, after, "s"),),
        )


def find_call_counts(evidence: Evidence) -> Iterator[Cause]:
    """For each kernel that became slower or faster, and is launched another number of times in each iteration."""
    if counts_chosen_launches(evidence.baseline.trace) or counts_chosen_launches(evidence.candidate.trace):
        return
    for k in evidence.kernels:
        before, after = k.baseline_calls, k.candidate_calls
        if k.word not in ("slower", "faster") or k.share < CALLS_SHARE or not before or not after:
            continue
        if abs(after / before - 1) > CALLS_APART:
            yield Cause(
                "calls",
                f"{kernel_label(k.name)} is called {'more' if after > before else 'less'} often in each iteration.",
                Scope("kernel", k.name, k.launch),
                (f"calls {format_figures(before)} -> {format_figures(after)}",),
            )


def find_launch_counts(evidence: Evidence) -> Iterator[Cause]:
    """Where each iteration launches more kernels or fewer, with those that were added or left out."""
    for change in evidence.different("launch.count"):
        sizes = [(k.name, (k.candidate_calls or 0.0) - (k.baseline_calls or 0.0)) for k in evidence.kernels]
        largest = sorted(sizes, key=lambda item: -abs(item[1]))[:_NAMED]
        named = [f"{kernel_label(name)} {size:+.3g}" for name, size in largest if abs(size) > 0.1]
        yield _count_cause("launches", "launches", work_units(evidence), change, named)


def find_command_buffers(evidence: Evidence) -> Iterator[Cause]:
    """Where each iteration submits more command buffers to an Apple GPU or fewer: each costs the host a submission."""
    for change in evidence.different("buffer.count"):
        yield _count_cause("buffers", "submits", "command buffers", change, [])


def _count_cause(kind: str, verb: str, things: str, change: Change, more: list[str]) -> Cause:
    before, after = change.baseline.value, change.candidate.value
    title = "launches" if kind == "launches" else things
    return Cause(
        kind,
        f"Each iteration {verb} {format_figures(abs(after - before))} {things} "
        f"{'more' if after > before else 'fewer'}.",
        evidence=(f"{title} per iteration {format_figures(before)} -> {format_figures(after)}", *more),
    )


def find_idle_device(evidence: Evidence) -> Iterator[Cause]:
    """Where GPU utilization fell. That it waits for the host is only said where nothing was launched while it idled."""
    fall = evidence.fell("gpu.utilization")
    if fall is None:
        return
    lines = [transition("GPU busy", fall.baseline.value, fall.candidate.value, "%")]
    starved = None
    for side, document in (("baseline", evidence.baseline), ("candidate", evidence.candidate)):
        starved = document.trace.starved if document.trace is not None else None
        if starved is not None:
            verb = "submitted" if document.metal is not None else "launched"
            lines.append(f"of its idle time, nothing was {verb}: {100 * starved:.0f} % ({side})")
    sentence = "The GPU is idle for more of the time."
    if starved is not None and starved > 0.5:
        sentence = f"The GPU waits more for the host between its {work_units(evidence)}."
    yield Cause("host", sentence, evidence=tuple(lines))
