"""The work on an Apple GPU in words: time by encoder and by shader."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profkit.analysis.summaries.metal_readings import (
    ENCODERS,
    INTERVALS,
    SHADERS,
    TOOL,
    explain_absence,
)
from profkit.core.formatting import format_percent, format_quantity, plural, shorten
from profkit.core.types import RUN, MetalWork, Reading, Source
from profkit.reporting.footnotes import reading_span
from profkit.reporting.view import DataTable
from profkit.reporting.views.summaries.parts import (
    ConcernFacts,
    SummaryText,
    named_table,
    share_text,
    summary_text,
)

TOP_WORK = 10  # more than anybody works on at once
NAME = 34
# What Instruments calls an encoder without a label.
DEFAULT = re.compile(r"|(Compute|Render|Blit|Acceleration Structure) (Command|Encoder) \d+")
_BY_TIME = "Encoders by GPU time"


def encoders_text(facts: ConcernFacts) -> SummaryText | None:
    """Time by encoder label, by channel where nothing has a label; None where the process had nothing on the GPU."""
    metal = facts.document.metal
    works = (metal.encoders or metal.channels) if metal is not None else ()
    if metal is None or not works:
        return None
    kind = "encoder" if metal.encoders else "channel"
    total = sum(work.seconds for work in works)
    top = max(works, key=lambda work: work.seconds)
    notes = []
    if not metal.encoders:
        reason, fix, _ = explain_absence(metal, (ENCODERS, INTERVALS), "the trace has no labels of encoders")
        notes.append(f"Encoders cannot be distinguished: {reason}" + (f" ({fix})" if fix else "") + ".")
    elif all(DEFAULT.fullmatch(work.name.strip()) for work in works):
        notes.append(
            "These are Metal's own names: MTLCommandEncoder.label gives each encoder one that tells it."
        )
    share = f"{share_text(top.seconds, total)} of {format_quantity(total, 's')}"
    pieces = plural(sum(work.count for work in works), kind)
    headline = f"{shorten(top.name, 48)} takes {share} in {pieces}."
    return summary_text(
        "encoders", headline, (), [_work_table(_BY_TIME, kind, works)], notes, brief=(_BY_TIME,)
    )


def shaders_text(facts: ConcernFacts) -> SummaryText | None:
    """Time by shader; without any why, and how to get it."""
    metal = facts.document.metal
    if metal is None:
        return None
    if not metal.shaders:
        reason, fix, _ = explain_absence(metal, (SHADERS,), "the recording has no time of single shaders")
        line = f"Time by shader is not known: {reason}."
        return summary_text("shaders", line, notes=(f"To have it: {fix}",) if fix else ())
    total = sum(work.seconds for work in metal.shaders)
    top = max(metal.shaders, key=lambda work: work.seconds)
    headline = f"{shorten(top.name, 48)} takes {share_text(top.seconds, total)} of the time of all shaders."
    return summary_text(
        "shaders", headline, (), [_work_table("Shaders by GPU time", "shader", metal.shaders)]
    )


def _work_table(title: str, kind: str, works: Sequence[MetalWork]) -> DataTable:
    ordered = sorted(works, key=lambda work: -work.seconds)
    total = sum(work.seconds for work in works)
    source = Source(
        TOOL, SHADERS if kind == "shader" else INTERVALS, formula="100 * its time / the time of all of them"
    )
    share = Reading("GPU time, share", 0.0, "%", "measured", RUN, source)
    rows = [
        (
            shorten(work.name, NAME) or "(no label)",
            str(work.count),
            format_quantity(work.seconds, "s"),
            reading_span(share, share_text(work.seconds, total)),
            format_quantity(work.median, "s"),
            format_quantity(work.longest, "s"),
        )
        for work in ordered[:TOP_WORK]
    ]
    rest = ordered[TOP_WORK:]
    part = format_percent(100 * sum(work.seconds for work in rest) / total) if rest and total > 0 else "0"
    note = f"and {plural(len(rest), f'further {kind}')}, {part} % of the time" if rest else None
    return named_table(title, (kind, "count", "total", "share", "median", "longest"), rows, note)
