"""What must be known of times that a device took: whose clock, which side decides, cold or warm, throttled or not."""

from __future__ import annotations

from collections.abc import Sequence

from profkit.core import statistics
from profkit.core.formatting import figures, percent, plural, quantity
from profkit.core.types import SampleSet, Timing

# Device and host alone nearer to each other than this share neither side clearly, and the wall clock's own noise.
SIDES_APART = 0.1
WALL_APART = 1.05  # wall over device clock; below it they say the same
MPS = "mps-synchronized"
FIRST_APART = 2.0  # times a later iteration: below it the first is no news
CLOCKS_APART = 0.02  # largest over smallest SM clock - 1; cards step in 15 MHz, about 1 %


def device_words(timing: Timing) -> str:
    """` on the device, with a cold cache` behind the headline; nothing where no device was timed."""
    sets = _on_device(timing)
    if not sets:
        return ""
    cold = any(one.cache == "cold" for one in sets)
    if any(one.clock == MPS for one in sets):
        return f" (GPU waited for{', with cold caches' if cold else ''})"
    return f" (CUDA events{' with a cold L2' if cold else ''})"


def device_notes(timing: Timing) -> list[str]:
    """What must be known of a device's times to believe and compare them, one sentence each."""
    sets = _on_device(timing)
    if not sets:
        return []
    name = timing.name
    notes = [*_first(name, sets), *_sides(name, sets), *_cache(name, sets)]
    batched = list(dict.fromkeys(one.batching for one in sets if one.batching))
    if batched:
        notes.append(f"{name}: launches amortised: {'; '.join(batched)}.")
    notes += _clocks(name, sets)
    return [*notes, *dict.fromkeys(f"{name}: {remark}" for one in sets for remark in one.remarks)]


def _on_device(timing: Timing) -> list[SampleSet]:
    return [one for one in timing.processes if one.clock == "cuda-events" or one.cache is not None]


def _middle(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _sides(name: str, sets: Sequence[SampleSet]) -> list[str]:
    device = _middle([one.device_seconds for one in sets])
    host = _middle([one.host_seconds for one in sets])
    if device is not None and host is not None:
        alone = f"the device alone takes {quantity(device, 's')}, the host alone {quantity(host, 's')}"
        if host > device * (1 + SIDES_APART):
            return [f"{name}: host-bound: {alone} to launch it."]
        if device > host * (1 + SIDES_APART):
            return [f"{name}: {alone} to launch it, and hides behind it."]
        return [f"{name}: {alone} to launch it: both decide."]
    ratio = _middle([one.wall_ratio for one in sets])
    if ratio is not None and ratio > WALL_APART:
        return [
            f"{name}: by the wall clock an iteration takes {figures(ratio)} times as long: the host adds it."
        ]
    return []


def _first(name: str, sets: Sequence[SampleSet]) -> list[str]:
    """What compiling for these shapes adds to the first iteration, where that is worth a word."""
    both = [(one.warmup[0], statistics.median(one.seconds)) for one in sets if one.warmup and one.seconds]
    if not both or any(one.clock != MPS for one in sets):
        return []
    first, later = _middle([first for first, _ in both]), _middle([later for _, later in both])
    if first is None or later is None or first < FIRST_APART * later:
        return []
    return [
        f"{name}: the first iteration took {quantity(first, 's')}, in which Metal and MPSGraph compile for these"
        " shapes; no sample has that in it."
    ]


def _cache(name: str, sets: Sequence[SampleSet]) -> list[str]:
    states = {one.cache for one in sets if one.cache is not None}
    if any(one.clock == MPS for one in sets):
        if states == {"cold"}:
            return [f"{name}: more than the GPU's caches hold was written before each iteration (cold)."]
        return [f"{name}: the GPU's caches were left as they were (warm)."]
    if states == {"cold"}:
        return [f"{name}: the L2 was flushed before each iteration (cold)."]
    if states == {"warm"}:
        return [f"{name}: the L2 was left as it was (warm); --cold flushes it before each."]
    return []


def _clocks(name: str, sets: Sequence[SampleSet]) -> list[str]:
    notes = []
    clocks = [clock for one in sets for clock in one.clocks]
    if clocks:
        low, high = min(clocks), max(clocks)
        apart = f"between {quantity(low, 'Hz')} and {quantity(high, 'Hz')}"
        steady = high <= low * (1 + CLOCKS_APART)
        notes.append(
            f"{name}: SM clock {quantity(statistics.median(clocks), 'Hz')}{'' if steady else ', ' + apart}."
        )
    reasons = ", ".join(dict.fromkeys(reason for one in sets for reason in one.throttle_reasons))
    thrown, kept = sum(one.throttled for one in sets), sum(len(one.seconds) for one in sets)
    if thrown:
        share = percent(100 * thrown / (thrown + kept))
        why = f" ({reasons})" if reasons else ""
        notes.append(
            f"{name}: {plural(thrown, 'sample')} of {thrown + kept} ({share} %) thrown away: the device slowed itself"
            f" down{why}."
        )
    elif reasons:
        notes.append(f"{name}: the device slowed itself down all the time ({reasons}).")
    return notes
