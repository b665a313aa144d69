"""What stands behind a kernel's missed target, in words: the limiter of its occupancy, what its warps wait for."""

from __future__ import annotations

from collections.abc import Mapping

from profkit.core.formatting import figures, percent, quantity

LIMITERS = ("registers", "shared", "warps", "blocks", "barriers")
_NAMES = {
    "registers": "registers",
    "shared": "shared memory",
    "warps": "the warps of its blocks",
    "blocks": "the number of blocks",
    "barriers": "barriers",
}
# Words of NVIDIA's profiling guide, "warp stall reasons", shortened.
_STALLS = {
    "barrier": "other warps of the block at a barrier",
    "branch_resolving": "a branch target",
    "dispatch_stall": "the dispatcher",
    "drain": "stores to finish at the end",
    "gmma": "tensor core operations (wgmma)",
    "imc_miss": "constants not in their cache",
    "lg_throttle": "room in the queue of local and global memory instructions",
    "long_scoreboard": "data from global or local memory (L1, L2 or DRAM)",
    "math_pipe_throttle": "a busy arithmetic pipe",
    "membar": "a memory fence",
    "mio_throttle": "room in the queue of shared memory and special functions",
    "misc": "something rare",
    "no_instruction": "instructions to be fetched",
    "no_instructions": "instructions to be fetched",
    "not_selected": "their turn (others were ready, too)",
    "short_scoreboard": "data from shared memory or special functions",
    "sleeping": "the end of their sleep",
    "tex_throttle": "room in the queue of the texture unit",
    "wait": "a fixed latency between dependent instructions",
}
# NVIDIA's rule for achieved occupancy: more than that below the theoretical one is worth a word of its own.
BELOW_THEORY = 10.0  # points
# And for the theoretical one: above it, resources are not what keeps warps away (TheoreticalOccupancy.py).
LIMITING = 80.0  # %
FEW_WAVES = 10  # beyond it a last, partly filled wave is less than 10 % of the time


def limiters(values: Mapping[str, float]) -> tuple[str, ...]:
    """Which resources allow the fewest blocks per multiprocessor; ties are all named (TheoreticalOccupancy.py)."""
    told = {n: v for n in LIMITERS if (v := values.get(f"occupancy.limit.{n}")) is not None and v > 0}
    least = min(told.values(), default=0.0)
    return tuple(name for name, value in told.items() if value == least)


def top_stall(values: Mapping[str, float]) -> tuple[str, float] | None:
    """What warps wait for most, and its share (0..1) of all waiting; being chosen is no waiting."""
    told = {
        name.removeprefix("stall."): value
        for name, value in values.items()
        if name.startswith("stall.") and name != "stall.selected" and value > 0
    }
    if not told:
        return None
    name = max(told, key=lambda reason: told[reason])
    return name, told[name] / sum(told.values())


def why_missed(metric: str, values: Mapping[str, float]) -> str:
    """A clause on what limits the kernel in this respect; empty where nothing is known of it."""
    if metric == "occupancy.achieved":
        return _occupancy(values)
    if metric == "shared.bank_conflicts" and "shared.bank_conflicts.share" in values:
        return f"{percent(values['shared.bank_conflicts.share'])} % of the passes over shared memory"
    if metric == "memory.coalescing":
        return _sectors(values)
    if metric in ("bandwidth.dram.share", "throughput.busiest"):
        return _waiting(values)
    return ""


def _occupancy(values: Mapping[str, float]) -> str:
    theory, achieved = values.get("occupancy.theoretical"), values.get("occupancy.achieved")
    if theory is None:
        return ""
    parts = []
    if theory < 99.5 and (names := limiters(values)):
        blocks = values[f"occupancy.limit.{names[0]}"]
        each = f"{blocks:.0f} {'block' if blocks == 1 else 'blocks'} per multiprocessor"
        parts.append(f"{percent(theory)} % at most, limited by {_and([_NAMES[n] for n in names])} ({each})")
    elif theory < 99.5:
        parts.append(f"{percent(theory)} % at most")
    if achieved is not None and theory - achieved > BELOW_THEORY:
        why, waves = "blocks of uneven length, or too few of them", values.get("launch.waves")
        if waves is not None and waves > FEW_WAVES:
            why = "blocks of uneven length, or so short that starting them takes a good part of it"
        elif waves is not None:
            why += f" ({figures(waves)} waves)"
        parts.append(f"{percent(theory - achieved)} points below what its resources allow: {why}")
    return "; ".join(parts)


def _sectors(values: Mapping[str, float]) -> str:
    parts = []
    if (excess := values.get("memory.sectors.excess")) is not None:
        parts.append(f"{quantity(excess, 'count')} sectors too many")
    for way, word in (("load", "loads"), ("store", "stores")):
        if (each := values.get(f"memory.sectors_per_request.{way}")) is not None:
            parts.append(f"{figures(each)} sectors per request of {word}")
    return ", ".join(parts)


def _waiting(values: Mapping[str, float]) -> str:
    found = top_stall(values)
    if found is None:
        return ""
    name, share = found
    return f"its warps wait for {_STALLS.get(name, name.replace('_', ' '))} ({100 * share:.0f} % of their waiting)"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
