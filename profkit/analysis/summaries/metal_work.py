"""What the GPU worked on: encoders by their labels, and shaders where the recording told them apart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.analysis.summaries.metal_told import ENCODERS, INTERVALS, SHADERS, why_absent
from profkit.analysis.summaries.tables import share
from profkit.core.formatting import percent, plural, quantity, shortened
from profkit.core.types import MetalTrace, MetalWork, Summary, Table

ENCODER_TABLE, SHADER_TABLE = "Encoders by GPU time", "Shaders by GPU time"
TOP = 10  # more than anybody works on at once
NAME = 34
# What Instruments calls an encoder without a label.
DEFAULT = re.compile(r"|(Compute|Render|Blit|Acceleration Structure) (Command|Encoder) \d+")
SHADER_REASON = "the recording has no time of single shaders"


def summarize_encoders(metal: MetalTrace) -> Summary | None:
    """Time by encoder label, by channel where nothing has a label; None where the process had nothing on the GPU."""
    works, columns = metal.encoders, "encoder"
    if not works and metal.channels:
        works, columns = metal.channels, "channel"
    if not works:
        return None
    total = sum(work.seconds for work in works)
    top = max(works, key=lambda work: work.seconds)
    headline = (
        f"{shortened(top.name, 48)} takes {share(top.seconds, total)} of {quantity(total, 's')} in"
        f" {plural(sum(work.count for work in works), columns)}."
    )
    notes = []
    if columns == "channel":
        reason, fix = why_absent(metal, (ENCODERS, INTERVALS), "the trace has no labels of encoders")
        notes.append(f"Encoders are not told apart: {reason}" + (f" ({fix})" if fix else "") + ".")
    elif all(DEFAULT.fullmatch(work.name.strip()) for work in works):
        notes.append(
            "These are Metal's own names: MTLCommandEncoder.label gives each encoder one that tells it."
        )
    return Summary("encoders", headline, (), (_table(ENCODER_TABLE, columns, works),), tuple(notes))


def summarize_shaders(metal: MetalTrace) -> Summary:
    """Time by shader; without any why, and how to get it."""
    if not metal.shaders:
        reason, fix = why_absent(metal, (SHADERS,), SHADER_REASON)
        line = f"Time by shader is not known: {reason}."
        return Summary("shaders", line, (), (), (f"To have it: {fix}",) if fix else ())
    total = sum(work.seconds for work in metal.shaders)
    top = max(metal.shaders, key=lambda work: work.seconds)
    headline = f"{shortened(top.name, 48)} takes {share(top.seconds, total)} of the time of all shaders."
    return Summary("shaders", headline, (), (_table(SHADER_TABLE, "shader", metal.shaders),))


def _table(title: str, kind: str, works: Sequence[MetalWork]) -> Table:
    ordered = sorted(works, key=lambda work: -work.seconds)
    total = sum(work.seconds for work in works)
    rows = tuple(
        (
            shortened(work.name, NAME) or "(no label)",
            str(work.count),
            quantity(work.seconds, "s"),
            share(work.seconds, total),
            quantity(work.median, "s"),
            quantity(work.longest, "s"),
        )
        for work in ordered[:TOP]
    )
    rest = ordered[TOP:]
    part = percent(100 * sum(work.seconds for work in rest) / total) if rest and total > 0 else "0"
    note = f"and {plural(len(rest), f'further {kind}')}, {part} % of the time" if rest else None
    return Table(title, (kind, "count", "total", "share", "median", "longest"), rows, note)
