"""Other software, other kernels, other launches: what the device was given to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profkit.analysis.comparability import all_fields, fingerprint_differences, fingerprint_of
from profkit.backends import kernel_word
from profkit.core.formatting import figures, percent, quantity
from profkit.core.types import Cause, Change, FunctionChange, Kernel, RunDocument, Scope
from profkit.regression.compare.causes.evidence import (
    Evidence,
    kernel_label,
    relative_change,
    transition,
    work_units,
)
from profkit.regression.compare.kernels import KernelPair, added_seconds


def find_software(view: Evidence) -> Iterator[Cause]:
    """Where anything is different, and a version that both tell."""
    if not any(change.word == "different" for change in view.changes):
        return
    for difference in fingerprint_differences(fingerprint_of(view.baseline), fingerprint_of(view.candidate)):
        field = all_fields()[difference.name]
        if field.of == "software" and difference.baseline is not None and difference.candidate is not None:
            versions = f"{difference.baseline} -> {difference.candidate}"
            yield Cause(
                "software",
                f"Another {field.title}: {difference.meaning}.",
                evidence=(f"{field.title} {versions}",),
            )


REPLACED_SHARE = 0.05  # of the GPU time: what smaller kernels do instead of each other is no story
_NAMED = 3


def find_other_kernels(view: Evidence) -> Iterator[Cause]:
    """Where kernels with 5 % of the GPU time vanished and others appeared."""
    gone = [k for k in view.kernels if k.word == "vanished" and k.share >= REPLACED_SHARE]
    new = [k for k in view.kernels if k.word == "appeared" and k.share >= REPLACED_SHARE]
    if not gone or not new:
        return
    before, after = (sum(k.share for k in kernels) for kernels in (gone, new))
    evidence = [f"gone: {kernel_label(k.name)}, {quantity(k.baseline_seconds, 's')}" for k in gone[:_NAMED]]
    evidence += [f"new: {kernel_label(k.name)}, {quantity(k.candidate_seconds, 's')}" for k in new[:_NAMED]]
    yield Cause(
        "algorithm",
        f"Other {work_units(view)} do the work: {percent(100 * before)} % of the GPU time was in such that are gone, "
        f"{percent(100 * after)} % is in new ones.",
        evidence=tuple(evidence),
    )


def find_autotuning(view: Evidence) -> Iterator[Cause]:
    """For each kernel and key that both runs tuned, where the choice is another."""
    if all(k.word == "same" for k in view.kernels) and not any(c.word == "different" for c in view.changes):
        return
    before, after = _choices(view.baseline), _choices(view.candidate)
    for (kernel, key), best in before.items():
        other = after.get((kernel, key))
        if other is not None and other != best:
            yield Cause(
                "triton",
                f"Triton chose another configuration of {kernel} for {key}.",
                Scope("kernel", kernel),
                (f"{best} -> {other}",),
            )


def _choices(document: RunDocument) -> dict[tuple[str, str], str]:
    """The last choice of each kernel and key in the timing pass, else in any."""
    works = sorted(document.triton, key=lambda work: work.pass_name == "timing")
    return {(t.kernel, t.key): t.best for work in works for t in work.tunings}


def find_launch_shapes(view: Evidence) -> Iterator[Cause]:
    """For each kernel with 1 % of the GPU time that is launched otherwise, where its time is not the same."""
    for pair in view.main_kernels():
        change = view.fate(pair.baseline.scope)
        if pair.reshaped and change is not None and change.word != "same":
            yield Cause(
                "shape",
                f"{kernel_label(pair.candidate.name)} is launched in another shape.",
                pair.candidate.scope,
                (f"{pair.baseline.id} -> {pair.candidate.id}",),
            )


def find_occupancy(view: Evidence) -> Iterator[Cause]:
    """For each kernel whose theoretical or achieved occupancy fell."""
    for pair in view.main_kernels():
        scope = pair.baseline.scope
        fall = view.fell("occupancy.theoretical", scope) or view.fell("occupancy.achieved", scope)
        if fall is not None:
            yield _occupancy_cause(view, pair, fall)


def _occupancy_cause(view: Evidence, pair: KernelPair, fall: Change) -> Cause:
    rooms = _risen_resources(view, pair, fall)
    word = "because" if len(rooms) == 1 or _block_limits(view, pair) else "where"
    why = f", {word} {_joined([name for name, *_ in rooms])} rose" if rooms else ""
    word = "Theoretical occupancy" if fall.metric == "occupancy.theoretical" else "Achieved occupancy"
    evidence = [transition(word.lower(), fall.baseline.value, fall.candidate.value, "%")]
    evidence += [transition(name, before, after, unit) for name, before, after, unit in rooms]
    achieved = view.both("occupancy.achieved", pair.baseline.scope)
    if achieved is not None and fall.metric != "occupancy.achieved":
        evidence.append(transition("achieved occupancy", *achieved, "%"))
    return Cause(
        "occupancy",
        f"{word} of {kernel_label(pair.candidate.name)} fell from {percent(fall.baseline.value)} to "
        f"{percent(fall.candidate.value)} %{why}.",
        pair.candidate.scope,
        tuple(evidence),
    )


def _risen_resources(view: Evidence, pair: KernelPair, fall: Change) -> list[tuple[str, float, float, str]]:
    """What takes more of a multiprocessor than before: name, before, after, unit.

    Where the report tells how many blocks each resource lets in, only what lets in the fewest. None where the kernel
    could keep as many warps as before, and merely did not.
    """
    if fall.metric != "occupancy.theoretical" and view.both("occupancy.theoretical", pair.baseline.scope):
        return []
    limits = _block_limits(view, pair)
    found = []
    for title, metric, unit, told in (
        ("registers per thread", "launch.registers", "", lambda k: k.registers),
        ("shared memory per block", "launch.shared", "B", lambda k: k.shared),
        ("threads per block", "", "", _threads_per_block),
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


def _block_limits(view: Evidence, pair: KernelPair) -> dict[str, float]:
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


def _threads_per_block(kernel: Kernel) -> int:
    product = 1
    for size in kernel.block:
        product *= size
    return product


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


SAME_TOTAL = 0.02  # the total is the same within this
MOVED_SHARE = 0.02  # of the total: what moved at least
_NAMED_MOVED = 2


def find_moved_work(view: Evidence) -> Iterator[Cause]:
    """Of kernels by their seconds, of functions by simulated instructions."""
    kernels = [
        (kernel_label(k.name), added_seconds(k)) for k in view.kernels if k.word not in ("same", "ambiguous")
    ]
    totals = [sum(getattr(k, side) or 0.0 for k in view.kernels) for side in _SIDES]
    yield from _shifted(kernels, totals[0], totals[1], "s", "GPU time")
    functions = [f for f in view.functions if f.unit == "instructions"]
    work = next((p.total for p in view.baseline.profiles if p.unit == "instructions"), 0.0)
    after = next((p.total for p in view.candidate.profiles if p.unit == "instructions"), 0.0)
    yield from _shifted(
        [(f.name, _added_instructions(f)) for f in functions], work, after, "", "instructions"
    )


_SIDES = ("baseline_seconds", "candidate_seconds")


def _added_instructions(change: FunctionChange) -> float:
    return (change.candidate or 0.0) - (change.baseline or 0.0)


def _shifted(
    parts: Sequence[tuple[str, float]], before: float, after: float, unit: str, of: str
) -> Iterator[Cause]:
    if before <= 0 or abs(after / before - 1) > SAME_TOTAL:
        return
    up = sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1])
    down = sorted((part for part in parts if part[1] < 0), key=lambda part: part[1])
    more, less = sum(size for _, size in up), -sum(size for _, size in down)
    if min(more, less) < MOVED_SHARE * before:
        return
    evidence = [f"{name} +{quantity(size, unit)}" for name, size in up[:_NAMED_MOVED]]
    evidence += [f"{name} -{quantity(-size, unit)}" for name, size in down[:_NAMED_MOVED]]
    yield Cause(
        "moved",
        f"{of[0].upper()}{of[1:]} moved and did not grow: {figures(100 * min(more, less) / before, 2)} % of it went "
        f"from {_first_and_count(down)} to {_first_and_count(up)}.",
        evidence=tuple(evidence),
    )


def _first_and_count(parts: Sequence[tuple[str, float]]) -> str:
    """The first, and how many beside it had a part in it."""
    return _shortened(parts[0][0]) + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")


def _shortened(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


ENCODER_SHARE = 0.1  # of what was added: less explains nothing
_NAMED_ENCODERS = 3


def find_slower_encoders(view: Evidence) -> Iterator[Cause]:
    """The encoders with most of the time that was added, each with its part of it; nothing where the sum fell."""
    if kernel_word(view.candidate.backend) != "encoder":
        return
    added = sum(added_seconds(one) for one in view.kernels)
    if added <= 0:
        return
    slower = [
        one for one in view.kernels if one.word == "slower" and added_seconds(one) >= ENCODER_SHARE * added
    ]
    for one in sorted(slower, key=lambda one: -added_seconds(one))[:_NAMED_ENCODERS]:
        before, after = one.baseline_seconds or 0.0, one.candidate_seconds or 0.0
        part = min(1.0, added_seconds(one) / added)
        yield Cause(
            "encoder",
            f"{kernel_label(one.name)} takes {relative_change(before, after)}: "
            f"{percent(100 * part)} % of the GPU time that was added.",
            Scope("kernel", one.name, one.launch or None),
            (transition("seconds per iteration", before, after, "s"),),
        )


CALLS_SHARE = 0.01  # of the GPU time
CALLS_APART = 0.02  # calls per iteration, relative: the ends of a trace cut through an iteration


def find_call_counts(view: Evidence) -> Iterator[Cause]:
    """For each kernel that became slower or faster, and is launched another number of times."""
    for k in view.kernels:
        before, after = k.baseline_calls, k.candidate_calls
        if k.word not in ("slower", "faster") or k.share < CALLS_SHARE or not before or not after:
            continue
        if abs(after / before - 1) > CALLS_APART:
            word = "more" if after > before else "less"
            yield Cause(
                "calls",
                f"{kernel_label(k.name)} is called {word} often in each iteration.",
                Scope("kernel", k.name, k.launch),
                (f"calls {figures(before)} -> {figures(after)}",),
            )


_NAMED_LAUNCHES = 3


def find_launch_counts(view: Evidence) -> Iterator[Cause]:
    """Where the number of launches of an iteration is different, with those that were added or left out."""
    for change in view.different("launch.count"):
        before, after = change.baseline.value, change.candidate.value
        word = "more" if after > before else "fewer"
        differ = sorted(
            ((k.name, (k.candidate_calls or 0.0) - (k.baseline_calls or 0.0)) for k in view.kernels),
            key=lambda item: -abs(item[1]),
        )
        named = [
            f"{kernel_label(name)} {size:+.3g}" for name, size in differ[:_NAMED_LAUNCHES] if abs(size) > 0.1
        ]
        yield Cause(
            "launches",
            f"Each iteration launches {figures(abs(after - before))} {work_units(view)} {word}.",
            evidence=(f"launches per iteration {figures(before)} -> {figures(after)}", *named),
        )


def find_command_buffers(view: Evidence) -> Iterator[Cause]:
    """Where the number of command buffers of an iteration is different: each costs the host a submission."""
    for change in view.different("buffer.count"):
        before, after = change.baseline.value, change.candidate.value
        word = "more" if after > before else "fewer"
        yield Cause(
            "buffers",
            f"Each iteration submits {figures(abs(after - before))} command buffers {word}.",
            evidence=(f"command buffers per iteration {figures(before)} -> {figures(after)}",),
        )


def find_idle_device(view: Evidence) -> Iterator[Cause]:
    """Where GPU utilization fell. That it waits for the host is only said where nothing was launched while it idled."""
    fall = view.fell("gpu.utilization")
    if fall is None:
        return
    evidence = [transition("GPU busy", fall.baseline.value, fall.candidate.value, "%")]
    for side, trace in (("baseline", view.baseline.trace), ("candidate", view.candidate.trace)):
        if trace is not None and trace.starved is not None:
            word = "submitted" if trace.tool == "xctrace" else "launched"
            evidence.append(f"of its idle time, nothing was {word}: {100 * trace.starved:.0f} % ({side})")
    after = view.candidate.trace.starved if view.candidate.trace is not None else None
    waits = after is not None and after > 0.5
    sentence = (
        f"The GPU waits more for the host between its {work_units(view)}."
        if waits
        else "The GPU is idle for more of the time."
    )
    yield Cause("host", sentence, evidence=tuple(evidence))
