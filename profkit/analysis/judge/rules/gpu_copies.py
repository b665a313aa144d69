"""Rules on whole arrays that are copied within the device, by kernels or by the driver, in each step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from profkit.analysis.evidence import RunEvidence, launching_lines, part_text, text_at
from profkit.analysis.judge.rules.gpu_calls import MUCH, is_copy
from profkit.analysis.judge.rules.gpu_lines import MIN_PER_REPETITION, looping_place, place_of_line
from profkit.analysis.judge.words import words, words_for
from profkit.core.formatting import format_quantity, percent_text, plural
from profkit.core.types import Gain, GpuTrace, Hotspot, Insight, KernelTime, Place

# Of a line of Python that copies an array itself, whatever else the host does there.
_COPIES = re.compile(
    r"\.at\[|\bcopy\(|clone\(|contiguous|astype\(|expand|repeat|tile\(|roll\(|"
    r"\b(?:cat|stack|concatenate|append)\("
)
AS_MUCH, MAX_CALLS = 0.1, 4  # of the bytes that are copied in a step; and calls in it
_OF_COPIES = (
    (re.compile(r"\.at\["), "updated"),
    (re.compile(r"expand|repeat|tile\("), "expanded"),
    (re.compile(r"\b(?:cat|stack|concatenate|append)\(|aten::cat "), "joined"),
)


def device_copies(run: RunEvidence) -> Iterator[Insight]:
    """Yield a line that copies whole arrays within the device."""
    trace = run.trace
    if trace is None or not trace.span or not trace.repeats:
        return
    by_kernels = [kernel for kernel in trace.kernels if is_copy(kernel)]
    by_driver = [transfer for transfer in trace.transfers if transfer.kind == "device to device"]
    share = run.share_of(by_kernels)
    share += min(trace.copying or 0.0, sum(transfer.seconds for transfer in by_driver)) / trace.span
    count = sum(kernel.launches for kernel in by_kernels) + sum(transfer.count for transfer in by_driver)
    if share < MUCH or count < MIN_PER_REPETITION * trace.repeats:
        return
    moved = sum(transfer.bytes for transfer in by_driver)
    largest = max(by_kernels, key=lambda kernel: kernel.total, default=None)
    if largest is not None and largest.total < sum(transfer.seconds for transfer in by_driver):
        largest = None
    of_what = f", most of {largest.operation}" if largest is not None and largest.operation else ""
    size = f", {format_quantity(moved, 'B')}" if moved and largest is None else ""
    evidence = (
        f"{plural(count, 'copy', 'copies')}{size}{of_what} take {percent_text(100 * share)} of the time"
    )
    gain = run.gain(share, "as if nothing were copied")
    copied = _copied_arguments(run, moved / trace.repeats) if largest is None else None
    if copied is not None:
        yield _undonated(copied, evidence, gain)
        return
    place, by_line = looping_place(run), _copying_lines(trace, by_kernels)
    if trace.lines:
        place = max(by_line, key=by_line.__getitem__, default=Place())
    elif _COPIES.search(text_at(run, place)) is None:
        place = Place()  # where the host is: what the device copies meanwhile may be of another line
    of_line = f"; this line makes {part_text(by_line, place)} of them" if place in by_line else ""
    title, change = _advice(run, f"{text_at(run, place)} {largest.operation if largest is not None else ''}")
    evidence += f": each reads and writes all of its data{of_line}"
    yield Insight("device-copies", title, evidence, change, place, gain)


def _advice(run: RunEvidence, text: str) -> tuple[str, str]:
    """Return the title and what to change, by the source of a line and the operation that copies there."""
    how = next((name for known, name in _OF_COPIES if known.search(text)), "layout")
    jax = run.framework == "jax"
    title = words(f"device-copies.{'updated' if how == 'layout' and jax else how}.title", "program")
    if how == "layout" or (how == "expanded" and run.framework == "torch"):
        return title, words_for(run, f"device-copies.{how}")
    return title, words(f"device-copies.{how}", "program")


def _copied_arguments(run: RunEvidence, moved: float) -> tuple[Hotspot, ...] | None:
    """Return the arguments that programs of JAX copy whole, largest first, if they are what is copied in a step.

    `moved`: bytes that were copied within the device in a step. Their bytes have to be these, of all programs or of the
    one with most of them: its text says what it copies, and not whether it ran.
    """
    profile = run.profile("copied-arguments")
    if profile is None or run.framework != "jax":
        return None
    spots = sorted(profile.hotspots, key=lambda spot: -spot.own)
    modules: dict[str, list[Hotspot]] = {}
    for spot in spots:
        modules.setdefault(_module_of(spot), []).append(spot)
    most = max(modules.values(), key=_size)
    for some in (most, spots):
        times = max(1, min(MAX_CALLS, round(moved / _size(some))))
        if abs(moved - times * _size(some)) <= AS_MUCH * moved:
            return tuple(most)
    return None


def _size(spots: Sequence[Hotspot]) -> float:
    return sum(spot.own for spot in spots)


def _module_of(spot: Hotspot) -> str:
    """Return the name of the program that copies an argument: `jit_remember`."""
    return (spot.library or "").partition(" ")[0]


def _undonated(copied: Sequence[Hotspot], evidence: str, gain: Gain) -> Insight:
    """Return that a jitted function copies its arguments, at the line that changes the largest of them."""
    first = copied[0]
    name = _module_of(first).partition("_")[2]
    arguments = list(dict.fromkeys((spot.library or "").partition(" ")[2] for spot in copied))
    known = [argument for argument in arguments if argument]
    of_what = f" of its argument{'s' if len(known) > 1 else ''} {', '.join(known)}" if known else ""
    names = ", ".join(f'"{argument}"' for argument in known)
    donate = (
        f"donate_argnames={names if len(known) == 1 else f'({names})'}" if known else "donate_argnums=..."
    )
    return Insight(
        "device-copies",
        f"Donate what jax.jit({name}) changes: it copies all of it in each call",
        f"{evidence}; {name} copies {format_quantity(_size(copied), 'B')}{of_what} in each call, since its caller "
        "keeps them",
        words("device-copies.undonated", "program").format(name=name, donate=donate),
        Place(function=first.function or None, file=first.file, line=first.line),
        gain,
    )


def _copying_lines(trace: GpuTrace, kernels: Sequence[KernelTime]) -> dict[Place, float]:
    seconds = launching_lines(kernels)
    for line in trace.lines:
        copied = sum(transfer.seconds for transfer in line.transfers if transfer.kind == "device to device")
        if copied:
            seconds[place_of_line(line)] = seconds.get(place_of_line(line), 0.0) + copied
    return seconds
