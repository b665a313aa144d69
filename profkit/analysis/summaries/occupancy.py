"""Occupancy: how many of the warps that a multiprocessor can hold were there, and what allows no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profkit.analysis.kernel_names import shape
from profkit.analysis.summaries.kernel_table import Column, kernel_table, of
from profkit.analysis.summaries.kernels import KernelRow
from profkit.core.formatting import percent
from profkit.core.types import Reading, Summary

# What may limit the blocks on a multiprocessor -> how it is called.
LIMITS = {
    "occupancy.limit.registers": "registers",
    "occupancy.limit.shared": "shared memory",
    "occupancy.limit.warps": "warps",
    "occupancy.limit.blocks": "blocks",
    "occupancy.limit.barriers": "barriers",
}
SHORT = {"shared memory": "shared", "registers": "regs"}
FULL = 99.95  # %; where all warps fit, the warps themselves are the limit and nothing else is


def limiters(row: KernelRow) -> tuple[str, ...]:
    """What allows the fewest blocks on a multiprocessor, all of them where several allow as few.

    Empty where it is not known, and where every warp fits.
    """
    most = row.value("occupancy.theoretical")
    told = {word: value for name, word in LIMITS.items() if (value := row.value(name)) is not None}
    if not told or (most is not None and most >= FULL):
        return ()
    least = min(told.values())
    return tuple(word for word, value in told.items() if value == least)


def limiter(row: KernelRow) -> str | None:
    """The limiters in a cell: `regs+shared`; `none` where every warp fits; None where it is not known."""
    most = row.value("occupancy.theoretical")
    if most is not None and most >= FULL:
        return "none"
    return "+".join(SHORT.get(word, word) for word in limiters(row)) or None


def summarize_occupancy(rows: Sequence[KernelRow], missing: Sequence[Reading] = ()) -> Summary:
    """Achieved and theoretical occupancy with the limiter, and the launch attributes behind them."""
    table = kernel_table("Occupancy and launch", rows, _COLUMNS)
    if table is not None and "blocks per SM*" in table.columns:
        words = ", ".join(LIMITS.values())
        table = replace(table, note=" ".join(filter(None, (table.note, f"* as many as {words} allow"))))
    return Summary("occupancy", _headline(rows, missing), tuple(missing), (table,) if table is not None else ())


def _headline(rows: Sequence[KernelRow], missing: Sequence[Reading]) -> str:
    known = [row for row in rows if row.value("occupancy.achieved") is not None]
    if not known:
        reason = next((r.reason for r in missing if r.reason), "no counter tells it")
        return f"Achieved occupancy is not known: {reason}."
    top = known[0]
    share = f" ({percent(100 * top.share)} % of the GPU time)" if top.share is not None else ""
    text = f"{top.brief}{share} keeps {percent(top.value('occupancy.achieved') or 0.0)} % of the warps active"
    most = top.value("occupancy.theoretical")
    if most is None:
        return f"{text}."
    held = limiters(top)
    why = f": {holding(held)}" if held else ""
    return f"{text}, {percent(most)} % are possible{why}."


def holding(held: Sequence[str]) -> str:
    """`registers allow no more`, `shared memory allows no more`: limiters as a clause; empty where there are none."""
    verb = "allows" if list(held) == ["shared memory"] else "allow"
    return f"{' and '.join(held)} {verb} no more" if held else ""


def _limits(row: KernelRow) -> str | None:
    """Blocks per multiprocessor that each resource allows, in the order of LIMITS: `3/1/16/32/-`."""
    told = [row.value(name) for name in LIMITS]
    if not any(value is not None for value in told):
        return None
    return "/".join("-" if value is None else f"{value:.0f}" for value in told)


def _shape(row: KernelRow) -> str | None:
    return shape(row.scope.id) if row.scope.id else None


_COLUMNS = (
    of("achieved", "occupancy.achieved"),
    of("theoretical", "occupancy.theoretical"),
    Column("limiter", limiter),
    of("cluster", "cluster.occupancy", rare=True),
    of("registers", "launch.registers", bare=True),
    of("shared/block", "launch.shared"),
    Column("grid of block", _shape, alone=False),
    of("waves", "launch.waves", bare=True),
    Column("blocks per SM*", _limits, alone=False),
)
